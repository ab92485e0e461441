"""Rows of measured serving: each source's words become the run that it was, each metric one of four quantities."""

from pathlib import Path
from types import SimpleNamespace

import pytest
from source_rows import Measured, Row, read, references_of, serving_question, validate

from rows.serving_speed.figures import figure_of
from rows.serving_speed.sources import source_of, sources
from tonnage.estimate.serving.weights.storage import storage
from tonnage.kernel.errors import MissingDatum, TonnageError
from tonnage.validation import Measured as OwnMeasured
from tonnage.validation.serving import ServingRow, TimeFigure, measured_quantities, time_figure

ROOT = Path(__file__).parents[2] / "validation" / "sources"
ROWS = read([str(ROOT / "infer_speed.yaml")])
KNOWN = references_of(read([str(ROOT / "params.yaml")]))
BY_ID = {row.id: row for row in ROWS}
PLAN = (
    "tensor_parallel_size",
    "attention_data_parallel_size",
    "expert_parallel_size",
    "pipeline_parallel_size",
    "weights",
    "kv_cache",
)


def question(name: str) -> ServingRow:
    return serving_question(BY_ID[name], KNOWN)


def figure(name: str, metric: str, unit: str) -> TimeFigure:
    made = figure_of(Measured(metric, 1.0, unit))
    return time_figure(OwnMeasured(value=1.0, **made), question(name))


def sample(identity: str, **config: object) -> Row:
    """A row of silicon_sample.csv."""
    base = {
        "framework": "sglang",
        "gpu": "b200_sxm",
        "hf_model": "deepseek-ai/DeepSeek-R1",
        "gemm_quant": "fp8",
        "isl": 1024,
        "osl": 1024,
        "concurrency": 64,
        "batch_size": 64,
        "tp": 8,
        "attention_dp": 1,
    }
    return Row(
        id=f"aic-{identity}",
        kind="infer_speed",
        measured=Measured("TPOT", 10.0, "ms/token"),
        model={"ref": "deepseek-r1"},
        config=base | config,
        source="silicon_sample.csv",
    )


def layout(row: Row) -> tuple[object, ...]:
    plan = serving_question(row, KNOWN).plan
    return plan.tensor_parallel_size, plan.attention_data_parallel_size, plan.expert_parallel_size


def test_nine_of_ten_rows_that_say_all_are_questions_and_the_others_say_why_not():
    refused = {}
    for row in ROWS:
        try:
            serving_question(row, KNOWN)
        except TonnageError as error:
            refused[row.id] = (row.completeness_class, str(error))
    full = sum(row.completeness_class == "full" for row in ROWS)
    reasons = {reason for completeness, reason in refused.values() if completeness == "full"}
    assert sum(completeness == "full" for completeness, _ in refused.values()) < 0.07 * full
    assert reasons == set()
    allowed = (
        "prefill and of decode together",
        "on which accelerator it ran",
        "share experts and attention is not said",
        "says no lengths",
    )
    assert all(any(words in reason for words in allowed) for _, reason in refused.values())


def test_every_source_of_the_rows_is_known_and_every_known_one_has_rows():
    assert {source_of(row).name for row in ROWS} == {each.name for each in sources()}
    with pytest.raises(MissingDatum, match="'somebody' measured is not described"):
        source_of(Row(id="x", kind="infer_speed", measured=Measured("TPOT", 1.0, "ms"), source="somebody"))


def test_a_question_says_what_its_figures_are_and_validate_gives_a_line_for_each():
    rows = [BY_ID[name] for name in ("gptfast-l2-7b-int8", "is-m5-phi2-q4_0", "neuron-inf2-thr-00-llama-3-8b")]
    lines = validate(rows, KNOWN)["rows"]
    assert len(lines) == sum(1 + len(row.also) for row in rows)
    assert all(measured_quantities(serving_question(row, KNOWN)) for row in rows)


def test_every_plan_has_as_many_ranks_as_its_cluster_has_accelerators():
    for row in ROWS:
        try:
            made = serving_question(row, KNOWN)
        except TonnageError:
            continue
        assert made.plan.world_size == made.cluster.size, row.id
        assert made.plan.expert_parallel_size <= made.cluster.size, row.id


