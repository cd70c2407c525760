"""The image's cache, its package index and the scripts that the hosts run."""

from __future__ import annotations

import gzip
import hashlib
import os
import subprocess
from pathlib import Path

import pytest

from ansible_collections.sparkring.cluster.plugins.module_utils.contract.endpoints import ROLES
from ansible_collections.sparkring.cluster.plugins.module_utils.lab import commands, guest, image
from ansible_collections.sparkring.cluster.plugins.module_utils.lab.commands import LabError


def test_cache_follows_content(monkeypatch: pytest.MonkeyPatch) -> None:
    before = image.rootfs_of("/lab"), image.image_of("/lab")
    assert (image.rootfs_of("/lab"), image.image_of("/lab")) == before
    monkeypatch.setattr(guest, "VIRTUAL_HOST_FILES", {**guest.VIRTUAL_HOST_FILES, "etc/more": "x"})
    assert image.rootfs_of("/lab") == before[0], "what only virtual hosts have leaves the tar alone"
    assert image.image_of("/lab") != before[1]
    monkeypatch.setattr(guest, "PACKAGES", (*guest.PACKAGES, "tree"))
    assert image.rootfs_of("/lab") != before[0]


def test_built_things_are_not_built_again(tmp_path: Path) -> None:
    os.makedirs(image.rootfs_of(str(tmp_path)).repository)
    os.makedirs(image.image_of(str(tmp_path)).directory)
    assert image.build_rootfs(str(tmp_path)) == (image.rootfs_of(str(tmp_path)), False)
    assert image.build_image(str(tmp_path)) == (image.image_of(str(tmp_path)), False)


def test_a_failed_build_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(command: list[str], **_: object) -> str:
        Path(command[-1]).write_text("half")
        raise LabError("mmdebstrap failed")

    monkeypatch.setattr(image, "run", fail)
    monkeypatch.setattr(image, "check_requirements", lambda: None)
    with pytest.raises(LabError, match="mmdebstrap failed"):
        image.build_rootfs(str(tmp_path))
    assert list((tmp_path / "cache").iterdir()) == []


def test_package_index(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "tool_1%3a6.1_amd64.deb").write_bytes(b"deb")
    monkeypatch.setattr(image, "run", lambda command: "Package: tool\nVersion: 1:6.1\n")
    image._index_repository(tmp_path)
    digest = hashlib.sha256(b"deb").hexdigest()
    expected = f"Package: tool\nVersion: 1:6.1\nFilename: ./tool_1.6.1_amd64.deb\nSize: 3\nSHA256: {digest}\n"
    assert (tmp_path / "Packages").read_text() == expected
    assert gzip.decompress((tmp_path / "Packages.gz").read_bytes()).decode() == expected
    assert (tmp_path / "tool_1.6.1_amd64.deb").exists()


def test_missing_packages_come_as_one_command(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        commands, "find_tool", lambda name: None if name in ("mmdebstrap", "qemu-img", "ssh") else "/usr/bin/" + name
    )
    monkeypatch.setattr(commands, "KEYRING", "/dev/null")
    with pytest.raises(LabError) as caught:
        commands.check_requirements()
    assert str(caught.value) == (
        "The lab lacks packages on this machine; run: sudo apt-get install --no-install-recommends "
        "mmdebstrap openssh-client qemu-utils"
    )


def test_root_is_needed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(commands, "find_tool", lambda name: "/usr/bin/" + name)
    monkeypatch.setattr(commands, "KEYRING", "/dev/null")
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    with pytest.raises(LabError, match="needs root for its network namespace; run: sudo make lab"):
        commands.check_requirements()


@pytest.mark.parametrize("script", [guest.INIT, guest.LAB_NET, guest.SETUP_SCRIPT, image.DOWNLOAD_HOOK])
def test_scripts_are_shell(script: str) -> None:
    subprocess.run(["sh", "-n"], input=script, text=True, check=True)


def test_every_endpoint_gets_its_name_and_device() -> None:
    for index, role in enumerate(ROLES, start=1):
        assert f"52:54:00:*:00:{index:02x}) new={role.netdev};;" in guest.LAB_NET
        assert f"rdma link add {role.rdma_device} type rxe netdev {role.netdev}\n" in guest.LAB_NET
    assert not set(guest.LEFT_OUT) & set(guest.PACKAGES)
