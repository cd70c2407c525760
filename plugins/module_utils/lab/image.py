"""Build what the virtual hosts boot from: root filesystem, disk image, kernel, initrd, package repository.

Cached by content under ``<directory>/cache``: ``rootfs-<hash>/rootfs.tar`` (also what container
hosts import) and ``image-<hash>/`` made from it. From the command line, the tar alone::

    python -m ansible_collections.sparkring.cluster.plugins.module_utils.lab.image .lab
"""

from __future__ import annotations

import gzip
import hashlib
import json
import os
import shutil
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from . import guest
from .commands import LabError, check_requirements, need_tool, run

FORMAT = 1
"""Raise when the build steps below change what they make from equal inputs."""
DISK_SIZE = "3G"
PATHS_LEFT_OUT = ("/usr/share/doc/*", "/usr/share/man/*", "/usr/share/locale/*", "/usr/share/info/*")

DOWNLOAD_HOOK = """\
set -eu
export APT_CONFIG="$MMDEBSTRAP_APT_CONFIG"
download() {
  target=$1; shift
  apt-get clean
  apt-get --yes --download-only install "$@"
  mv "$root"/var/cache/apt/archives/*.deb "$target"/
}
root=$1 work=$2 kernel=$3; shift 3
download "$work/repository" "$@"
download "$work/kernel" "$kernel"
"""


@dataclass(frozen=True)
class Rootfs:
    """A root filesystem and the packages that were left out of it."""

    directory: str

    @property
    def tar(self) -> str:
        return self.directory + "/rootfs.tar"

    @property
    def repository(self) -> str:
        return self.directory + "/repository"


@dataclass(frozen=True)
class Image:
    """What QEMU boots, and the repository that goes with it."""

    directory: str
    repository: str

    @property
    def disk(self) -> str:
        return self.directory + "/root.img"

    @property
    def kernel(self) -> str:
        return self.directory + "/vmlinuz"

    @property
    def initrd(self) -> str:
        return self.directory + "/initrd.gz"


def _content_hash(*parts: object) -> str:
    return hashlib.sha256(json.dumps([FORMAT, *parts], sort_keys=True).encode()).hexdigest()[:12]


def rootfs_of(directory: str, mirror: str = "") -> Rootfs:
    """Where the root filesystem of the present definition lies, built or not."""
    name = _content_hash(
        guest.SUITE,
        guest.PACKAGES,
        guest.LEFT_OUT,
        guest.KERNEL_PACKAGE,
        guest.FILES,
        guest.SETUP_SCRIPT,
        PATHS_LEFT_OUT,
        DOWNLOAD_HOOK,
        mirror,
    )
    return Rootfs(f"{os.path.abspath(directory)}/cache/rootfs-{name}")


def image_of(directory: str, mirror: str = "") -> Image:
    """Where the image of the present definition lies, built or not."""
    rootfs = rootfs_of(directory, mirror)
    name = _content_hash(
        os.path.basename(rootfs.directory),
        guest.VIRTUAL_HOST_FILES,
        guest.INIT,
        guest.INIT_TOOLS,
        guest.BOOT_MODULES,
        guest.KERNEL_DIRECTORIES,
        DISK_SIZE,
    )
    return Image(f"{os.path.abspath(directory)}/cache/image-{name}", rootfs.repository)


def build_rootfs(directory: str, mirror: str = "") -> tuple[Rootfs, bool]:
    """The root filesystem, built if it is not there yet; second value: whether it was built."""
    rootfs = rootfs_of(directory, mirror)
    if os.path.isdir(rootfs.directory):
        return rootfs, False
    check_requirements()
    with _made_whole(rootfs.directory) as work:
        (work / "repository").mkdir()
        (work / "kernel").mkdir()
        hook = work / "download.sh"
        hook.write_text(DOWNLOAD_HOOK)
        files = work / "files"
        _write_files(files, guest.FILES)
        (work / "setup.sh").write_text(guest.SETUP_SCRIPT)
        names = " ".join(guest.LEFT_OUT)
        command = [
            "mmdebstrap",
            "--variant=minbase",
            "--mode=root",
            *(f"--dpkgopt=path-exclude={path}" for path in PATHS_LEFT_OUT),
            "--include=" + ",".join(guest.PACKAGES),
            f"--customize-hook=sh '{hook}' \"$1\" '{work}' {guest.KERNEL_PACKAGE} {names}",
            f"--customize-hook=sync-in '{files}' /",
            f"--customize-hook=chroot \"$1\" sh -e < '{work}/setup.sh'",
            guest.SUITE,
            str(work / "rootfs.tar"),
        ]
        run(command + ([mirror] if mirror else []))
        _index_repository(work / "repository")
        hook.unlink()
        (work / "setup.sh").unlink()
        shutil.rmtree(files)
    return rootfs, True


def build_image(directory: str, mirror: str = "") -> tuple[Image, bool]:
    """The bootable image, built if it is not there yet; second value: whether anything was built."""
    image = image_of(directory, mirror)
    if os.path.isdir(image.directory) and os.path.isdir(image.repository):
        return image, False
    rootfs, _ = build_rootfs(directory, mirror)
    if os.path.isdir(image.directory):
        return image, True
    check_requirements()
    with _made_whole(image.directory) as work:
        tree = work / "tree"
        tree.mkdir()
        run(["tar", "--xattrs", "--xattrs-include=*", "-xf", rootfs.tar, "-C", str(tree)])
        _write_files(tree, guest.VIRTUAL_HOST_FILES)
        wanted_by = tree / "etc/systemd/system/multi-user.target.wants"
        wanted_by.mkdir(parents=True, exist_ok=True)
        (wanted_by / "lab-net.service").symlink_to("../lab-net.service")
        version = _install_kernel(rootfs, work, tree)
        _build_initrd(work, tree, version)
        disk = work / "root.img"
        run(["truncate", "-s", DISK_SIZE, str(disk)])
        run(["mke2fs", "-q", "-F", "-t", "ext4", "-E", "lazy_itable_init=0", "-d", str(tree), str(disk)])
        shutil.rmtree(tree)
    return image, True


