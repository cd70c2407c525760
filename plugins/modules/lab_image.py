"""Build the virtual hosts' image."""

from __future__ import annotations

DOCUMENTATION = r"""
module: lab_image
short_description: Build what the lab's virtual hosts boot from
version_added: "0.1.0"
description:
  - Builds a Debian root filesystem, and from it a disk image with kernel and initrd, and a package repository.
  - Results are cached by content under O(directory); a second run builds nothing.
author:
  - SparkRing contributors (@sparkring)
options:
  directory:
    description: The lab's directory, as an absolute path.
    type: path
    required: true
  build:
    description:
      - V(requirements) only checks that this machine can run the lab.
      - V(rootfs) builds the root filesystem tar alone, which container hosts import.
      - V(image) builds all that virtual hosts boot from.
    type: str
    choices: [requirements, rootfs, image]
    default: image
  mirror:
    description: A Debian mirror; empty is the default of C(mmdebstrap).
    type: str
    default: ""
attributes:
  check_mode:
    description: Says whether something would be built.
    support: full
"""

EXAMPLES = r"""
- name: Build the image of the virtual hosts
  sparkring.cluster.lab_image:
    directory: "{{ playbook_dir }}/.lab"
"""

RETURN = r"""
rootfs:
  description: Directory that holds C(rootfs.tar) and C(repository/).
  returned: always
  type: str
image:
  description: Directory that holds the disk image, kernel and initrd.
  returned: always
  type: str
"""

import os

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.sparkring.cluster.plugins.module_utils.lab import image
from ansible_collections.sparkring.cluster.plugins.module_utils.lab.commands import LabError, check_requirements


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        argument_spec={
            "directory": {"type": "path", "required": True},
            "build": {"type": "str", "choices": ["requirements", "rootfs", "image"], "default": "image"},
            "mirror": {"type": "str", "default": ""},
        },
        supports_check_mode=True,
    )
    directory, build, mirror = (module.params[name] for name in ("directory", "build", "mirror"))
    rootfs, disk = image.rootfs_of(directory, mirror), image.image_of(directory, mirror)
    target = {"requirements": None, "rootfs": rootfs.directory, "image": disk.directory}[build]
    changed = target is not None and not os.path.isdir(target)
    try:
        if target is None:
            check_requirements()
        elif changed and not module.check_mode:
            (image.build_rootfs if build == "rootfs" else image.build_image)(directory, mirror)
    except LabError as error:
        module.fail_json(msg=str(error))
    module.exit_json(changed=changed, rootfs=rootfs.directory, image=disk.directory)


if __name__ == "__main__":
    main()
