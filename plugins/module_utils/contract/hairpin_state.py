"""Whether one function's hairpin setting is in effect: one judgement for survey, plan checks and host.

The rule (facts: fabric 5.6): ``devlink dev param show`` also prints values that only the driver's next
restart brings into effect, so a setting counts only with a restart behind it. The counter of restarts
begins anew at each probe of the driver, and so do the values.
"""

from __future__ import annotations

from typing import Any, Mapping, NamedTuple

IN_EFFECT = "in-effect"
OFFLOAD_OFF = "offload-off"
"""Everything but hw-tc-offload, which is switched on without a restart."""
PENDING = "pending"
"""The values are set, and the driver was not restarted since."""
DEFAULT = "default"
"""Other values than the wanted ones."""
FAILED = "failed"
"""The driver's last restart failed."""
UNKNOWN = "unknown"
"""Not readable, or not as it must be for the setting to matter: nothing is touched."""

RESTART = (PENDING, DEFAULT, FAILED)
"""States that a restart of the driver ends."""

STEERING_MODE = "hmfs"
ESWITCH = {"mode": "legacy", "inline-mode": "none", "encap-mode": "basic"}

COMMAND = "sparkring hairpin"
"""What an operator runs to bring the setting into effect."""


class Judgement(NamedTuple):
    """State of one function and, unless it is in effect, why."""

    state: str
    reason: str

    def __str__(self) -> str:
        """The state with its reason."""
        return f"{self.state} ({self.reason})" if self.reason else self.state


def setting(parameters: Any, device: Any) -> dict[str, Any]:
    """What devlink's answers about one function say of the setting; None where they do not say it.

    ``parameters`` is the list of ``devlink -j dev param show``, ``device`` the object of
    ``devlink -s -j dev show``, both without the wrapping kind and handle.
    """
    values = {}
    for parameter in parameters if isinstance(parameters, list) else []:
        for value in parameter.get("values", []):
            values[parameter.get("name"), value.get("cmode")] = value.get("value")
    counter: Any = device
    for name in ("stats", "reload", "driver_reinit", "unspecified"):
        counter = counter.get(name) if isinstance(counter, dict) else None
    mode = values.get(("flow_steering_mode", "runtime"))
    return {
        "queue_size": _number(values.get(("hairpin_queue_size", "driverinit"))),
        "num_queues": _number(values.get(("hairpin_num_queues", "driverinit"))),
        "steering_mode": str(mode) if mode is not None else None,
        "driver_restarts": _number(counter),
        "restart_failed": isinstance(device, dict) and bool(device.get("reload_failed")),
    }


def _number(value: Any) -> Any:
    """A count, which older versions of iproute2 print as text; None for anything else."""
    if isinstance(value, str) and value.isdigit():
        return int(value)
    return value if isinstance(value, int) and not isinstance(value, bool) and value >= 0 else None


def judge(function: Mapping[str, Any], queue_size: int, num_queues: int) -> Judgement:
    """State of one function, by its part of the survey's ``devlink``, for the wanted values."""
    hairpin = function.get("hairpin") or {}
    obstacle = _obstacle(function, hairpin)
    if hairpin.get("restart_failed"):
        # Its netdev is gone then, and what is read through that says nothing.
        return Judgement(FAILED, "the driver's last restart failed")
    if obstacle:
        return Judgement(UNKNOWN, obstacle)
    size, queues = hairpin["queue_size"], hairpin["num_queues"]
    if (size, queues) != (queue_size, num_queues):
        return Judgement(DEFAULT, f"{queues} queues of {size}, needed are {num_queues} of {queue_size}")
    if not hairpin["driver_restarts"]:
        return Judgement(PENDING, "set, and the driver was not restarted since it was loaded")
    if hairpin.get("restart_owed"):
        return Judgement(PENDING, "set, and the driver was not restarted since")
    if not str(function.get("hw_tc_offload")).startswith("on"):
        return Judgement(OFFLOAD_OFF, "hw-tc-offload is off")
    return Judgement(IN_EFFECT, "")


def _obstacle(function: Mapping[str, Any], hairpin: Mapping[str, Any]) -> str:
    """What makes a function one that must not be touched; empty where nothing does."""
    for name, words in (
        ("queue_size", "hairpin_queue_size"),
        ("num_queues", "hairpin_num_queues"),
        ("steering_mode", "flow_steering_mode"),
        ("driver_restarts", "the count of driver restarts"),
    ):
        if hairpin.get(name) is None:
            return f"devlink does not show {words}"
    if hairpin["steering_mode"] != STEERING_MODE:
        return f"flow_steering_mode is {hairpin['steering_mode']}, needed is {STEERING_MODE}"
    eswitch = function.get("eswitch") or {}
    for name, wanted in ESWITCH.items():
        found = eswitch.get(name) if isinstance(eswitch, dict) else None
        if found != wanted:
            return f"the eswitch's {name} is {found or 'not shown'}, needed is {wanted}"
    offload = function.get("hw_tc_offload")
    if offload not in ("on", "on [fixed]", "off"):
        return f"hw-tc-offload is {offload}" if offload else "ethtool does not show hw-tc-offload"
    return ""
