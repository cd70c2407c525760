"""The boot units: their texts, and what systemd says of them."""

from __future__ import annotations

from ..contract import marks
from .host import Host

FABRIC_TEXT = f"""{marks.FILE_HEADER}
[Unit]
Description=SparkRing fabric: routes, kernel settings, forward rules, neighbours and relay filters
ConditionPathExists={marks.PLAN_PATH}
After=network-online.target NetworkManager.service docker.service
Wants=network-online.target
StartLimitIntervalSec=0

[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/usr/bin/python3 -IS {marks.PROGRAM_PATH} restore
TimeoutStartSec=300
Restart=on-failure
RestartSec=5

[Install]
WantedBy=multi-user.target
"""

# Every probe of the driver begins with the default values, so the setting is laid anew at each boot, before
# anything takes addresses. A restart under way is not to be disturbed: only the program itself is told to stop.
HAIRPIN_TEXT = f"""{marks.FILE_HEADER}
[Unit]
Description=SparkRing hairpin setting of the relaying functions
ConditionPathExists={marks.PLAN_PATH}
DefaultDependencies=no
After=local-fs.target systemd-modules-load.service systemd-udev-trigger.service systemd-sysctl.service
After=sparkring-hairpin.service
Before=network-pre.target NetworkManager.service systemd-networkd.service {marks.FABRIC_UNIT}
Wants=network-pre.target
Conflicts=shutdown.target
Before=shutdown.target

[Service]
Type=oneshot
RemainAfterExit=yes
ExecStart=/usr/bin/python3 -IS {marks.PROGRAM_PATH} hairpin boot
TimeoutStartSec=180
TimeoutStopSec=60
KillMode=mixed

[Install]
WantedBy=multi-user.target
"""

# A marker is wanted by the fabric unit and ordered after it, but does not require it: with one
# neighbour off, the fabric unit fails and is tried again while the other links must still mark.
MARKER_TEXT = f"""{marks.FILE_HEADER}
[Unit]
Description=SparkRing marker of RDMA device %i
ConditionPathExists={marks.PLAN_PATH}
After={marks.FABRIC_UNIT}
StartLimitIntervalSec=0

[Service]
Type=notify
ExecStart=/usr/bin/python3 -IS {marks.PROGRAM_PATH} marker %i
Restart=on-failure
RestartSec=5
TimeoutStopSec=30

[Install]
WantedBy={marks.FABRIC_UNIT}
"""

# It waits for a fabric unit that is starting, and does nothing amid a change of the plan.
RECONCILE_TEXT = f"""{marks.FILE_HEADER}
[Unit]
Description=SparkRing repair: put back what this host has lost of its plan
ConditionPathExists={marks.PLAN_PATH}
ConditionPathExists=!{marks.CHANGE_PATH}
After={marks.FABRIC_UNIT}

[Service]
Type=oneshot
ExecStart=/usr/bin/python3 -IS {marks.PROGRAM_PATH} reconcile
TimeoutStartSec=300
"""

RECONCILE_TIMER_TEXT = f"""{marks.FILE_HEADER}
[Unit]
Description=SparkRing repair, every 30 seconds
ConditionPathExists={marks.PLAN_PATH}

[Timer]
OnActiveSec=30
OnUnitInactiveSec=30
AccuracySec=1

[Install]
WantedBy=timers.target
"""

# It waits for the fabric unit, which does nothing at a boot into an unfinished change: so the program may
# stop, start and remove that unit without waiting for itself. With the change kept it takes its own remains away.
REVERT_TEXT = f"""{marks.FILE_HEADER}
[Unit]
Description=SparkRing: put back what an unfinished change has done
ConditionPathExists={marks.CHANGE_PROGRAM_PATH}
After=network-online.target NetworkManager.service docker.service {marks.FABRIC_UNIT}
Wants=network-online.target
StartLimitIntervalSec=0

[Service]
Type=oneshot
ExecStart=/usr/bin/python3 -IS {marks.CHANGE_PROGRAM_PATH} revert
TimeoutStartSec=900
Restart=on-failure
RestartSec=15
"""

# Whether it is time to go back, the document says; a timer that asks again and again cannot be lost in a gap.
REVERT_TIMER_TEXT = f"""{marks.FILE_HEADER}
[Unit]
Description=SparkRing: ask every 30 seconds whether an unfinished change is to be put back

[Timer]
OnActiveSec=30
OnUnitInactiveSec=30
AccuracySec=1
"""
REVERT_PATH = f"{marks.UNIT_DIR}/{marks.REVERT_UNIT}"
REVERT_TIMER_PATH = f"{marks.UNIT_DIR}/{marks.REVERT_TIMER}"
REVERT_LINK = f"{marks.UNIT_DIR}/multi-user.target.wants/{marks.REVERT_UNIT}"

