# SPDX-License-Identifier: Apache-2.0
"""Documentation of the action plugin of the same name."""

from __future__ import annotations

DOCUMENTATION = r"""
module: import_recipe
short_description: Make a recipe of another project into a recipe of SparkRing
version_added: "0.1.0"
description:
  - Reads a recipe of spark-vllm-docker (C(recipe_version 1)) or sparkrun (C(recipe_version 2)) and writes the same as a
    recipe of SparkRing. Runs on the controller, and runs nothing of what it reads.
  - Says of every part of the file what carries it, why it is dropped, or why it cannot be carried. Where a part is
    refused nothing is written.
  - A file that exists and differs is never written over.
options:
  source:
    description: The file to import.
    type: path
    required: true
  to:
    description: The recipe file to write. Without it, one in O(recipes_dir) named after O(source).
    type: path
  recipes_dir:
    description: Folder that holds the recipes.
    type: path
    required: true
  layout:
    description:
      - Layout of the ring that serves it. Without it, C(pair) for two ranks, and the cycle of as many hosts for more.
    type: str
author: SparkRing contributors (@sparkring)
"""

EXAMPLES = r"""
- name: Import a recipe
  sparkring.cluster.import_recipe:
    source: minimax-m2.7-nvfp4.yaml
    recipes_dir: recipes
  run_once: true
"""

RETURN = r"""
path:
  description: The recipe file.
  returned: success
  type: str
report:
  description: What became of each part, with C(kind) (mapped, chosen, dropped or refused), C(path) and C(said).
  returned: always, but for a file that is no such recipe
  type: list
  elements: dict
sparkring_lines:
  description: What was printed.
  returned: always, but for a file that is no such recipe
  type: list
  elements: str
"""
