"""Run the virtual ring."""

from __future__ import annotations

DOCUMENTATION = r"""
module: lab_ring
short_description: Run a ring of virtual hosts on this machine
version_added: "0.1.0"
description:
  - Starts and ends the lab, saves and restores it while it runs, pulls its cables and cuts its hosts' power.
  - Needs root. Everything that runs lives in the network namespace C(sparkring-lab).
author:
  - SparkRing contributors (@sparkring)
options:
  state:
    description:
      - V(present) starts the ring and waits until every host answers ssh; V(absent) ends it.
      - V(snapshot) saves the running ring under O(name), and V(restored) puts it back to that.
      - V(pulled) and V(plugged) take away and give back both ends' carrier of O(cable).
      - V(cabled) moves the cables of the running ring so that they are O(cables) and no others, all plugged.
      - V(off), V(on) and V(reset) cut the power of O(host), start it, or press its reset button; none waits for it.
    type: str
    choices: [present, absent, snapshot, restored, pulled, plugged, cabled, "off", "on", reset]
    default: present
  directory:
    description: The lab's directory, as an absolute path.
    type: path
  layout:
    description: The ring's layout, V(pair), V(path-3) to V(path-8) or V(cycle-3) to V(cycle-8).
    type: str
    default: cycle-4
  memory_mib:
    description: Memory of each host.
    type: int
    default: 1024
  mirror:
    description: The Debian mirror that the image was built from.
    type: str
    default: ""
  name:
    description: Name of a snapshot; V(booted) is what every cold start saves.
    type: str
  cable:
    description: Number of a cable.
    type: int
  cables:
    description: Cables such as V(spark0.p0-spark1.p1,spark1.p0-spark2.p1); none are the layout's own.
    type: str
    default: ""
  host:
    description: Position of a host.
    type: int
attributes:
  check_mode:
    description: Not supported; the module is skipped.
    support: none
"""

EXAMPLES = r"""
- name: Start a ring of four virtual hosts
  sparkring.cluster.lab_ring:
    directory: "{{ playbook_dir }}/.lab"
    layout: cycle-4

- name: Pull cable 2
  sparkring.cluster.lab_ring:
    state: pulled
    cable: 2

- name: Cable both ports of spark0 to spark1
  sparkring.cluster.lab_ring:
    state: cabled
    cables: spark0.p0-spark1.p1,spark1.p0-spark0.p1
"""

RETURN = r"""
start:
  description: V(cold), V(warm) from the saved boot, or V(running) already.
  returned: when O(state=present)
  type: str
seconds:
  description: How long it took until every host answered.
  returned: when O(state=present)
  type: float
acceleration:
  description: V(kvm) or V(tcg).
  returned: when O(state=present)
  type: str
inventory:
  description: The inventory of the lab.
  returned: when O(state=present)
  type: str
"""

from typing import Any, Callable

from ansible.module_utils.basic import AnsibleModule

from ansible_collections.sparkring.cluster.plugins.module_utils.lab import image, ring
from ansible_collections.sparkring.cluster.plugins.module_utils.lab.commands import LabError

STATES = ["present", "absent", "snapshot", "restored", "pulled", "plugged", "cabled", "off", "on", "reset"]


def main() -> None:
    """Run the module."""
    module = AnsibleModule(
        argument_spec={
            "state": {"type": "str", "choices": STATES, "default": "present"},
            "directory": {"type": "path"},
            "layout": {"type": "str", "default": "cycle-4"},
            "memory_mib": {"type": "int", "default": 1024},
            "mirror": {"type": "str", "default": ""},
            "name": {"type": "str"},
            "cable": {"type": "int"},
            "cables": {"type": "str", "default": ""},
            "host": {"type": "int"},
        },
        required_if=[("state", "present", ["directory"])]
        + [("state", state, ["name"]) for state in ("snapshot", "restored")]
        + [("state", state, ["cable"]) for state in ("pulled", "plugged")]
        + [("state", state, ["host"]) for state in ("off", "on", "reset")],
    )
    given = module.params
    actions: dict[str, Callable[[], dict[str, Any]]] = {
        "present": lambda: ring.up(
            given["directory"],
            given["layout"],
            given["memory_mib"],
            image.image_of(given["directory"], given["mirror"]),
        ),
        "absent": lambda: {"changed": ring.down()},
        "snapshot": lambda: {"changed": ring.save_snapshot(given["name"])},
        "restored": lambda: {"changed": ring.restore_snapshot(given["name"])},
        "pulled": lambda: {"changed": ring.set_cable(given["cable"], False)},
        "plugged": lambda: {"changed": ring.set_cable(given["cable"], True)},
        "cabled": lambda: {"changed": ring.set_cables(given["cables"])},
    }
    try:
        if given["state"] in actions:
            result = actions[given["state"]]()
        else:
            result = {"changed": ring.power(given["host"], given["state"])}
    except LabError as error:
        module.fail_json(msg=str(error))
    module.exit_json(**result)


if __name__ == "__main__":
    main()
