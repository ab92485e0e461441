"""The time of a training step: arithmetic as the layers do it, and what follows from it."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import UNSET
from msgspec.structs import replace

import tonnage
from tonnage.catalogue import cluster
from tonnage.estimate.hardware.rates import rates
from tonnage.estimate.inputs import Question
from tonnage.estimate.layers import layers as tapes
from tonnage.estimate.layers.layers import forward_flops, training_flops
from tonnage.estimate.memory import Step
from tonnage.estimate.options.plans import training_plan
from tonnage.estimate.plan.training_options import TrainingOptions
from tonnage.estimate.step_time.time import Timing
from tonnage.kernel.errors import InvalidInput, InvalidPlan, MissingDatum, UnknownName
from tonnage.models import read
from tonnage.numerics.precisions import precision
from tonnage.runtimes import training_runtime, training_runtimes

TOKENS = 2048


def timing(model="llama-3.1-8b", machine="8xH100-SXM-80GB", **options):
    made, where = read(model, offline=True), cluster(machine)
    return Timing(made, training_plan(made, where, TrainingOptions(**options), Question()), where)


def seconds(*of, **options):
    return timing(*of, **options).walk.seconds()


def forward_of_tapes(model, runtime):
    """FLOP of all forward kernels on one rank of one."""
    made, where = read(model, offline=True), cluster("H200-SXM-141GB")
    plan = training_plan(made, where, TrainingOptions(runtime=runtime, sequence_length=TOKENS), Question())
    step = Step(made, plan, where)
    walk = Timing(made, plan, where, step).walk
    layers = [(step.layers[block], tapes.window_of(block), count) for block, count in step.stages[0].layers]
    layers.append((step.framework.loss(step.stages[0]), None, 1))
    return sum(
        count * walk.kernels.seconds(work, window)[1]
        for layer, window, count in layers
        for work in layer.work
        if work.when == "forward" and work.kind != "exchange"
    )


@pytest.mark.parametrize("runtime", ["megatron", "fsdp2", "transformers"])
@pytest.mark.parametrize(
    "model",
    [
        "llama-3.1-8b",
        "qwen3-8b",
        "mixtral-8x7b",
        "deepseek-v3",
        "gemma-3-4b-pt",
        "opt-1.3b",
        "mamba2-1.3b",
        "mistral-7b-v0.1",
    ],
)
def test_what_kernels_compute_is_what_the_formulas_of_the_model_say(model, runtime):
    made = read(model, offline=True)
    assert forward_of_tapes(model, runtime) == pytest.approx(forward_flops(made, TOKENS, TOKENS).value, rel=0.01)


@pytest.mark.parametrize("model", ["llama-3.1-8b", "mixtral-8x7b"])
@pytest.mark.parametrize("runtime", ["megatron", "fsdp2"])
def test_backward_computes_twice_what_forward_does_but_attention_that_makes_its_scores_again(model, runtime):
    spent = timing(model, "64xH100-SXM-80GB", runtime=runtime).walk.stages[0].kernels
    for kind in {kind for _, kind in spent} - {"move"}:
        factor = 2.5 if kind == "attention" else 2
        assert spent["backward", kind].flops == pytest.approx(factor * spent["forward", kind].flops)


def test_adapters_make_no_gradients_of_the_weights_they_stand_beside():
    full, lora = (
        timing(runtime="transformers", machine="H200-SXM-141GB", method=method).walk.stages[0].kernels
        for method in ("full", "lora")
    )
    assert lora["forward", "product"].flops == pytest.approx(full["forward", "product"].flops, rel=0.02)
    assert lora["backward", "product"].flops == pytest.approx(full["backward", "product"].flops / 2, rel=0.03)


def test_layers_below_the_first_that_trains_have_no_backward():
    options = {"runtime": "transformers", "machine": "H200-SXM-141GB"}
    full, some, one = (
        timing(**options, **more).walk
        for more in ({}, {"method": "freeze", "trainable_layers": 8}, {"method": "freeze", "trainable_layers": 1})
    )
    forward, back = (full.stages[0].kernels[when, "product"].flops for when in ("forward", "backward"))
    assert some.stages[0].kernels["forward", "product"].flops == forward
    assert (
        one.stages[0].kernels["backward", "product"].flops
        < some.stages[0].kernels["backward", "product"].flops
        < 0.4 * back
    )
    ends = 2 * 128256 * 4096 + 4096  # table, head and last norm
    assert (one.updated * 32, some.updated * 4) == (
        full.updated - ends,
        full.updated - ends,
    ) and full.updated == 8030261248
    assert one.seconds() < some.seconds() < full.seconds()


def test_layers_that_run_again_do_their_forward_pass_twice():
    none, full = (timing(recompute=policy).walk.stages[0].kernels for policy in ("none", "full"))
    layers = full["again", "product"].flops
    head = none["forward", "product"].flops - layers
    assert 0 < head < 0.2 * layers
    assert full["backward", "product"].flops == none["backward", "product"].flops


def test_selective_recomputation_by_operation_keeps_every_second_product():
    spent = timing(recompute="selective-op").walk.stages[0].kernels
    assert 0.2 < spent["again", "product"].flops / spent["forward", "product"].flops < 0.6
    assert spent["again", "attention"].flops == 0


def test_the_tree_adds_up_to_the_number():
    for options in (
        {},
        {"runtime": "megatron", "tensor_parallel_size": 2, "pipeline_parallel_size": 2, "num_microbatches": 8},
        {"runtime": "nanotron"},
    ):
        made = timing(**options)
        assert made.seconds == made.term.value == pytest.approx(sum(made.spent.values()))
        assert made.seconds == pytest.approx(sum(work.seconds for work in made.pieces.work))
        assert made.term.unit == "seconds"
        leaves = [leaf for _, leaf in made.term.walk() if leaf.formula]
        assert [leaf.value for leaf in leaves] == pytest.approx([leaf.formula(**leaf.inputs) for leaf in leaves])


def test_a_pipeline_of_even_stages_waits_for_one_micro_batch_less_than_it_has_stages():
    made = timing(
        runtime="megatron", pipeline_parallel_size=4, num_microbatches=8, first_stage_layers=8, last_stage_layers=8
    )
    inner = made.walk.stages[1].seconds
    ends = made.walk.stages[-1].seconds - inner
    assert made.walk.bubble == pytest.approx(3 * inner, rel=0.001) and ends > 0


def test_interleaved_chunks_shorten_the_bubble_by_their_number():
    plain, interleaved = (
        timing(
            runtime="megatron", pipeline_parallel_size=4, virtual_pipeline_size=chunks, num_microbatches=8
        ).walk.bubble
        for chunks in (1, 4)
    )
    assert interleaved == pytest.approx(plain / 4)


def test_hardware_does_at_least_what_the_model_needs():
    for policy in ("none", "selective", "full"):
        made = timing(recompute=policy)
        needed = training_flops(
            made.model, made.plan.global_batch_size * made.plan.sequence_length, made.plan.sequence_length
        )
        mfu, hfu = made.utilization(needed.value).value, made.hardware_utilization.value
        assert 0.1 < mfu <= hfu < 0.8


def test_replayed_graphs_do_not_wait_for_the_host():
    options = {"runtime": "megatron", "sequence_length": 128}
    asked, replayed = (timing("qwen3-0.6b", cuda_graph=kind, **options) for kind in ("none", "full"))
    assert asked.spent["the host"] > 0 and "the host" not in replayed.spent
    assert replayed.walk.seconds() < asked.walk.seconds()


def test_what_overlaps_is_mostly_hidden():
    options = {"runtime": "megatron", "tensor_parallel_size": 8}
    plain, overlapped = (sum(timing(tp_comm_overlap=on, **options).spent.values()) for on in (False, True))
    assert overlapped < plain


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"runtime": "deepspeed", "straggler_slowdown": 1.5, "straggler_share": 0.1},
        {"runtime": "megatron", "pipeline_parallel_size": 4, "tensor_parallel_size": 2, "global_batch_size": 32},
    ],
    ids=str,
)
def test_what_a_step_waits_for_adds_up_to_it(options):
    made = timing(**options)
    assert sum(made.spent.values()) == pytest.approx(made.seconds)
    assert made.bound_by in made.spent and all(seconds > 0 for seconds in made.spent.values())


def test_a_switch_that_has_nothing_to_overlap_is_refused():
    with pytest.raises(InvalidPlan, match="tensor_parallel_size above 1"):
        timing(runtime="megatron", tp_comm_overlap=True)
    with pytest.raises(InvalidPlan, match="megatron has it"):
        timing(runtime="fsdp2", cuda_graph="full")


@given(st.integers(1, 8), st.sampled_from([1, 2, 4]), st.sampled_from([512, 2048, 8192]))
def test_more_work_never_takes_less_time(count, micro, length):
    options = {"num_microbatches": count, "micro_batch_size": micro, "sequence_length": length}
    base = seconds(**options)
    assert seconds(**{**options, "num_microbatches": count + 1}) > base
    assert seconds(**{**options, "micro_batch_size": 2 * micro}) > base
    assert seconds(**{**options, "sequence_length": 2 * length}) > base


def test_arrays_of_plans_give_what_each_plan_gives():
    import numpy as np

    one = timing(runtime="megatron", tensor_parallel_size=2, num_microbatches=4)
    sizes = np.array([1, 2, 4, 8])
    many = replace(one.plan, micro_batch_size=sizes)
    together = Timing(one.model, many, one.cluster).walk.seconds()
    alone = [
        Timing(one.model, replace(one.plan, micro_batch_size=int(size)), one.cluster).walk.seconds() for size in sizes
    ]
    assert together == pytest.approx(alone)


def test_another_stage_may_be_the_slowest_of_each_plan_of_an_array():
    import numpy as np

    one = timing(runtime="megatron", pipeline_parallel_size=2)
    uneven, lengths = one.plan.with_fields(chunk_layers=(17, 15)), np.array([1024.0, 65536.0])
    alone = [Timing(one.model, replace(uneven, sequence_length=int(length)), one.cluster) for length in lengths]
    assert [each.walk.stages.index(each.walk.slowest) for each in alone] == [1, 0]  # the head, and then attention
    together = Timing(one.model, replace(uneven, sequence_length=lengths), one.cluster)
    assert together.seconds == pytest.approx([each.seconds for each in alone])
    assert together.term.at(1).value == pytest.approx(alone[1].seconds)


# ---- the answer ----


def test_the_answer_has_the_time_the_shares_of_the_peak_and_what_binds_it():
    made = tonnage.train("llama-3.1-8b", "8xH100-SXM-80GB")
    assert made.step_time.unit == "seconds" and 0.2 < made.run.mfu.value < 0.7
    assert made.run.bound_by == "compute"
    assert made.run.tokens_per_second.value == pytest.approx(8 * 4096 / made.step_time.value)
    assert " per step, " in str(made)


def test_tokens_make_a_run_and_a_budget_buys_tokens():
    run = tonnage.train("llama-3.1-8b", "8xH100-SXM-80GB", tokens="10B").run
    hours = run.accelerator_hours.value
    assert hours == pytest.approx(8 * run.seconds.value / 3600)
    bought = tonnage.train("llama-3.1-8b", "8xH100-SXM-80GB", budget=2 * hours, price_per_accelerator_hour=2).run
    assert bought.tokens_for_budget.value == pytest.approx(10e9, rel=0.001)


def test_a_deadline_says_how_many_accelerators_make_it():
    options = {"tokens": "100B", "global_batch_size": 1024}
    slow = tonnage.train("llama-3.1-8b", "8xH100-SXM-80GB", **options).run.seconds.value
    asked = tonnage.train("llama-3.1-8b", "8xH100-SXM-80GB", deadline=f"{slow / 86400 / 3:.2f}d", **options).run
    assert asked.deadline_met is False
    assert 24 <= asked.accelerators_for_deadline.value <= 40
    assert asked.accelerators_for_deadline.value % 8 == 0


@pytest.mark.parametrize(
    "wrong",
    [{"tokens": 0}, {"tokens": "10B", "epochs": 2.0}, {"tokens": "1B", "deadline": "2020-01-01"}, {"budget": -1}],
)
def test_runs_that_cannot_be_are_refused(wrong):
    with pytest.raises(InvalidInput):
        tonnage.train("llama-3.1-8b", "8xH100-SXM-80GB", **wrong)


def test_what_nobody_knows_of_time_is_said_and_the_memory_is_answered_all_the_same():
    made = tonnage.train("llama-3.2-1b", "ascend-950pr")
    assert made.step_time is None and not made.run
    assert any("no source gives the dense bf16 peak" in each for each in made.warnings)
    asked = tonnage.train("llama-3.2-1b", "ascend-950pr", tokens="1B")
    assert asked.needed_bytes == made.needed_bytes and not asked.run


def test_moves_say_how_long_a_step_takes_then():
    made = tonnage.train("llama-3.1-8b", "8xH100-SXM-80GB", sequence_length=16384, as_is=True)
    again = next(move for move in made.advice if move.change == {"recompute": "full"})
    assert again.step_seconds == pytest.approx(
        tonnage.train("llama-3.1-8b", "8xH100-SXM-80GB", sequence_length=16384, recompute="full").step_time.value
    )
    assert again.step_seconds > made.step_time.value


def test_offloaded_activations_take_the_host_link_and_hide_beside_the_passes():
    base, moved = (timing(sequence_length=8192, offload_activations=place) for place in ("none", "cpu"))
    link = 2 * 44 * 2**30 / 63e9  # what 8192 tokens keep, out and back over PCIe at its datasheet
    assert base.seconds + 0.2 * link < moved.seconds < base.seconds + 1.5 * link
    assert moved.seconds == pytest.approx(sum(moved.spent.values()))


OFFLOADED = {"offload_activations": "cpu", "straggler_slowdown": 1.25, "straggler_share": 0.5}


@pytest.mark.parametrize("options", [{}, {"runtime": "megatron", "pipeline_parallel_size": 2}], ids=str)
def test_a_step_with_offloading_and_stragglers_is_the_sum_of_its_tree(options):
    made = timing(sequence_length=8192, machine="2x8xH100-SXM-80GB", **OFFLOADED, **options)
    exposed, moved = made.walk.moving
    assert exposed > 0 and moved > 0 and made.walk.stragglers.value > 1
    assert made.seconds == pytest.approx(sum(made.spent.values()))
    slowed = made.walk.framework * made.walk.stragglers.value
    rest = made.plan.with_fields(offload_activations="none")
    assert made.seconds == pytest.approx(Timing(made.model, rest, made.cluster).seconds + slowed * exposed)


def test_columns_of_plans_that_offload_give_the_seconds_of_each():
    import numpy as np

    from tonnage.estimate.plan_columns import bytes_and_seconds
    from tonnage.spec import TrainingPlan

    model, where = read("llama-3.1-8b", offline=True), cluster("4x8xH100-SXM-80GB")
    columns = {
        "tensor_parallel_size": np.array([1, 2, 2, 1]),
        "pipeline_parallel_size": np.array([1, 2, 1, 4]),
        "data_parallel_size": np.array([32, 8, 16, 8]),
        "num_microbatches": np.array([4, 16, 32, 16]),
        "sequence_length": np.array([4096, 8192, 8192, 2048]),
    }
    names = {"runtime": "fsdp2", "zero_stage": 3, **OFFLOADED}
    _, taken = bytes_and_seconds(model, columns, where, **names)
    for i in range(4):
        made = Timing(
            model, TrainingPlan.of_fields(**{name: int(values[i]) for name, values in columns.items()}, **names), where
        )
        assert made.walk.moving[0] > 0
        assert taken[i] == pytest.approx(made.seconds) == pytest.approx(sum(made.spent.values()))


def test_an_optimizer_on_the_host_has_the_range_of_published_updates_where_nobody_says_how_fast():
    ask = {"model": "llama-3.1-8b", "on": "8xH100-SXM-80GB", "offload_optimizer": "cpu", "runtime": "deepspeed"}
    made = tonnage.train(**ask, advice=False)
    low, high = made.run.step_time_band
    for rate, seconds in ((54e9, low), (2e9, high)):
        said = tonnage.train(**ask, advice=False, host_update_bandwidth=rate)
        assert said.step_time.value == pytest.approx(seconds)
        assert said.run.step_time_band is UNSET
    assert low < made.step_time.value < high
    entry = made.question["host_update_bandwidth"]
    assert entry.origin == "default" and entry.value == round((2e9 * 54e9) ** 0.5) and "2 to 54 GB/s" in entry.why


def test_an_assumed_rate_of_the_host_ranks_and_validates_no_plan():
    with pytest.raises(MissingDatum, match="host_update_bandwidth"):
        timing(runtime="deepspeed", offload_optimizer="cpu")


def test_an_optimizer_on_the_host_has_a_time_where_it_is_said_how_fast_processors_update():
    said = {"offload_optimizer": "cpu", "host_update_bandwidth": 30e9}
    for runtime in ("deepspeed", "fsdp2", "megatron"):
        base, moved = timing(runtime=runtime), timing(runtime=runtime, **said)
        update = moved.term.child("optimizer on the host").child("update on the host")
        assert update.value == pytest.approx(
            30 * 8.03e9 / 30e9, rel=0.15
        )  # 30 bytes a parameter, of all ranks of the node
        assert moved.seconds == pytest.approx(sum(moved.spent.values()))
        assert base.seconds + 0.9 * update.value < moved.seconds < base.seconds + 1.1 * update.value + 1
        assert moved.bound_by == "the host" and moved.band is None and base.band
        assert moved.walk.optimizer.value == 0 < base.walk.optimizer.value
        assert timing(runtime=runtime, offload_optimizer="cpu", host_update_bandwidth=60e9).seconds < moved.seconds


def test_a_part_of_the_optimizer_on_the_host_takes_that_part_of_its_time():
    said = {"runtime": "megatron", "offload_optimizer": "cpu", "host_update_bandwidth": 30e9}
    whole, half = timing(**said), timing(**said, optimizer_offload_fraction=0.5)
    host = [each.term.child("optimizer on the host").value for each in (whole, half)]
    assert host[1] == pytest.approx(host[0] / 2) and half.walk.optimizer.value > 0


def test_states_on_nvme_take_its_time_besides():
    said = {"runtime": "deepspeed", "zero_stage": 3, "host_update_bandwidth": 30e9}
    near, far = (timing(machine="dgx-h100", offload_optimizer=place, **said) for place in ("cpu", "nvme"))
    moved = far.term.child("optimizer on the host").child("states and weights of the update")
    assert moved.value == pytest.approx(
        8 * 32 * 8.03e9 / 8 / (8 * 3.5e9), rel=0.01
    )  # 16 bytes a parameter each way, on eight drives
    assert far.seconds > near.seconds + 0.9 * moved.value


def test_weights_alone_on_the_host_are_updated_on_the_accelerator():
    made = timing(runtime="deepspeed", zero_stage=3, offload_parameters="cpu")
    assert made.walk.optimizer.value > 0 and made.seconds > timing(runtime="deepspeed", zero_stage=3).seconds


@pytest.mark.parametrize(("zero", "micro", "plain", "offloaded"), [(2, 1, 4.19, 1.81), (3, 2, 4.45, 2.05)])
def test_llama_7b_on_eight_a800_takes_what_was_published_with_its_optimizer_on_the_host_and_without(
    zero, micro, plain, offloaded
):
    """Sequences a second of 64 (gist.github.com/chenyaofo/d4cd6a20ab4b95cb3a49491747e2139a): 12 GB/s of the node
    explain ZeRO-3, and ZeRO-2 is near. In 2023 transformers' Llama had eager attention alone.
    """
    said = {
        "model": "llama-7b",
        "machine": "8xA800-SXM-80GB",
        "runtime": "deepspeed",
        "zero_stage": zero,
        "micro_batch_size": micro,
        "global_batch_size": 64,
        "sequence_length": 4096,
        "recompute": "full",
        "attention": "eager",
    }
    assert timing(**said).seconds == pytest.approx(64 / plain, rel=0.15)
    assert timing(**said, offload_optimizer="cpu", host_update_bandwidth=12e9).seconds == pytest.approx(
        64 / offloaded, rel=0.15
    )


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"host_update_bandwidth": 0.0}, "host_update_bandwidth must be more than 0 and at most 1e\\+18"),
        ({"host_update_bandwidth": -1.0}, "host_update_bandwidth must be more than 0"),
        ({"host_update_bandwidth": "1e19"}, "host_update_bandwidth must be more than 0"),
        ({"host_update_bandwidth": "30Gb/s"}, "'30Gb/s' may be bits"),
    ],
)
def test_a_speed_of_updates_that_cannot_be_is_refused(options, message):
    with pytest.raises(InvalidInput, match=message):
        timing(runtime="deepspeed", offload_optimizer="cpu", **options)


def test_a_speed_of_updates_without_an_optimizer_on_the_host_is_refused():
    with pytest.raises(InvalidPlan, match="host_update_bandwidth belongs to offload_optimizer"):
        timing(runtime="deepspeed", host_update_bandwidth=30e9)


def test_what_ranks_send_is_part_of_the_answer_and_one_accelerator_sends_nothing():
    assert tonnage.train("llama-3.1-8b", "8xH100-SXM-80GB").traffic.value > 2 * 7 / 8 * 2 * 8e9
    assert tonnage.train("llama-3.2-1b", "H100-SXM-80GB").traffic is None


def test_columns_of_plans_give_bytes_and_seconds_of_each():
    import numpy as np

    from tonnage.estimate.memory import training_memory
    from tonnage.estimate.plan_columns import bytes_and_seconds
    from tonnage.spec import TrainingPlan

    model, where = read("llama-3.1-8b", offline=True), cluster("4x8xH100-SXM-80GB")
    columns = {
        "tensor_parallel_size": np.array([1, 2, 8, 1]),
        "pipeline_parallel_size": np.array([1, 2, 1, 4]),
        "data_parallel_size": np.array([32, 8, 4, 8]),
        "num_microbatches": np.array([4, 16, 32, 16]),
        "sequence_length": 4096,
    }
    names = {"runtime": "megatron", "zero_stage": 1}
    needed, taken = bytes_and_seconds(model, columns, where, **names)
    for i in range(4):
        plan = TrainingPlan.of_fields(
            **{name: int(np.broadcast_to(values, 4)[i]) for name, values in columns.items()}, **names
        )
        assert needed[i] == pytest.approx(training_memory(model, plan, where).needed)
        assert taken[i] == pytest.approx(Timing(model, plan, where).seconds)


def test_products_in_fp32_take_what_its_own_peak_lets_them():
    narrow, wide = (seconds("llama-3.2-1b", "H100-SXM-80GB", precision=name) for name in ("bf16-mixed", "fp32"))
    assert wide > 4 * narrow


def test_an_optimizer_takes_the_time_of_its_own_states():
    adam, lion, sgd = (timing(optimizer=name).walk for name in ("adamw", "lion", "sgd"))
    assert adam.updated_bytes == 30 and lion.updated_bytes == 22 and sgd.updated_bytes == 14
    assert adam.optimizer.value > lion.optimizer.value > sgd.optimizer.value


def test_a_deadline_is_met_only_by_plans_that_fit():
    options = {"recompute": "full", "global_batch_size": 64, "tokens": "1B", "deadline": "300d"}
    asked = tonnage.train("llama-3.1-70b", "4x8xH100-SXM-80GB", **options).run
    assert asked.accelerators_for_deadline.value >= 16


def test_memory_that_is_reserved_is_left_free_in_what_makes_a_deadline():
    options = {"recompute": "full", "global_batch_size": 64, "tokens": "1B", "deadline": "300d"}
    free = tonnage.train("llama-3.1-70b", "4x8xH100-SXM-80GB", **options).run.accelerators_for_deadline.value
    kept = tonnage.train("llama-3.1-70b", "4x8xH100-SXM-80GB", reserve_bytes=30 * 10**9, **options)
    assert kept.run.accelerators_for_deadline.value > free


def test_a_deadline_fills_the_node_that_a_part_of_is_asked_about():
    """Eight accelerators are one node, as the next best moves have it, not two nodes of four."""
    options = {"global_batch_size": 512, "tokens": "10B"}
    whole = tonnage.train("llama-3.1-8b", "8xH100-SXM-80GB", **options).run.seconds.value
    deadline = f"{whole * 1.001 / 86400:.4f}d"
    part = tonnage.train("llama-3.1-8b", "4xH100-SXM-80GB", deadline=deadline, **options).run
    assert part.accelerators_for_deadline.value == 8


def test_a_budget_buys_at_the_price_of_the_bill():
    made = tonnage.train("llama-3.1-8b", "8xH100-SXM-80GB", budget="10k")
    assert made.bill.cost.value == pytest.approx(10_000, rel=0.01)


def test_what_is_said_of_a_run_without_a_length_is_refused():
    with pytest.raises(InvalidInput, match="deadline is of a whole run"):
        tonnage.train("llama-3.1-8b", "8xH100-SXM-80GB", deadline="30d")


def test_formulas_open_the_time_of_a_step_the_run_and_the_bill():
    text = tonnage.train("llama-3.1-8b", "8xH100-SXM-80GB", tokens="1B").text(formulas=True)
    for formula in (
        "compute_seconds",
        "flops_utilization",
        "rent_usd",
        "energy_joules",
        "traffic_in_a_step",
        "accelerator_hours",
    ):
        assert f"; {formula};" in text


@pytest.mark.parametrize("runtime", training_runtimes())
def test_a_narrow_recipe_that_nothing_is_timed_in_says_so_in_the_first_line(runtime):
    """And the runtimes whose facts say that they multiply in the recipe's type are those whose walk does."""
    try:
        answer = tonnage.train("llama-3.1-8b", "8xH100-SXM-80GB", precision="fp8-te", runtime=runtime)
    except InvalidPlan:
        return  # of one accelerator
    narrow = training_runtime(answer.question["runtime"].value).multiplies_narrow
    assert (answer.run.computes_in is UNSET) == narrow
    note = "--float8 tensorwise or --runtime megatron does." if runtime == "fsdp2" else "--runtime megatron does."
    assert any(str(each).endswith(note) for each in answer.warnings) != narrow
    if answer.fits:
        assert ("computes in bf16, not in fp8-te" in answer.text(verbose=True).splitlines()[0]) != narrow


