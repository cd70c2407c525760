"""What fits a ring, what is needed first, what cannot be served, each with its reason."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest

from ansible_collections.sparkring.cluster.plugins.plugin_utils.recipe import fit, settings
from ansible_collections.sparkring.cluster.plugins.plugin_utils.ring import degraded, planner
from ansible_collections.sparkring.cluster.plugins.plugin_utils.ring.degraded import Lost
from tests.rings import make_bindings, make_inventory
from tests.unit.recipe.examples import ALL, GIVEN, ring

RULED = make_inventory("cycle-4", "home", sparkring_source_port_rule=True)
WITH_RULE = planner.plan(RULED, make_bindings(RULED))
LINE = planner.plan(RULED, make_bindings(RULED), Lost(cables=[2]))


def judged(recipe: str, plan: Any = None, **given: Any) -> fit.Fit:
    found = ALL[recipe]
    return fit.of(found, plan or ring(found.ring.layout), settings.read({**GIVEN, **given}))


def test_an_nccl_recipe_fits_its_ring() -> None:
    assert judged("deepseek-v4-flash-0731").verdict == "fits"
    assert judged("deepseek-v4-flash-0731-pair").verdict == "fits"


@pytest.mark.parametrize(
    ("recipe", "layout", "reason"),
    [
        ("deepseek-v4-flash-0731", "cycle-6", "it is served on a cycle-4, and this ring is a cycle-6"),
        ("deepseek-v4-flash-0731", "pair", "it is served on a cycle-4, and this ring is a pair"),
        ("deepseek-v4-flash-0731-pair", "cycle-4", "it is served on a pair, and this ring is a cycle-4"),
        ("glm53-flash-spark-tp4-switched", "cycle-4", "it is served on a switched, and this ring is a cycle-4"),
    ],
)
def test_another_ring(recipe: str, layout: str, reason: str) -> None:
    found = judged(recipe, ring(layout))
    assert (found.verdict, found.reasons) == ("cannot", [reason])


def test_a_degraded_ring() -> None:
    found = judged("deepseek-v4-flash-0731", LINE)
    assert found.reasons == ["the ring is degraded to path-4, and it is served on a whole cycle-4"]
    assert LINE.degraded is not None and degraded.NOTHING is not None


def test_an_incomplete_recipe() -> None:
    found = judged("qwen38-27b-exl3-k5k6")
    assert found.reasons == ["it is incomplete: image.digest, image.id, image.entrypoint are unknown"]
    assert judged("glm53-flash-spark-tp2-dcp1-sparkcache").reasons == ["it is incomplete: arguments is unknown"]


def test_what_is_missing_may_be_given() -> None:
    image = {"id": "sha256:" + "0" * 64, "entrypoint": ["/ws/serve"]}
    assert judged("qwen38-27b-exl3-k5k6", image=image).verdict == "fits"


def test_an_image_that_marks_by_source_port() -> None:
    assert judged("glm53-flash-spark-tp4-dcp1").needs == [
        "set sparkring_source_port_rule: true for the ring, then run plan and mesh-setup: its image marks relayed "
        "packets by UDP source port 65535"
    ]
    assert judged("glm53-flash-spark-tp4-dcp1", WITH_RULE).verdict == "fits"


def test_a_licence_must_be_accepted() -> None:
    recipe = "glm53-flash-nvfp4-dflash2-bf16-tp4-dcp1"
    assert judged(recipe).needs == [
        "the terms of incoai/GLM-5.3-Flash-DFlash2, CC-BY-NC-ND-4.0, restrict use: read them, and if you accept them "
        "add CC-BY-NC-ND-4.0 to sparkring_settings.accept_licences"
    ]
    assert judged(recipe, accept_licences=["CC-BY-NC-ND-4.0"]).verdict == "fits"
    assert fit.licence_lines(ALL[recipe]) == [
        "local-inference-lab/GLM-5.3-Flash-NVFP4: terms not recorded, see its model card",
        "incoai/GLM-5.3-Flash-DFlash2: CC-BY-NC-ND-4.0, which restricts use",
    ]


def test_a_contract_folder() -> None:
    found = fit.of(ALL["glm53-flash-spark-tp4-dcp4"], WITH_RULE, settings.read({}))
    assert found.needs == [
        "set sparkring_settings.folders.contract: its image reads a contract from /opt/sparkring/profile-contract"
    ]


def test_a_cache_that_no_host_holds() -> None:
    found = judged("deepseek-v4-flash-0731", kv_bytes=200 << 30)
    assert found.reasons == ["a KV cache of 200.0 GiB beside 39 GiB of weights is more than the 121 GiB of a host"]
    assert judged("deepseek-v4-flash-0731", kv_bytes=20 << 30).warnings[0].startswith("a KV cache of 20.0 GiB is far")
    assert not judged("deepseek-v4-flash-0731", kv_bytes=17 << 30).warnings[1:]


def test_stock_nccl_on_a_ring_that_it_cannot_close() -> None:
    assert judged("deepseek-v4-flash-0731", nccl="engine").verdict == "fits"
    assert replace(judged("deepseek-v4-flash-0731"), needs=["x"]).verdict == "needs"


def test_a_retired_recipe_says_so() -> None:
    assert judged("glm53-flash-nvfp4-dflash2-bf16-tp4-dcp1").warnings == [
        "it is retired; glm53-flash-spark-tp4-dcp1 takes its place"
    ]


def test_unchecked_files_are_said() -> None:
    assert judged("deepseek-v4-flash-0731").warnings == [
        "no checksum of deepseek-ai/DeepSeek-V4-Flash-0731 is known, so its files are not checked"
    ]
