"""What an operator changes: where it lands, what it takes away of the status, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest

from ansible_collections.sparkring.cluster.plugins.plugin_utils.recipe import settings, status
from ansible_collections.sparkring.cluster.plugins.plugin_utils.recipe.settings import SettingsError
from tests.unit.recipe.examples import ALL, units

R7 = ALL["glm53-jj-r7-gb10-base-tp4-dcp1"]
R7_CACHE = ALL["glm53-jj-r7-gb10-sparkcache-tp4-dcp1"]
MESH = ALL["glm53-flash-spark-tp4-dcp1"]
PAIR = ALL["deepseek-v4-flash-0731-pair"]
CYCLE = ALL["deepseek-v4-flash-0731"]


def flag(name: str, recipe: Any, **given: Any) -> str:
    command = units(recipe, **given)[0].command
    return command[command.index(name) + 1]


@pytest.mark.parametrize(
    ("given", "changed"),
    [
        ({"context": 131072}, ["context"]),
        ({"context": CYCLE.limits.context}, []),
        ({"sequences": 4, "batched_tokens": 2048}, ["batched_tokens", "sequences"]),
        ({"kv_bytes": 1 << 30}, ["kv_bytes"]),
        ({"arguments": {"--dtype": "float16"}}, ["arguments.--dtype"]),
        ({"arguments": {"--dtype": "bfloat16"}}, []),
        ({"arguments": {"--dtype": None}}, ["arguments.--dtype"]),
        ({"environment": {"NCCL_DEBUG": "INFO", "NEW": "1"}}, ["environment.NCCL_DEBUG", "environment.NEW"]),
        ({"image": {"id": "sha256:" + "0" * 64}}, ["image.id"]),
        ({"nccl": "engine"}, ["nccl"]),
        ({"engine": "venv", "venv": "/opt/vllm"}, ["engine"]),
        ({"port": 9000, "rendezvous_port": 29501, "deployment": "mine", "folders": {"model": "/data/m"}}, []),
    ],
)
def test_a_changed_setting_takes_the_status_away(given: dict[str, Any], changed: list[str]) -> None:
    standing = status.of(CYCLE, settings.read(given))
    assert standing.changed == changed
    assert standing.level == ("implemented-unqualified-configuration" if changed else "implemented")
    unit = units(CYCLE, **given)[0]
    assert (unit.status, unit.changed) == (standing.level, changed)
    if unit.engine == "container":
        assert f"sparkring.cluster.status={standing.level}" in unit.options
        assert f"sparkring.cluster.changed={','.join(changed) or 'none'}" in unit.options


def test_a_claim_holds_at_exactly_its_settings() -> None:
    smoke = {"context": 262144, "batched_tokens": 4096}
    assert status.of(R7, settings.read({})).level == "implemented-unqualified-configuration"
    assert status.of(R7, settings.read(smoke)) == status.Standing(
        "implemented-tp4-smoke-verified", [], "One C4 load of four 16K contexts."
    )
    beyond = status.of(R7, settings.read({**smoke, "sequences": 8}))
    assert (beyond.level, beyond.changed) == (
        "implemented-unqualified-configuration",
        ["batched_tokens", "context", "sequences"],
    )
    short = status.of(R7_CACHE, settings.read(smoke))
    assert short.level == "implemented-unqualified-configuration"
    whole = status.of(R7_CACHE, settings.read({**smoke, "sparkcache": {"max_span_tokens": 262144}}))
    assert whole.level == "implemented-tp4-smoke-verified"


def test_a_change_lifts_no_status() -> None:
    assert status.of(MESH, settings.read({"context": 4096})).level == "research-only"


def test_the_sentence_of_a_standing() -> None:
    said = status.of(CYCLE, settings.read({"context": 4096})).sentence
    assert said == "implemented-unqualified-configuration: changed from the recipe are context"


@pytest.mark.parametrize(
    ("dcp", "interleave", "gather"),
    [(1, "1", "0"), (2, "4", "1"), (4, "4", "1")],
)
def test_divided_contexts_follow_the_automatic_rule(dcp: int, interleave: str, gather: str) -> None:
    unit = units(MESH, dcp=dcp)[0]
    assert flag("--cp-kv-cache-interleave-size", MESH, dcp=dcp) == interleave
    assert flag("--decode-context-parallel-size", MESH, dcp=dcp) == str(dcp)
    assert unit.environment["VLLM_B12X_MLA_CKV_GATHER"] == gather


def test_graphs_follow_depth_and_sequences() -> None:
    wanted = ",".join(str(4 * number) for number in range(1, 9))
    assert f'"cudagraph_capture_sizes":[{wanted}]' in flag("--compilation-config", MESH, sequences=8)
    assert flag("--max-cudagraph-capture-size", MESH, sequences=8) == "32"


def test_the_context_cache_can_be_left_out() -> None:
    recipe = ALL["glm53-flash-spark-tp4-dcp1-sparkcache"]
    unit = units(recipe, sparkcache={"enabled": False})[0]
    assert "--kv-transfer-config" not in unit.command
    assert "--enable-prefix-caching" in unit.command
    assert unit.environment["SPARKCACHE_ENABLED"] == "0"
    assert unit.changed == ["sparkcache"]


@pytest.mark.parametrize(
    ("recipe", "given", "message"),
    [
        (CYCLE, {"contxt": 1}, "sparkring_settings.contxt: extra inputs are not permitted."),
        (CYCLE, {"context": 0}, "sparkring_settings.context: input should be greater than or equal to 1."),
        (CYCLE, {"port": 29500}, "sparkring_settings: ports.rendezvous and api.port are both 29500."),
        (CYCLE, {"dcp": 8}, "sparkring_settings.parallel: dcp 8 does not divide tp 4."),
        (
            CYCLE,
            {"arguments": {"--api-key": "secret"}},
            "sparkring_settings: arguments.--api-key is written by the renderer; remove it.",
        ),
        (
            CYCLE,
            {"environment": {"HF_TOKEN": "secret"}},
            "sparkring_settings: environment.HF_TOKEN looks like a secret; secrets do not belong into recipes.",
        ),
        (
            CYCLE,
            {"sparkcache": {"max_bytes": 5}},
            "sparkring_settings.sparkcache: its recipe does not use the context cache; serve the recipe that does, "
            "its id ends with sparkcache.",
        ),
        (
            ALL["glm53-flash-spark-tp4-switched"],
            {"sparkcache": {"max_bytes": 5}},
            "sparkring_settings.sparkcache: its recipe does not use the context cache.",
        ),
        (
            R7_CACHE,
            {"sparkcache": {"max_bytes": 5}},
            "sparkring_settings.sparkcache: low_watermark_bytes 34359738368 is above max_bytes 5.",
        ),
        (
            MESH,
            {"nccl": "engine"},
            "sparkring_settings.nccl: the collectives of recipe glm53-flash-spark-tp4-dcp1 are rocenante; remove the "
            "setting, or choose a recipe whose collectives are nccl.",
        ),
        (CYCLE, {"nccl": "newest"}, None),
        (
            CYCLE,
            {"engine": "venv"},
            "sparkring_settings.venv: recipe deepseek-v4-flash-0731 runs without a container; say where vLLM is "
            "installed on the hosts.",
        ),
        (CYCLE, {"folders": {"model": "data"}}, None),
        (
            ALL["glm53-flash-spark-tp4-dcp4"],
            {"folders": {}},
            "sparkring_settings.folders.contract: recipe glm53-flash-spark-tp4-dcp4 needs this folder of the hosts; "
            "say where it lies.",
        ),
        (
            ALL["glm53-flash-spark-tp2-mtp3-5gib"],
            {"environment": {"A": "b"}},
            "sparkring_settings.environment: recipe glm53-flash-spark-tp2-mtp3-5gib has none to change; choose "
            "another recipe.",
        ),
    ],
)
def test_wrong_settings(recipe: Any, given: dict[str, Any], message: str | None) -> None:
    with pytest.raises(SettingsError) as raised:
        units(recipe, **given)
    said = str(raised.value)
    assert said.startswith("sparkring_settings") and "secret" not in said.replace("a secret; secrets", "")
    if message is not None:
        assert said == message


def test_stock_nccl_takes_the_place_of_the_recorded_one() -> None:
    for unit in units(CYCLE, nccl="skip-tree-2.30.7"):
        assert unit.environment["VLLM_NCCL_SO_PATH"] == "/opt/sparkring-node/nccl/libnccl.so.2"
        preload = unit.environment["LD_PRELOAD"]
        assert preload == "/usr/local/cuda/compat/libcuda.so.1:/opt/sparkring-node/nccl/libnccl.so.2"
        assert any(word.endswith(":/opt/sparkring-node/nccl/libnccl.so.2:ro") for word in unit.options)
        assert unit.files[-1].path.endswith("/libnccl.so.2")
    pair = units(PAIR, nccl="engine")[0]
    assert "VLLM_NCCL_SO_PATH" not in pair.environment
    assert pair.environment["LD_PRELOAD"] == "/usr/local/cuda/compat/libcuda.so.1"
    assert pair.environment["NCCL_NET"] == "IB"