def test_an_accelerator_without_the_type_of_the_recipe_is_said_in_the_first_line():
    answer = tonnage.train("llama-3.1-8b", "8xA100-SXM-80GB", precision="fp8-te", runtime="megatron")
    assert answer.run.computes_in == "bf16"
    assert "computes in bf16, not in fp8-te" in answer.text(verbose=True).splitlines()[0]


@pytest.mark.parametrize("model", ["bert-large-uncased", "t5-3b", "modernbert-base"])
def test_encoders_see_all_of_their_sequence(model):
    made = tonnage.train(model, "8xH100-SXM-80GB", sequence_length=512)
    assert made.run.mfu.value <= made.run.hfu.value * 1.001


PEAKS = {"bf16-mixed": "bf16", "fp8-te-primary": "fp8"}


@pytest.mark.parametrize("precision", PEAKS)
@pytest.mark.parametrize(
    "machine", ["8x8xA100-SXM-80GB", "8x8xH100-SXM-80GB", "8x8xB200-SXM-180GB", "8x8xB300-SXM-288GB"]
)
@pytest.mark.parametrize("model", ["mixtral-8x22b", "llama-3.1-405b", "dbrx-base"])
def test_no_product_is_faster_than_the_peak_it_is_multiplied_at_however_large(model, machine, precision):
    experts = {"expert_parallel_size": 8} if model != "llama-3.1-405b" else {}
    made = timing(
        model,
        machine,
        runtime="megatron",
        micro_batch_size=64,
        sequence_length=4096,
        precision=precision,
        cuda_graph="full",
        **experts,
    )
    chip = made.cluster.accelerator
    peak = chip.dense_flops.get(PEAKS[precision], chip.dense_flops["bf16"])
    for (_, kind), spent in made.walk.stages[0].kernels.items():
        if kind in ("product", "experts", "attention"):
            assert spent.flops <= 0.9 * peak * spent.seconds
    done = training_flops(made.model, made.plan.global_batch_size * 4096, 4096).value
    assert made.utilization(done).value < 0.9 * peak / chip.dense_flops["bf16"]


