"""What the virtual hosts are made of: packages, and every file that the lab adds to them."""

from __future__ import annotations

from ..contract.endpoints import ROLES
from .layout import CONTROLLER_ADDRESS, MANAGEMENT_NETDEV, MANAGEMENT_PREFIX, REPOSITORY_PORT

SUITE = "bookworm"
PACKAGES = (
    "dbus",
    "ibverbs-providers",
    "ibverbs-utils",
    "iproute2",
    "iptables",
    "iputils-ping",
    "kmod",
    "libnuma1",  # the real vLLM for CPUs asks for it
    "lldpd",
    "network-manager",
    "openssh-server",
    "procps",
    "python3",
    "python3-apt",
    "rdma-core",
    "sudo",
    "systemd",
    "systemd-sysv",
    "udev",
)
LEFT_OUT = ("ethtool", "perftest", "docker.io")
"""Left out of the image and served by the lab's package repository: `prepare` really installs, and Docker can come."""

KERNEL_PACKAGE = "linux-image-amd64"
KERNEL_DIRECTORIES = ("arch", "crypto", "lib", "net", "fs", "drivers/block", "drivers/infiniband", "drivers/virtio")
"""Parts of the kernel package that the guests keep, besides drivers/net/*.ko."""
BOOT_MODULES = ("virtio_pci", "virtio_blk", "ext4", "crc32c_generic")
"""Modules that the root disk needs."""

OPERATOR = "operator"
NEWCOMER = "newcomer"
PASSWORD = "first-contact"
"""Both users' password; `operator` also has the lab's key and sudo without a password."""

MASKED_UNITS = (
    *(f"modprobe@{module}.service" for module in ("configfs", "dm_mod", "drm", "efi_pstore", "fuse", "loop")),
    *("apt-daily.timer", "apt-daily-upgrade.timer", "dpkg-db-backup.timer", "e2scrub_all.timer", "fstrim.timer"),
    *("e2scrub_reap.service", "getty@tty1.service", "serial-getty@ttyS0.service", "systemd-pstore.service"),
    *("systemd-binfmt.service", "proc-sys-fs-binfmt_misc.automount", "systemd-journal-flush.service"),
    *("systemd-update-utmp.service", "systemd-update-utmp-runlevel.service", "dev-hugepages.mount"),
    *("sys-kernel-debug.mount", "sys-kernel-tracing.mount", "sys-kernel-config.mount"),
    *("sys-fs-fuse-connections.mount", "systemd-ask-password-wall.path", "systemd-ask-password-console.path"),
)
"""Units that a rehearsal does not need: each costs an emulated host up to seconds of its boot."""

SETUP_SCRIPT = f"""\
useradd -m -N -g users -G sudo -s /bin/bash -u 1000 {OPERATOR}
useradd -m -N -g users -G sudo -s /bin/bash -u 1001 {NEWCOMER}
echo '{OPERATOR}:{PASSWORD}' | chpasswd
echo '{NEWCOMER}:{PASSWORD}' | chpasswd
systemctl mask -q {" ".join(MASKED_UNITS)}
systemctl set-default -q multi-user.target
rm -f /etc/ssh/ssh_host_* /etc/apt/sources.list.d/* /etc/resolv.conf
: > /etc/machine-id
: > /etc/resolv.conf
touch /etc/.updated /var/.updated
"""

FILES = {
    "etc/apt/sources.list": f"deb [trusted=yes] http://{CONTROLLER_ADDRESS}:{REPOSITORY_PORT}/ ./\n",
    "etc/apt/apt.conf.d/90lab": 'Acquire::Languages "none";\nAcquire::CompressionTypes::Order:: "gz";\n',
    # A neighbour is seen, and forgotten after a cable is pulled, within seconds instead of minutes.
    "etc/lldpd.d/lab.conf": "configure lldp tx-interval 5\n",
    "etc/dpkg/dpkg.cfg.d/lab": "force-unsafe-io\n",
    "etc/sudoers.d/lab": f"{OPERATOR} ALL=(ALL) NOPASSWD: ALL\n",
    # Emulated hosts log in slowly: no PAM session, no name look-ups, one cheap key exchange.
    "etc/ssh/sshd_config.d/lab.conf": """\
HostKey /etc/ssh/ssh_host_ed25519_key
KexAlgorithms curve25519-sha256
PasswordAuthentication yes
PermitRootLogin prohibit-password
UsePAM no
UseDNS no
GSSAPIAuthentication no
PrintLastLog no
MaxSessions 50
MaxStartups 50
""",
    "etc/NetworkManager/conf.d/lab.conf": f"""\
[main]
no-auto-default=*
auth-polkit=root-only
[keyfile]
unmanaged-devices=interface-name:{MANAGEMENT_NETDEV}
""",
}
"""Files of the root filesystem, virtual host or container alike."""

