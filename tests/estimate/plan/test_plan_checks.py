"""Plans that cannot run are refused, and machines that differ from the measured ones are said to."""

import pytest

import tonnage
from tonnage.estimate.plan.rule import near_divisors
from tonnage.kernel.errors import InvalidPlan


def warnings(model, on, **options):
    return tonnage.train(model, on=on, **options).warnings


def test_a_dense_model_has_no_experts_to_cut():
    with pytest.raises(
        InvalidPlan, match=r"llama-3.1-8b has no experts, so expert_tensor_parallel_size must be 1. Got 2."
    ):
        tonnage.train("llama-3.1-8b", on="8xH100-SXM-80GB", tensor_parallel_size=2, expert_tensor_parallel_size=2)
    answer = tonnage.train("llama-3.1-8b", on="8xH100-SXM-80GB", tensor_parallel_size=2)
    assert answer.question["expert_tensor_parallel_size"].value == 1


@pytest.mark.parametrize(
    ("model", "positions", "table"),
    [
        ("gpt2-xl", 1024, "wpe"),
        ("opt-1.3b", 2048, "embed_positions"),
        ("bert-base-uncased", 512, "position_embeddings"),
    ],
)
def test_a_learned_position_table_bounds_the_sequence(model, positions, table):
    assert tonnage.train(model, on="rtx-4090", sequence_length=positions).needed_bytes
    with pytest.raises(
        InvalidPlan, match=rf"sequence_length may be at most {positions} .*{table}.* Got {positions + 1}"
    ):
        tonnage.train(model, on="rtx-4090", sequence_length=positions + 1)
    with pytest.raises(InvalidPlan, match=f"context may be at most {positions}"):
        tonnage.serve(model, on="rtx-4090", context=positions + 1)


def test_rotary_positions_go_beyond_the_context_with_a_warning():
    said = tonnage.train("llama-2-7b", on="8xH100-SXM-80GB", sequence_length=8192).warnings
    assert any("beyond the 4096 tokens" in warning for warning in said)


@pytest.mark.parametrize(
    ("on", "precision", "names"),
    [
        ("A100-SXM-80GB", "fp8-te", ("no source gives a fp8 peak of A100-SXM-80GB", "bf16")),
        ("V100-SXM2-32GB", "bf16-mixed", ("bf16 peak of V100-SXM2-32GB: bf16 may be slow", "fp16")),
        ("T4", None, ("bf16 peak of T4: bf16 may be slow", "fp16")),
    ],
)
def test_a_precision_that_the_accelerator_does_not_have_is_warned_of(on, precision, names):
    said = " ".join(warnings("qwen3-0.6b", on, precision=precision))
    assert all(name in said for name in names)
    assert not any("has no" in warning for warning in warnings("qwen3-0.6b", "H100-SXM-80GB", precision=precision))


def test_serving_warns_of_the_models_own_type():
    assert any("bf16 peak of T4" in warning for warning in tonnage.serve("qwen3-0.6b", on="T4", context=4096).warnings)


@pytest.mark.parametrize("on", ["MI300X", "Gaudi2", "Apple-M3-Max-64GB"])
def test_amounts_that_were_measured_on_nvidia_are_not_passed_off_as_another_vendors(on):
    trained = tonnage.train("qwen3-0.6b", on=on)
    assert any("not counted" in warning and "NVIDIA" in warning for warning in trained.warnings)
    assert not any("NVIDIA" in warning for warning in warnings("qwen3-0.6b", "H100-SXM-80GB"))
    names = [node.name for _, node in trained.memory.walk()]
    assert not [name for name in names if "CUDA" in name]
    served = tonnage.serve("qwen3-0.6b", on=on, context=4096, engine="vllm")
    assert any("NVIDIA" in warning for warning in served.warnings)


def test_tensor_parallelism_over_slices_of_a_gpu_is_warned_of():
    slices = "2xH100-SXM-80GB:1g.10gb"
    assert any("MIG slice" in warning for warning in warnings("qwen3-0.6b", slices, tensor_parallel_size=2))
    assert not any("MIG slice" in warning for warning in warnings("qwen3-0.6b", slices, sequence_length=512))


def test_a_size_beyond_reason_is_refused_by_its_limit():
    with pytest.raises(
        InvalidPlan, match=r"micro_batch_size must be from 1 to 1,099,511,627,776. Got 2,199,023,255,552"
    ):
        tonnage.train("llama-3.1-8b", on="8xH100-SXM-80GB", micro_batch_size=2**41)


def test_the_runtime_that_an_error_names_is_the_one_that_was_written():
    with pytest.raises(
        InvalidPlan,
        match=(
            r"runtime transformers \(its Trainer.* has no pipeline_parallel_size.* Those that have it: fsdp2, "
            r"megatron, nanotron"
        ),
    ):
        tonnage.train("llama-3.1-8b", on="8xH100-SXM-80GB", runtime="transformers", pipeline_parallel_size=2)
    with pytest.raises(InvalidPlan, match="those of runtime transformers"):
        tonnage.train("llama-3.1-8b", on="8xH100-SXM-80GB", runtime="transformers", zero_stage=3)
    with pytest.raises(InvalidPlan, match="runtime ddp has no"):
        tonnage.train("llama-3.1-8b", on="8xH100-SXM-80GB", runtime="ddp", pipeline_parallel_size=2)


@pytest.mark.parametrize("schedule", ["zbv", "ZBVZeroBubble", "interleaved-1f1b", "gpipe"])
def test_a_schedule_of_several_stages_asks_for_them_before_it_blames_layers(schedule):
    said = rf"pipeline_schedule {schedule} needs pipeline_parallel_size above 1. Got 1\."
    with pytest.raises(InvalidPlan, match=said):
        tonnage.train("llama-3.1-8b", on="8xH100-SXM-80GB", pipeline_schedule=schedule)


def test_the_nearest_sizes_of_a_very_large_cluster_are_found_at_once():
    """8 x 1,000,000 accelerators: by their divisors, not by trying every number."""
    assert near_divisors(8_000_000, 48) == "40 or 50"
    assert near_divisors(8_000_000, 8_000_001) == "8000000"
    assert near_divisors(2**40 - 87, 5) == "1 or 1099511627689"