@pytest.mark.parametrize(
    ("runtime", "machine"),
    [
        ("transformers", "A100-SXM-80GB"),
        ("litgpt", "A100-SXM-80GB"),
        ("torchtune", "A100-SXM-80GB"),
        ("ddp", "2xA100-SXM-80GB"),
    ],
)
@pytest.mark.parametrize("recompute", ["none", "full"])
def test_a_quantised_base_takes_longer_than_one_in_16_bit(runtime, machine, recompute):
    lora, qlora = (
        tonnage.train("llama-2-7b", machine, sequence_length=1024, runtime=runtime, recompute=recompute, method=method)
        for method in ("lora", "qlora")
    )
    assert qlora.step_time.value > lora.step_time.value
    assert qlora.needed_bytes < lora.needed_bytes


def test_a_quantised_weight_is_made_whole_before_its_product_and_once_more_for_the_gradient_of_its_input():
    def of_weights(method, kind, when):
        """Bytes of weights that the work of one layer reads and writes."""
        step = timing(runtime="transformers", machine="A100-SXM-80GB", method=method, lora_rank=1).walk.step
        layer = [each for each in step.layers.values() if each.work][-1]
        sizes = [each.bytes.items() for each in layer.work if (each.kind, each.when) == (kind, when)]
        return sum(size for every in sizes for extent, size in every if extent.unit == "parameter")

    whole = 4096 * (4096 + 1024 + 1024 + 4096 + 3 * 14336)  # parameters of the linear layers of llama-3.1-8b
    packed = precision("nf4-double").bits_per_weight / 8
    for when in ("forward", "backward"):
        added = of_weights("qlora", "move", when) - of_weights("lora", "move", when)
        assert added == pytest.approx(whole * (packed + 2), rel=0.01)
        assert of_weights("qlora", "product", when) == pytest.approx(of_weights("lora", "product", when), rel=0.01)