@pytest.mark.parametrize(
    ("identity", "config", "expected"),
    [
        # the same run stands in the table three times, twice with 64 ranks
        ("r1_c4_tp8_ep8_1015", {"tp": 64, "moe_tp": 8, "moe_ep": 8}, (8, 1, 8)),
        ("r1_c4_tp8_0_ep8_0_298", {"tp": 8, "moe_tp": 1, "moe_ep": 8}, (8, 1, 8)),
        ("r1_c4_cfg201", {"tp": 64, "moe_tp": 8, "moe_ep": 8}, (8, 1, 8)),
        ("r1_c4_cfg202", {"tp": 16, "moe_tp": 4, "moe_ep": 4}, (4, 1, 4)),
        ("r1_c4_cfg99", {"tp": 8, "moe_tp": 8, "moe_ep": 1}, (8, 1, 1)),
        ("r1_c64_tp8_ep8_945", {"tp": 1, "attention_dp": 64, "moe_tp": 8, "moe_ep": 8}, (1, 8, 8)),
        ("oss_c32_tp4_ep1_296", {"tp": 1, "attention_dp": 4, "moe_tp": 4, "moe_ep": 1}, (1, 4, 1)),
        ("m2_c4_tp4_ep4_1357", {"tp": 4, "attention_dp": 4, "moe_tp": 1, "moe_ep": 16}, (4, 1, 4)),
        ("m2_c256_cfg726", {"tp": 2, "attention_dp": 2, "moe_tp": 1, "moe_ep": 4}, (1, 2, 2)),
        # NVIDIA's own: sizes as written, attention by requests where a rank has a part of them
        ("own_tp4_epnone_5", {"tp": 4, "moe_tp": 2, "moe_ep": 2, "batch_size": 64}, (4, 1, 2)),
        ("own_tp8_epnone_4", {"tp": 8, "moe_tp": 2, "moe_ep": 4, "concurrency": 96, "batch_size": 12}, (1, 8, 4)),
        ("own_tp1_epnone_22", {"tp": 1, "moe_tp": 2, "moe_ep": 1}, (1, 2, 1)),
    ],
)
def test_sizes_of_the_silicon_sample_are_those_that_were_run(identity: str, config: dict, expected: tuple):
    assert layout(sample(identity, **config)) == expected


def test_the_same_times_are_of_the_same_sizes():
    """Rows of InferenceX that stand in the table more than once decode to one layout."""
    found: dict[tuple, set] = {}
    for row in ROWS:
        if row.id.startswith("aic-") and "epnone" not in row.id:
            try:
                made = serving_question(row, KNOWN)
            except TonnageError:
                continue
            key = (row.measured.value, row.also[0].value, made.cell.accelerator, made.plan.engine)
            found.setdefault(key, set()).add(layout(row))
    assert sum(len(layouts) == 1 for layouts in found.values()) == len(found)


def test_equal_questions_have_nearly_equal_times():
    """With the drafts of InferenceX among them they would differ by a factor of two."""
    found: dict[tuple, list[float]] = {}
    for row in ROWS:
        if row.id.startswith("aic-"):
            try:
                made = serving_question(row, KNOWN)
            except TonnageError:
                continue
            if made.row.completeness.startswith("indicative"):
                continue
            load = (made.load.input_tokens, made.load.output_tokens, made.load.concurrency)
            found.setdefault((made.cell, layout(row), load, made.plan.engine_version), []).append(
                float(row.measured.value)
            )
    several = [times for times in found.values() if len(times) > 1]
    assert len(several) > 50
    assert all(max(times) < 1.1 * min(times) for times in several)


@pytest.mark.parametrize(
    ("identity", "config"),
    [
        (
            "r1_c4_tp8_ep8_940",
            {"framework": "trtllm", "framework_version": "1.1.0rc2.post2", "tp": 64, "moe_tp": 8, "moe_ep": 8},
        ),
        (
            "r1_c4_tp8_0_ep1_0_975",
            {"framework": "trtllm", "framework_version": "1.2.0rc6.post3", "moe_tp": 8, "moe_ep": 1},
        ),
        ("r1_c4_tp8_0_ep1_0_265", {"moe_tp": 8, "moe_ep": 1}),
        ("q_c4_tp4_0_ep1_0_463", {"hf_model": "Qwen/Qwen3.5-397B-A17B", "tp": 4, "moe_tp": 4, "moe_ep": 1}),
    ],
)
def test_rows_that_may_have_drafted_tokens_count_in_no_error_unless_they_name_their_config(identity: str, config: dict):
    row = serving_question(sample(identity, **config), KNOWN).row
    assert row.completeness.startswith("indicative: whether tokens were drafted")
    named = serving_question(sample("r1_c4_cfg7", **config), KNOWN)
    assert named.plan.drafting.draft_tokens == 0 and not named.row.completeness.startswith("indicative")


def test_inputs_from_what_was_measured_are_named_and_make_a_row_count_in_no_fit():
    marked = serving_question(sample("r1_c4_cfg7", tp=64, moe_tp=8, moe_ep=8), KNOWN)
    assert set(marked.row.from_measured) == {"tensor_parallel_size"} and marked.is_guessed
    assert any("from what was measured: the row says 64 ranks" in note for note in marked.row.notes)
    assert marked.row.completeness == "full" and marked.row.completeness_class == "indicative"


