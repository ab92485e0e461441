"""How frameworks spend memory, one file each. Adding a runtime is adding a file that registers it, and its line here."""

from importlib import import_module

from tonnage.kernel.registry import letters_of, unknown
from tonnage.runtimes._base import SERVING_RUNTIMES as SERVING_RUNTIMES
from tonnage.runtimes._base import TRAINING_RUNTIMES as TRAINING_RUNTIMES
from tonnage.runtimes._base import BatchLimit as BatchLimit
from tonnage.runtimes._base import Cells as Cells
from tonnage.runtimes._base import Paging as Paging
from tonnage.runtimes._base import Pools as Pools
from tonnage.runtimes._base import Reserve as Reserve
from tonnage.runtimes._base import ServingRuntime as ServingRuntime
from tonnage.runtimes._base import TrainingRuntime as TrainingRuntime
from tonnage.runtimes._versions import at_version

TRAINING = ("fsdp2", "megatron", "transformers", "ddp", "deepspeed", "nanotron", "torchtune", "unsloth", "litgpt")
SERVING = (
    "vllm",
    "sglang",
    "tensorrt-llm",
    "llama.cpp",
    "ollama",
    "transformers",
    "gpt-fast",
    "neuron",
    "jetstream",
    "generic",
)
# How else people write them; letters and digits alone are compared.
SERVING_ALIASES = {"trtllm": "tensorrt-llm", "trt": "tensorrt-llm", "tensorrt": "tensorrt-llm", "llamaserver": "llama.cpp", "ggml": "llama.cpp",
                   "nxd": "neuron", "nxdinference": "neuron", "vllmneuron": "neuron", "maxtext": "jetstream", "hf": "transformers", "huggingface": "transformers", "textgenerationinference": "generic", "tgi": "generic"}  # fmt: skip


def training_runtime(name: str, version: str = "") -> TrainingRuntime:
    """The training runtime of this name, the newest or an earlier version; its file is imported only now."""
    if name not in TRAINING:
        raise unknown("training runtime", name, TRAINING)
    import_module(f"tonnage.runtimes.{name}")
    newest = TRAINING_RUNTIMES[name]
    if not newest.older or not version:
        return newest  # a runtime that asks its version itself has one entry here
    if version not in newest.older:
        raise unknown(f"version of {name}", version, [newest.version, *newest.older])
    return newest.older[version]


def serving_runtime(name: str, version: str = "") -> ServingRuntime:
    """The serving engine of this name, the newest, or as it was at a version; its file is imported only now."""
    letters = letters_of(name)
    name = SERVING_ALIASES.get(letters) or next((each for each in SERVING if letters_of(each) == letters), name)
    if name not in SERVING:
        raise unknown("serving engine", name, SERVING)
    import_module(f"tonnage.runtimes.{name.replace('-', '_').replace('.', '_')}")
    return at_version(SERVING_RUNTIMES[name], version)
