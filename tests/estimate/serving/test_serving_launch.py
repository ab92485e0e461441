"""The command that starts an engine: what it calls the model, how weights are loaded, who drafts, and on which nodes
it runs.
"""

from json import dumps

import pytest

from tonnage.catalogue import cluster
from tonnage.cli import main
from tonnage.estimate.answer.launch import launch_command
from tonnage.estimate.inputs import Question
from tonnage.estimate.serving.options import ServingOptions
from tonnage.estimate.serving.plans import serving_plan
from tonnage.kernel.errors import InvalidPlan
from tonnage.models import read


def launched(name, on, **options):
    model, machine = read(name), cluster(on)
    plan = serving_plan(model, machine, ServingOptions(**{"context": 4096, **options}), Question())
    return launch_command(model, plan, machine)


# ---- the model ----


@pytest.mark.parametrize(
    ("said", "called"),
    [
        ("llama-3.1-8b", "meta-llama/Llama-3.1-8B"),
        ("llama3.1", "meta-llama/Llama-3.1-8B"),
        ("meta-llama/llama-3.1-8b", "meta-llama/Llama-3.1-8B"),
        ("llama-3.1-8b-instruct", "meta-llama/llama-3.1-8b-instruct"),
        ("meta-llama/Llama-3.1-8B-Instruct", "meta-llama/Llama-3.1-8B-Instruct"),
        ("LLM-Research/Meta-Llama-3.1-8B-Instruct", "meta-llama/meta-llama-3.1-8b-instruct"),
        ("deepseek-r1", "deepseek-ai/DeepSeek-R1"),
    ],
)
def test_a_model_is_called_by_the_id_that_loaders_know(said, called):
    assert launched(said, "8xh200").startswith(f"vllm serve {called} ")


def test_a_folder_is_called_by_its_path(tmp_path):
    config = dict(read("llama-3.1-8b").config)
    (tmp_path / "config.json").write_text(dumps(config), encoding="utf-8")
    assert launched(str(tmp_path), "h100").startswith(f"vllm serve {tmp_path} ")
    (tmp_path / "pytorch_model.bin").write_bytes(b"")
    assert launched(str(tmp_path / "config.json"), "h100").startswith(f"vllm serve {tmp_path} ")


BARE = {
    name: value for name, value in read("llama-3.1-8b").config.items() if name not in ("_name_or_path", "quantization")
}
ENGINES = {
    "vllm": "vllm serve MODEL ",
    "sglang": "--model-path MODEL ",
    "tensorrt-llm": "trtllm-serve MODEL ",
    "transformers": "transformers serve MODEL",
    "generic": "--model-id MODEL ",
    "llama.cpp": "-m MODEL-BF16.gguf ",
    "ollama": "FROM ./MODEL-BF16.gguf",
    "gpt-fast": " checkpoints/MODEL/model.pth",
}


@pytest.mark.parametrize("engine", ENGINES)
def test_of_a_config_alone_the_path_of_the_checkpoint_is_left_to_be_put_in(engine):
    *command, note = launched(BARE, "h100", engine=engine).splitlines()
    assert ENGINES[engine] in "\n".join(command) + " " and "pasted" not in "\n".join(command)
    assert note.startswith("# MODEL stands for a checkpoint of which only the config is known: put its path there")
    assert ("a hub" in note) == (engine not in ("llama.cpp", "ollama", "gpt-fast"))  # which take files


def test_a_config_saved_by_itself_says_nothing_of_where_its_weights_are(tmp_path):
    (tmp_path / "config.json").write_text(dumps(BARE), encoding="utf-8")
    assert launched(str(tmp_path / "config.json"), "h100").startswith("vllm serve MODEL ")
    (tmp_path / "model.safetensors.part").write_bytes(b"")
    (tmp_path / "mine.json").write_text(dumps(BARE), encoding="utf-8")
    (tmp_path / "weights.bin").write_bytes(b"")  # of another model, for all that is known
    assert launched(str(tmp_path / "mine.json"), "h100").startswith("vllm serve MODEL ")


@pytest.mark.parametrize(
    ("said", "called"),
    [
        ("meta-llama/Llama-3.1-8B", "meta-llama/Llama-3.1-8B"),
        ("gpt2", "gpt2"),
        ("/home/somebody/out", "MODEL"),
        ("./out", "MODEL"),
        ("C:/out", "MODEL"),
    ],
)
def test_a_config_that_says_an_id_is_called_by_it_and_not_by_a_path_of_another_machine(said, called):
    assert launched({**BARE, "_name_or_path": said}, "h100").startswith(f"vllm serve {called} ")


def test_a_model_that_drafts_and_has_no_name_is_left_to_be_put_in_too(tmp_path):
    (tmp_path / "small.json").write_text(dumps(BARE), encoding="utf-8")
    command, note = launched(
        "llama-3.1-70b", "8xh100", draft_model=str(tmp_path / "small.json"), draft_tokens=3
    ).splitlines()
    assert '{"model": "DRAFT_MODEL"' in command and note.startswith("# DRAFT_MODEL stands for a checkpoint")


