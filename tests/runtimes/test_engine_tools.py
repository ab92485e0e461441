"""Serving engines by the names of tools that run on them: what each leads to, its own defaults, its command, and the
machines that it demands.

Defaults: SGLang-JAX, python/sgl_jax/srt/server_args.py: mem_fraction_static 0.88 and chunked_prefill_size 4096 on TPUs;
Aphrodite, aphrodite/config/cache.py: gpu_memory_utilization 0.9; KoboldCpp, koboldcpp.py: --contextsize 8192; oMLX,
omlx/cli.py: --max-concurrent-requests 8.
"""

import pytest

import tonnage
from every_row import every_row
from tonnage.cli import main
from tonnage.kernel.errors import InvalidInput, InvalidPlan, UnknownName
from tonnage.runtimes import serving_runtime, serving_runtimes
from tonnage.runtimes.parts.engine_tools import ENGINE_TOOLS
from tonnage.runtimes.parts.tool import find_tool
from tonnage.runtimes.parts.tools import TOOLS

MODEL = "llama-3.2-3b"


def served(engine, on="h100", **options):
    return tonnage.serve(MODEL, on=on, engine=engine, advice=False, **{"context": 8192, **options})


@every_row(
    "name, on, weights, engine",
    [
        ("vllm-ascend", "ascend-910b-64gb", None, "vllm"),
        ("vllm-gaudi", "gaudi3", None, "vllm"),
        ("tpu-inference", "tpu-v6e", None, "vllm"),
        ("vllm-neuron", "trn1.2xlarge", None, "neuron"),
        ("tt-inference-server", "n300", None, "vllm"),
        ("sglang-jax", "tpu-v6e", None, "sglang"),
        ("aphrodite", "rtx-4090", None, "vllm"),
        ("nim", "h100", None, "vllm"),
        ("triton", "h100", None, "tensorrt-llm"),
        ("ik_llama.cpp", "rtx-4090", "q4_k_m", "llama.cpp"),
        ("llamafile", "rtx-4090", "q4_k_m", "llama.cpp"),
        ("koboldcpp", "rtx-4090", "q4_k_m", "llama.cpp"),
        ("jan", "apple-m4-max-64gb", "q4_k_m", "llama.cpp"),
        ("lm-studio", "apple-m4-max-64gb", "mlx-4bit", "mlx"),
        ("lm-studio", "apple-m4-max-64gb", "q4_k_m", "llama.cpp"),
        ("lm-studio", "rtx-4090", "q4_k_m", "llama.cpp"),
        ("text-generation-webui", "rtx-4090", None, "transformers"),
        ("text-generation-webui", "rtx-4090", "q4_k_m", "llama.cpp"),
        ("text-generation-webui", "rtx-4090", "exl3-4.0", "exllamav3"),
        ("tabbyapi", "rtx-4090", None, "exllamav3"),
        ("tabbyapi", "rtx-4090", "exl2-4.0", "exllamav2"),
        ("ovms", "arc-b580", None, "openvino"),
        ("openarc", "arc-b580", "ov-int4", "openvino"),
        ("vllm-mlx", "apple-m4-max-64gb", None, "mlx"),
        ("rapid-mlx", "apple-m4-max-64gb", None, "mlx"),
        ("omlx", "apple-m4-max-64gb", None, "mlx"),
        ("mlx-serve", "apple-m4-max-64gb", None, "mlx"),
        ("mlx-engine", "apple-m4-max-64gb", None, "mlx"),
    ],
)
def test_a_tool_leads_to_the_engine_that_it_runs_on(name, on, weights, engine):
    entry = served(name, on, weights=weights).question["engine"]
    assert (entry.value, entry.why) == (engine, ENGINE_TOOLS[name].shown)


@every_row(
    "name, on, defaults",
    [
        ("sglang-jax", "tpu-v6e", {"mem_fraction_static": 0.88, "max_num_batched_tokens": 4096}),
        ("aphrodite", "rtx-4090", {"gpu_memory_utilization": 0.9}),
        ("koboldcpp", "rtx-4090", {"context": 8192}),
    ],
)
def test_a_tool_brings_its_own_defaults(name, on, defaults):
    question = served(name, on, context=None).question
    assert {option: question[option].value for option in defaults} == defaults
    assert {question[option].why for option in defaults} == {f"{ENGINE_TOOLS[name].shown}'s own"}


def test_what_is_said_is_stronger_than_a_tools_default():
    entry = served("koboldcpp", "rtx-4090", context=4096).question["context"]
    assert (entry.value, entry.origin) == (4096, "given")


def test_a_tool_answers_as_its_engine_with_the_same_options():
    by_name = served("aphrodite", "rtx-4090")
    by_engine = served("vllm", "rtx-4090", gpu_memory_utilization=0.9)
    assert by_name.needed_bytes == by_engine.needed_bytes
    assert by_name.serving.tpot_seconds.value == by_engine.serving.tpot_seconds.value


