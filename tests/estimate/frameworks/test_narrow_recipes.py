"""FP8 and FP4 recipes by the names of torchtitan and Transformer Engine, and context parallelism by its names."""

import pytest

import tonnage
from every_row import every_row
from tonnage.kernel.errors import InvalidInput, InvalidPlan
from tonnage.numerics.precisions import TE_NAMES, TRAINING_RECIPES

MODEL = "llama-3.2-1b"


def train(**options):
    return tonnage.train(MODEL, **{"on": "8xb200", "as_is": True, "advice": False, **options})


def test_mxfp8_keeps_what_bf16_keeps_and_is_faster():
    """torchao, mx_linear.py saves inputs and weights in bf16. torchtitan, mxfp8.md: 33.88 against 33.71 GB."""
    shape = {"runtime": "fsdp2", "compile": True, "sequence_length": 8192}
    wide, narrow = train(**shape), train(**shape, float8="mxfp8")
    assert narrow.needed_bytes == pytest.approx(wide.needed_bytes, rel=0.01)
    assert narrow.step_time.value < wide.step_time.value


def test_scales_of_mxfp8_are_one_byte_for_32_numbers():
    """A layer's backward casts its operands: with scales of blocks they are a 32nd wider."""
    shape = {"runtime": "fsdp2", "sequence_length": 8192, "micro_batch_size": 4, "recompute": "full"}
    rowwise, blocks = train(**shape, float8="rowwise"), train(**shape, float8="mxfp8")
    assert rowwise.needed_bytes <= blocks.needed_bytes < 1.05 * rowwise.needed_bytes


@every_row("name", ["mxfp8_rceil", "mxfp8_cublas", "mxfp8-cublas-rceil"])
def test_recipes_of_torchtitan_are_mxfp8(name):
    assert train(runtime="fsdp2", float8=name).question["float8"].value == "mxfp8"


def test_mxfp8_before_blackwell_is_warned_of():
    assert any("float8 mxfp8 does not run on H100" in note for note in train(on="8xh100", float8="mxfp8").warnings)


@every_row("name, recipe", [("blockwise", "fp8-blockwise-te"), ("delayed", "fp8-te")])
def test_recipes_that_fsdp2_lacks_name_transformer_engines(name, recipe):
    with pytest.raises((InvalidInput, InvalidPlan), match=f"megatron with precision {recipe}"):
        train(runtime="fsdp2", float8=name)


@every_row("name, recipe", list(TE_NAMES.items()))
def test_megatron_takes_names_of_transformer_engines_recipes(name, recipe):
    assert train(runtime="megatron", precision=name).question["precision"].value == recipe
    by_scaling = train(runtime="megatron", float8=name).question["precision"]
    assert (by_scaling.value, by_scaling.why) == (recipe, name)


def test_mxfp8_as_a_precision_is_the_scaling_of_fsdp2():
    with pytest.raises(InvalidInput, match="write float8 mxfp8 and leave precision out"):
        train(runtime="fsdp2", precision="mxfp8")


def test_blockwise_scales_are_of_128_by_128_weights_and_of_128_inputs():
    """Transformer Engine, FP8 blockwise scaling: fp32 scales; weights 2D, activations 1D; two copies on Hopper."""
    recipe = TRAINING_RECIPES["fp8-blockwise-te"]
    assert recipe.cast_bytes == 2 * (1 + 4 / (128 * 128))
    assert recipe.linear_input_bytes == 1 + 4 / 128


@every_row("recipe, copies", [("fp8-te", 2), ("blockwise", 2 * (1 + 4 / 128**2)), ("mxfp8", 2 * 33 / 32)])
def test_transformer_engine_keeps_narrow_copies_of_linear_weights(recipe, copies):
    """Transformer Engine, handling transposes: by rows and by columns, for the whole step (Hopper)."""
    answer = tonnage.train("llama-3.1-8b", on="8xh200", runtime="megatron", precision=recipe, advice=False, as_is=True)
    linear = 32 * (2 * 4096 * 4096 + 2 * 4096 * 1024 + 3 * 4096 * 14336)
    copied = next(row for row in answer.rows("memory") if row["name"] == "narrow copies of the weights")
    assert copied["value"] == pytest.approx(copies * linear)


def test_swift_trains_qwen3_14b_in_fp8_in_more_memory_than_in_bf16():
    """modelscope/ms-swift, examples/megatron/fp8/benchmark.sh: 58 GiB of an H20 in fp8 blockwise, 52 in bf16."""
    shape = {"on": "8xH20-96GB", "tensor_parallel_size": 4, "sequence_length": 8192, "global_batch_size": 16}
    run = {**shape, "runtime": "megatron", "recompute": "selective", "optimizer": "adamw-bf16"}
    needed = [
        tonnage.train("qwen3-14b", **run, precision=name, advice=False, as_is=True).needed_bytes / 2**30
        for name in ("bf16-mixed", "fp8-blockwise-te-primary")
    ]
    assert needed == pytest.approx([52, 58], rel=0.1)


@every_row(
    "name, method", [("ulysses", "a2a"), ("DeepSpeed_Ulysses", "a2a"), ("ring", "p2p"), ("all-gather", "allgather")]
)
def test_context_parallelism_by_its_names(name, method):
    answer = train(runtime="megatron", context_parallel_size=2, context_parallel_method=name)
    assert answer.question["context_parallel_method"].value == method


def test_ulysses_within_a_ring_is_refused():
    with pytest.raises(InvalidPlan, match="must be one of p2p, a2a, allgather"):
        train(runtime="megatron", context_parallel_size=4, context_parallel_method="usp")