_MARKER_START = marks.MARKER_UNIT_TEMPLATE.split(".")[0]
FILES = {
    marks.HAIRPIN_UNIT: {marks.HAIRPIN_UNIT: HAIRPIN_TEXT},
    marks.FABRIC_UNIT: {marks.FABRIC_UNIT: FABRIC_TEXT},
    marks.RECONCILE_TIMER: {marks.RECONCILE_UNIT: RECONCILE_TEXT, marks.RECONCILE_TIMER: RECONCILE_TIMER_TEXT},
    marks.MARKER_UNIT_TEMPLATE: {marks.MARKER_UNIT_TEMPLATE: MARKER_TEXT},
}
"""Unit files, by name, that a planned unit needs; one marker stands for all."""

WANTS_DIRECTORIES = (
    f"{marks.UNIT_DIR}/multi-user.target.wants",
    f"{marks.UNIT_DIR}/timers.target.wants",
    f"{marks.UNIT_DIR}/{marks.FABRIC_UNIT}.wants",
)


def is_marker(unit: str) -> bool:
    """Whether a unit is the marker of one RDMA device."""
    return unit.startswith(_MARKER_START) and unit != marks.MARKER_UNIT_TEMPLATE


def files(planned: list[str]) -> dict[str, str]:
    """Texts of the unit files that planned units need, by file name."""
    found: dict[str, str] = {}
    for unit in planned:
        found.update(FILES.get(marks.MARKER_UNIT_TEMPLATE if is_marker(unit) else unit, {}))
    return found


def marker_device(unit: str) -> str:
    """RDMA device of a marker unit."""
    return unit[len(_MARKER_START) :].rpartition(".service")[0]


def enabled(host: Host) -> list[str]:
    """Units of this library that start at boot: the links that systemd keeps in its directories."""
    found: set[str] = set()
    for directory in WANTS_DIRECTORIES:
        found.update(name for name in host.names(directory) if name in FILES or is_marker(name))
    return sorted(found)


def show(host: Host, names: list[str]) -> dict[str, dict[str, str]]:
    """Properties of units by name; empty where systemd does not run."""
    if not names:
        return {}
    properties = "--property=Id,LoadState,ActiveState,SubState,MainPID,UnitFileState"
    done = host.runner.execute(["systemctl", "show", properties, *names], None, 30)
    result: dict[str, dict[str, str]] = {}
    for block in done.output.split("\n\n") if done.status == 0 else []:
        values = dict(line.split("=", 1) for line in block.splitlines() if "=" in line)
        if "Id" in values:
            result[values["Id"]] = values
    return result


def lay(host: Host, wanted: list[str], restart: list[str]) -> None:
    """Enable and start units, the fabric before the markers that follow it, and restart others."""
    if wanted:
        host.runner.run(["systemctl", "enable", "--no-reload", *wanted], timeout=60)
    first = [name for name in wanted if name == marks.FABRIC_UNIT]
    later = [name for name in wanted if name not in (*first, *restart)]
    for verb, names in (("start", first), ("start", later), ("restart", restart)):
        if names:
            host.runner.run(["systemctl", verb, *names], timeout=300)


def take(host: Host, names: list[str]) -> None:
    """Stop and disable units, the markers before the fabric."""
    if names:
        ordered = sorted(names, key=lambda name: name == marks.FABRIC_UNIT)
        host.runner.run(["systemctl", "stop", *ordered], timeout=120)
        host.runner.run(["systemctl", "disable", "--no-reload", *ordered], timeout=60)


def forget(host: Host) -> None:
    """Have systemd read unit files again after one was changed or removed; new ones it finds itself."""
    host.runner.run(["systemctl", "daemon-reload"], timeout=120)


def lay_revert(host: Host) -> None:
    """Have the revert run at each boot from now on, and its timer ready.

    The link is made here and not by systemctl, which would take its time between two files that belong together.
    """
    host.write(REVERT_TIMER_PATH, REVERT_TIMER_TEXT.encode(), 0o644)
    host.write(REVERT_PATH, REVERT_TEXT.encode(), 0o644)
    host.link(REVERT_LINK, REVERT_PATH)


def take_revert(host: Host) -> None:
    """No revert at boot any more."""
    host.remove(REVERT_LINK)
    host.remove(REVERT_PATH)
    host.remove(REVERT_TIMER_PATH)


def start_revert_timer(host: Host) -> None:
    """Have the revert asked for again and again; a timer that runs already goes on."""
    host.runner.run(["systemctl", "start", marks.REVERT_TIMER], timeout=60)


def stop_revert_timer(host: Host) -> None:
    """Stop the timer; none is no error."""
    host.runner.execute(["systemctl", "stop", marks.REVERT_TIMER], None, 60)
