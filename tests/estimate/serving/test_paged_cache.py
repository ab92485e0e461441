"""What vLLM sets aside for a request: against the concurrency that it printed, and the rules of its blocks."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

import tonnage
from rows.source import read as read_rows
from tonnage import read
from tonnage.catalogue import accelerator
from tonnage.estimate.serving.cache import PagedCache, RequestCache, group_size, kinds
from tonnage.estimate.serving.forward_peak import batch_limits
from tonnage.estimate.serving.memory import serving_memory
from tonnage.estimate.step.rank import stages
from tonnage.kernel.errors import InvalidPlan, MissingDatum, UnknownName
from tonnage.kernel.units import GIB
from tonnage.runtimes import serving_runtime
from tonnage.spec import ServingPlan

UNUSED = "left unused by vLLM (outside gpu_memory_utilization)"
ROWS = Path(__file__).parents[3] / "validation" / "sources" / "infer_memory.yaml"
PAGING = serving_runtime("vllm").paging
BATCHED = 8192  # vLLM's default on an H100; version 0.19 held one batch of it in flight


def model_of(row):
    try:
        return read(row.model["name"], offline=True)
    except (MissingDatum, UnknownName):  # no catalogue model, and no hub is asked
        return None


LOGGED = [row for row in read_rows([str(ROWS)]) if row.id.startswith("vllm019-") and model_of(row) is not None]


def request_of(model, context, ranks=1, width=2, paging=PAGING, in_flight=BATCHED):
    held = PagedCache(context, ranks, lambda cache: cache.bytes_per_element or width, paging, in_flight)
    return held.kept(stages(model, 1)[0], "one request")


@pytest.mark.parametrize("row", LOGGED, ids=lambda row: f"{row.id}-{row.config['max_model_len']}")
def test_the_concurrency_that_vllm_printed_is_its_pool_over_what_a_request_sets_aside(row):
    printed = next(each.value for each in row.also if each.metric == "maximum concurrency")
    width = 1 if row.config["kv_cache_dtype"] == "fp8" else 2
    one = request_of(model_of(row), row.config["max_model_len"], row.config["tp"], width)
    pool = row.measured.value  # GiB, printed with two decimals, as the concurrency is
    assert pool * GIB / one.value == pytest.approx(printed, abs=0.005 + printed * 0.005 / pool + 0.005)


def test_enough_rows_and_kinds_of_cache_are_compared():
    shared = {row.model["name"] for row in LOGGED if len(kinds(stages(model_of(row), 1)[0])) > 1}
    assert len(LOGGED) >= 20 and len(shared) >= 4


@pytest.mark.parametrize(
    ("layers", "size"),
    # vLLM's own examples: 10 full and 20 sliding layers; 12 sliding and 13 full, as gpt-oss-20b with a drafter has
    [([10, 20], 10), ([12, 13], 13), ([6, 30], 6), ([2, 3], 2), ([7], 7)],
)
def test_layers_are_dealt_into_groups_of_the_rarest_kind_or_of_the_commonest_where_it_pads_little(layers, size):
    assert group_size(layers, PAGING.group_tolerance) == size


def test_a_window_holds_what_is_in_flight_besides_its_own_tokens():
    model = read("gemma-3-27b-it")
    short, long = request_of(model, 131_072, in_flight=2048), request_of(model, 131_072, in_flight=16384)
    assert short.child("window of 1024 tokens").children[1].value == -(-(1023 + 2048) // 16) + 1
    assert long.value > short.value


def test_layers_that_all_keep_everything_cost_what_the_architecture_keeps_in_whole_blocks():
    model = read("llama-3.1-8b")
    kept = RequestCache(8192, 1, lambda cache: 2).kept(stages(model, 1)[0], "kept")
    assert request_of(model, 8192).value == kept.value
    assert request_of(model, 8192 - 15).value == kept.value > request_of(model, 8192 - 16).value


def test_a_block_beside_recurrent_states_is_as_large_as_a_state():
    """Qwen3-Next's log says it: the attention block grows until its page holds a state, and states are kept twice."""
    model = read("qwen3-next-80b-a3b")
    one = request_of(model, 8192)
    state, full = (
        next(child for child in one.children if child.name == name) for name in ("recurrent states", "full attention")
    )
    kept = {kind.is_state: kind for kind in kinds(stages(model, 1)[0])}
    layer = sum(cache.elements * (cache.bytes_per_element or 2) for cache in kept[True].layers[0][1])
    assert state.children[1].value == 2
    assert state.children[2].value == full.children[2].value >= layer