def test_racks_of_prefill_and_decode_together_are_no_question():
    with pytest.raises(MissingDatum, match="28 accelerators are those of prefill and of decode together"):
        serving_question(sample("r1_c3_tp28_ep1_118", gpu="gb200", tp=28, moe_tp=28, moe_ep=1), KNOWN)


@pytest.mark.parametrize(
    ("name", "model", "accelerator", "engine", "precision", "expected"),
    [
        (
            "aic-2026_04_06_deepseek_r1_b200_sxm_sglang_fp4_agg_1024x1024_c4_tp8_ep8_1015",
            "deepseek-v3",
            "B200-SXM-180GB",
            "sglang",
            "nvfp4",
            (8, 1, 8, 1, None, "fp8"),
        ),
        (
            "aic-dsr1_h200_sglang_fp8_agg_1024x1024_c4_cfg81",
            "deepseek-v3",
            "H200-SXM-141GB",
            "sglang",
            "fp8",
            (8, 1, 1, 1, None, "bf16"),
        ),
        (
            "aic-2026_04_06_gpt_oss_120b_h100_sxm_vllm_fp4_agg_1024x1024_c4_tp2_ep1_312",
            "gpt-oss-120b",
            "H100-SXM-80GB",
            "vllm",
            "mxfp4",
            (2, 1, 1, 1, None, "bf16"),
        ),
        (
            "qwen3doc-4b-sg-in1-awq-int4",
            "qwen3-4b",
            "H20-96GB",
            "sglang",
            "int4",
            (1, 1, 1, 1, "awq-4bit-128g", "bf16"),
        ),
        (
            "qwen25doc-7b-tr-in1-gptq-int8",
            "qwen2.5-7b",
            "A100-SXM-80GB",
            "transformers",
            "int8",
            (1, 1, 1, 1, "gptq-8bit-128g", "bf16"),
        ),
        (
            "gptfast-l2-70b-tp8-int4",
            "llama-2-70b",
            "A100-SXM-80GB",
            "gpt-fast",
            "int4",
            (8, 1, 1, 1, "int4-32g", "bf16"),
        ),
        (
            "xd-3090-24gb-2-8b-q4_k_m-tg512",
            "llama-3-8b",
            "RTX-3090",
            "llama.cpp",
            "q4_k_m",
            (1, 1, 1, 2, "Q4_K_M", "fp16"),
        ),
        (
            "litgpt-inf-llama-2-7b-nf4-dq-tps",
            "llama-2-7b",
            "A100-SXM-40GB",
            "transformers",
            "nf4-dq",
            (1, 1, 1, 1, "nf4-double", "bf16"),
        ),
        ("neuron-inf2-thr-00-llama-3-8b", "llama-3-8b", "Inferentia2", "neuron", "int8", (12, 1, 1, 1, "int8", "fp16")),
        ("neuron-trn1-thr-00-llama-3-8b", "llama-3-8b", "Trainium1", "neuron", "int8", (16, 1, 1, 1, "int8", "fp16")),
        (
            "trtllm10-llama-3.3-70b-h100-tp2-128-128",
            "llama-3.3-70b",
            "H100-SXM-80GB",
            "tensorrt-llm",
            "fp8",
            (2, 1, 1, 1, None, "fp8"),
        ),
        (
            "nim-l33-70b-180-5000-500-c5",
            "llama-3.3-70b",
            "H100-SXM-80GB",
            "tensorrt-llm",
            "fp8",
            (2, 1, 1, 1, None, "fp8"),
        ),
        ("is-sglang-ep-dsv3-2k", "deepseek-v3", "H100-SXM-80GB", "sglang", "fp8", (1, 72, 72, 1, None, "bf16")),
    ],
)
def test_a_row_of_each_source_is_the_run_that_it_was(
    name: str, model: str, accelerator: str, engine: str, precision: str, expected: tuple
):
    made = question(name)
    cell = made.cell
    assert (cell.model, cell.accelerator, cell.engine, cell.precision) == (model, accelerator, engine, precision)
    assert tuple(getattr(made.plan, field) for field in PLAN) == expected


