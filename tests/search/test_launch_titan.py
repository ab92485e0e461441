"""torchtitan and Megatron are told how a rank's layers are cut into chunks, and what is sent beside compute."""

from tonnage.catalogue import cluster
from tonnage.estimate.inputs import Question
from tonnage.estimate.options.plans import training_plan
from tonnage.estimate.plan.training_options import TrainingOptions
from tonnage.models import read
from tonnage.search.training.launch.settings import launch_lacks, launch_settings


def started(name, on, **options):
    model, machine = read(name), cluster(on)
    plan = training_plan(model, machine, TrainingOptions(**options), Question())
    return launch_settings(model, plan), launch_lacks(model, plan)


def test_two_chunks_are_what_torchtitan_gives_a_looped_schedule_by_itself():
    settings, lacks = started(
        "llama-3.1-70b", "8x8xh100", tensor_parallel_size=8, pipeline_parallel_size=4, virtual_pipeline_size=2
    )
    assert "--parallelism.pipeline_parallel_schedule Interleaved1F1B" in settings
    assert not lacks and not any("layers_per_stage" in each for each in settings)


def test_more_chunks_are_said_in_layers_where_a_number_of_layers_makes_them():
    """torchtitan 0.3: as many stages as (layers + 2) / layers_per_stage, rounded up."""
    settings, lacks = started(
        "llama-3.1-405b", "64x8xh100", tensor_parallel_size=8, pipeline_parallel_size=8, virtual_pipeline_size=4
    )
    assert "--parallelism.pipeline_parallel_layers_per_stage 4" in settings and not lacks  # 128 / 4: 32 stages
    settings, lacks = started(
        "llama-3.1-70b", "8x8xh100", tensor_parallel_size=8, pipeline_parallel_size=4, virtual_pipeline_size=4
    )
    assert lacks == ["virtual_pipeline_size 4"]  # 82 / 6: 14 stages; 82 / 5: 17; never 16
    assert not any("layers_per_stage" in each for each in settings)


def test_sizes_of_one_are_said_where_configs_of_torchtitan_have_others_and_the_policy_stands_last():
    settings, lacks = started("llama-3.1-8b", "8xh100", recompute="full")
    assert "--parallelism.tensor_parallel_degree 1" in settings and not lacks
    assert settings[-1] == "activation_checkpoint:full"


def test_what_torchtitan_has_no_option_for_is_lacking():
    sizes = {"expert_parallel_size": 8, "tensor_parallel_size": 2, "expert_tensor_parallel_size": 2}
    settings, lacks = started(
        "mixtral-8x7b", "2x8xh200", **sizes, recompute="selective", moe_token_dispatcher_type="flex"
    )
    assert lacks == ["recompute selective", "expert_tensor_parallel_size 2", "moe_token_dispatcher_type flex"]
    assert not any("activation_checkpoint" in each or "comm_backend" in each for each in settings)


def test_megatron_is_told_what_it_sends_beside_compute():
    options = {"runtime": "megatron", "expert_parallel_size": 8, "overlap_moe_expert_parallel_comm": True}
    settings, _ = started("mixtral-8x7b", "8xh200", **options)
    assert "--overlap-moe-expert-parallel-comm" in settings
