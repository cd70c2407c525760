# SPDX-License-Identifier: Apache-2.0
"""Documentation of the action plugin of the same name."""

from __future__ import annotations

DOCUMENTATION = r"""
module: deployment
short_description: Make what each host of a ring serves
version_added: "0.1.0"
description:
  - Renders the recipe that a ring names in C(sparkring_recipe), with its C(sparkring_settings), into one unit a rank.
    Runs on the controller and changes nothing.
  - Refuses in one sentence a recipe that does not fit the ring or needs something first, and a ring whose plan was
    not verified, where the recipe needs the mesh.
options:
  plans_dir:
    description: Folder that holds the plans of all rings.
    type: path
    required: true
  recipes_dir:
    description: Folder that holds the recipes.
    type: path
    required: true
author: SparkRing contributors (@sparkring)
"""

EXAMPLES = r"""
- name: Make the deployment
  sparkring.cluster.deployment:
    plans_dir: plans
    recipes_dir: recipes
  run_once: true
  register: deployed
"""

RETURN = r"""
ranks:
  description: By host, C(unit) for M(sparkring.cluster.rank), C(unit_text) and C(environment), and C(library)
    for M(sparkring.cluster.nccl) where the ring chose one.
  returned: success
  type: dict
sparkring_lines:
  description: What was printed.
  returned: success
  type: list
  elements: str
"""
