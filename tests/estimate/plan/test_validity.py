"""One predicate for an error and for a mask: what `check` raises is what `mask` leaves out."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tonnage
from tonnage.estimate.frameworks.base import framework_of, rules_of
from tonnage.estimate.options.parallel import facts_of
from tonnage.estimate.plan.rule import Facts, check, mask
from tonnage.estimate.plan.training_options import TrainingOptions
from tonnage.estimate.plan.validity import EXPERTS, HEADS, LAYERS
from tonnage.kernel.errors import InvalidPlan
from tonnage.runtimes import training_runtime, training_runtimes

MODELS = {name: tonnage.read(name) for name in ("llama-3.2-1b", "qwen3-30b-a3b", "deepseek-v2-lite", "gemma-2-2b")}
SIZES = {
    "accelerators": (8, 16, 24),
    "tensor_parallel_size": (1, 2, 3, 4, 8),
    "pipeline_parallel_size": (1, 2, 4, 7, 32),
    "virtual_pipeline_size": (1, 2, 3),
    "context_parallel_size": (1, 2, 3),
    "data_parallel_size": (1, 2, 3, 4, 8),
    "expert_parallel_size": (1, 2, 3, 64),
    "expert_tensor_parallel_size": (1, 2),
    "sequence_length": (1020, 1022, 1024, 4096),
    "micro_batch_size": (1, 2, 3),
    "global_batch_size": (16, 24, 96),
    "num_microbatches": (1, 3, 4, 8, 12),
}
PLANS = st.lists(st.fixed_dictionaries({name: st.sampled_from(values) for name, values in SIZES.items()}), max_size=30)
OPTIONS = {
    "data_parallel_size": st.sampled_from((None, 2)),
    "num_microbatches": st.sampled_from((None, 4)),
    "loss": st.sampled_from((None, "chunked")),
    "pipeline_schedule": st.sampled_from((None, "1f1b", "interleaved-zero-bubble", "dualpipev")),
    "replicate_size": st.sampled_from((None, 2)),
    "zero_stage": st.sampled_from((None, 3)),
    "zero_hpz_partition_size": st.sampled_from((None, 2, "auto", "2")),
    "first_stage_layers": st.sampled_from((None, 2)),
}


def is_refused(facts, plan, rules):
    try:
        check(facts, plan, *rules)
    except InvalidPlan as error:
        assert " Got " in str(error) and str(error).rstrip().endswith((".", ")"))
        return True
    return False


@pytest.mark.parametrize("runtime", training_runtimes())
@given(name=st.sampled_from(sorted(MODELS)), said=st.fixed_dictionaries(OPTIONS), plans=PLANS)
def test_a_mask_leaves_out_the_plans_that_a_check_refuses(runtime, name, said, plans):
    known = training_runtime(runtime)
    facts, rules = facts_of(MODELS[name], known, TrainingOptions(**said)), rules_of(known)
    raising = [rule for rule in rules if rule.error is not None]
    columns = {size: np.array([plan[size] for plan in plans], dtype=np.int64) for size in SIZES}
    for rule in raising:
        held = np.broadcast_to(mask(facts, columns, [rule]), len(plans))
        assert [not is_refused(facts, plan, [rule]) for plan in plans] == held.tolist()
    whole = np.broadcast_to(mask(facts, columns, rules), len(plans))
    assert [bool(mask(facts, plan, rules)) for plan in plans] == whole.tolist()


@given(name=st.sampled_from(sorted(MODELS)), plans=PLANS)
def test_serving_asks_the_same_rules_of_fewer_sizes(name, plans):
    facts, names = (
        Facts(MODELS[name]),
        ("accelerators", *(f"{kind}_parallel_size" for kind in ("tensor", "pipeline", "expert"))),
    )
    for plan in plans:
        some = {size: plan[size] for size in names} | {"attention_data_parallel_size": plan["data_parallel_size"]}
        assert is_refused(facts, some, (HEADS, EXPERTS, LAYERS)) != bool(mask(facts, some, (HEADS, EXPERTS, LAYERS)))


def test_a_framework_has_rules_of_its_own():
    rules = framework_of(training_runtime("deepspeed")).rules
    facts = Facts(MODELS["llama-3.2-1b"], {"zero_stage": 3, "zero_hpz_partition_size": 3})
    sizes = {"data_parallel_size": np.array([3, 4, 6]), "context_parallel_size": 1}
    assert mask(facts, sizes, rules).tolist() == [True, False, True]
    assert (
        set(rules) <= set(rules_of(training_runtime("deepspeed"))) and not framework_of(training_runtime("ddp")).rules
    )
