"""torchtune: everything in 16 bit, logits in parts, an optimizer that may step in backward with paged states."""

import pytest

from tonnage import read, train
from tonnage.catalogue import cluster
from tonnage.estimate.inputs import Question
from tonnage.estimate.memory import Step, training_memory
from tonnage.estimate.options.plans import training_plan
from tonnage.estimate.plan.training_options import TrainingOptions
from tonnage.kernel.errors import InvalidPlan
from tonnage.kernel.units import GIB

PARAMETERS = 8_030_261_248
LOGITS = 4096 * 128256


def memory(machine="A6000", **options):
    model, where = read("llama-3.1-8b"), cluster(machine)
    chosen = TrainingOptions(**{"runtime": "torchtune", "sequence_length": 2048, "micro_batch_size": 2, **options})
    return training_memory(model, training_plan(model, where, chosen, Question()), where)


def tensors(made):
    """What PyTorch's allocator hands out at the peak, in GiB."""
    return (
        max(
            sum(float(child.value) for child in phase.children if child.name != "runtime overhead")
            for rank in made.ranks
            for phase in rank.phases
        )
        / GIB
    )


ON_A_4090 = {"runtime": "torchtune", "sequence_length": 2048, "micro_batch_size": 2, "precision": "bf16"}
FULL = {"optimizer": "paged-adamw-8bit", "optimizer_in_backward": True, "compile": True}


@pytest.mark.parametrize(("recompute", "published"), [("full", 18.9), ("none", 37.4)])
def test_a_full_finetune_takes_what_the_readme_says_with_and_without_checkpointing(recompute, published):
    assert tensors(memory(recompute=recompute, **FULL)) == pytest.approx(published, rel=0.03)


def test_gradients_are_gone_when_the_optimizer_steps_in_backward_and_of_paged_states_one_weight_s_are_present():
    made = memory(**FULL)
    for phase in made.ranks[0].phases:
        assert phase.child("gradients").value == 0 and phase.child("optimizer").value == 0
        assert phase.child("weights").value == 2 * PARAMETERS
    step = made.ranks[0].phases[-1].child("runtime overhead")
    present = sum(float(term.value) for term in step.children if "managed memory" in term.name)
    assert present == pytest.approx(2 * 128_256 * 4096, rel=0.04)  # the embedding's, and the scales of blocks of 256


def test_a_full_finetune_fits_the_rtx_4090_on_which_torchtune_measured_it_and_its_states_count_as_host_memory():
    paged = train("llama-3.1-8b", "RTX-4090", recompute="full", **ON_A_4090, **FULL)
    assert paged.fits
    assert paged.host.memory.value > 2 * PARAMETERS
    unpaged = train("llama-3.1-8b", "RTX-4090", recompute="full", **ON_A_4090, **{**FULL, "optimizer": "adamw-8bit"})
    assert not unpaged.fits


def test_all_is_in_sixteen_bit_unless_told():
    made = memory("8xA100-SXM4-80GB", sequence_length=512)
    assert made.ranks[0].phases[-1].child("optimizer").value == pytest.approx(2 * 2 * PARAMETERS / 8)
    assert made.ranks[0].phases[-1].child("gradients").value == pytest.approx(2 * PARAMETERS / 8)


def test_a_compiled_loss_in_parts_keeps_the_logits_alone_and_an_eager_one_their_logarithms_too():
    eager, compiled = (tensors(memory(recompute="full", **{**FULL, "compile": flag})) for flag in (False, True))
    assert eager - compiled == pytest.approx(4 * LOGITS / GIB, rel=0.6)


def test_adapters_have_the_width_of_the_weights():
    made = memory(method="lora", lora_rank=8, lora_targets="q_proj,v_proj", recompute="full", compile=True)
    count = 32 * 8 * ((4096 + 4096) + (4096 + 1024))
    weights = made.ranks[0].phases[0].child("weights")
    assert weights.child("adapters").value == 2 * count


def test_a_loss_in_parts_takes_lengths_that_its_parts_do_not_divide_and_is_as_large_as_the_largest():
    """torch.chunk(8) of 513 tokens makes parts of 65, as of 520; torchtitan's own refuses such lengths, as
    ChunkedLossWrapper does.
    """
    shorter, between, longer = (
        tensors(memory(recompute="full", sequence_length=length, **FULL)) for length in (512, 513, 520)
    )
    assert shorter < between < longer
    for few in (1, 5, 9):
        assert memory(sequence_length=few, micro_batch_size=1, **FULL).needed > 0
    with pytest.raises(InvalidPlan, match=r"sequence_length: .* 8 equal parts. Got 513. Nearest: 512 or 520."):
        memory("8xH100-SXM-80GB", runtime="fsdp2", loss="chunked", sequence_length=513)


def test_of_uneven_parts_the_largest_decides():
    model, where = read("llama-3.1-8b"), cluster("A6000")
    for length, largest in ((2048, 256), (513, 65), (9, 2), (5, 1)):
        plan = training_plan(model, where, TrainingOptions(runtime="torchtune", sequence_length=length), Question())
        assert Step(model, plan, where).framework._parts() == pytest.approx(length / largest)
