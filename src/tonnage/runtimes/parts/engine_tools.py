"""Servers that run on a serving engine of another name, with what each demands and sets itself.

A fork, a plugin or an application that has its engine's memory and passes is an entry here; an engine whose memory
differs is a file of its own (`tonnage.runtimes`).
"""

from collections.abc import Callable, Mapping
from shlex import quote
from typing import Any

from tonnage.kernel.message import Message
from tonnage.runtimes.parts.start import Start
from tonnage.runtimes.parts.tool import NamedTool

Command = Callable[[Start], str]
ALL_LAYERS = 999  # more layers than any model has: what these tools' documentation writes for all


class EngineTool(NamedTool, frozen=True, kw_only=True):
    """A server by its name, and the engine that it runs on."""

    #: The engines that it may run on: the first that runs on the machine and loads the weights is taken.
    engines: tuple[str, ...]
    #: Beginnings of formats of weights for which it takes an engine of its own.
    of_formats: Mapping[str, str] = {}
    #: Makers of the accelerators that it runs on; (): those of its engine.
    vendors: tuple[str, ...] = ()
    #: Kinds of accelerators that it runs on; (): those of its engine.
    kinds: tuple[str, ...] = ()
    #: Whether it runs one request at a time, and the others wait.
    one_request: bool = False
    #: Its own defaults where nobody says the option: option -> value.
    defaults: Mapping[str, Any] = {}
    #: Writes its command, from what is started and what writes its engine's; None: its engine's command.
    launch: Callable[[Start, Command], str] | None = None


def _aphrodite(start: Start, command: Command) -> str:
    """aphrodite/endpoints/cli/run.py: vLLM's options."""
    return command(start).replace("vllm serve ", "aphrodite run ", 1)


def _ik_llama(start: Start, command: Command) -> str:
    """llama.cpp's options of then, which know no `all` for layers."""
    return command(start).replace("-ngl all", f"-ngl {ALL_LAYERS}", 1)


def _koboldcpp(start: Start, command: Command) -> str:
    """koboldcpp.py: its parser of arguments."""
    start.note_nodes()
    plan, layers = start.plan, start.plan.host.layers_on_accelerator
    words = [f"koboldcpp --model {start.file} --contextsize {plan.context}", f"--gpulayers {layers or ALL_LAYERS}"]
    words += [f"--batchsize {plan.max_num_batched_tokens}"] if plan.max_num_batched_tokens else []
    words += [f"--moecpu {plan.host.expert_layers_on_host}"] if plan.host.expert_layers_on_host else []
    quantised = {"q8_0": 1, "q4_0": 2}.get(plan.kv_cache or "")
    words += [f"--flashattention --quantkv {quantised}"] if quantised else []
    if start.draft:
        words.append(f"--draftmodel DRAFT.gguf --draftamount {plan.drafting.draft_tokens}")
    return " ".join(words)


def _llamafile(start: Start, command: Command) -> str:
    """Server mode of one file, with the options of ik_llama.cpp."""
    return _ik_llama(start, command).replace("llama-server", "llamafile --server", 1)


def _webui(start: Start, command: Command) -> str:
    """modules/shared.py: the loader follows the files; --cache-type has each loader's own names."""
    start.note_nodes()
    plan = start.plan
    loaders = {"llama.cpp": "llama.cpp", "exllamav3": "ExLlamav3", "exllamav2": "ExLlamav2"}
    place = start.file if plan.engine == "llama.cpp" else quote(start.name.rstrip("/").rpartition("/")[2])
    words = [f"python server.py --api --model {place}", f"--loader {loaders.get(plan.engine, 'Transformers')}"]
    words += [f"--ctx-size {plan.context}"] if plan.engine in loaders else []
    cache = (plan.kv_cache or "").removeprefix("exl-")
    words += [f"--cache-type {cache}"] if plan.engine in loaders and cache not in ("", "fp16", "bf16") else []
    words += [f"--gpu-layers {plan.host.layers_on_accelerator}"] if plan.host.layers_on_accelerator else []
    return " ".join(words)


def _lm_studio(start: Start, command: Command) -> str:
    """lmstudio.ai/docs/cli: the server, then a model of those that `lms ls` lists."""
    start.note_nodes()
    name = start.file if start.plan.engine == "llama.cpp" else quote(start.name)
    return f"lms server start && lms load {name} --gpu max --context-length {start.plan.context}"


def _note_folder(start: Start, name: str) -> None:
    start.notes.append(
        Message("oMLX serves the models of a folder: download the checkpoint into it first, as {name}.", name=name)
    )


def _omlx(start: Start, command: Command) -> str:
    """omlx/cli.py: it serves what lies in a folder of models."""
    start.note_nodes()
    folder, _, name = start.name.rstrip("/").rpartition("/")
    _note_folder(start, name)
    words = [f"omlx serve --model-dir {quote(folder)}" if folder.startswith(("/", ".", "~")) else "omlx serve"]
    most = start.plan.concurrency
    return " ".join([*words, f"--max-concurrent-requests {most}"] if most != OMLX_REQUESTS else words)


