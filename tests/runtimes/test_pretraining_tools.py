"""Training runtimes by the names of tools of pretraining and fine-tuning, with defaults that their sources state."""

import pytest

import tonnage
from every_row import every_row
from tonnage.kernel.errors import MissingDatum
from tonnage.runtimes.parts.pretraining_tools import PRETRAINING_TOOLS
from tonnage.runtimes.parts.tools import TOOLS, tool_named

MODEL = "llama-3.2-1b"


def entries(runtime, on="8xh100", **options):
    return tonnage.train(MODEL, on=on, runtime=runtime, as_is=True, advice=False, **options).question


@every_row(
    "name, runtime, defaults",
    [
        ("internevo", "megatron", {"sequence_length": 2048, "micro_batch_size": 2, "recompute": "none"}),
        ("gpt-neox", "megatron", {"sequence_length": 2048, "micro_batch_size": 4, "recompute": "full"}),
        ("megatron-deepspeed", "megatron", {}),
        ("primus", "megatron", {}),
        ("fms-fsdp", "fsdp2", {"sequence_length": 4096, "micro_batch_size": 2, "compile": True, "recompute": "none"}),
        ("olmo-core", "fsdp2", {"compile": True}),
        ("lingua", "fsdp2", {"compile": True, "recompute": "none"}),
        ("llm-foundry", "fsdp2", {"sequence_length": 2048, "micro_batch_size": 8, "recompute": "full"}),
        ("xtuner", "fsdp2", {"recompute": "full"}),
        ("lightning", "ddp", {}),
        ("ray-train", "ddp", {}),
        ("oumi", "ddp", {"micro_batch_size": 8, "recompute": "none"}),
        ("autotrain", "ddp", {"sequence_length": 2048, "micro_batch_size": 2, "recompute": "full"}),
        ("h2o-llmstudio", "ddp", {"sequence_length": 512, "micro_batch_size": 2, "recompute": "full"}),
        ("colossalai", "deepspeed", {}),
        ("levanter", "fsdp2", {"compile": True, "recompute": "full"}),
        ("easydel", "fsdp2", {"compile": True}),
        ("pax", "fsdp2", {"compile": True}),
    ],
)
def test_a_tool_leads_to_its_mechanism_with_its_own_defaults(name, runtime, defaults):
    question = entries(name)
    assert question["runtime"].value == runtime
    assert {option: question[option].value for option in defaults} == defaults


@every_row("name", ["nanogpt", "nanochat", "modded-nanogpt"])
def test_tools_under_ddp_hold_the_whole_model_on_every_rank(name):
    """torch.nn.parallel.DistributedDataParallel: the plan replicates over all ranks, unless the model is divided."""
    assert entries(name)["replicate_size"].value == 8
    assert entries(name, tensor_parallel_size=2)["replicate_size"].value == 1


def test_nanogpt_steps_over_480_sequences():
    """karpathy/nanoGPT, train.py: batch_size 12, gradient_accumulation_steps 5 * 8, over 8 ranks."""
    question = entries("nanogpt")
    assert (question["micro_batch_size"].value, question["num_microbatches"].value) == (12, 5)


def test_adapters_have_the_ranks_of_their_tools():
    assert entries("autotrain", on="h100", method="lora")["lora_rank"].value == 16
    assert entries("h2o-llmstudio", on="h100", method="lora")["lora_rank"].value == 4


@every_row("name", ["internevo", "fms-fsdp", "levanter", "colossalai", "gpt-neox"])
def test_an_answer_says_what_differs(name):
    first = tonnage.train(MODEL, on="8xh100", runtime=name, as_is=True, advice=False).warnings[0]
    assert first.startswith(tool_named(name).shown)


def test_experts_in_host_memory_are_refused_with_what_is_known():
    with pytest.raises(MissingDatum, match="computed by the CPUs"):
        entries("kt-sft")


def test_every_tool_of_the_table_is_known_and_has_a_source():
    assert {tool.name for tool in PRETRAINING_TOOLS} <= set(TOOLS)
    assert all(len(tool.source) > 20 for tool in PRETRAINING_TOOLS)


@every_row(
    "spelling, name", [("neox", "gpt-neox"), ("composer", "llm-foundry"), ("fabric", "lightning"), ("pax", "paxml")]
)
def test_other_spellings_are_known(spelling, name):
    assert tool_named(spelling).name == name
