"""What makes each virtual host itself, and the keys that lead to it; kept between runs."""

from __future__ import annotations

import io
import os
import tarfile
import uuid
from pathlib import Path

from . import guest
from . import layout as names
from .commands import run
from .layout import Layout


def operator_key(directory: str) -> Path:
    """Private key of user `operator` on every virtual host."""
    return _key(Path(directory, "keys"), "operator_ed25519")


def write(directory: str, layout: Layout) -> list[bytes]:
    """Write each host's identity disk; the tars' bytes, which are the same as long as the keys are."""
    hosts_file = "127.0.0.1 localhost\n::1 localhost\n" + "".join(
        f"{names.address(host)} {names.host_name(host)}\n" for host in range(layout.size)
    )
    authorised = operator_key(directory).with_suffix(".pub").read_text()
    tars = []
    for host in range(layout.size):
        home = Path(directory, "hosts", names.host_name(host))
        key = _key(home, "ssh_host_ed25519_key")
        machine_id = home / "machine-id"
        if not machine_id.exists():
            machine_id.write_text(uuid.uuid4().hex + "\n")
        tar = _tar(
            [
                ("etc/hostname", names.host_name(host) + "\n", 0o644, 0),
                ("etc/hosts", hosts_file, 0o644, 0),
                ("etc/ssh/ssh_host_ed25519_key", key.read_text(), 0o600, 0),
                ("etc/ssh/ssh_host_ed25519_key.pub", key.with_suffix(".pub").read_text(), 0o644, 0),
                (f"home/{guest.OPERATOR}/.ssh/", "", 0o700, 1000),
                (f"home/{guest.OPERATOR}/.ssh/authorized_keys", authorised, 0o600, 1000),
                # Last, because its presence says that the rest was unpacked.
                ("etc/machine-id", machine_id.read_text(), 0o444, 0),
            ]
        )
        (home / "identity.tar").write_bytes(tar)
        tars.append(tar)
    return tars


def write_known_hosts(directory: str, layout: Layout) -> Path:
    """The known-hosts file of the lab's forwarded ssh ports."""
    path = Path(directory, "known_hosts")
    lines = []
    for host in range(layout.size):
        public = Path(directory, "hosts", names.host_name(host), "ssh_host_ed25519_key.pub").read_text().split()
        lines.append(f"[127.0.0.1]:{names.ssh_port(host)} {public[0]} {public[1]}\n")
    path.write_text("".join(lines))
    return path


def write_inventory(directory: str, layout: Layout) -> Path:
    """The ordinary Ansible inventory of the lab."""
    known_hosts = os.path.join(directory, "known_hosts")
    ssh = (
        f"-o UserKnownHostsFile='{known_hosts}' -o GlobalKnownHostsFile=/dev/null -o StrictHostKeyChecking=yes"
        " -o IdentitiesOnly=yes"
    )
    lines = [
        "# Written by lab_up; changes are overwritten.",
        "sparkring:",
        "  children:",
        "    lab:",
        "      hosts:",
    ]
    for host in range(layout.size):
        lines.append(f"        {names.host_name(host)}: {{ansible_port: {names.ssh_port(host)}}}")
    lines += [
        "      vars:",
        f"        sparkring_layout: {layout.name}",
        f"        sparkring_plans_dir: {_quoted(os.path.join(directory, 'plans'))}",
        f"        sparkring_known_hosts: {_quoted(known_hosts)}",
        "        ansible_host: 127.0.0.1",
        f"        ansible_user: {guest.OPERATOR}",
        f"        ansible_ssh_private_key_file: {_quoted(str(operator_key(directory)))}",
        f"        ansible_ssh_common_args: {_quoted(ssh)}",
        "        ansible_python_interpreter: /usr/bin/python3",
    ]
    path = Path(directory, "inventory", "hosts.yml")
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text("\n".join(lines) + "\n")
    return path


def _quoted(text: str) -> str:
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _key(directory: Path, name: str) -> Path:
    directory.mkdir(parents=True, exist_ok=True)
    key = directory / name
    if not key.exists():
        run(["ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-C", "sparkring-lab", "-f", str(key)])
    return key


def _tar(entries: list[tuple[str, str, int, int]]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        for name, text, mode, owner in entries:
            entry = tarfile.TarInfo(name.rstrip("/"))
            entry.type = tarfile.DIRTYPE if name.endswith("/") else tarfile.REGTYPE
            entry.size, entry.mode, entry.uid = len(text.encode()), mode, owner
            entry.gid = 100 if owner else 0
            tar.addfile(entry, io.BytesIO(text.encode()))
    return buffer.getvalue()
