"""Build the collection's artefact, install it offline as a user would, and resolve what it brings by FQCN."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile

from tree import ROOT, copy_to

DIST = ROOT / ".cache/dist"
NAMESPACE = "sparkring.cluster"


def run(*command: str, **environment: str) -> str:
    """Standard output of a command outside the checkout, so that only what is installed is found."""
    with tempfile.TemporaryDirectory() as elsewhere:
        ran = subprocess.run(
            command, cwd=elsewhere, env={**os.environ, **environment}, stdout=subprocess.PIPE, text=True, check=False
        )
    if ran.returncode:
        sys.exit(f"{' '.join(command)} failed:\n{ran.stdout}")
    return ran.stdout


def main() -> None:
    """Build, install, resolve every module, action and role of the checkout."""
    shutil.rmtree(DIST, ignore_errors=True)
    collections = DIST / "collections"
    copy_to(DIST / "tree")
    run("ansible-galaxy", "collection", "build", str(DIST / "tree"), "--output-path", str(DIST))
    (artefact,) = DIST.glob("sparkring-cluster-*.tar.gz")
    (DIST / "ansible.cfg").write_text("")
    installed = {"ANSIBLE_CONFIG": str(DIST / "ansible.cfg"), "ANSIBLE_COLLECTIONS_PATH": str(collections)}
    run("ansible-galaxy", "collection", "install", str(artefact), "-p", str(collections), "--offline", **installed)
    modules = sorted(path.stem for path in (ROOT / "plugins/modules").glob("*.py"))
    roles = sorted(path.parent.parent.name for path in (ROOT / "roles").glob("*/meta/argument_specs.yml"))
    for kind, names in (("module", modules), ("role", roles)):
        for name in names:
            if f"{NAMESPACE}.{name}" not in run("ansible-doc", "-t", kind, "-j", f"{NAMESPACE}.{name}", **installed):
                sys.exit(f"{artefact.name}: the {kind} {NAMESPACE}.{name} is not in the artefact.")
    tree = collections / "ansible_collections/sparkring/cluster"
    strays = [name for name in ("tests", "molecule", ".venv", ".cache", ".lab", ".git") if (tree / name).exists()]
    if strays or not (tree / "bin/sparkring").exists():
        sys.exit(f"{artefact.name}: {', '.join(strays) or 'no bin/sparkring'} in the artefact.")
    print(f"{artefact.name}: {artefact.stat().st_size // 1024} KiB, {', '.join(modules + roles)}")
    print(f"build: {1 + len(modules) + len(roles)} passed, 0 failed")


if __name__ == "__main__":
    main()