def test_experts_are_fused_where_graphs_replay_steps_in_mxfp8_on_blackwell_in_a_release_that_has_the_kernel():
    fused = {"runtime": "megatron", "precision": "mxfp8-te-primary-16bit-gradients", "cuda_graph": "full"}
    cases = (
        ("8xB200-SXM-180GB", {}, True),
        ("8xB200-SXM-180GB", {"cuda_graph": "attn"}, False),
        ("8xB200-SXM-180GB", {"precision": "bf16-mixed"}, False),
        ("8xB200-SXM-180GB", {"runtime_version": "core 0.17"}, False),
        ("8xB200-SXM-180GB", {"runtime_version": "container 26.04"}, False),
        ("8xB200-SXM-180GB", {"runtime_version": "container 26.06"}, True),
        ("8xH100-SXM-80GB", {"precision": "bf16-mixed"}, False),
    )
    for machine, changed, is_fused in cases:
        made = timing("qwen3-30b-a3b", machine, expert_parallel_size=8, sequence_length=TOKENS, **(fused | changed))
        around = made.rates.fused_experts if is_fused else 1
        assert made.walk.kernels.around_experts == around, (machine, changed)


def test_the_band_of_a_runtime_with_few_rows_holds_them_and_those_of_its_kind():
    held = rates()
    assert held.runtimes
    for runtime, own in held.runtimes.items():
        for kind, band in held.bands.items():
            wide = held.band(kind, runtime)
            assert wide.low == min(band.low, own.low) and wide.high == max(band.high, own.high)
            assert held.band(kind, "megatron") == band


