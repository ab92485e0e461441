"""Training runtimes by the names of tools that run on them: what each leads to, its own defaults, and refusals.

Defaults: axolotl 0.21.0, utils/schemas; LLaMA-Factory 0.9.5, hparams; ms-swift 4.6.0, arguments; TRL 1.16,
sft_config.py: as `tonnage check` reads them, from the same facts.
"""

from importlib import import_module

import pytest

import tonnage
from every_row import every_row
from tonnage.interchange.formats import FORMATS
from tonnage.kernel.errors import InvalidInput, UnknownName
from tonnage.runtimes import training_runtime, training_runtimes
from tonnage.runtimes.parts.tools import TOOLS, tool_named

MODEL = "llama-3.2-1b"


def entries(runtime, on="8xh100", **options):
    return tonnage.train(MODEL, on=on, runtime=runtime, as_is=True, advice=False, **options).question


def value(question, name):
    return question[name].value


@every_row(
    "name, options, runtime",
    [
        ("axolotl", {}, "ddp"),
        ("axolotl", {"zero_stage": 3}, "deepspeed"),
        ("axolotl", {"tensor_parallel_size": 2}, "fsdp2"),
        ("llama-factory", {"offload_optimizer": "cpu"}, "deepspeed"),
        ("ms-swift", {"replicate_size": 2}, "fsdp2"),
        ("trl", {"overlap_comm": True}, "deepspeed"),
        ("accelerate", {}, "ddp"),
        ("torchtitan", {}, "fsdp2"),
        ("fsdp1", {}, "fsdp2"),
        ("fsdp", {}, "fsdp2"),
        ("nemo", {}, "megatron"),
        ("megatron-bridge", {}, "megatron"),
        ("nemo-automodel", {}, "fsdp2"),
        ("verl", {}, "fsdp2"),
        ("openrlhf", {}, "deepspeed"),
    ],
)
def test_a_tool_leads_to_what_it_runs_on(name, options, runtime):
    question = entries(name, **options)
    assert value(question, "runtime") == runtime
    assert question["runtime"].why == tool_named(name).shown


def test_on_one_accelerator_tools_on_the_trainer_run_on_transformers():
    assert value(entries("trl", on="h100"), "runtime") == "transformers"


@every_row(
    "name, defaults",
    [
        ("axolotl", {"sequence_length": 512, "micro_batch_size": 1, "recompute": "none", "precision": "bf16"}),
        ("llama-factory", {"sequence_length": 2048, "micro_batch_size": 8, "recompute": "full"}),
        ("trl", {"sequence_length": 1024, "micro_batch_size": 8, "recompute": "full", "precision": "bf16-mixed"}),
        # 16 sequences of a step over 8 GPUs
        ("ms-swift", {"micro_batch_size": 1, "num_microbatches": 2, "recompute": "full", "precision": "bf16"}),
    ],
)
def test_a_tool_brings_its_own_defaults(name, defaults):
    question = entries(name)
    assert {option: value(question, option) for option in defaults} == defaults


def test_what_is_said_is_stronger_than_a_tools_default():
    question = entries("trl", sequence_length=256, micro_batch_size=2)
    assert (value(question, "sequence_length"), question["sequence_length"].origin) == (256, "given")
    assert value(question, "micro_batch_size") == 2


def test_a_tools_default_says_whose_it_is():
    entry = entries("axolotl")["sequence_length"]
    assert (entry.origin, entry.why) == ("runtime", "axolotl 0.21's own")


def test_the_answer_says_what_a_tool_runs_on():
    first = tonnage.train(MODEL, on="h100", runtime="axolotl", advice=False).warnings[0]
    assert first.startswith("axolotl 0.21 runs on transformers 5.")
    assert "sequence_length 512" in first


def test_a_tool_answers_as_its_runtime_with_the_same_options():
    by_name = tonnage.train(MODEL, on="8xh100", runtime="axolotl", as_is=True, advice=False)
    options = {"sequence_length": 512, "micro_batch_size": 1, "recompute": "none", "precision": "bf16"}
    by_runtime = tonnage.train(MODEL, on="8xh100", runtime="ddp", as_is=True, advice=False, **options)
    assert by_name.needed_bytes == by_runtime.needed_bytes


def test_fsdp1_says_what_differs_from_fsdp2():
    """torchtitan, docs/fsdp.md: 7% lower peak memory than FSDP1, of Llama-7B on 8 H100."""
    answer = tonnage.train(MODEL, on="8xh100", runtime="fsdp1", advice=False)
    assert any("7 % less with FSDP2" in note for note in answer.warnings)


@every_row("name, runtime", [("maxtext", "fsdp2"), ("mindspeed", "megatron")])
def test_a_tool_of_another_vendor_is_estimated_by_the_mechanism_of_its_runtime_and_says_so(name, runtime):
    answer = tonnage.train(MODEL, on="8xh100", runtime=name, as_is=True, advice=False)
    assert answer.question["runtime"].value == runtime
    assert any("is not known here" in note or "nobody published" in note for note in answer.warnings)


def test_a_search_takes_a_tool_and_searches_the_runtime_that_it_runs_on():
    asked = {"sequence_length": 2048, "global_batch_size": 64, "top": 1}
    of_tool = tonnage.plan_training(MODEL, "8xh100", runtime="verl", **asked).to_dict()
    itself = tonnage.plan_training(MODEL, "8xh100", runtime="fsdp2", model_code="transformers", **asked).to_dict()
    assert of_tool["plans"] == itself["plans"]
    assert of_tool["warnings"][0] == "veRL 0.9.1 runs on fsdp2. Its own defaults: model_code transformers."