MODELS = st.sampled_from(
    [
        "llama-3.1-8b",
        "gemma-3-27b-it",
        "gpt-oss-120b",
        "qwen3.5-27b",
        "deepseek-v3",
        "nemotron-3-nano-30b-a3b",
        "mamba-2.8b",
    ]
)


@given(MODELS, st.integers(1, 200_000), st.integers(1, 16), st.sampled_from([1, 2, 4, 8]))
def test_an_engine_never_sets_aside_less_than_the_architecture_keeps_nor_less_for_more_context(
    name, context, more, ranks
):
    stage = stages(read(name), 1)[0]
    plain = RequestCache(context, ranks, lambda cache: cache.bytes_per_element or 2).kept(stage, "kept").value
    held = request_of(read(name), context, ranks).value
    assert held >= plain and request_of(read(name), context * more, ranks).value >= held


@given(MODELS, st.integers(1, 50_000))
def test_the_slope_is_what_a_request_grows_by_over_many_blocks(name, context):
    """Over a span that every block size divides, and that no window ends in."""
    model, span = read(name), 2**24
    stage = stages(model, 1)[0]
    cache = PagedCache(10**7 + context, 1, lambda one: one.bytes_per_element or 2, PAGING, BATCHED)
    grown = request_of(model, 10**7 + context + span).value - request_of(model, 10**7 + context).value
    assert grown == pytest.approx(span * cache.growth(stage, "one more token").value, rel=1e-3)


def plan(**sizes):
    return ServingPlan.of_fields(**{"context": 8192, **sizes})


@pytest.mark.parametrize(
    ("card", "tokens", "requests"),
    # vllm/engine/arg_utils.py of vLLM 0.33, get_batch_defaults of an API server
    [
        ("B200-180GB", 16384, 1024),
        ("H100-SXM-80GB", 8192, 1024),
        ("A100-SXM-80GB", 2048, 256),
        ("RTX-4090", 2048, 256),
        ("TPU-v6e", 1024, 256),
        ("TPU-v5e", 512, 256),
        ("TPU-v5p", 256, 256),
        ("GB10-128GB", 2048, 256),
    ],
)
def test_vllm_takes_on_as_much_at_once_as_it_does_by_default_on_this_accelerator(card, tokens, requests):
    limits = batch_limits(serving_runtime("vllm"), plan(), accelerator(card))
    assert (limits.tokens, limits.requests) == (tokens, requests)


def test_a_pass_is_never_larger_than_all_requests_at_full_length():
    limits = batch_limits(serving_runtime("vllm"), plan(context=16, max_num_seqs=4), accelerator("H100-SXM-80GB"))
    assert (limits.tokens, limits.requests) == (64, 4)


def test_captured_graphs_and_the_share_that_the_engine_takes_are_the_users_to_set():
    def overhead(**sizes):
        made = serving_memory(read("llama-3.1-8b"), plan(**sizes), accelerator("H100-SXM-80GB"))
        return made.memory.child("runtime overhead")

    assert overhead().value - overhead(enforce_eager=True).value == overhead().child("CUDA graphs").value > 0
    context = serving_runtime("vllm").context
    assert overhead(gpu_memory_utilization=1.0).child(UNUSED).value == context > 0
    assert overhead().child(UNUSED).value == pytest.approx(0.08 * accelerator("H100-SXM-80GB").memory.usable_bytes)


def test_what_others_hold_is_taken_from_what_the_engine_leaves_free_first():
    def tokens(**said):
        return tonnage.serve("llama-3.1-8b", on="H100-SXM-80GB", context=8192, **said).serving.kv_capacity_tokens.value

    assert tokens() == tokens(reserve_bytes=GIB) == tokens(reserve_bytes=5 * GIB)
    assert tokens() > tokens(reserve_bytes=7 * GIB) > tokens(reserve_bytes=8 * GIB)


def test_requests_that_the_engine_does_not_run_have_no_cache():
    waiting = tonnage.serve("llama-3.1-8b", on="rtx-4090", context=8192, concurrency=10, max_num_seqs=4)
    assert waiting.memory.child("kv cache").value == 4 * GIB
    assert waiting.serving.concurrency.value <= 4
    with pytest.raises(InvalidPlan, match="max_num_batched_tokens must be at least max_num_seqs"):
        tonnage.serve("llama-3.1-8b", on="rtx-4090", context=8192, max_num_batched_tokens=100, max_num_seqs=256)