def test_a_dispatcher_that_sends_a_token_once_to_a_node_is_faster_across_nodes():
    asked = {"on": "32x8xH100-SXM-80GB", "runtime": "fsdp2", "expert_parallel_size": 64, "as_is": True}
    plain, flex = (
        tonnage.train("deepseek-v3", **asked, moe_token_dispatcher_type=name, advice=False).step_time.value
        for name in ("alltoall", "flex")
    )
    assert flex < 0.9 * plain
    with pytest.raises(UnknownName, match=r"is called 'deepep'\. Known: alltoall, flex"):
        tonnage.train("deepseek-v3", **asked, moe_token_dispatcher_type="deepep")


@pytest.mark.parametrize("runtime", ["transformers", "fsdp2"])
def test_attention_with_sinks_is_flash_where_it_is_asked_for(runtime):
    """transformers has no sdpa for it; torchtitan calls FlexAttention."""
    on = "1xH200-SXM-141GB" if runtime == "transformers" else "8xH200-SXM-141GB"
    asked = {"on": on, "runtime": runtime, "method": "lora", "sequence_length": 4096, "as_is": True, "advice": False}
    eager, usual, flash = (
        tonnage.train("gpt-oss-20b", **asked, **more).needed_bytes
        for more in ({"attention": "eager"}, {}, {"attention": "flash"})
    )
    assert flash < 0.6 * eager
    assert usual == pytest.approx(eager, rel=0.05)


