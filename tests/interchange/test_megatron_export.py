"""Scripts that start Megatron-LM with what a question asks."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from of_frameworks import question_of, round_trip, same

from tonnage.interchange.export import export
from tonnage.kernel.errors import TonnageError

QUESTIONS = [
    "llama-3.1-8b --on 8xh100",
    "llama-3.1-70b --on 8x8xh100 --tp 8 --pp 4 --gbs 256 --recompute selective --max-steps 1000 --vpp 2",
    (
        "deepseek-v3 --on 256x8xh100 --pp 16 --ep 64 --precision fp8-te --recompute full --gbs 8192 "
        "--first-stage-layers 4 --last-stage-layers 1"
    ),
    (
        "mixtral-8x7b --on 8x8xh100 --tp 2 --ep 8 --optimizer adamw-bf16 --moe-token-dispatcher-type flex "
        "--precision bf16-mixed-16bit-gradients"
    ),
    "gpt2 --on 8xa100 --attention eager --precision fp16-mixed --dropout",
    (
        "--num-layers 24 --hidden-size 2048 --num-attention-heads 16 --vocab-size 50304 --on 8xa100 --cp 2 "
        "--loss fused --zero 0"
    ),
    "llama-3.1-8b --on 8xh100 --offload-optimizer cpu --optimizer-offload-fraction 0.5",
    "llama-3.1-8b --on 8xh100 --cuda-graph full --optimizer muon",
]


@pytest.mark.parametrize("question", QUESTIONS)
def test_what_is_written_is_read_as_the_same_plan(question):
    first, second, found = round_trip("megatron", question_of(question))
    assert same(first, second)
    assert found.document.is_sure


def test_a_script_is_what_bash_runs():
    text = export("megatron", "train", {"model": "llama-3.1-8b", "on": "2x8xh100"}).text
    assert text.startswith("#!/bin/bash\n# tonnage: train llama-3.1-8b --on 2x8xh100\n")
    assert "torchrun --nnodes 2 --nproc-per-node 8" in text
    assert '"${MODEL_ARGS[@]}"' in text


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"precision": "bf16"}, "no arguments for precision bf16"),
        ({"optimizer": "adamw-8bit"}, "Got adamw-8bit"),
        ({"method": "lora"}, "sft of all weights"),
        ({"runtime": "fsdp2"}, "megatron"),
    ],
)
def test_what_megatron_has_no_words_for_is_refused(options, message):
    with pytest.raises(TonnageError, match=message):
        export("megatron", "train", {"model": "llama-3.1-8b", "on": "8xh100", **options})


# Options of a plan with values of which most fit together.
OPTIONS = {
    "tensor_parallel_size": (1, 2, 4),
    "pipeline_parallel_size": (1, 2),
    "virtual_pipeline_size": (1, 2),
    "context_parallel_size": (1, 2),
    "expert_parallel_size": (1, 2, 8),
    "expert_tensor_parallel_size": (1, 2),
    "micro_batch_size": (1, 2),
    "global_batch_size": (64, 256),
    "zero_stage": (0, 1),
    "recompute": ("none", "selective", "full"),
    "recompute_modules": ("core_attn", "core_attn,mlp"),
    "precision": ("bf16-mixed", "fp16-mixed", "fp8-te-primary", "mxfp8-te", "fp32", "bf16-mixed-16bit-gradients"),
    "optimizer": ("adamw", "adamw-bf16", "sgd-momentum", "muon", "lion"),
    "loss": ("full", "fused"),
    "attention": ("flash", "eager", "sdpa"),
    "dropout": (True, False),
    "cuda_graph": ("none", "full", "attn,moe_router"),
    "moe_token_dispatcher_type": ("alltoall", "flex"),
    "mtp_layers": (0, 1),
    "offload_optimizer": ("none", "cpu"),
    "data_loader_workers": (0, 4),
    "expert_imbalance": (1.2,),
}
CHOSEN = st.fixed_dictionaries({}, optional={name: st.sampled_from(values) for name, values in OPTIONS.items()})


@settings(max_examples=25)
@given(st.sampled_from(("llama-3.1-8b", "qwen3-30b-a3b", "deepseek-v2-lite")), CHOSEN)
def test_any_plan_that_is_written_is_read_as_the_same(model, options):
    try:
        first, second, found = round_trip("megatron", {"model": model, "on": "8x8xh100", **options})
    except TonnageError:  # a plan that does not go together
        return
    assert same(first, second)
    assert found.document.is_sure
