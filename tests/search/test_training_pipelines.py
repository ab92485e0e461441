"""Pipelines that the search of training tries: stages and chunks, and layers dealt out unevenly."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from small_spaces import MODELS, scalar, small_space

import tonnage
from tonnage.catalogue import cluster
from tonnage.estimate.inputs import Question
from tonnage.estimate.options.plans import training_plan
from tonnage.estimate.plan.training_options import TrainingOptions
from tonnage.kernel.errors import InvalidPlan
from tonnage.search.training.launch.settings import launch_settings
from tonnage.search.training.pipelines import head_layers, megatron_layouts
from tonnage.search.training.search import search
from tonnage.search.training.space import Space

EMBEDDING, LOSS = "account_for_embedding_in_pipeline_split", "account_for_loss_in_pipeline_split"
H100 = 80 * 2**30


def described_layouts(layers, head, p, v):
    """All that docs/commands/plan.md describes, written down anew: every combination of the options, kept where the
    description holds.
    """
    yield {}
    for with_embedding, with_loss in ((True, False), (False, True), (True, True)):
        if (layers + with_embedding + with_loss) % (p * v) == 0:
            yield {name: True for name, on in ((EMBEDDING, with_embedding), (LOSS, with_loss)) if on}
    for between in range(v, layers + 1, v):
        if not -(-layers // (p * v)) * v <= between <= -(-(layers + head) // (p * v)) * v:
            continue
        for first in (between, between - v, between - 2 * v):
            last = layers - first - (p - 2) * between
            if first >= v and v <= last <= between and last % v == 0:
                yield {"first_stage_layers": first, "last_stage_layers": last}


@pytest.mark.parametrize(
    ("name", "on", "stages", "most"),
    [("llama-3.2-1b", "8xH100-SXM-80GB", (2, 4), 8), ("deepseek-v2-lite", "4xH100-SXM-80GB", (2, 4), 14)],
)
def test_the_search_finds_the_best_of_all_described_pipelines(name, on, stages, most):
    model, machine = MODELS[name], cluster(on)
    given_options = TrainingOptions(
        runtime="megatron",
        sequence_length=2048,
        global_batch_size=32,
        micro_batch_size=1,
        zero_stage=1,
        recompute="full",
        tensor_parallel_size=1,
        context_parallel_size=1,
        expert_parallel_size=1,
        expert_tensor_parallel_size=1,
    )
    best, usable = np.inf, 1e15
    for p in stages:
        for v in range(1, most + 1):
            for layout in described_layouts(model.num_layers, head_layers(model), p, v):
                found = scalar(
                    model, machine, given_options, {"pipeline_parallel_size": p, "virtual_pipeline_size": v, **layout}
                )
                if found is not None and found[0] <= usable:
                    best = min(best, found[1] / found[2])
    made = search(Space(model, [machine], given_options, {"pipeline_parallel_size": stages}), usable, most=50).best[0]
    assert min(one.seconds / one.tokens for one in made) == pytest.approx(best, rel=1e-9)


def test_interleaving_and_splits_of_the_embedding_and_the_loss_are_searched_together():
    machine = cluster("2048x8xH100-SXM-80GB")
    options = TrainingOptions(
        global_batch_size=2048,
        sequence_length=8192,
        runtime="megatron",
        recompute="none",
        zero_stage=1,
        tensor_parallel_size=8,
    )

    def best_of(options: TrainingOptions):
        space = Space(tonnage.read("llama-3.1-405b"), [machine], options)
        return search(space, machine.accelerator.memory.usable_bytes).best[0][0]

    best = best_of(options)
    assert best.options[EMBEDDING] and best.options[LOSS] and best.options["virtual_pipeline_size"] == 8
    assert best.seconds < 0.99 * best_of(replace(options, **{EMBEDDING: False, LOSS: False})).seconds


@settings(max_examples=60, deadline=None)
@given(st.sampled_from(sorted(MODELS)), st.integers(2, 16), st.integers(1, 6))
def test_every_layout_is_one_that_a_single_answer_takes_and_no_two_are_the_same(name, p, v):
    model, seen = MODELS[name], set()
    for layout in megatron_layouts(model, p, v):
        options = TrainingOptions(
            runtime="megatron", pipeline_parallel_size=p, virtual_pipeline_size=v, num_microbatches=p, **layout
        )
        plan = (
            training_plan(model, cluster(f"{p}xH100-SXM-80GB" if p < 8 else "16x8xH100-SXM-80GB"), options, Question())
            if 128 % p == 0
            else None
        )
        key = plan and (plan.layout.chunk_layers, plan.layout.first_stage_layers, plan.layout.last_stage_layers)
        assert key is None or key not in seen
        seen.add(key)
        assert sum(size is not None for size in layout.values()) == len(layout) > 0


def test_sizes_of_the_ends_beside_counted_embeddings_are_refused_as_megatron_does():
    options = TrainingOptions(runtime="megatron", pipeline_parallel_size=4, first_stage_layers=3, **{EMBEDDING: True})
    with pytest.raises(InvalidPlan, match="not both"):
        training_plan(MODELS["llama-3.2-1b"], cluster("8xH100-SXM-80GB"), options, Question())


def test_what_a_user_says_of_layers_is_not_varied_and_its_chunks_are_found():
    """126 layers with embedding and loss are 128, which 16 stages of 8 chunks divide; 126 themselves they do not."""
    model, machine = tonnage.read("llama-3.1-405b"), cluster("16x8xH100-SXM-80GB")
    options = TrainingOptions(
        runtime="megatron", pipeline_parallel_size=16, recompute="full", **{EMBEDDING: True, LOSS: True}
    )
    found = {(group.stages, group.chunks, *group.layout) for group in Space(model, [machine], options).groups()}
    assert found == {(16, chunks) for chunks in (1, 2, 4, 8)}
    layout = "Et|" + "tt|" * 14 + "t" * 97 + "L"
    options = TrainingOptions(runtime="megatron", pipeline_layout=layout, pipeline_parallel_size=8)
    assert {group.chunks for group in Space(model, [machine], options).groups()} == {1, 2}


@pytest.mark.parametrize(
    ("layout", "flags"),
    [
        (
            {EMBEDDING: True, LOSS: True},
            ["--account-for-embedding-in-pipeline-split", "--account-for-loss-in-pipeline-split"],
        ),
        (
            {"first_stage_layers": 8, "last_stage_layers": 6},
            ["--decoder-first-pipeline-num-layers 8", "--decoder-last-pipeline-num-layers 6"],
        ),
    ],
)
def test_megatrons_settings_say_how_layers_are_dealt_out(layout, flags):
    sizes = {
        "pipeline_parallel_size": 16,
        "virtual_pipeline_size": 2 if "first_stage_layers" in layout else 8,
        "num_microbatches": 16,
    }
    model = tonnage.read("llama-3.1-405b")
    plan = training_plan(
        model, cluster("2x8xH100-SXM-80GB"), TrainingOptions(runtime="megatron", **sizes, **layout), Question()
    )
    assert [setting for setting in launch_settings(model, plan) if setting in flags] == flags


def test_uneven_ends_of_stages_with_one_chunk_are_written_as_a_layout_also_where_layers_divide():
    sizes = {"pipeline_parallel_size": 4, "num_microbatches": 4, "first_stage_layers": 4, "last_stage_layers": 2}
    model = MODELS["llama-3.2-1b"]
    plan = training_plan(model, cluster("4xH100-SXM-80GB"), TrainingOptions(runtime="megatron", **sizes), Question())
    assert "--pipeline-model-parallel-layout 'Etttt|ttttt|ttttt|ttL'" in launch_settings(model, plan)


def test_a_bound_of_uneven_stages_leaves_the_answer_as_it_is():
    space = small_space(
        "llama-3.2-1b", ("8xH100-SXM-80GB",), runtime="megatron", tensor_parallel_size=1, recompute="none"
    )
    for usable in (H100, 0.4 * H100):
        quick, whole = search(space, usable), search(space, usable, bounded=False)
        assert [one.options for one in quick.best[0]] == [one.options for one in whole.best[0]]
