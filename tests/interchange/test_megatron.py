"""Megatron-LM: the arguments of its scripts and YAML as questions, and scripts written from answers."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st
from of_frameworks import (
    FILES,
    ODD,
    ODD_OF_FILES,
    check_any,
    check_golden,
    golden,
    keys,
    of_command,
    of_text,
    source,
    tree_text,
    why,
)
from published_cases import record

from every_row import every_row
from tonnage.interchange.check import answer, understood
from tonnage.interchange.export import export
from tonnage.interchange.parts.megatron import effects, names
from tonnage.interchange.parts.megatron.run import RENAMED
from tonnage.interchange.reading import Asker
from tonnage.interchange.source import command_source, file_source, text_source
from tonnage.kernel.errors import InvalidInput
from tonnage.models import read

SMALL = "--num-layers 4 --hidden-size 512 --num-attention-heads 8 --vocab-size 1000 --seq-length 128"
LLAMA = (
    f"{SMALL} --swiglu --disable-bias-linear --normalization RMSNorm --position-embedding-type rope "
    "--untie-embeddings-and-output-weights --max-position-embeddings 128 --bf16"
)


def asked(arguments="", on="8xh100", **asker):
    """What a command with these arguments asks."""
    return of_command(f"torchrun --nproc-per-node 8 pretrain_gpt.py {LLAMA} {arguments}", on, **asker)


GOLDEN = golden("megatron")


@pytest.mark.parametrize("name", GOLDEN)
def test_a_published_script_asks_this_question(name):
    check_golden("megatron", name, GOLDEN[name])


@pytest.mark.parametrize(("name", "on", "status"), [("mixtral_8x7b.sh", "h100", 0), ("gpt3_175b.sh", "a100", 0)])
def test_a_published_script_is_answered(name, on, status):
    assert answer(source(f"megatron/{name}"), Asker(on=on)).status == status


def test_every_argument_of_three_releases_has_a_meaning():
    """Counted in megatron-core 0.17.0, 0.18.0 and 0.19.2: 854 names of options."""
    groups = [
        set(effects.DECIDING),
        set(names.IGNORED),
        set(names.TUNING),
        set(names.REINFORCEMENT),
        set(effects.DETAILS),
        *(set(group) for group in effects.NOT_ESTIMATED.values()),
    ]
    assert sum(len(group) for group in groups) == len(effects.KNOWN) == 856
    assert names.SWITCHES <= effects.KNOWN
    assert names.SEVERAL <= effects.KNOWN


# Of the argument parser of megatron-core 0.19.2: argument, default, the option with its value where it is not given.
DEFAULTS = [
    ("--hidden-dropout", 0.1, "dropout", True),
    ("--use-distributed-optimizer", False, "zero_stage", 0),
    ("--num-workers", 2, "data_loader_workers", 2),
    ("--bf16", False, "precision", "fp32"),
    ("--moe-token-dispatcher-type", "allgather", "moe_token_dispatcher_type", None),
    ("--tensor-model-parallel-size", 1, "tensor_parallel_size", None),
    ("--recompute-granularity", None, "recompute", None),
]


@every_row("argument, default, option, value", DEFAULTS)
def test_an_argument_that_is_not_given_has_megatrons_default(argument, default, option, value):
    found = of_command(f"torchrun pretrain_gpt.py {SMALL} --max-position-embeddings 128")
    assert found.question.get(option) == value


def test_defaults_are_those_of_the_parser():
    """As megatron-core 0.19.2 defines them, whether it is installed or not."""
    found = {
        f"--{name.replace('_', '-')}": default
        for options in record("megatron")["options"].values()
        for name, default in options.items()
    }
    compared = [(argument, default) for argument, default, _, _ in DEFAULTS if argument in found]
    assert len(compared) >= len(DEFAULTS) - 2
    assert all(found[argument] == default for argument, default in compared)


ARGUMENTS = [
    ("--tensor-model-parallel-size 4 --sequence-parallel", {"tensor_parallel_size": 4, "sequence_parallel": True}),
    ("--tensor-model-parallel-size 4", {"tensor_parallel_size": 4, "sequence_parallel": False}),
    ("--pipeline-model-parallel-size 2 --num-layers-per-virtual-pipeline-stage 1", {"virtual_pipeline_size": 2}),
    ("--pipeline-model-parallel-size 2 --num-virtual-stages-per-pipeline-rank 2", {"virtual_pipeline_size": 2}),
    ("--pipeline-model-parallel-size 2 --pipeline-model-parallel-layout 'Et|(t|)*2tL'", {"virtual_pipeline_size": 2}),
    ("--context-parallel-size 2 --cp-comm-type a2a", {"context_parallel_method": "a2a"}),
    ("--micro-batch-size 2", {"micro_batch_size": 2, "global_batch_size": 16}),
    ("--micro-batch-size 2 --tensor-model-parallel-size 2", {"global_batch_size": 8}),
    ("--fp8-format hybrid", {"precision": "fp8-te"}),
    ("--fp8-format hybrid --fp8-param-gather", {"precision": "fp8-te-primary"}),
    ("--fp8-format e4m3 --fp8-recipe mxfp8 --grad-reduce-in-bf16", {"precision": "mxfp8-te-16bit-gradients"}),
    ("--fp4-format e2m1", {"precision": "nvfp4-te"}),
    ("--grad-reduce-in-bf16", {"precision": "bf16-mixed-16bit-gradients"}),
    ("--recompute-granularity full --recompute-method uniform --recompute-num-layers 1", {"recompute": "full"}),
    ("--recompute-granularity full --recompute-method block --recompute-num-layers 4", {"recompute": "full"}),
    ("--recompute-activations", {"recompute": "selective"}),
    (
        "--recompute-granularity selective --recompute-modules core_attn mlp",
        {"recompute": "selective", "recompute_modules": "core_attn,mlp"},
    ),
    ("--optimizer sgd", {"optimizer": "sgd-momentum"}),
    ("--optimizer dist_muon", {"optimizer": "muon"}),
    (
        "--use-precision-aware-optimizer --exp-avg-dtype bf16 --exp-avg-sq-dtype bf16",
        {"optimizer": "adamw-bf16"},
    ),
    (
        "--use-distributed-optimizer --optimizer-cpu-offload --optimizer-offload-fraction 0.5",
        {"offload_optimizer": "cpu", "optimizer_offload_fraction": 0.5, "zero_stage": 1},
    ),
    ("--attention-backend unfused", {"attention": "eager"}),
    ("--transformer-impl local", {"attention": "eager"}),
    ("--transformer-impl local --use-flash-attn", {"attention": "flash"}),
    ("--cross-entropy-loss-fusion --cross-entropy-fusion-impl te", {"loss": "fused"}),
    ("--cuda-graph-impl full_iteration", {"cuda_graph": "full"}),
    ("--cuda-graph-impl transformer_engine --cuda-graph-modules attn moe_router", {"cuda_graph": "attn,moe_router"}),
    ("--hidden-dropout 0 --attention-dropout 0", {"dropout": False}),
    ("--train-samples 1000 --global-batch-size 8", {"max_steps": 125}),
    (
        "--fine-grained-activation-offloading --offload-modules core_attn moe_act",
        {"offload_activations": "cpu", "offload_modules": "core_attn,moe_act"},
    ),
    ("--num-experts 8 --expert-model-parallel-size 8 --moe-token-dispatcher-type flex", {"expert_parallel_size": 8}),
    ("--num-experts 8 --moe-router-topk 2 --moe-ffn-hidden-size 64", {"moe_intermediate_size": 64}),
    ("--num-experts 8 --moe-expert-capacity-factor 1.5 --moe-pad-expert-input-to-capacity", {"num_experts": 8}),
    ("--mtp-num-layers 1", {"mtp_layers": 1}),
]


@every_row("arguments, options", ARGUMENTS, at_least=30)
def test_arguments_decide_options(arguments, options):
    found = asked(arguments)
    assert {name: found.question.get(name) for name in options} == options
    assert not keys(found, "not understood")
    for option in options:
        assert option not in found.origins or all("-" in key or key.isalnum() for key in found.origins[option])


UNCLEAR = [
    ("--num-experts 8 --expert-model-parallel-size 8", "moe-token-dispatcher-type"),
    ("--recompute-granularity full --recompute-method uniform --recompute-num-layers 2", "recompute-num-layers"),
    ("--recompute-granularity full --recompute-method block --recompute-num-layers 1", "recompute-method"),
    ("--optimizer adaptive_muon", "optimizer"),
    ("--use-precision-aware-optimizer --exp-avg-dtype fp8", "exp-avg-dtype"),
    ("--fp32-residual-connection", "fp32-residual-connection"),
    ("--first-last-layers-bf16", "first-last-layers-bf16"),
    ("--cuda-graph-impl local", "cuda-graph-impl"),
    ("--perform-rl-step", "perform-rl-step"),
    ("--cp-comm-type p2p a2a", "cp-comm-type"),
    ("--num-experts 8 --moe-layer-freq 2", "moe-layer-freq"),
    ("--position-embedding-type relative", "position-embedding-type"),
    ("--deterministic-mode", "deterministic-mode"),
    ("--no-gradient-accumulation-fusion", "no-gradient-accumulation-fusion"),
    ("--moe-latent-size 64", "moe-latent-size"),
    ("--use-checkpoint-args", "use-checkpoint-args"),
]


@every_row("arguments, key", UNCLEAR)
def test_what_is_not_estimated_makes_the_verdict_unsure(arguments, key):
    found = asked(arguments)
    assert key in keys(found, "not understood")
    assert why(found, key)
    assert not found.document.is_sure


@every_row("arguments", ["--cpu-offloading-num-layers 0", "--num-distributed-optimizer-instances 1", "--lr 1e-4"])
def test_a_harmless_value_changes_nothing(arguments):
    assert not keys(asked(arguments), "not understood")


def test_a_misspelled_argument_gets_the_nearest_one():
    found = asked("--tensor-model-paralel-size 2")
    assert "did you mean tensor-model-parallel-size" in why(found, "tensor-model-paralel-size")


@every_row("old, new", [(old, new) for old, new in RENAMED.items() if new in effects.KNOWN])
def test_an_older_name_is_read_as_the_newer_one(old, new):
    value = (
        "" if new in names.SWITCHES else {"recompute-granularity": "full", "recompute-method": "uniform"}.get(new, "1")
    )
    found = asked(f"--{old} {value}")
    assert old in {key.key for key in found.document.keys}
    assert old not in keys(found, "not understood") or old == "use-custom-fsdp" or new in str(effects.NOT_ESTIMATED)


def test_the_release_is_what_the_runtime_runs():
    found = asked(version="0.17")
    assert (found.document.version, found.question["runtime_version"]) == ("0.17", "core 0.17")


def test_megatron_fsdp_is_the_runtime_of_that_name():
    found = asked("--use-megatron-fsdp --data-parallel-sharding-strategy optim_grads")
    assert (found.question["runtime"], found.question["zero_stage"]) == ("megatron-fsdp", 2)


def test_a_default_is_that_of_the_release():
    assert asked("--use-megatron-fsdp").question["zero_stage"] == 3
    assert asked("--use-megatron-fsdp", version="0.17").question["zero_stage"] == 0
    assert asked("--use-megatron-fsdp --data-parallel-sharding-strategy optim").question["zero_stage"] == 1


def test_a_command_that_a_variable_holds_is_looked_into_behind_the_shell():
    script = (
        f'options=" \\\n {LLAMA} \\\n --micro-batch-size 2 "\n'
        'run_cmd="python -u ${DIR}/pretrain_gpt.py ${options}"\n'
        'srun -l --container-image nemo sh -c "${run_cmd}"\n'
    )
    found = of_text(script, "run.sh")
    assert (found.question["micro_batch_size"], found.question["num_hidden_layers"]) == (2, 4)
    assert not keys(found, "not understood")


def test_arguments_without_a_program_are_read_too():
    found = of_command(f"--micro-batch-size 2 --tensor-model-parallel-size 1 {LLAMA}")
    assert found.question["micro_batch_size"] == 2


# ---- The model.


MODELS = [
    ("llama-3.1-8b", "8xh100"),
    ("mixtral-8x7b-v0.1", "8x8xh100"),
    ("qwen3-30b-a3b", "8xh100"),
    ("qwen2.5-7b", "8xh100"),
    ("deepseek-v3", "256x8xh100"),
    ("deepseek-v2-lite", "8xh100"),
    ("gpt2", "8xh100"),
]


@pytest.mark.parametrize(("name", "on"), MODELS)
def test_the_dimensions_that_are_written_are_those_of_the_model(name, on):
    """Without the comment that names the model, its arguments alone make it, but for rows that pad the vocabulary."""
    text = export("megatron", "train", {"model": name, "on": on, "sequence_length": 1024, "as_is": True}).text
    without = "\n".join(line for line in text.splitlines() if "tonnage:" not in line)
    found = of_text(without + " --no-pad-vocab-size\n", "run.sh", on)
    question = dict(found.question)
    dimensions = {key: value for key, value in question.items() if key in DIMENSIONS}
    if "family" in question:
        dimensions["model_type"] = question["family"]
    model = read(question.get("model"), overrides=dimensions)
    assert model.num_parameters() == read(name).num_parameters()


DIMENSIONS = (
    *("num_hidden_layers", "hidden_size", "num_attention_heads", "num_key_value_heads", "head_dim", "vocab_size"),
    *("intermediate_size", "max_position_embeddings", "tie_word_embeddings", "num_experts", "num_experts_per_tok"),
    "moe_intermediate_size",
)


def test_a_vocabulary_is_padded_for_all_tensor_ranks():
    assert asked("--tensor-model-parallel-size 2 --sequence-parallel").question["vocab_size"] == 1024
    assert asked("--no-pad-vocab-size").question["vocab_size"] == 1000
    assert asked("--make-vocab-size-divisible-by 1").question["vocab_size"] == 1000


def test_a_vocabulary_that_is_not_said_is_asked_for():
    with pytest.raises(InvalidInput, match="--vocab-size"):
        of_command("torchrun pretrain_gpt.py --num-layers 2 --hidden-size 64 --num-attention-heads 4")


def test_a_model_without_a_dimension_is_asked_for():
    with pytest.raises(InvalidInput, match="--hidden-size"):
        of_command("torchrun pretrain_gpt.py --num-layers 2 --num-attention-heads 4 --vocab-size 100")
    with pytest.raises(InvalidInput, match="--model"):
        of_command("torchrun pretrain_gpt.py --micro-batch-size 1")


def test_a_model_that_is_named_counts_and_what_differs_is_said():
    found = asked(model="llama-3.1-8b")
    assert found.question["model"] == "llama-3.1-8b"
    assert not {"num_hidden_layers", "family"} & set(found.question)
    assert any("num-layers is 4" in note for note in found.notes)


def test_experts_after_layers_without_them_are_a_config():
    found = asked("--num-experts 8 --moe-layer-freq ([0]*1+[1]*3) --moe-ffn-hidden-size 64")
    assert found.question["model"]["first_k_dense_replace"] == 1


# ---- Machines, batches, and what cannot be.


def test_machines_are_counted_of_the_launcher():
    command = f"torchrun --nnodes=4 --nproc_per_node 8 pretrain_gpt.py {LLAMA}"
    assert of_command(command, "h100").question["on"] == "4x8xh100"
    assert of_command(command.replace("=4", " 2:4"), "h100").question["on"] == "4x8xh100"
    found = of_command(command.replace("=4", " $NODES"), "h100")
    assert found.question["on"] == "8xh100"
    assert of_command(command, "2x8xa100").question["on"] == "2x8xa100"


def test_a_batch_that_replicas_do_not_divide_is_refused_with_the_numbers():
    with pytest.raises(InvalidInput, match=r"multiple of micro-batch-size 3 x 8 .* Got 32"):
        asked("--micro-batch-size 3 --global-batch-size 32")


def test_layers_that_stages_do_not_divide_are_refused_with_the_numbers():
    with pytest.raises(InvalidInput, match="4 layers on 2 pipeline stages"):
        asked("--pipeline-model-parallel-size 2 --num-layers-per-virtual-pipeline-stage 3")


WRONG = [
    ("--tensor-model-parallel-size x", "tensor-model-parallel-size must be a number. Got 'x'"),
    ("--tensor-model-parallel-size 0", "above 0"),
    ("--normalization Batch", "LayerNorm"),
    ("--attention-backend flush", "flash"),
    ("--recompute-granularity some", "full or selective"),
    ("--fp16", "leave one out"),
    ("--moe-token-dispatcher-type mail", "alltoall"),
    ("--global-batch-size $GBS", "must be a number"),
    ("--global-batch-size 1.5", "must be a whole number"),
]


@every_row("arguments, message", WRONG)
def test_a_wrong_value_is_refused_with_its_key(arguments, message):
    with pytest.raises(InvalidInput, match=re.escape(message)):
        asked(arguments)


def test_other_programs_of_megatron_are_refused_by_name():
    with pytest.raises(InvalidInput, match=r"pretrain_bert\.py"):
        of_command(f"torchrun pretrain_bert.py {LLAMA}")


def test_a_fork_with_megatrons_arguments_is_read_too():
    found = of_command(f"torchrun --nproc_per_node 8 run_my_gpt.py --micro-batch-size 1 {LLAMA} --my-own 1")
    assert found.document.tool == "Megatron-LM"
    assert keys(found, "not understood") == {"my-own"}


# ---- Anything at all.


ANY_KEY = st.sampled_from(sorted([*effects.KNOWN, *RENAMED]))


@given(st.lists(st.tuples(ANY_KEY, ODD), max_size=8), st.booleans())
def test_any_arguments_are_understood_or_refused(pairs, complete):
    arguments = [word for key, value in pairs for word in (f"--{key}", value) if word]
    command = ["torchrun", "pretrain_gpt.py", *(LLAMA.split() if complete else []), *arguments]
    check_any(command_source(command), "megatron", ("megatron",))


@given(st.dictionaries(ANY_KEY.map(lambda key: key.replace("-", "_")), ODD_OF_FILES, max_size=8))
def test_any_fields_of_its_yaml_are_understood_or_refused(fields):
    inside = {f"language_model.{name}": value for name, value in fields.items()}
    base = {"model_parallel.fp16": False, "language_model.num_layers": 2, "hidden_size": 64, "vocab_size": 100}
    check_any(text_source(tree_text({**base, **inside}), "gpt.yaml"), "megatron", ("megatron",))


def test_empty_files_and_lists_end_in_a_message():
    for text in ("", "[]", "- a\n- b\n", "language_model:\nmodel_parallel:\n", "null"):
        with pytest.raises(InvalidInput):
            understood(text_source(text, "gpt.yaml"), Asker(on="8xh100", tool="megatron"))


def test_a_yaml_that_a_command_names_is_read_with_it(tmp_path):
    (tmp_path / "gpt.yaml").write_text((FILES / "megatron" / "gpt_config.yaml").read_text())
    script = tmp_path / "run.sh"
    script.write_text("torchrun --nproc-per-node 8 pretrain_gpt.py --yaml-cfg gpt.yaml\n")
    found = understood(file_source(str(script)), Asker(on="a100"))
    assert found.question["model"]["num_hidden_layers"] == 24
