"""Whose log it is: characters that only logs of a tool have, and files of its code in a traceback."""

from collections.abc import Iterator

from msgspec import Struct

from tonnage.interchange.diagnose.log import Log

SERVE, TRAIN, NEITHER = "serve", "train", ""


class Tool(Struct, frozen=True):
    """A tool. `shown`: as people write it; `verb`: the question of ours that its runs are; `runs`: their runtime or
    engine; `code`: folders of it in a traceback; `says`: characters that its log has.
    """

    name: str
    shown: str
    verb: str
    code: tuple[str, ...] = ()
    says: tuple[str, ...] = ()
    runs: str = ""


# Engines by their code first, whoever starts them; then what people write their options for: the tool around others
# before those that it calls.
ENGINES = (
    Tool(
        "vllm",
        "vLLM",
        SERVE,
        ("/vllm/",),
        ("vllm serve", "vllm.entrypoints", "EngineCore", "vLLM API server", "Avg prompt throughput"),
        runs="vllm",
    ),
    Tool(
        "sglang",
        "SGLang",
        SERVE,
        ("/sglang/",),
        ("sglang.launch_server", "sglang serve", "Load weight begin", "#running-req", "#new-seq"),
        runs="sglang",
    ),
    Tool(
        "tensorrt-llm",
        "TensorRT-LLM",
        SERVE,
        ("/tensorrt_llm/",),
        ("[TRT-LLM]", "[TensorRT-LLM]", "trtllm-serve"),
        runs="tensorrt-llm",
    ),
    Tool("tgi", "Text Generation Inference", SERVE, ("/text_generation_server/",), ("text_generation_launcher",)),
    Tool(
        "ollama",
        "Ollama",
        SERVE,
        (),
        ("ollama[", "ollama serve", "ollama run", "llama runner", "ollama_llama_server"),
        runs="ollama",
    ),
    Tool(
        "llama-cpp",
        "llama.cpp",
        SERVE,
        (),
        ("llama_model_load", "llama-server", "llama-cli", "ggml_", "load_tensors:"),
        runs="llama.cpp",
    ),
)
TRAINERS = (
    Tool("axolotl", "Axolotl", TRAIN, ("/axolotl/",), ("axolotl train", "axolotl.cli", "[axolotl.")),
    Tool("llamafactory", "LLaMA-Factory", TRAIN, ("/llamafactory/",), ("llamafactory-cli", "llamafactory.")),
    Tool("unsloth", "Unsloth", TRAIN, ("/unsloth/", "/unsloth_zoo/"), ("Unsloth:", "==((====))=="), runs="unsloth"),
    Tool("ms-swift", "ms-swift", TRAIN, ("/swift/llm/", "/swift/cli/"), ("swift sft", "swift rlhf", "swift/cli/")),
    Tool("verl", "veRL", TRAIN, ("/verl/",), ("verl.trainer", "actor_rollout_ref")),
    Tool("openrlhf", "OpenRLHF", TRAIN, ("/openrlhf/",), ("openrlhf.cli",)),
    Tool("nemo", "NeMo", TRAIN, ("/nemo/", "/nemo_automodel/"), ("NeMo I ", "[NeMo W ")),
    Tool(
        "megatron",
        "Megatron-LM",
        TRAIN,
        ("/megatron/", "/Megatron-LM/", "pretrain_gpt.py"),
        ("pretrain_gpt.py", "> building GPT", "Theoretical memory footprints", "using world size:"),
        runs="megatron",
    ),
    Tool("torchtitan", "torchtitan", TRAIN, ("/torchtitan/",), ("torchtitan",), runs="fsdp2"),
    Tool("torchtune", "torchtune", TRAIN, ("/torchtune/",), ("tune run", "torchtune."), runs="torchtune"),
    Tool("trl", "TRL", TRAIN, ("/trl/",), ("SFTTrainer", "DPOTrainer", "GRPOTrainer", "trl sft", "trl dpo")),
    Tool("lightning", "Lightning", TRAIN, ("/lightning/", "/pytorch_lightning/"), ("lightning.pytorch",)),
    Tool(
        "deepspeed",
        "DeepSpeed",
        TRAIN,
        ("/deepspeed/runtime/",),
        ("DeepSpeed info:", "deepspeed.runtime", "DeepSpeedEngine", "Max_MA"),
        runs="deepspeed",
    ),
    Tool(
        "transformers",
        "transformers",
        TRAIN,
        ("/transformers/trainer.py", "run_clm.py"),
        ("***** Running training *****", "run_clm.py"),
    ),
    Tool("accelerate", "Accelerate", TRAIN, ("/accelerate/",), ("accelerate launch", "accelerate.utils")),
    Tool("transformers", "transformers", NEITHER, ("/transformers/",), ("Loading checkpoint shards",)),
)
PYTORCH = Tool("pytorch", "PyTorch", NEITHER)
JAX = Tool("jax", "JAX", NEITHER)
HOST = Tool("host", "the host", NEITHER)
ALL = (*ENGINES, *TRAINERS, PYTORCH, JAX, HOST)


def tool_named(name: str) -> Tool:
    """The tool of this name."""
    return next(tool for tool in ALL if tool.name == name)


def tool_of(log: Log, line_tool: str, frames: str) -> Tool:
    """The tool. `line_tool`: whose line it was that said that memory ran out; `frames`: the traceback of it."""
    if line_tool in ("vllm", "sglang", "tensorrt-llm", "tgi", "ollama", "jax"):
        return tool_named(line_tool)
    by_code = next(_by_code(ENGINES, frames), None)
    if by_code is not None:
        return by_code
    if line_tool == "llama-cpp":
        ollama = tool_named("ollama")
        return ollama if _says(log, ollama) else tool_named(line_tool)
    for tools in (TRAINERS, ENGINES):
        for tool in (*_by_code(tools, frames), *(tool for tool in tools if _says(log, tool))):
            return tool
    return HOST if line_tool == "host" else PYTORCH


def _by_code(tools: tuple[Tool, ...], frames: str) -> Iterator[Tool]:
    return (tool for tool in tools if any(folder in frames for folder in tool.code))


def _says(log: Log, tool: Tool) -> bool:
    return any(text in log.text for text in tool.says)