OMLX_REQUESTS = 8  # omlx/cli.py: --max-concurrent-requests


def _serve(program: str) -> Callable[[Start, Command], str]:
    """A program that serves an MLX checkpoint by its name."""

    def launch(start: Start, command: Command) -> str:
        start.note_nodes()
        return f"{program} serve {quote(start.name)}"

    return launch


def _sglang_jax(start: Start, command: Command) -> str:
    """sgl_jax/srt/server_args.py: SGLang's options; the device is said, and graphs are XLA's."""
    return command(start).replace("python -m sglang.launch_server", "python -m sgl_jax.launch_server --device tpu", 1)


_PLUGIN = Message("it is vLLM with kernels of another maker: memory and passes are estimated as vLLM's there")
_MLX = Message(
    "it runs the models of MLX with a scheduler and a cache of prefixes of its own; memory and passes are estimated "
    "as mlx-lm's"
)
_LLAMA = Message("it runs llama.cpp inside: memory and passes are estimated as llama.cpp's")
_CHOICE = Message("it starts the engine that its container or its model repository names; {--engine} names another")
ENGINE_TOOLS: Mapping[str, EngineTool] = {
    tool.name: tool
    for tool in (
        EngineTool(
            name="vllm-ascend",
            title="vLLM-Ascend",
            source="vLLM, docs/getting_started/installation/README.md: hardware plugins",
            aliases=("vllmnpu",),
            engines=("vllm",),
            vendors=("Huawei",),
            differs=_PLUGIN,
        ),
        EngineTool(
            name="vllm-gaudi",
            title="vLLM-Gaudi",
            source="vllm-gaudi, vllm_gaudi/v1/worker/hpu_worker.py: VLLM_GRAPH_RESERVED_MEM",
            aliases=("vllmhpu",),
            engines=("vllm",),
            vendors=("Intel",),
            kinds=("npu",),
            differs=_PLUGIN,
        ),
        EngineTool(
            name="tpu-inference",
            title="tpu-inference",
            source="vLLM, docs/getting_started/installation/README.md: hardware plugins",
            aliases=("vllmtpu",),
            engines=("vllm",),
            vendors=("Google",),
            differs=_PLUGIN,
        ),
        EngineTool(
            name="tt-inference-server",
            title="TT-Inference-Server",
            source="tt-inference-server, tt-vllm-plugin/pyproject.toml",
            aliases=("vllmtt", "ttvllm", "ttvllmplugin", "ttmetal"),
            engines=("vllm",),
            vendors=("Tenstorrent",),
            differs=_PLUGIN,
        ),
        EngineTool(
            name="vllm-neuron",
            title="vLLM-Neuron",
            source="NxD-Inference, documentation, feature guide: vLLM",
            engines=("neuron",),
            vendors=("AWS",),
        ),
        EngineTool(
            name="sglang-jax",
            title="SGLang-JAX",
            source="SGLang-JAX, python/sgl_jax/srt/server_args.py: mem_fraction_static 0.88, chunked_prefill_size 4096",
            aliases=("sgljax", "sglangtpu"),
            engines=("sglang",),
            vendors=("Google",),
            defaults={"gpu_memory_utilization": 0.88, "max_num_batched_tokens": 4096},
            launch=_sglang_jax,
            differs=Message(
                "it is SGLang's scheduler with models in JAX: its pages have one token as SGLang's have, and what XLA "
                "holds beside weights and cache is not known here"
            ),
        ),
        EngineTool(
            name="aphrodite",
            title="Aphrodite",
            source="Aphrodite, aphrodite/endpoints/cli/run.py: aphrodite run; aphrodite/config/cache.py: "
            "gpu_memory_utilization 0.9",
            aliases=("aphroditeengine",),
            engines=("vllm",),
            defaults={"gpu_memory_utilization": 0.9},
            launch=_aphrodite,
            differs=Message("it is a fork of vLLM, and is estimated as the newest vLLM"),
        ),
        EngineTool(
            name="nim",
            title="NVIDIA NIM",
            source="NVIDIA-NIM, docs: large-language-models 2.0, deployment, model profiles and selection",
            aliases=("nvidianim", "nimforllms"),
            engines=("vllm", "sglang", "tensorrt-llm"),
            vendors=("NVIDIA",),
            differs=_CHOICE,
        ),
        EngineTool(
            name="triton",
            title="Triton Inference Server",
            source="Triton, docs: backends vllm and tensorrtllm",
            aliases=("tritonserver", "tritoninferenceserver", "nvidiatriton"),
            engines=("tensorrt-llm", "vllm"),
            vendors=("NVIDIA",),
            differs=_CHOICE,
        ),
        EngineTool(
            name="ik_llama.cpp",
            title="ik_llama.cpp",
            source="ik_llama.cpp, README.md: a fork of llama.cpp with faster kernels on CPUs and CPU/GPU mixtures",
            aliases=("ikllama",),
            engines=("llama.cpp",),
            launch=_ik_llama,
            differs=Message(
                "it is a fork of llama.cpp, and is estimated as llama.cpp: its kernels of processors, and of experts "
                "that stay in host memory, are faster, by how much is not estimated"
            ),
        ),
        EngineTool(
            name="llamafile",
            title="llamafile",
            source="llamafile, README.md: llamafile --server -m FILE",
            engines=("llama.cpp",),
            launch=_llamafile,
            differs=_LLAMA,
        ),
        EngineTool(
            name="koboldcpp",
            title="KoboldCpp",
            source="KoboldCpp, koboldcpp.py: --contextsize 8192, --multiuser",
            engines=("llama.cpp",),
            defaults={"context": 8192},
            one_request=True,
            launch=_koboldcpp,
            differs=Message("it runs llama.cpp inside, one request at a time: further ones wait (--multiuser)"),
        ),
        EngineTool(
            name="jan",
            title="Jan",
            source="Jan, docs: local engines, llama.cpp",
            aliases=("janai",),
            engines=("llama.cpp",),
            differs=Message(
                "it is an application that starts llama.cpp: the command is that of the server that it starts"
            ),
        ),
        EngineTool(
            name="lm-studio",
            title="LM Studio",
            source="LM-Studio, docs: cli/load, cli/serve/server-start",
            aliases=("lms",),
            engines=("mlx", "llama.cpp"),
            launch=_lm_studio,
            differs=Message("GGUF files run in llama.cpp, MLX's files on Apple in MLX"),
        ),
        EngineTool(
            name="text-generation-webui",
            title="text-generation-webui",
            source="text-generation-webui, modules/shared.py: --loader, --ctx-size, --cache-type",
            aliases=("oobabooga", "textgenwebui", "textgen", "ooba"),
            engines=("transformers", "llama.cpp"),
            of_formats={"gguf": "llama.cpp", "exl3": "exllamav3", "exl2": "exllamav2"},
            launch=_webui,
            differs=Message("the loader follows the files: llama.cpp for GGUF, ExLlama for its own, else Transformers"),
        ),
        EngineTool(
            name="tabbyapi",
            title="TabbyAPI",
            source="TabbyAPI, common/args.py; TabbyAPI, backends/exllamav3",
            aliases=("tabby",),
            engines=("exllamav3", "exllamav2"),
        ),
        EngineTool(
            name="ovms",
            title="OpenVINO Model Server",
            source="OpenVINO-Model-Server, src/cli_parser.cpp",
            aliases=("openvinomodelserver",),
            engines=("openvino",),
            vendors=("Intel",),
        ),
        EngineTool(
            name="openarc",
            title="OpenArc",
            source="OpenVINO-GenAI, src/cpp/include/openvino/genai/scheduler_config.hpp",
            engines=("openvino",),
            vendors=("Intel",),
            differs=Message(
                "it serves OpenVINO GenAI and Optimum-Intel: the command is that of OpenVINO Model Server, which "
                "runs the same library"
            ),
        ),
        EngineTool(
            name="vllm-mlx",
            title="vllm-mlx",
            source="mlx-lm, mlx_lm/generate.py: generate_step; vllm-mlx, vllm_mlx/cli.py: serve",
            engines=("mlx",),
            vendors=("Apple",),
            launch=_serve("vllm-mlx"),
            differs=_MLX,
        ),
        EngineTool(
            name="rapid-mlx",
            title="Rapid-MLX",
            source="mlx-lm, mlx_lm/generate.py: generate_step; Rapid-MLX, vllm_mlx/cli.py: serve",
            engines=("mlx",),
            vendors=("Apple",),
            launch=_serve("rapid-mlx"),
            differs=_MLX,
        ),
        EngineTool(
            name="omlx",
            title="oMLX",
            source="mlx-lm, mlx_lm/generate.py: generate_step; oMLX, omlx/cli.py: serve, --max-concurrent-requests 8",
            engines=("mlx",),
            vendors=("Apple",),
            launch=_omlx,
            differs=_MLX,
        ),
        EngineTool(
            name="mlx-serve",
            title="mlx-serve",
            source="mlx-lm, mlx_lm/generate.py: generate_step",
            engines=("mlx",),
            vendors=("Apple",),
            differs=_MLX,
        ),
        EngineTool(
            name="mlx-engine",
            title="mlx-engine",
            source="mlx-lm, mlx_lm/generate.py: generate_step; LM-Studio, docs: cli/load",
            engines=("mlx",),
            vendors=("Apple",),
            launch=_lm_studio,
            differs=Message("it is LM Studio's engine for MLX's files, which runs mlx-lm"),
        ),
    )
}