def test_a_draft_model_is_called_so_too():
    command = launched("llama-3.1-8b", "h100", draft_model="llama-3.2-1b", draft_tokens=3)
    assert '{"model": "meta-llama/Llama-3.2-1B", "num_speculative_tokens": 3}' in command


# ---- weights ----


@pytest.mark.parametrize(
    ("name", "on", "engine", "weights"),
    [
        ("llama-3.1-70b", "4xh100", "vllm", "nvfp4"),
        ("deepseek-v3", "8xb200", "vllm", "nvfp4"),
        ("llama-3.1-8b", "h100", "sglang", "q4_k_m"),
        ("llama-3.1-8b", "h100", "vllm", "awq"),
        ("llama-3.1-8b", "h100", "vllm", "gptq"),
        ("gpt-oss-20b", "h100", "vllm", "bf16"),
        ("llama-3.1-8b", "h100", "vllm", "int8"),
        ("llama-3.1-8b", "h100", "tensorrt-llm", "fp8"),
    ],
)
def test_what_an_engine_does_not_make_itself_is_asked_for_by_name(name, on, engine, weights):
    command, note = launched(name, on, engine=engine, weights=weights).splitlines()
    assert f"PATH-OR-ID-OF-A-{weights}-CHECKPOINT" in command and "--quantization" not in command
    assert note.startswith(f"# {engine} does not make {weights} out of {read(name).place}")


@pytest.mark.parametrize(
    ("name", "engine", "weights", "words"),
    [
        ("llama-3.1-8b", "vllm", "fp8", "--quantization fp8"),
        ("llama-3.1-8b", "sglang", "nf4", "--load-format bitsandbytes --quantization bitsandbytes"),
        ("llama-3.1-8b", "transformers", "nf4", "--quantization bnb-4bit"),
        ("llama-3.1-8b", "vllm", "fp16", "--dtype half"),
    ],
)
def test_what_an_engine_makes_while_it_loads_it_is_told(name, engine, weights, words):
    command = launched(name, "h100", engine=engine, weights=weights)
    assert words in command and "meta-llama/Llama-3.1-8B" in command and "#" not in command


def test_a_model_that_is_stored_so_already_is_started_as_it_is():
    assert launched("deepseek-v3", "8xh200", weights="fp8") == launched("deepseek-v3", "8xh200")
    assert launched("gpt-oss-20b", "h100", weights="mxfp4") == launched("gpt-oss-20b", "h100")


def test_a_gguf_file_is_called_by_its_type():
    assert "-m Llama-3.1-8B-Q4_K_M.gguf" in launched("llama-3.1-8b", "rtx-4090", weights="q4_k_m")


@pytest.mark.parametrize(("on", "halved"), [("t4", True), ("v100", True), ("a100", False), ("gb10", False)])
def test_only_what_has_no_bf16_units_is_told_to_take_half(on, halved):
    assert ("--dtype half" in launched("llama-3.2-1b", on)) is halved


# ---- drafts ----


def test_only_models_with_layers_of_prediction_draft_by_them():
    assert '"method": "mtp"' in launched("deepseek-v3", "8xh200", draft_tokens=2)
    assert "NEXTN" in launched("deepseek-v3", "8xh200", draft_tokens=2, engine="sglang")
    assert "MTP" in launched("deepseek-v3", "8xh200", draft_tokens=2, engine="tensorrt-llm")
    vllm = launched("llama-3.1-8b", "h100", draft_tokens=4)
    assert '{"method": "ngram", "num_speculative_tokens": 4, "prompt_lookup_max": 4}' in vllm
    assert "--speculative-algorithm NGRAM" in launched("llama-3.1-8b", "h100", draft_tokens=4, engine="sglang")
    assert "decoding_type: NGram, max_draft_len: 4" in launched(
        "llama-3.1-8b", "h100", draft_tokens=4, engine="tensorrt-llm"
    )
    assert "--spec-type ngram-simple" in launched("llama-3.1-8b", "h100", draft_tokens=4, engine="llama.cpp")


def test_sglang_is_told_steps_and_tokens_of_a_chain_together():
    command = launched("deepseek-v3", "8xh200", draft_tokens=3, engine="sglang")
    assert "--speculative-num-steps 3 --speculative-eagle-topk 1 --speculative-num-draft-tokens 4" in command


# ---- nodes ----


def test_a_model_over_two_nodes_is_started_on_both():
    vllm = launched("deepseek-v3", "2x8xh200", tensor_parallel_size=16)
    assert "--nnodes 2 --node-rank NODE-RANK --master-addr FIRST-NODE" in vllm and "--headless" in vllm
    sglang = launched("deepseek-v3", "2x8xh200", tensor_parallel_size=16, engine="sglang")
    assert "--nnodes 2 --node-rank NODE-RANK --dist-init-addr FIRST-NODE:20000" in sglang and "0 to 1" in sglang
    assert launched("deepseek-v3", "2x8xh200", tensor_parallel_size=16, engine="tensorrt-llm").startswith(
        "srun -N 2 --ntasks 16 "
    )
    ray = launched("deepseek-v3", "2x8xh200", tensor_parallel_size=16, engine="vllm", engine_version="0.8")
    assert "--distributed-executor-backend ray" in ray and "--nnodes" not in ray


