"""NeMo: recipes of NeMo 2 and Megatron-Bridge, read and never run, and Automodel's YAML."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from of_frameworks import (
    ODD_OF_FILES,
    check_any,
    check_golden,
    golden,
    keys,
    of_text,
    source,
    tree_text,
    why,
)

from every_row import every_row
from tonnage.catalogue import model_names
from tonnage.interchange.check import answer, understood
from tonnage.interchange.parts.megatron.effects import KNOWN
from tonnage.interchange.parts.nemo.megatron import known_model
from tonnage.interchange.parts.nemo.recipe import Recipe
from tonnage.interchange.reading import Asker
from tonnage.interchange.source import text_source
from tonnage.kernel.errors import InvalidInput
from tonnage.models import kind

GOLDEN = golden("nemo")
RUNTIMES = ("megatron", "fsdp2", "ddp")
IMPORTS = "from nemo.collections import llm\nimport nemo_run as run\n"


def recipe(text, on="8xh100", **asker):
    asker.setdefault("model", "llama-3.1-8b")
    return of_text(IMPORTS + text, "recipe.py", on, **asker)


def bridge(text, on="8xh100"):
    model = "model: {hf_model_id: meta-llama/Llama-3.1-8B, tensor_model_parallel_size: 2}"
    return of_text(f"{model}\ntrain: {{global_batch_size: 8, micro_batch_size: 1}}\n{text}\n", "bridge.yaml", on)


def automodel(text, on="8xh100", model="Qwen/Qwen3-8B"):
    start = f"model: {{pretrained_model_name_or_path: {model}}}\nstep_scheduler: {{local_batch_size: 1}}\n"
    return of_text(f"{start}distributed: {{strategy: fsdp2}}\n{text}\n", "automodel.yaml", on)


@pytest.mark.parametrize("name", GOLDEN)
def test_a_published_recipe_asks_this_question(name):
    check_golden("nemo", name, GOLDEN[name])


@pytest.mark.parametrize(
    ("name", "on", "status"), [("nemo2_api.py", "h100", 0), ("automodel_qwen3_lora.yaml", "8xh100", 0)]
)
def test_a_published_recipe_is_answered(name, on, status):
    assert answer(source(f"nemo/{name}"), Asker(on=on)).status == status


# ---- Python.


def test_a_recipe_is_never_run(tmp_path):
    marker = tmp_path / "ran"
    found = recipe(f"open({str(marker)!r}, 'w')\nrecipe.trainer.strategy.tensor_model_parallel_size = 2\n")
    assert found.question["tensor_parallel_size"] == 2
    assert not marker.exists()


def test_assignments_and_keyword_arguments_are_collected():
    found = Recipe("SIZE = 4\nr.a.b = SIZE\nr.c = f(1)\nx = make(d=torch.bfloat16, e=(1, 2), g=h())\n", "r.py")
    assert found.assigned == {"a.b": 4}
    assert found.keywords == {"d": "bf16", "e": [1, 2]}


@every_row(
    "text, options",
    [
        ("recipe.trainer.strategy.pipeline_model_parallel_size = 4", {"pipeline_parallel_size": 4}),
        ("recipe.model.config.recompute_granularity = 'full'", {"recompute": "full"}),
        ("recipe.data.seq_length = 2048", {"sequence_length": 2048}),
        ("recipe.trainer.plugins = run.Config(f, precision='bf16-mixed')", {"precision": "bf16-mixed"}),
        ("s = nl.MegatronStrategy(tensor_model_parallel_size=2, sequence_parallel=True)", {"sequence_parallel": True}),
        ("recipe.trainer.strategy.sequence_parallel = True", {"sequence_parallel": None}),
        ("recipe.trainer.strategy.ddp.grad_reduce_in_fp32 = False", {"precision": "bf16-mixed-16bit-gradients"}),
    ],
)
def test_fields_decide_options(text, options):
    found = recipe(text)
    assert {name: found.question.get(name) for name in options} == options
    assert not keys(found, "not understood")


def test_a_file_with_several_recipes_does_not_say_which_one_runs():
    one = "def {}():\n    cfg = f()\n    cfg.model.tensor_model_parallel_size = 1\n"
    with pytest.raises(InvalidInput, match="2 recipes, such as a, b"):
        recipe(one.format("a") + one.format("b"))


def test_machines_are_counted_of_the_trainer():
    text = "t = nl.Trainer(devices=4, num_nodes=2)"
    assert recipe(text, "h100").question["on"] == "2x4xh100"
    assert recipe("recipe.trainer.num_nodes = 2\nrecipe.trainer.devices = 4", "h100").question["on"] == "2x4xh100"


def test_machines_stand_in_the_name_of_a_recipe_of_bridge():
    text = "def llama31_8b_pretrain_16gpu_h100_bf16_config():\n    cfg = f()\n    cfg.train.micro_batch_size = 1\n"
    assert recipe(text, "").question["on"] == "2x8xh100"
    assert recipe(text.replace("16gpu", "4gpu"), "").question["on"] == "4xh100"
    assert recipe(text, "a100").question["on"] == "2x8xa100"
    assert recipe(text, "", model="").question["model"] == "llama-3.1-8b"


def test_what_a_recipe_of_nemo_sets_by_itself_is_not_read():
    found = recipe("r = llm.llama31_8b.pretrain_recipe(num_nodes=1, num_gpus_per_node=8)", "h100", model="")
    assert found.question["model"] == "llama-3.1-8b"
    assert "recipe" in keys(found, "not understood")
    assert "parallelism" in why(found, "recipe")


def test_adapters_are_not_estimated_with_megatron():
    found = recipe("r = llm.llama31_8b.finetune_recipe(peft_scheme='lora')", model="")
    assert "peft_scheme" in keys(found, "not understood")
    assert not recipe("peft = LoRA(dim=16)").document.is_sure


@every_row(
    "name, model",
    [
        ("llama3_8b", "meta-llama-3-8b"),
        ("llm.llama31_405b", "llama-3.1-405b"),
        ("mixtral_8x7b", "mixtral-8x7b-v0.1"),
        ("qwen3_30b_a3b", "qwen3-30b-a3b"),
        ("deepseek_v3", "deepseek-v3"),
        ("llama31_8b", "llama-3.1-8b"),
        ("llama32_1b", "llama-3.2-1b"),
        ("gemma2_9b", "gemma-2-9b"),
        ("my_model", ""),
        ("llama", ""),
    ],
)
def test_names_of_nemo_are_models_of_the_catalogue(name, model):
    assert known_model(name) == model
    assert not model or (model in model_names() or kind(model) == "catalogue")


# ---- YAML of Megatron-Bridge.


@every_row(
    "text, options",
    [
        ("mixed_precision: bf16_with_mxfp8_mixed", {"precision": "mxfp8-te-primary"}),
        ("mixed_precision: bf16_with_fp8_delayed_scaling_mixed", {"precision": "fp8-te-primary"}),
        ("mixed_precision: bf16_with_fp8_subchannel_scaling_mixed", {"precision": "fp8-te"}),
        ("mixed_precision: bf16_with_nvfp4_mixed", {"precision": "nvfp4-te"}),
        ("mixed_precision: {bf16: true, grad_reduce_in_fp32: false}", {"precision": "bf16-mixed-16bit-gradients"}),
        ("ddp: {use_distributed_optimizer: false}", {"zero_stage": 0}),
        ("dataset: {num_workers: 3}", {"data_loader_workers": 3}),
        ("", {"zero_stage": 1, "dropout": False, "precision": "bf16-mixed", "sequence_parallel": False}),
    ],
)
def test_fields_of_bridge_decide_options(text, options):
    found = bridge(text)
    assert {name: found.question.get(name) for name in options} == options


def test_bridges_own_defaults_are_said_to_be_assumed():
    found = bridge("")
    assert {"use-distributed-optimizer", "bf16"} <= keys(found, "assumed")
    assert "Megatron-Bridge 0.6" in why(found, "use-distributed-optimizer")
    assert found.origins["zero_stage"] == ()


def test_a_misspelled_field_is_not_understood():
    found = bridge("ddp: {use_distributed_optimiser: true}")
    assert "ddp.use_distributed_optimiser" in keys(found, "not understood")


# ---- YAML of Automodel.


AUTOMODEL = [
    ("dataset: {seq_len: 2048}", {"sequence_length": 2048}),
    ("packed_sequence: {packed_sequence_size: 1024}", {"sequence_length": 1024, "packing": True}),
    ("peft: {dim: 32, target_modules: ['*.q_proj', '*.v_proj']}", {"lora_rank": 32, "lora_targets": "q_proj,v_proj"}),
    ("peft: {match_all_linear: true}", {"method": "lora", "lora_rank": 8}),
    ("slurm: {nodes: 2, ntasks_per_node: 8}", {"on": "8xh100"}),
    ("parallelizer: {activation_checkpointing: true}", {"recompute": "full"}),
    ("optimizer: {_target_: torch.optim.SGD}", {"optimizer": "sgd-momentum"}),
    ("dataloader: {num_workers: 3}", {"data_loader_workers": 3}),
    ("compile: {enabled: false}", {"runtime": "fsdp2"}),
]


@every_row("text, options", AUTOMODEL)
def test_fields_of_automodel_decide_options(text, options):
    found = automodel(text)
    assert {name: found.question.get(name) for name in options} == options
    assert not keys(found, "not understood")
    assert found.document.tool == "NeMo Automodel"


@every_row(
    "text, key",
    [
        ("compile: {enabled: true}", "compile.enabled"),
        ("fp8: {recipe_name: tensorwise}", "fp8.recipe_name"),
        ("optimizer: {_target_: dion.Muon}", "optimizer._target_"),
        ("loss_fn: {_target_: nemo_automodel.components.loss.linear_ce.FusedLinearCrossEntropy}", "loss_fn._target_"),
        ("peft: {use_dora: true}", "peft.use_dora"),
        ("quantization: {load_in_4bit: true}", "quantization.load_in_4bit"),
        ("distributedd: {tp_size: 2}", "distributedd.tp_size"),
    ],
)
def test_what_is_not_estimated_makes_the_verdict_unsure(text, key):
    found = automodel(text)
    assert key in keys(found, "not understood")
    assert not found.document.is_sure


def test_wrong_values_are_refused_with_their_key():
    for text, message in (("dataset: {seq_len: long}", "dataset.seq_len"), ("peft: {dim: -1}", "peft.dim")):
        with pytest.raises(InvalidInput, match=re.escape(message)):
            automodel(text)


# ---- Anything at all.


FIELDS = sorted(name.replace("-", "_") for name in KNOWN)
SECTIONS = st.sampled_from(["model.", "train.", "ddp.", "optimizer.", "trainer.", "mixed_precision.", "other.", ""])
NAMES = st.tuples(SECTIONS, st.sampled_from(FIELDS)).map("".join)


@given(st.dictionaries(NAMES, ODD_OF_FILES, max_size=8))
def test_any_fields_are_understood_or_refused(fields):
    base = {"model.hf_model_id": "gpt2", "model.tensor_model_parallel_size": 1, "train.global_batch_size": 8}
    check_any(text_source(tree_text({**base, **fields}), "bridge.yaml"), "nemo", RUNTIMES)


OF_AUTOMODEL = st.sampled_from(
    [
        *(f"distributed.{name}" for name in ("tp_size", "pp_size", "strategy", "_target_", "activation_checkpointing")),
        *("step_scheduler.global_batch_size", "step_scheduler.local_batch_size", "peft.dim", "peft.target_modules"),
        *("dataset.seq_len", "packed_sequence.packed_sequence_size", "optimizer._target_", "compile.enabled"),
        *("fp8.enabled", "model.attn_implementation", "model.torch_dtype", "dataloader.num_workers", "slurm.nodes"),
    ]
)


@given(st.dictionaries(OF_AUTOMODEL, ODD_OF_FILES, max_size=8))
def test_any_fields_of_automodel_are_understood_or_refused(fields):
    base = {"model.pretrained_model_name_or_path": "gpt2", "step_scheduler.num_epochs": 1, "distributed.dp_size": 1}
    check_any(text_source(tree_text({**base, **fields}), "a.yaml"), "nemo", RUNTIMES)


VALUES = st.sampled_from(["1", "0", "-1", "None", "True", "[1, 2]", "'a'", "x", "1e400", "f(2)", "{}", "(1,)", "1 +"])


@given(st.lists(st.tuples(NAMES, VALUES), max_size=8))
def test_any_recipe_is_understood_or_refused(pairs):
    text = IMPORTS + "\n".join(f"recipe.{name} = {value}" for name, value in pairs)
    check_any(text_source(text, "recipe.py"), "nemo", RUNTIMES)


def test_what_is_no_python_ends_in_a_message():
    with pytest.raises(InvalidInput, match="no Python"):
        recipe("def (")
    for text in ("", "[]", "null", "model:\n"):
        with pytest.raises(InvalidInput):
            understood(text_source(text, "a.yaml"), Asker(on="8xh100", tool="nemo"))