def test_loads_are_lengths_of_the_source_and_its_range():
    swept = question("aic-2026_04_06_gpt_oss_120b_h100_sxm_vllm_fp4_agg_1024x1024_c4_tp2_ep1_312").load
    assert (swept.input_tokens, swept.output_tokens, swept.concurrency, swept.spread) == (1024, 1024, 4, 0.2)
    saturated = question("trtllm10-llama-3.3-70b-h100-tp2-128-128").load
    assert saturated.concurrency is None and saturated.requests_per_second is None and saturated.spread == 0
    deep = question("is-lcpp-17505-3090-8b-q4_0-d32k-ub2")
    assert (deep.load.input_tokens, deep.load.cached_tokens, deep.load.output_tokens) == (32768 + 512, 32768, 1)
    assert deep.plan.max_num_batched_tokens == 2


def test_what_a_checkpoint_leaves_in_16_bits_is_left_so():
    """NVIDIA's NVFP4 checkpoint of DeepSeek keeps the projections of attention but the last; the user's own nvfp4
    would not.
    """
    model = question("aic-2026_04_06_deepseek_r1_b200_sxm_sglang_fp4_agg_1024x1024_c4_tp8_ep8_1015").model
    stored = storage(model, None)
    sizes = {
        weight.name: stored.bytes_of(weight, stored.blocks[block][0]) / weight.num_parameters
        for block in model.decoder.blocks
        for weight in block.weights()
    }
    assert sizes["self_attn.q_b_proj.weight"] == 2
    assert sizes["self_attn.o_proj.weight"] == pytest.approx(0.5625, rel=1e-3)
    assert sizes["mlp.experts.down_proj.weight"] == pytest.approx(0.5625, rel=1e-3)


TIMES = SimpleNamespace(ttft_seconds=0.5, tpot_seconds=0.02, end_to_end_seconds=4.0, output_tokens_per_second=1000.0)


@pytest.mark.parametrize(
    ("name", "metric", "unit", "expected"),
    [
        ("nim-l33-70b-180-5000-500-c5", "TTFT", "ms", 500),
        ("nim-l33-70b-180-5000-500-c5", "ITL", "ms", 20),
        ("nim-l33-70b-180-5000-500-c5", "output throughput", "tokens/s (total)", 1000),
        ("nim-l33-70b-180-5000-500-c5", "output throughput per GPU", "tokens/s/GPU", 500),
        ("nim-l33-70b-180-5000-500-c5", "request throughput", "requests/s", 2),
        ("nim-l33-70b-180-5000-500-c5", "end-to-end latency", "s", 4),
        ("qwen3doc-4b-sg-in6144-bf16", "(prompt+generated tokens)/time", "tokens/s", (6144 + 2048) / 4),
        ("qwen25doc-7b-tr-in1-bf16", "generation speed", "tokens/s", 512),
        ("gptfast-l2-7b-int8", "decode throughput", "tokens/s", 50),
        ("xd-3090-24gb-2-8b-q4_k_m-tg512", "decode speed", "tokens/s", 50),
        ("xd-3090-24gb-2-8b-q4_k_m-pp4096", "prefill speed", "tokens/s", 8192),
        ("is-lcpp-17505-3090-8b-q4_0-d32k-ub2", "throughput pp512@d32768", "tokens/s", 1024),
        ("is-sglang-ep-dsv3-2k", "output throughput per node", "tokens/s/node", 1000 / 9),
        ("is-sglang-ep-dsv3-prefill-1024", "prefill throughput per node", "tokens/s/node", 1000 * 1024 / 4),
    ],
)
def test_each_unit_of_serving_has_one_way_from_its_times(name: str, metric: str, unit: str, expected: float):
    made = figure(name, metric, unit)
    assert made.value(TIMES) == pytest.approx(expected)
    assert made.base(expected) == pytest.approx(getattr(TIMES, made.of))


@pytest.mark.parametrize(
    ("metric", "unit"),
    [("before PR", "tokens/s"), ("power", "W"), ("TTFT", "tokens/s"), ("input throughput per node", "tokens/s/node")],
)
def test_what_is_no_figure_of_this_run_is_refused_by_name(metric: str, unit: str):
    with pytest.raises(MissingDatum, match=f"'{metric}'"):
        figure("is-sglang-ep-dsv3-2k", metric, unit)


@pytest.mark.parametrize(
    ("config", "message"),
    [
        ({"framework": "SGLang 0.4", "weight_quant": "INT3"}, "weight_quant 'int3' is not known"),
        ({"framework": "lmdeploy 0.4", "weight_quant": "BF16"}, "engine of 'lmdeploy 0.4' is not known"),
    ],
)
def test_words_that_are_not_known_are_named(config: dict, message: str):
    row = BY_ID["qwen3doc-4b-sg-in1-awq-int4"]
    other = Row(
        id="x",
        kind=row.kind,
        measured=row.measured,
        model=row.model,
        source=row.source,
        config={**row.config, **config},
    )
    with pytest.raises(MissingDatum, match=message):
        serving_question(other, KNOWN)