def test_replicas_over_nodes_say_how_many_each_node_has():
    command = launched("llama-3.1-8b", "9x8xh100", tensor_parallel_size=4)
    assert (
        "--data-parallel-size 18 --data-parallel-size-local 2 --data-parallel-address FIRST-NODE --nnodes 9" in command
    )
    sglang = launched("llama-3.1-8b", "2x8xh100", tensor_parallel_size=2, engine="sglang")
    assert "--dp-size 4" in sglang and "The plan is 2 such servers" in sglang and "--nnodes" not in sglang


def test_replicas_of_a_mixture_are_servers_of_their_own_in_vllm():
    """docs/serving/data_parallel_deployment.md: data-parallel ranks of a mixture would divide its experts among
    them.
    """
    for machine, servers in (("8xh200", 2), ("2x8xh200", 4), ("GB200-NVL72", 18)):
        command = launched("qwen3-235b-a22b", machine, tensor_parallel_size=4)
        assert "--data-parallel-size" not in command and "--nnodes" not in command, machine
        assert f"The plan is {servers} such servers, each on accelerators of its own." in command
    shared = launched("deepseek-v3", "4x8xh200", tensor_parallel_size=1, attention_data_parallel_size=16)
    assert "--data-parallel-size 16 --data-parallel-size-local 8" in shared and "The plan is 2 such servers" in shared


def test_a_rack_is_started_on_each_of_its_hosts():
    """GB200-NVL72: 18 trays of four, each with an operating system of its own."""
    vllm = launched("llama-3.1-405b", "GB200-NVL72", tensor_parallel_size=8)
    assert "--data-parallel-size 9 --data-parallel-size-local 1" in vllm and "--nnodes 18" in vllm
    mixture = launched("qwen3-235b-a22b", "GB200-NVL72", tensor_parallel_size=8)
    assert "--nnodes 2 " in mixture and "each of the 2 nodes of a server" in mixture and "9 such servers" in mixture
    assert launched("llama-3.1-405b", "GB200-NVL72", tensor_parallel_size=8, engine="tensorrt-llm").startswith(
        "srun -N 2 --ntasks 8 --ntasks-per-node 4"
    )
    assert "--nnodes" not in launched("qwen3-235b-a22b", "GB200-NVL72", tensor_parallel_size=4)


def test_one_node_needs_no_word_about_nodes():
    for engine in ("vllm", "sglang", "tensorrt-llm"):
        command = launched("llama-3.1-8b", "8xh100", tensor_parallel_size=8, engine=engine)
        assert "node" not in command and "#" not in command


# ---- what is chosen, and refused ----


@pytest.mark.parametrize("on", ["inferentia2", "2xtrainium1", "2xtrainium2"])
def test_neurons_engine_is_the_usual_one_on_its_own_chips(on):
    assert "VLLM_NEURON_FRAMEWORK" in launched("llama-3.2-1b", on)


def test_formats_without_kernels_on_apple_are_refused_there():
    with pytest.raises(InvalidPlan, match=r"no Metal kernels for awq-4bit-128g .*Nearest: q4_k_m"):
        launched("llama-3.2-1b", "apple-m1-16gb", weights="awq")
    assert "PATH-OR-ID-OF-A-awq-CHECKPOINT" in launched("llama-3.2-1b", "h100", weights="awq", engine="transformers")


def test_no_layer_on_the_accelerator_is_another_machine():
    with pytest.raises(InvalidPlan, match=r"from 1, which is the head alone. Got 0.*--on desktop-ddr5-64gb"):
        launched("llama-3.2-1b", "rtx-4090", engine="llama.cpp", layers_on_accelerator=0)


def test_another_tools_number_is_said_again(capsys):
    assert main(["serve", "llama-3.1-8b", "--on", "h100", "--cpu-offload-gb", "10"]) == 64
    assert "Write --weights-on-host 10GiB." in capsys.readouterr().err
    assert main(["serve", "llama-3.1-8b", "--on", "h100", "--cpu-offload-gb=2.5"]) == 64
    assert "Write --weights-on-host 2.5GiB." in capsys.readouterr().err


def test_a_cache_in_nvfp4_is_refused_where_vllm_has_no_kernel_for_it():
    for name, on in (
        ("llama-3.1-8b", "t4"),
        ("llama-3.1-8b", "mi300x"),
        ("gpt-oss-20b", "h100"),
        ("llama-3.1-8b", "h100"),
        ("llama-3.1-8b", "rtx-5090"),
    ):
        with pytest.raises(InvalidPlan, match=r"cannot hold nvfp4 there: .*supports_kv_cache_dtype.*Nearest: fp8"):
            launched(name, on, kv_cache="nvfp4", engine="vllm")
    for name, on in (("llama-3.1-8b", "b200"), ("llama-3.1-8b", "a100"), ("gpt-oss-20b", "b200")):
        assert "--kv-cache-dtype nvfp4" in launched(name, on, kv_cache="nvfp4", engine="vllm")