_NAMES = "\n".join(
    f"  52:54:00:*:00:{index:02x}) new={netdev};;"
    for index, netdev in enumerate((MANAGEMENT_NETDEV, *(role.netdev for role in ROLES)))
)
_RDMA = "\n".join(f"rdma link add {role.rdma_device} type rxe netdev {role.netdev}" for role in ROLES)

LAB_NET = f"""\
#!/bin/sh
# Name the NICs as DGX OS does and put a soft-RoCE device on each fabric NIC. The MAC says which is which.
modprobe virtio_net
modprobe rdma_rxe
n=0
while [ ! -e /sys/class/net/eth{len(ROLES)} ] && [ $n -lt 100 ]; do sleep 0.1; n=$((n+1)); done
for d in /sys/class/net/*; do
  old=${{d##*/}}
  case $(cat $d/address) in
{_NAMES}
  *) continue;;
  esac
  ip link set $old down
  ip link set $old name $new mtu 1500 up
done
host=$((0x$(cut -d: -f4 /sys/class/net/{MANAGEMENT_NETDEV}/address)))
ip address add 10.99.0.$((10+host))/{MANAGEMENT_PREFIX} dev {MANAGEMENT_NETDEV}
{_RDMA}
exit 0
"""

LAB_NET_UNIT = """\
[Unit]
Description=Network devices of a virtual host
DefaultDependencies=no
After=systemd-udevd.service systemd-modules-load.service
Before=NetworkManager.service network-pre.target ssh.service
Wants=network-pre.target

[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/usr/local/sbin/lab-net

[Install]
WantedBy=multi-user.target
"""

SKIPPED_SUBSYSTEMS = ("acpi", "bdi", "cpu", "event_source", "graphics", "memory", "pnp", "tty", "vc", "workqueue")
"""Coldplug events that no rule of a virtual host needs."""

_SKIPPED = " ".join(f"--subsystem-nomatch={subsystem}" for subsystem in SKIPPED_SUBSYSTEMS)
UDEV_TRIGGER = f"""\
[Service]
ExecStart=
ExecStart=-udevadm trigger --type=subsystems --action=add
ExecStart=-udevadm trigger --type=devices --action=add {_SKIPPED}
"""

VIRTUAL_HOST_FILES = {
    "etc/systemd/system/systemd-udev-trigger.service.d/lab.conf": UDEV_TRIGGER,
    "usr/local/sbin/lab-net": LAB_NET,
    "etc/systemd/system/lab-net.service": LAB_NET_UNIT,
}
"""Files that only a virtual host has: a container has no NICs to name."""

PROBE_MARK = "sparkring-lab-probe-ok"
KERNEL_ARGUMENTS = (
    "root=/dev/vda rw console=ttyS0 quiet net.ifnames=0 mitigations=off audit=0 cryptomgr.notests no_timer_check "
    "init_on_alloc=0 systemd.show_status=0"
)

INIT = f"""\
#!/bin/sh
# First process of the initrd: answer the acceleration probe, or mount the disk and go there.
mount -t proc proc /proc
mount -t sysfs sys /sys
mount -t devtmpfs dev /dev
case " $(cat /proc/cmdline) " in
*" lab.probe "*) echo {PROBE_MARK} > /dev/ttyS0; sleep 60;;
esac
for m in {" ".join(BOOT_MODULES)}; do modprobe $m; done
n=0
while [ ! -b /dev/vda ] && [ $n -lt 100 ]; do sleep 0.1; n=$((n+1)); done
mount -t ext4 /dev/vda /root
# The second disk is a tar of what makes this host itself; it is unpacked once.
[ -s /root/etc/machine-id ] || tar -x -f /dev/vdb -C /root
mount --move /proc /root/proc
mount --move /sys /root/sys
mount --move /dev /root/dev
exec switch_root /root /lib/systemd/systemd
"""
INIT_TOOLS = ("sh", "mount", "modprobe", "switch_root", "sleep", "cat", "tar")