@every_row(
    "name, on, weights, command",
    [
        ("sglang-jax", "tpu-v6e", None, "python -m sgl_jax.launch_server --device tpu --model-path meta-llama/"),
        ("aphrodite", "rtx-4090", None, "aphrodite run meta-llama/Llama-3.2-3B --max-model-len 8192"),
        ("llamafile", "rtx-4090", "q4_k_m", "llamafile --server -m Llama-3.2-3B-Q4_K_M.gguf -c 8192 -np 1 -ngl 999"),
        ("koboldcpp", "rtx-4090", "q4_k_m", "koboldcpp --model Llama-3.2-3B-Q4_K_M.gguf --contextsize 8192"),
        ("lm-studio", "rtx-4090", "q4_k_m", "lms server start && lms load Llama-3.2-3B-Q4_K_M.gguf --gpu max"),
        ("text-generation-webui", "rtx-4090", "q4_k_m", "python server.py --api --model Llama-3.2-3B-Q4_K_M.gguf"),
        ("vllm-mlx", "apple-m4-max-64gb", None, "vllm-mlx serve meta-llama/Llama-3.2-3B"),
        ("omlx", "apple-m4-max-64gb", None, "omlx serve"),
        ("vllm-ascend", "ascend-910b-64gb", None, "vllm serve meta-llama/Llama-3.2-3B"),
    ],
)
def test_the_command_is_the_tools_own_or_that_of_its_engine(name, on, weights, command):
    assert served(name, on, weights=weights).serving.launch.startswith(command)


def test_the_note_of_an_engines_command_is_not_said_of_a_tools():
    assert "mlx_lm.server" not in served("rapid-mlx", "apple-m4-max-64gb").serving.launch


@every_row(
    "name, on, vendors, nearest",
    [
        ("vllm-ascend", "h100", "Huawei", "vllm"),
        ("sglang-jax", "h100", "Google", "sglang"),
        ("omlx", "rtx-4090", "Apple", "vllm"),
        ("nim", "mi300x", "NVIDIA", "vllm"),
    ],
)
def test_a_tool_refuses_a_machine_of_another_maker_and_names_an_engine(name, on, vendors, nearest):
    with pytest.raises(InvalidPlan, match=rf"runs on accelerators of {vendors}\. Got .* Nearest: {nearest}"):
        served(name, on)


def test_a_tool_refuses_another_kind_of_its_makers_machines():
    with pytest.raises(InvalidPlan, match="vLLM-Gaudi has no backend for a gpu of Intel"):
        served("vllm-gaudi", "arc-b580")


def test_a_tool_that_runs_one_request_at_a_time_refuses_more_of_a_replica():
    """KoboldCpp, koboldcpp.py: --multiuser queues incoming requests."""
    with pytest.raises(InvalidPlan, match=r"KoboldCpp runs one request at a time, .* 4 of a replica"):
        served("koboldcpp", "rtx-4090", concurrency=4)


def test_the_second_line_names_the_tool_with_its_engine(capsys):
    assert (
        main(["serve", "llama-3.2-3b", "--on", "ascend-910b-64gb", "--engine", "vllm-ascend", "--context", "8k"]) == 0
    )
    assert "Ascend-910B-64GB, vLLM-Ascend (vllm);" in capsys.readouterr().out.splitlines()[1]


def test_the_answer_says_what_a_tool_runs_on_and_what_differs():
    first, second = served("sglang-jax", "tpu-v6e").warnings[:2]
    assert first.startswith("SGLang-JAX runs on SGLang 0.5.")
    assert "XLA" in second


def test_a_search_takes_a_tool_and_writes_its_command(capsys):
    line = "plan --serve llama-3.1-8b --on h100 --engine aphrodite --users 20 --input 1000 --output 200"
    assert main(line.split()) == 0
    text = capsys.readouterr().out
    assert "Aphrodite (vllm); 20 users" in text and "aphrodite run" in text


def test_a_comparison_names_the_tool(capsys):
    assert main(["compare", "llama-3.1-8b", "--on", "h100,a100", "--engine", "aphrodite"]) == 0
    assert "Aphrodite (vLLM)" in capsys.readouterr().out


def test_a_job_runs_the_tools_command_in_a_container_of_its_own(capsys):
    assert main(["export", "kubernetes", "serve", "llama-3.1-8b", "--on", "h100", "--engine", "aphrodite"]) == 0
    text = capsys.readouterr().out
    assert "- aphrodite" in text and "image: IMAGE" in text


def test_a_tool_without_a_command_of_its_own_is_exported_as_its_engine(capsys):
    assert main(["export", "vllm", "serve", "llama-3.1-8b", "--on", "ascend-910b-64gb", "--engine", "vllm-ascend"]) == 0
    assert "vllm serve meta-llama/Llama-3.1-8B" in capsys.readouterr().out
    assert (
        main(["export", "vllm", "serve", "llama-3.1-8b", "--on", "h100", "--engine", "aphrodite"])
        == InvalidInput.exit_status
    )


@every_row(
    "spelling, name",
    [
        ("LMStudio", "lm-studio"),
        ("TabbyAPI", "tabbyapi"),
        ("ik-llama.cpp", "ik_llama.cpp"),
        ("oobabooga", "text-generation-webui"),
    ],
)
def test_a_tool_is_known_however_it_is_spelled(spelling, name):
    assert find_tool(ENGINE_TOOLS, spelling).name == name


def test_a_mistyped_tool_is_suggested():
    with pytest.raises(UnknownName, match="koboldcpp"):
        served("kobold")


def test_no_tool_has_the_name_of_an_engine_or_of_a_training_tool():
    engines = [serving_runtime(name) for name in serving_runtimes()]
    spellings = {spelling for engine in engines for spelling in (engine.name, *engine.aliases)}
    assert not [name for name in spellings if find_tool(ENGINE_TOOLS, name) is not None]
    assert not set(ENGINE_TOOLS) & set(TOOLS)


def test_every_tool_runs_on_engines_that_there_are():
    named = {name for tool in ENGINE_TOOLS.values() for name in (*tool.engines, *tool.of_formats.values())}
    assert named <= set(serving_runtimes())
