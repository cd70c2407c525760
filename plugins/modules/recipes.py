# SPDX-License-Identifier: Apache-2.0
"""Documentation of the action plugin of the same name."""

from __future__ import annotations

DOCUMENTATION = r"""
module: recipes
short_description: Say which recipes the rings of a run can serve, and why not the others
version_added: "0.1.0"
description:
  - Judges every recipe of a folder against each ring's plan. Runs on the controller and changes nothing.
  - Accepted licences and folders are read from the ring's variable C(sparkring_settings).
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
- name: Judge the recipes
  sparkring.cluster.recipes:
    plans_dir: plans
    recipes_dir: recipes
  run_once: true
"""

RETURN = r"""
recipes:
  description: By ring, each recipe with verdict, reasons, needs and warnings.
  returned: success
  type: dict
sparkring_lines:
  description: What was printed.
  returned: success
  type: list
  elements: str
"""