@contextmanager
def _made_whole(target: str) -> Iterator[Path]:
    """A work directory beside the target that takes its place only when the build succeeded."""
    parent = os.path.dirname(target)
    os.makedirs(parent, exist_ok=True)
    work = Path(tempfile.mkdtemp(prefix="building-", dir=parent))
    work.chmod(0o755)
    try:
        yield work
        os.rename(work, target)
    finally:
        shutil.rmtree(work, ignore_errors=True)


def _write_files(root: Path, files: dict[str, str]) -> None:
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        path.chmod(0o755 if text.startswith("#!") else 0o644)


def _index_repository(repository: Path) -> None:
    """Write the package index of a flat package repository."""
    entries = []
    for deb in sorted(repository.glob("*.deb")):
        # apt asks for the file by its literal name, which must hold no escape such as %3a.
        deb = deb.rename(deb.with_name(deb.name.replace("%3a", ".")))
        content = deb.read_bytes()
        entries.append(
            run(["dpkg-deb", "-f", str(deb)]).rstrip()
            + f"\nFilename: ./{deb.name}\nSize: {len(content)}\nSHA256: {hashlib.sha256(content).hexdigest()}\n"
        )
    index = "\n".join(entries)
    (repository / "Packages").write_text(index)
    (repository / "Packages.gz").write_bytes(gzip.compress(index.encode(), mtime=0))


def _install_kernel(rootfs: Rootfs, work: Path, tree: Path) -> str:
    """Unpack the kernel, and into the tree the modules that a virtual host can use."""
    found = list(Path(rootfs.directory, "kernel").glob("linux-image-[0-9]*.deb"))
    if len(found) != 1:
        raise LabError(f"{rootfs.directory} holds {len(found)} kernels instead of one; remove it.")
    unpacked = work / "kernel"
    run(["dpkg-deb", "-x", str(found[0]), str(unpacked)])
    modules = next((unpacked / "lib/modules").iterdir())
    version = modules.name
    target = tree / "usr/lib/modules" / version
    target.mkdir(parents=True)
    for name in ("modules.builtin", "modules.builtin.modinfo", "modules.order"):
        shutil.copy(modules / name, target / name)
    for part in guest.KERNEL_DIRECTORIES:
        shutil.copytree(modules / "kernel" / part, target / "kernel" / part)
    (target / "kernel/drivers/net").mkdir(parents=True)
    for module in (modules / "kernel/drivers/net").glob("*.ko"):
        shutil.copy(module, target / "kernel/drivers/net")
    run(["depmod", "-b", str(tree), version])
    shutil.copy(unpacked / f"boot/vmlinuz-{version}", work / "vmlinuz")
    shutil.rmtree(unpacked)
    return version


def _build_initrd(work: Path, tree: Path, version: str) -> None:
    """An initrd of busybox and the root disk's modules: a full one costs a minute per emulated host."""
    initrd = work / "initrd"
    for name in ("bin", "proc", "sys", "dev", "root", f"lib/modules/{version}"):
        (initrd / name).mkdir(parents=True)
    shutil.copy(need_tool("busybox"), initrd / "bin/busybox")
    for tool in guest.INIT_TOOLS:
        (initrd / "bin" / tool).symlink_to("busybox")
    modules = tree / "usr/lib/modules" / version
    for name in ("modules.builtin", "modules.builtin.modinfo", "modules.order"):
        shutil.copy(modules / name, initrd / "lib/modules" / version / name)
    for module in guest.BOOT_MODULES:
        for line in run(["modprobe", "-d", str(tree), "-S", version, "--show-depends", module]).splitlines():
            kind, _, path = line.partition(" ")
            if kind != "insmod":
                continue
            inner = path.strip().split(f"/lib/modules/{version}/", 1)[1]
            target = initrd / "lib/modules" / version / inner
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(modules / inner, target)
    run(["depmod", "-b", str(initrd), version])
    _write_files(initrd, {"init": guest.INIT})
    names = "\n".join(sorted(str(path.relative_to(initrd)) for path in initrd.rglob("*"))) + "\n"
    archive = work / "initrd.cpio"
    run(["cpio", "-o", "-H", "newc", "-D", str(initrd), "-F", str(archive)], text_input=names)
    run(["gzip", "-1", str(archive)])
    (work / "initrd.cpio.gz").rename(work / "initrd.gz")
    shutil.rmtree(initrd)


def main() -> int:
    """Build the root filesystem tar alone and print where it lies."""
    if len(sys.argv) not in (2, 3):
        print("usage: image DIRECTORY [MIRROR]", file=sys.stderr)
        return 2
    try:
        rootfs, built = build_rootfs(*sys.argv[1:])
    except LabError as error:
        print(error, file=sys.stderr)
        return 2
    print(json.dumps({"tar": rootfs.tar, "repository": rootfs.repository, "built": built}))
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
