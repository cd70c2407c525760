#!/usr/bin/python
# SPDX-License-Identifier: Apache-2.0
"""The NCCL library of one host."""

from __future__ import annotations

DOCUMENTATION = r"""
module: nccl
short_description: Put the NCCL library of a deployment in its place
version_added: 0.1.0
description:
  - Lays the library that a ring chose in C(sparkring_settings.nccl) where its ranks open it. Its path carries its
    SHA-256, so libraries lie beside each other, and one that is there is never fetched again.
  - It takes its place after its SHA-256, its machine, the version that it calls itself, and the glibc that it needs
    were checked.
options:
  path:
    description: Where it belongs.
    type: str
    required: true
  sha256:
    description: SHA-256 of the file, as 64 hex digits.
    type: str
    required: true
  version:
    description: The version that it calls itself.
    type: str
    required: true
  engine_image:
    description: The image whose process opens it; without one, a program of the host does.
    type: str
  file:
    description: A file on the controller to take it from.
    type: path
  url:
    description: A URL that the host can reach, to take it from.
    type: str
  image:
    description: An image that the host has, to take it from.
    type: str
  image_path:
    description: Its path in O(image).
    type: str
attributes:
  check_mode:
    description: Says whether it would be laid.
    support: full
  diff_mode:
    description: The file is no text.
    support: none
author:
  - SparkRing (@sparkring)
"""

EXAMPLES = r"""
- name: Put the library in its place
  sparkring.cluster.nccl:
    path: /usr/local/lib/sparkring-node/nccl/0c1d…/libnccl.so.2
    sha256: 0c1d…
    version: 2.30.7
    file: ~/libnccl.so.2
"""

RETURN = r"""
path:
  description: Where the library lies, or would.
  returned: always
  type: str
"""

import shutil
from typing import BinaryIO

from ansible.module_utils.basic import AnsibleModule
from ansible.module_utils.urls import open_url

from ansible_collections.sparkring.cluster.plugins.module_utils.node import nccl_library
from ansible_collections.sparkring.cluster.plugins.module_utils.node.commands import HostError
from ansible_collections.sparkring.cluster.plugins.module_utils.node.host import Host

URL_SECONDS = 30


def from_url(url: str) -> nccl_library.Fill:
    """Take it from a URL; its digest says whether it is the right one."""

    def fill(stream: BinaryIO) -> None:
        with open_url(url, timeout=URL_SECONDS) as answer:
            shutil.copyfileobj(answer, stream, 1 << 20)

    return fill


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        {
            "path": {"type": "str", "required": True},
            "sha256": {"type": "str", "required": True},
            "version": {"type": "str", "required": True},
            "engine_image": {"type": "str"},
            "file": {"type": "path"},
            "url": {"type": "str"},
            "image": {"type": "str"},
            "image_path": {"type": "str"},
        },
        mutually_exclusive=[("file", "url", "image")],
        required_together=[("image", "image_path")],
        supports_check_mode=True,
    )
    given, host = module.params, Host()
    wanted = nccl_library.Wanted(given["path"], given["sha256"], given["version"], given["engine_image"])
    try:
        changed = not nccl_library.lies(host, wanted)
        if changed and not module.check_mode:
            nccl_library.place(host, wanted, _source(host, given))
    except (HostError, OSError) as error:
        module.fail_json(msg=f"{error}.")
    module.exit_json(changed=changed, path=wanted.path)


def _source(host: Host, given: dict[str, str]) -> nccl_library.Fill:
    if given["image"]:
        return nccl_library.from_image(host, given["image"], given["image_path"])
    if given["url"]:
        return from_url(given["url"])
    if given["file"]:
        return nccl_library.from_file(given["file"])
    raise HostError(
        f"NCCL {given['version']} with SHA-256 {given['sha256']} is not on this host: say in sparkring_nccl_from "
        "where to take it from, {file: …}, {url: …} or {image: …, path: …}"
    )


if __name__ == "__main__":
    main()