def test_a_search_keeps_a_tools_defaults_but_for_what_it_searches():
    """ms-swift 4.6.0, arguments: lora_rank 8, gradient_checkpointing, dataloader_num_workers 1."""
    found = tonnage.plan_training(
        MODEL, "2xh100", runtime="ms-swift", method="lora", sequence_length=1024, global_batch_size=64, top=1
    )
    options = found.plans[0].options
    assert (options["runtime"], options["lora_rank"], options["data_loader_workers"]) == ("ddp", 8, 1)
    assert options["recompute"] == "none"
    assert found.to_dict()["warnings"][0] == (
        "ms-swift runs on deepspeed and fsdp2 too: name one as --runtime to search it."
    )


def test_nemo_rl_leads_to_fsdp2_and_names_megatron():
    """NeMo-RL, examples/configs/grpo_math_1B.yaml: policy.dtensor_cfg.enabled is true, megatron_cfg.enabled false."""
    answer = tonnage.train(MODEL, on="8xh100", runtime="nemo-rl", objective="grpo", as_is=True, advice=False)
    assert answer.question["runtime"].value == "fsdp2"
    assert "--runtime megatron" in answer.warnings[0]


def test_a_variation_of_runtimes_asks_for_the_runtime_itself():
    with pytest.raises(InvalidInput, match="axolotl runs on another runtime"):
        tonnage.plan_training(MODEL, on="8xh100", vary={"runtime": ["axolotl"]})


def test_a_mistyped_tool_is_suggested():
    with pytest.raises(UnknownName, match="axolotl"):
        entries("axoltl")


@every_row("spelling, name", [("llama_factory", "llama-factory"), ("LLaMAFactory", "llama-factory"), ("FSDP", "fsdp1")])
def test_a_tool_is_known_however_it_is_spelled(spelling, name):
    assert tool_named(spelling).name == name


def test_no_tool_has_the_name_of_a_runtime():
    assert not [name for name in training_runtimes() if tool_named(name) is not None]


def test_every_tool_runs_on_runtimes_that_there_are():
    named = {name for tool in TOOLS.values() for name in (*tool.runtimes, *tool.nearest)}
    assert {training_runtime(name).name for name in named} == named


@every_row("name", ["axolotl", "llama-factory", "ms-swift", "trl", "accelerate"])
def test_formats_have_the_versions_and_sources_of_the_tools(name):
    import_module(f"tonnage.interchange.formats.trainers.{name.replace('-', '_')}")
    form, tool = FORMATS[name], TOOLS[name]
    assert (form.tool, form.version, form.source) == (tool.title, tool.version, tool.source)


AXOLOTL = "base_model: Qwen/Qwen2.5-7B\ndatasets: [x]\nmicro_batch_size: 1\nbf16: auto\n"
LLAMA_FACTORY = "model_name_or_path: Qwen/Qwen2.5-7B\nstage: sft\ntemplate: qwen\nbf16: true\n"
TRL_COMMAND = "trl {} --model_name_or_path Qwen/Qwen2.5-7B --dataset_name x"
SWIFT = "swift sft --model Qwen/Qwen2.5-7B --dataset x --max_length 4096"
SAME = (
    *("runtime", "model_code", "sequence_length", "micro_batch_size", "num_microbatches", "precision", "recompute"),
    *("lora_rank", "lora_dropout", "lora_targets", "base_weights", "upcast_base", "expandable_segments", "attention"),
    *("data_loader_workers", "optimizer", "optimizer_implementation", "loss", "zero_stage", "packing"),
)


@every_row(
    "name, config, options",
    [
        ("axolotl", AXOLOTL, {}),
        ("axolotl", AXOLOTL + "adapter: lora\nlora_r: 16\nlora_target_linear: true\n", {"method": "lora"}),
        ("llama-factory", LLAMA_FACTORY + "finetuning_type: full\n", {}),
        ("llama-factory", LLAMA_FACTORY + "finetuning_type: lora\n", {"method": "lora"}),
        ("trl", TRL_COMMAND.format("sft"), {}),
        ("trl", TRL_COMMAND.format("sft --use_peft"), {"method": "lora"}),
        ("trl", TRL_COMMAND.format("sft --use_peft --load_in_4bit"), {"method": "qlora"}),
        ("trl", TRL_COMMAND.format("dpo"), {"objective": "dpo"}),
        ("ms-swift", SWIFT + " --tuner_type full", {}),
        ("ms-swift", SWIFT, {"method": "lora"}),
    ],
)
def test_a_name_asks_what_the_tools_shortest_config_asks(name, config, options, tmp_path):
    """On one accelerator and on eight."""
    path = tmp_path / "config.yaml"
    path.write_text(config)
    for on in ("h100", "8xh100"):
        source = str(path) if "\n" in config else config
        checked = tonnage.check(source, on=on, lenient=True).question
        named = tonnage.train("qwen2.5-7b", on=on, runtime=name, as_is=True, advice=False, **options).question
        by_config, by_name = (
            {option: question[option].value for option in SAME if option in question} for question in (checked, named)
        )
        assert by_config == by_name
