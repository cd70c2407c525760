"""The playbook over a ring of four, with a module that writes down who was asked and who was changed."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.rings import make_inventory

ROOT = Path(__file__).resolve().parents[3]
GOLDEN = ROOT / "tests/golden/plan/cycle-4"
STAND_IN = '''#!/usr/bin/python
"""Writes down what it is asked for."""
from ansible.module_utils.basic import AnsibleModule
module = AnsibleModule({{"plan": {{"type": "dict"}}}}, supports_check_mode=True)
host = module.params["plan"]["host"]
with open({log!r}, "a") as log:
    log.write(("ask " if module.check_mode else "change ") + host + "\\n")
failing = {failing!r}
if failing == ("ask " if module.check_mode else "change ") + host:
    module.fail_json(msg=host + " must not")
module.exit_json(changed=True, changes=[] if host == {done!r} else [{{"id": "hairpin/cw_primary"}}])
'''


def collection(root: Path, failing: str, done: str) -> None:
    """The collection, its module replaced."""
    home = root / "ansible_collections/sparkring/cluster"
    (home / "plugins/modules").mkdir(parents=True)
    for name in ("galaxy.yml", "meta", "roles", "playbooks"):
        (home / name).symlink_to(ROOT / name)
    for path in (ROOT / "plugins").iterdir():
        if path.name != "modules":
            (home / "plugins" / path.name).symlink_to(path)
    for path in (ROOT / "plugins/modules").glob("*.py"):
        if path.name != "hairpin.py":
            (home / "plugins/modules" / path.name).symlink_to(path)
    text = STAND_IN.format(log=str(root / "log"), failing=failing, done=done)
    (home / "plugins/modules/hairpin.py").write_text(text)


def play(root: Path, *words: str, failing: str = "", done: str = "") -> tuple[int, list[str]]:
    """Exit code, and what was written down."""
    shutil.rmtree(root, ignore_errors=True)
    collection(root, failing, done)
    shutil.copytree(GOLDEN, root / "plans")
    given = make_inventory("cycle-4", "home")
    hosts = {host.name: {"ansible_host": host.address, "ansible_connection": "local"} for host in given.hosts}
    variables = {
        "sparkring_layout": "cycle-4",
        "sparkring_plans_dir": str(root / "plans"),
        "ansible_become": False,
        "ansible_python_interpreter": sys.executable,
    }
    inventory = {"sparkring": {"children": {"home": {"hosts": hosts, "vars": variables}}}}
    (root / "hosts.json").write_text(json.dumps(inventory))
    command = [str(Path(sys.executable).parent / "ansible-playbook"), "-i", str(root / "hosts.json")]
    done_run = subprocess.run(
        [*command, *words, str(ROOT / "playbooks/hairpin.yml")],
        env={**os.environ, "ANSIBLE_COLLECTIONS_PATH": str(root), "ANSIBLE_CONFIG": str(ROOT / "ansible.cfg")},
        cwd=root,
        capture_output=True,
        text=True,
        check=False,
    )
    log = root / "log"
    lines = log.read_text().splitlines() if log.exists() else [done_run.stdout + done_run.stderr]
    return done_run.returncode, lines


ASKED = [f"ask spark{number}" for number in range(4)]


@pytest.mark.parametrize(
    ("words", "failing", "done", "code", "changed"),
    [
        ((), "", "", 0, [0, 1, 2, 3]),
        ((), "", "spark1", 0, [0, 2, 3]),
        ((), "change spark1", "", 2, [0, 1]),
        ((), "ask spark3", "", 2, []),
        (("--check",), "", "", 0, []),
    ],
)
def test_the_head_first_then_one_after_the_other(
    tmp_path: Path, words: tuple[str, ...], failing: str, done: str, code: int, changed: list[int]
) -> None:
    got, lines = play(tmp_path / "run", *words, failing=failing, done=done)
    assert sorted(lines[:4]) == ASKED
    assert (got, lines[4:]) == (code, [f"change spark{number}" for number in changed])
