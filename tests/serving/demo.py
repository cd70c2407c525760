"""Serve a tiny model with a real vLLM for CPUs over two container hosts, then over four.

What `sparkring serve` starts must give the same greedy tokens as one rank alone. The engine's own parser must take the
command lines of all recipes, but for what their images added. Everything lies in `.cache/serving`; the hosts are ended
afterwards.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import yaml

from tests.unit.recipe.examples import ALL, RENDERED, units

ROOT = Path(__file__).resolve().parents[2]
PLACE = ROOT / ".cache/serving"
SEEN = "/opt/sparkring"
MODEL = f"{SEEN}/models/tiny"
PROMPT, COUNT = [7, 42, 99, 12, 300, 5], 24
ENGINE = {"VLLM_CPU_KVCACHE_SPACE": "1", "OMP_NUM_THREADS": "1", "HF_HUB_OFFLINE": "1", "VLLM_DO_NOT_TRACK": "1"}
ASK = """
import json, sys, urllib.request
key = open("/etc/sparkring-node/rank/key").read().strip().partition("=")[2]
request = urllib.request.Request("http://127.0.0.1:8000/v1/completions", sys.argv[1].encode())
request.add_header("Content-Type", "application/json")
request.add_header("Authorization", "Bearer " + key)
print(json.dumps(json.load(urllib.request.urlopen(request, timeout=300))["choices"][0]["token_ids"]))
"""


def step(words: str) -> None:
    """Say what comes next."""
    print(f"\n== {words}", flush=True)


def run(*command: str) -> str:
    """Run a command whose answer is wanted; what it says is shown when it fails."""
    ran = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT)
    if ran.returncode:
        sys.exit(f"{command[0]} {command[1]} failed: {ran.stdout[-2000:]}{ran.stderr[-2000:]}")
    return ran.stdout


def show(*command: str) -> None:
    """Run a command that shows its own progress."""
    ended = subprocess.run(command, check=False, cwd=ROOT).returncode
    if ended:
        sys.exit(f"{' '.join(command)} ended with {ended}")


def containers(*words: str) -> None:
    """Start or end the container hosts."""
    show(sys.executable, "tests/ci/containers.py", *words)


def sparkring(verb: str, inventory: Path) -> None:
    """One verb of the command."""
    show(str(ROOT / "bin/sparkring"), verb, "-i", str(inventory))


def inventory(ranks: int) -> Path:
    """The hosts as a ring of so many; the Molecule scenario's inventory with the recipe of that many ranks."""
    made: dict[str, Any] = yaml.safe_load((ROOT / "molecule/serve/inventory/hosts.yml").read_text())
    ring = made["sparkring"]["children"]["bench"]
    ring["hosts"] = {
        f"spark{rank}": {
            "ansible_host": f"10.98.0.{10 + rank}",
            "sparkring_endpoints": {"cw_primary": f"10.99.0.{1 + rank}/24"},
        }
        for rank in range(ranks)
    }
    ring["vars"] |= {
        "sparkring_plans_dir": str(PLACE / f"plans-{ranks}"),
        "sparkring_recipes_dir": str(ROOT / "tests/serving/recipes"),
        "sparkring_recipe": f"tiny-tp{ranks}",
        "sparkring_settings": {"venv": f"{SEEN}/vllm", "folders": {"model": MODEL}},
        "containers": str(ROOT / ".cache/containers"),
    }
    path = PLACE / f"hosts-{ranks}.yml"
    path.write_text(yaml.safe_dump(made, sort_keys=False))
    return path


def in_host(*words: str, environment: dict[str, str] | None = None) -> str:
    """Run something on the head, as root."""
    given = [word for name, value in (environment or {}).items() for word in ("--env", f"{name}={value}")]
    return run("docker", "exec", *given, "sparkring-spark0", *words)


def alone() -> list[int]:
    """The tokens of one rank, kept since they cannot change."""
    told = in_host(
        f"{SEEN}/vllm/bin/python3", f"{SEEN}/reference.py", MODEL, json.dumps(PROMPT), str(COUNT),
        environment={**ENGINE, "HOME": "/tmp"},
    )  # fmt: skip
    return list(json.loads(next(line for line in told.splitlines() if line.startswith("tokens"))[7:]))


def served() -> list[int]:
    """The tokens that the API gives."""
    asked = {"model": "tiny", "prompt": PROMPT, "max_tokens": COUNT, "temperature": 0, "ignore_eos": True}
    return list(json.loads(in_host("python3", "-c", ASK, json.dumps({**asked, "return_token_ids": True}))))


def parsed() -> None:
    """Every recipe's command lines, as the golden units have them, before the engine's own parser."""
    lines = {f"{name} {unit.rank}": unit.command for name in RENDERED for unit in units(ALL[name])}
    seen = ["docker", "exec", "--interactive", "sparkring-spark0", f"{SEEN}/vllm/bin/python3", f"{SEEN}/parser.py"]
    ran = subprocess.run(seen, input=json.dumps(lines), capture_output=True, text=True, check=False)
    print(ran.stdout.strip())
    if ran.returncode:
        sys.exit(ran.stderr[-2000:])


def prepare() -> None:
    """The environment, the model, the hosts."""
    step("The engine and the model")
    PLACE.mkdir(parents=True, exist_ok=True)
    show(sys.executable, "tests/serving/environment.py", str(PLACE / "vllm"))
    for name in ("model.py", "parser.py", "reference.py"):
        (PLACE / name).write_text((ROOT / "tests/serving" / name).read_text())
    step("Four hosts without a GPU")
    containers("down")
    containers("up", "4", f"{PLACE}:{SEEN}")
    if not (PLACE / "models/tiny/config.json").exists():
        image = run("docker", "inspect", "--format", "{{.Image}}", "sparkring-spark0").strip()
        made = [f"{SEEN}/vllm/bin/python3", f"{SEEN}/model.py", MODEL]
        run("docker", "run", "--rm", "--network", "none", "--volume", f"{PLACE}:{SEEN}", image, *made)


def main() -> int:
    """Serve on two and on four hosts; 0 where both give the tokens of one."""
    os.environ.setdefault("ANSIBLE_HOST_KEY_CHECKING", "True")
    began = time.monotonic()
    prepare()
    step("What the engine says to the recipes' command lines")
    parsed()
    step("Meet the hosts")
    sparkring("prepare", inventory(4))
    step("One rank alone")
    expected = alone()
    found = {1: expected}
    for ranks in (2, 4):
        step(f"{ranks} ranks")
        hosts = inventory(ranks)
        sparkring("plan", hosts)
        sparkring("serve", hosts)
        found[ranks] = served()
        sparkring("stop", hosts)
    containers("down")
    step(f"Greedy tokens, after {time.monotonic() - began:.0f} s")
    for ranks, tokens in found.items():
        print(f"{ranks} rank{'s' if ranks > 1 else ' '}  {' '.join(map(str, tokens))}")
    return 0 if all(tokens == expected for tokens in found.values()) else 1


if __name__ == "__main__":
    sys.exit(main())
