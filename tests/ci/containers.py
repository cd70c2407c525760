"""Container hosts for the Molecule scenarios: systemd as the first process, sshd, and nothing that `prepare` brings.

`up [HOSTS [FOLDER:PATH]]` imports the lab's root filesystem into Docker, starts the engine where none runs, and serves
the lab's package repository on the containers' own network, which leads nowhere else. Without a number there are two
hosts; a folder is seen by each of them, read-only. `down` ends all of it, the engine too if it was started here.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import time
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
sys.path.insert(0, str(ROOT / ".cache/collections"))

from ansible_collections.sparkring.cluster.plugins.module_utils.lab.commands import LabError
from ansible_collections.sparkring.cluster.plugins.module_utils.lab.image import Rootfs, build_rootfs

STATE = ROOT / ".cache/containers"
NETWORK = "sparkring-containers"
IMAGE = "sparkring-container-host"
SUBNET, GATEWAY, REPOSITORY_PORT = "10.98.0.0/24", "10.98.0.1", 8080
HOSTS = {f"spark{position}": f"10.98.0.{10 + position}" for position in range(4)}
CAPABILITIES = ["SYS_ADMIN", "NET_ADMIN", "NET_RAW", "SYS_NICE", "IPC_LOCK"]


def docker(*arguments: str, check: bool = True) -> subprocess.CompletedProcess[str]:
    """Run docker; what it says is shown when it fails."""
    ran = subprocess.run(["docker", *arguments], capture_output=True, text=True, check=False)
    if check and ran.returncode:
        sys.exit(f"docker {' '.join(arguments)} failed: {ran.stderr.strip()}")
    return ran


def wait(what: str, seconds: float, *arguments: str, accept: tuple[str, ...] = ()) -> None:
    """Wait until docker succeeds, or says one of the accepted words."""
    end = time.monotonic() + seconds
    while (ran := docker(*arguments, check=False)).returncode and ran.stdout.strip() not in accept:
        if time.monotonic() > end:
            sys.exit(f"{what} did not come up within {seconds:.0f} s: {(ran.stderr or ran.stdout).strip()}")
        time.sleep(0.5)


def start(name: str, command: list[str]) -> None:
    """Start a process that outlives this one; `stop` ends it."""
    with (STATE / f"{name}.log").open("w") as log:
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, stdout=log, stderr=subprocess.STDOUT, start_new_session=True
        )
    (STATE / f"{name}.pid").write_text(str(process.pid))


def stop(name: str) -> None:
    """End a process that `start` started."""
    file = STATE / f"{name}.pid"
    if not file.exists():
        return
    pid = int(file.read_text())
    with contextlib.suppress(ProcessLookupError):
        os.kill(pid, signal.SIGTERM)
        for _ in range(100):
            os.kill(pid, 0)
            time.sleep(0.1)
    file.unlink()


def engine() -> None:
    """A Docker engine: the one that runs, or one of our own."""
    if not shutil.which("docker") or not shutil.which("dockerd"):
        sys.exit("Container hosts need Docker: run apt-get install -y docker.io iptables.")
    if docker("info", check=False).returncode:
        start("engine", ["dockerd"])
        wait("The Docker engine", 60, "info")


def image(rootfs: Rootfs) -> str:
    """The root filesystem as an image, imported once."""
    name = f"{IMAGE}:{Path(rootfs.directory).name}"
    if docker("image", "inspect", name, check=False).returncode:
        docker("import", "--change", 'CMD ["/lib/systemd/systemd"]', rootfs.tar, name)
    return name


def run_host(host: str, image_name: str, folders: list[str]) -> None:
    """One container host, with an ssh key of its own whose fingerprint is written down."""
    key = STATE / f"{host}.key"
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", host, "-f", str(key)], check=True)
    told = subprocess.run(["ssh-keygen", "-l", "-f", str(key)], check=True, capture_output=True, text=True)
    (STATE / f"{host}.fingerprint").write_text(told.stdout.split()[1])
    capabilities = [word for name in CAPABILITIES for word in ("--cap-add", name)]
    mounts = [word for path in ("/run", "/run/lock", "/tmp") for word in ("--tmpfs", path)]
    mounts += [word for folder in folders for word in ("--volume", f"{folder}:ro")]
    docker(
        "create", "--name", f"sparkring-{host}", "--hostname", host, "--network", NETWORK, "--ip", HOSTS[host],
        *capabilities, "--security-opt", "seccomp=unconfined", "--security-opt", "apparmor=unconfined",
        *mounts, "--shm-size", "1g", "--cgroupns=private", "--env", "container=docker", image_name,
    )  # fmt: skip
    docker("cp", str(key), f"sparkring-{host}:/etc/ssh/ssh_host_ed25519_key")
    docker("cp", str(STATE / "sources.list"), f"sparkring-{host}:/etc/apt/sources.list")
    docker("start", f"sparkring-{host}")


def up(count: str = "2", *folders: str) -> None:
    """Engine, image, network, repository, hosts."""
    STATE.mkdir(parents=True, exist_ok=True)
    try:
        rootfs, _built = build_rootfs(str(ROOT / ".lab"))
    except LabError as error:
        sys.exit(str(error))
    engine()
    image_name = image(rootfs)
    docker("network", "create", "--internal", "--subnet", SUBNET, "--gateway", GATEWAY, NETWORK)
    server = ["-m", "http.server", "--bind", GATEWAY, "--directory", rootfs.repository, str(REPOSITORY_PORT)]
    start("repository", [sys.executable, *server])
    (STATE / "sources.list").write_text(f"deb [trusted=yes] http://{GATEWAY}:{REPOSITORY_PORT}/ ./\n")
    operator = ["-C", "operator", "-f", str(STATE / "operator")]
    subprocess.run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", *operator], check=True)
    hosts = list(HOSTS)[: int(count)]
    for host in hosts:
        run_host(host, image_name, [str(Path(folder).resolve()) for folder in folders])
    for host in hosts:
        booted = ("exec", f"sparkring-{host}", "systemctl", "is-system-running", "--wait")
        wait(host, 60, *booted, accept=("degraded",))


def down() -> None:
    """End everything that `up` started."""
    if shutil.which("docker") and not docker("info", check=False).returncode:
        docker("rm", "--force", *(f"sparkring-{host}" for host in HOSTS), check=False)
        docker("network", "rm", NETWORK, check=False)
    stop("repository")
    stop("engine")
    shutil.rmtree(STATE, ignore_errors=True)


if __name__ == "__main__":
    {"up": up, "down": down}[sys.argv[1]](*sys.argv[2:])
