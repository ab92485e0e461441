"""Plans nested by subject, whose fields keep flat names outside."""

from collections import Counter

import numpy as np
import pytest
from msgspec import Struct, convert, to_builtins

from tonnage.runtimes import training_runtime
from tonnage.runtimes.parts.base import OF_SHARDING, OF_STEP
from tonnage.spec import DeepSpeedSettings, MegatronSettings, Plan, ServingPlan, TrainingPlan

PLANS: tuple[Plan, ...] = (TrainingPlan(sequence_length=8), ServingPlan(context=8))


def leaves(value: Struct) -> list[str]:
    """Names of all fields, whatever group they stand in."""
    found: list[str] = []
    for name in value.__struct_fields__:
        part = getattr(value, name)
        found += leaves(part) if isinstance(part, Struct) else [name]
    return found


def test_no_two_fields_of_a_plan_and_no_field_and_a_group_share_a_name():
    for plan in PLANS:
        groups = [name for name in plan.__struct_fields__ if isinstance(getattr(plan, name), Struct)]
        shared = [name for name, count in Counter([*leaves(plan), *groups]).items() if count > 1]
        assert shared == []
        assert sorted(plan.field_names()) == sorted(leaves(plan))


def test_every_field_is_found_by_its_name_and_a_plan_made_of_all_is_the_same():
    for plan in PLANS:
        fields = {name: plan.field(name) for name in plan.field_names()}
        assert type(plan).of_fields(**fields) == plan
        assert convert(type(plan).nested(to_builtins(fields)), type(plan)) == plan


def test_a_changed_field_changes_its_group_alone():
    plan = TrainingPlan.of_fields(sequence_length=8, lora_rank=16, method="lora", zero_stage=2)
    changed = plan.with_fields(lora_rank=32, zero_stage=3)
    assert (changed.tuning.lora_rank, changed.tuning.method, changed.zero_stage) == (32, "lora", 3)
    assert plan.tuning.lora_rank == 16
    assert changed.with_fields(lora_rank=16, zero_stage=2) == plan


def test_a_name_that_no_group_has_is_refused():
    with pytest.raises(TypeError, match="lora_rnk"):
        TrainingPlan.of_fields(sequence_length=8, lora_rnk=16)
    with pytest.raises(TypeError, match="lora_rnk"):
        PLANS[0].with_fields(lora_rnk=16)


def test_an_array_is_seen_in_the_plan_and_in_each_of_its_groups():
    plan = PLANS[0]
    assert plan.is_of_numbers
    for name in ("sequence_length", "reduce_bucket_size", "expert_imbalance", "optimizer_offload_fraction"):
        assert not plan.with_fields(**{name: np.array([1.0, 2.0])}).is_of_numbers


def test_the_settings_of_one_framework_are_the_options_that_it_alone_has():
    has = {name: set(training_runtime(name).options) for name in ("megatron", "deepspeed")}
    shared = {"context_parallel_method"}  # Ulysses is of FSDP2 and DeepSpeed too
    assert set(MegatronSettings.__struct_fields__) == has["megatron"] & {*OF_STEP, *OF_SHARDING}
    assert set(DeepSpeedSettings.__struct_fields__) == (has["deepspeed"] & {*OF_STEP, *OF_SHARDING}) - shared
