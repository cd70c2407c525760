# SPDX-License-Identifier: Apache-2.0
"""Documentation of the action plugin of the same name."""

from __future__ import annotations

DOCUMENTATION = r"""
module: host_key
short_description: Pin a host's ssh key before first contact
version_added: "0.1.0"
description:
  - Runs on the controller. A key that the known hosts file holds already is left as it is.
  - Otherwise the host's ed25519 key is scanned, and pinned only when its fingerprint is among O(fingerprints).
    Without O(fingerprints) nothing is pinned, and the fingerprint is returned for somebody to confirm.
options:
  address:
    description: Address of the host's ssh server.
    type: str
    required: true
  port:
    description: Port of the host's ssh server.
    type: int
    default: 22
  known_hosts:
    description: Known hosts file to pin the key in.
    type: path
    required: true
  fingerprints:
    description: Fingerprints that the host may show, each like C(SHA256:…).
    type: list
    elements: str
    default: []
author: SparkRing contributors (@sparkring)
"""

EXAMPLES = r"""
- name: Pin the host key
  sparkring.cluster.host_key:
    address: "{{ ansible_host }}"
    known_hosts: ~/.ssh/known_hosts
    fingerprints: ["SHA256:47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU"]
"""

RETURN = r"""
pinned:
  description: Whether the file holds a key of the host now.
  returned: success
  type: bool
fingerprint:
  description: The fingerprint that the host showed.
  returned: when the host was scanned
  type: str
"""
