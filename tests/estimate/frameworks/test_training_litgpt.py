"""LitGPT: what Fabric's precisions make of a base and its adapters (Lightning,
fabric/plugins/precision/{amp,half}.py).
"""

import pytest

import tonnage
from tonnage.kernel.errors import InvalidPlan
from tonnage.models import read

MODEL = read("llama-3.2-1b")
N, HEAD = MODEL.num_parameters(), MODEL.vocab_size * MODEL.hidden_size


def answer(**said):
    return tonnage.train(
        "llama-3.2-1b", on="H200-SXM-141GB", runtime="litgpt", sequence_length=1024, **{"method": "lora", **said}
    )


def weights(**said):
    return {child.name: child.value for child in answer(**said).memory.child("weights").children}


@pytest.mark.parametrize(
    ("precision", "width"), [("bf16", 2), ("fp16", 2), ("bf16-mixed", 4), ("fp16-mixed", 4), ("fp32", 4)]
)
def test_a_base_is_made_in_the_type_of_the_precision(precision, width):
    assert weights(precision=precision)["base weights"] == width * N


def test_the_scripts_own_precision_is_mixed():
    """litgpt/utils.py: get_default_supported_precision(training=True)."""
    assert answer().question["precision"].value == "bf16-mixed"
    assert weights()["base weights"] == 4 * N


def test_adapters_and_their_moments_are_as_wide_as_the_base():
    narrow, wide = (answer(precision=name).memory for name in ("bf16", "bf16-mixed"))
    assert wide.child("optimizer").value == 2 * narrow.child("optimizer").value


def test_under_autocast_every_part_of_a_sequence_keeps_a_copy_of_a_frozen_head():
    copies = 1024 / 128
    assert answer(precision="bf16-mixed").memory.child("temporary").value == copies * HEAD * 2
    assert answer(precision="bf16").memory.child("temporary").value == 0


def test_a_quantised_base_is_in_no_mixed_precision():
    assert answer(method="qlora").question["precision"].value == "bf16"
    with pytest.raises(InvalidPlan, match="litgpt quantises no base under mixed precision"):
        answer(method="qlora", precision="bf16-mixed")


@pytest.mark.parametrize("precision", ["bf16", "bf16-mixed", "fp16-mixed", "fp32"])
@pytest.mark.parametrize("runtime", ["litgpt", "transformers", "torchtune", "unsloth"])
def test_a_base_that_is_not_quantised_is_called_as_wide_as_it_is_charged(runtime, precision):
    """32 bit in litgpt's mixed precision: Lightning, fabric/plugins/precision/amp.py makes modules in torch's
    default type.
    """
    answer = tonnage.train("llama-3.1-8b", on="H100-SXM-80GB", runtime=runtime, method="lora", precision=precision)
    bits = 8 * answer.memory.child("weights").child("base weights").value / 8_030_261_248
    assert answer.question["base_weights"].value == f"{bits:g} bit"
    assert bits == (32 if precision == "fp32" or (runtime == "litgpt" and "mixed" in precision) else 16)
