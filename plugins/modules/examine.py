# SPDX-License-Identifier: Apache-2.0
"""Documentation of the action plugin of the same name."""

from __future__ import annotations

DOCUMENTATION = r"""
module: examine
short_description: Survey a host for the doctor, whatever it lacks
version_added: "0.1.0"
description:
  - Runs M(sparkring.cluster.survey), which changes nothing. Where the task becomes root and root cannot be had, it
    looks again as the ordinary user, and tells that it did.
  - Never fails. A host that cannot be reached or has no Python is told in RV(obstacle), so that the others go on.
  - Notes the controller's time before and after, so that M(sparkring.cluster.doctor) can compare clocks.
options:
  management_interface:
    description: Interface by which the host is administered. Without it, the one of the ssh connection.
    type: str
attributes:
  check_mode:
    description: Runs the same in check mode, since it changes nothing.
    support: full
author: SparkRing contributors (@sparkring)
"""

EXAMPLES = r"""
- name: Look at the host
  sparkring.cluster.examine:
  become: true
  register: sparkring_examined
"""

RETURN = r"""
survey:
  description: The survey, a document of schema C(sparkring.survey/1); null where there is none.
  returned: always
  type: dict
obstacle:
  description: One of V(unreachable), V(no_python), V(no_privilege) and V(failed); null where nothing was in the way.
  returned: always
  type: str
reason:
  description: What the obstacle says, in one sentence.
  returned: always
  type: str
before:
  description: The controller's time before the survey, in seconds since 1970 UTC.
  returned: always
  type: float
after:
  description: The controller's time after the survey, in seconds since 1970 UTC.
  returned: always
  type: float
"""