def test_torchtitans_attention_with_sinks_is_fused_without_being_told():
    asked = {"on": "8xH200-SXM-141GB", "runtime": "fsdp2", "expert_parallel_size": 8, "as_is": True, "advice": False}
    usual, eager = (tonnage.train("gpt-oss-20b", **asked, **more) for more in ({}, {"attention": "eager"}))
    assert usual.step_time.value < 0.7 * eager.step_time.value and usual.needed_bytes < 0.8 * eager.needed_bytes


def test_the_flex_dispatcher_sends_what_the_router_gave_in_the_message_of_the_tokens():
    """Megatron-core, fused_a2a.py: FusedDispatch and HybridEPDispatch take tokens and probabilities in one call."""
    made = {
        dispatcher: timing(
            "qwen3-30b-a3b",
            "2xdgx-h100",
            runtime="megatron",
            expert_parallel_size=16,
            moe_token_dispatcher_type=dispatcher,
            sequence_length=TOKENS,
        ).walk
        for dispatcher in ("alltoall", "flex")
    }
    step = made["flex"].step
    layer = next(layer for layer in step.layers.values() if any(work.kind == "experts" for work in layer.work))
    sent = [work for work in layer.work if work.exchange and work.exchange.group == "expert parallel"]
    along = [work for work in sent if work.exchange.along]
    assert {work.when for work in along} == {"forward", "backward"} and len(sent) == 3 * len(along)
    for work in along:
        starts = {name: walk._sending(work.exchange, work).seconds for name, walk in made.items()}
        assert starts["flex"] < 0.1 * starts["alltoall"]


@pytest.mark.parametrize(("model", "runs"), [("gemma-2-2b", True), ("bloom-560m", False)])
def test_flash_attention_runs_where_transformers_can_call_it_and_a_note_says_where_not(model, runs):
    """gemma_2 passes its soft cap on to FlashAttention; bloom has eager attention alone (transformers 5.24)."""
    asked = {
        "on": "1xH100-SXM-80GB",
        "runtime": "transformers",
        "sequence_length": 2048,
        "as_is": True,
        "advice": False,
    }
    eager, flash = (tonnage.train(model, **asked, attention=name) for name in ("eager", "flash"))
    assert (flash.needed_bytes < eager.needed_bytes) is runs
    assert any("eager attention alone" in warning for warning in flash.warnings) is not runs
