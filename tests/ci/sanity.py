"""Run ansible-test sanity on a copy of the checkout, without the network places that it fetches pip from.

ansible-test wants a git tree below `ansible_collections/<namespace>/<name>`, and takes a pip bootstrap script from its
cache when one lies there: ours unpacks the pip that Python brings. Its environments stay in `.cache/sanity`.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

from tree import ROOT, copy_to

HOME = ROOT / ".cache/sanity/home"
TREE = ROOT / ".cache/sanity/ansible_collections/sparkring/cluster"
ENVIRONMENT = {**os.environ, "HOME": str(HOME), "LC_ALL": "C.UTF-8"}
PYTHON = "{}.{}".format(*sys.version_info)
BOOTSTRAP = "import ensurepip\nensurepip.bootstrap(default_pip=True)\n"
SKIPPED = {
    "pslint": "no PowerShell here",
    "pylint": "ruff and mypy judge this code; pylint's rules for Ansible refuse `_` and the output of programs",
    "shellcheck": "no shell is shipped",
}


def sanity(*arguments: str) -> subprocess.CompletedProcess[str]:
    """One run of ansible-test sanity in the copy."""
    skips = [word for test in SKIPPED for word in ("--skip-test", test)]
    return subprocess.run(
        ["ansible-test", "sanity", "--color", "no", "--python", PYTHON, *skips, *arguments],
        cwd=TREE, env=ENVIRONMENT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True, check=False,
    )  # fmt: skip


def prime() -> None:
    """Make ansible-test's environments; a first try tells where it looks for the bootstrap script."""
    tried = sanity("--prime-venvs", "--test", "yamllint")
    if wanted := re.search(r"manually downloaded and saved to: (\S+)", tried.stdout):
        Path(wanted[1]).parent.mkdir(parents=True, exist_ok=True)
        Path(wanted[1]).write_text(BOOTSTRAP)
    tried = sanity("--prime-venvs")
    if tried.returncode:
        sys.exit(f"{tried.stdout}\nansible-test's environments could not be made.")
    for python in HOME.glob(".ansible/test/venv/sanity.import.plugin/*/*/bin/python"):
        pip = [sys.executable, "-m", "pip", "--python", str(python), "install", "-qq", "pydantic", "rich"]
        subprocess.run(pip, check=True)


def main() -> None:
    """Prime, run, count."""
    HOME.mkdir(parents=True, exist_ok=True)
    copy_to(TREE)
    subprocess.run(["git", "init", "--quiet"], cwd=TREE, check=True)
    subprocess.run(["git", "add", "--all"], cwd=TREE, check=True)
    prime()
    ran = sanity()
    print(ran.stdout)
    tests = set(re.findall(r'^Running sanity test "([\w-]+)"', ran.stdout, re.MULTILINE))
    bad = re.search(r"listed below \(out of \d+\) failed\.[^\n]*\n((?:[\w-]+.*\n)*)", ran.stdout)
    failed = len(bad[1].splitlines()) if bad else int(ran.returncode != 0)
    print(f"sanity: {len(tests) - failed} passed, {failed} failed")
    sys.exit(ran.returncode or not tests)


if __name__ == "__main__":
    main()
