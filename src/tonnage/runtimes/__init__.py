"""Facts of training runtimes and serving engines, one file each, found by the file's name.

A file registers its facts in TRAINING_RUNTIMES or SERVING_RUNTIMES; no list names it. A runtime named "llama.cpp" is in
llama_cpp.py, so that one answer imports only the file that it asks for. Installed packages bring others
(tonnage.estimate.frameworks.plug_ins): they are imported when a name is asked for that no file here has, or all names.
"""

import os
import sys
from functools import cache
from importlib import import_module
from importlib.machinery import PathFinder

from tonnage.kernel.errors import TonnageError
from tonnage.kernel.message import Message, listed
from tonnage.kernel.registry import letters_of, nearest, unknown
from tonnage.runtimes.parts.base import PEFT_CODE as PEFT_CODE
from tonnage.runtimes.parts.base import PLACES as PLACES
from tonnage.runtimes.parts.base import TRAINING_RUNTIMES as TRAINING_RUNTIMES
from tonnage.runtimes.parts.base import TrainingRuntime as TrainingRuntime
from tonnage.runtimes.parts.serving import SERVING_RUNTIMES as SERVING_RUNTIMES
from tonnage.runtimes.parts.serving import BatchLimit as BatchLimit
from tonnage.runtimes.parts.serving import Cells as Cells
from tonnage.runtimes.parts.serving import Paging as Paging
from tonnage.runtimes.parts.serving import Pools as Pools
from tonnage.runtimes.parts.serving import Reserve as Reserve
from tonnage.runtimes.parts.serving import ServingRuntime as ServingRuntime
from tonnage.runtimes.parts.serving import at_version
from tonnage.runtimes.parts.start import HUB as HUB
from tonnage.runtimes.parts.start import Spread as Spread
from tonnage.runtimes.parts.start import Start as Start

ENDINGS = (".dist-info", ".egg-info")  # of what installed packages say of themselves
PLUG_INS = "tonnage.runtimes"  # the group of entry points of packages that bring runtimes
# What is estimated where nobody names a runtime: training on one accelerator, and on several.
USUAL_ALONE, USUAL_ON_SEVERAL = "transformers", "fsdp2"
# Where nobody names an engine: in data centres, and there by the accelerators' vendor; of GGUF files and at home; of
# models that others refuse; of MLX's files where its engine runs.
USUAL_ENGINE, USUAL_BY_VENDOR = "vllm", {"AWS": "neuron"}
USUAL_AT_HOME, USUAL_OF_OTHERS, USUAL_OF_MLX = "llama.cpp", "transformers", "mlx"
# Of weights that one engine alone makes or loads, by how the names of their formats start.
USUAL_OF_FORMATS = {"exl2-": "exllamav2", "exl3-": "exllamav3", "ov-": "openvino", "q": "mlc"}
# Of speech to text, by vendor: CTranslate2 runs on NVIDIA and on processors, whisper.cpp on most others.
USUAL_OF_SPEECH = {"NVIDIA": "faster-whisper", "Apple": "whisper.cpp", "AMD": "whisper.cpp", "Intel": "whisper.cpp"}


def training_runtime(name: str, version: str = "") -> TrainingRuntime:
    """The training runtime of this name, the newest or an earlier version."""
    if name not in TRAINING_RUNTIMES:
        _import_file(name)
    if name not in TRAINING_RUNTIMES:
        _import_plug_ins()
    if name not in TRAINING_RUNTIMES:
        raise no_training_runtime(name)
    newest = TRAINING_RUNTIMES[name]
    if not newest.older or not version:
        return newest  # a runtime that asks its version itself has one entry here
    if version not in newest.older:
        raise unknown(Message("version of {newest}", newest=name), version, [newest.version, *newest.older])
    return newest.older[version]


def no_training_runtime(name: str, *, generates: bool = False) -> TonnageError:
    """The error for a name of no runtime: of a tool that runs on one, which; else with the nearest names, or with all
    runtimes and tools. `generates`: tools of reinforcement learning alone.
    """
    from tonnage.runtimes.parts.tools import TOOLS, runtime_needed, tool_named

    tool = tool_named(name)
    if tool is not None:
        return runtime_needed(tool)
    known = training_runtimes()
    if "-" not in name:  # a typing error in "megatron" is not meant for one of its variants
        known = tuple(each for each in known if not _variant(each))
    near_tool = not nearest(name, known) and nearest(name, TOOLS)
    tools = sorted(each.name for each in TOOLS.values() if each.rollout_ranks or not generates)
    of_learning = Message("Tools of reinforcement learning that run on them: {tools}.", tools=listed(tools))
    more = of_learning if generates else Message("Tools that run on them: {tools}.", tools=listed(tools))
    return unknown("training runtime", name, known, TOOLS if near_tool else (), more=more)


def has_training_runtime(name: str) -> bool:
    """Whether a file here has the training runtime of this name, or it is registered already."""
    if name not in TRAINING_RUNTIMES:
        _import_file(name)
    return name in TRAINING_RUNTIMES


def serving_runtime(name: str, version: str = "") -> ServingRuntime:
    """The serving engine of this name, or one of its other spellings, the newest, or as it was at a version; of a tool
    the engine that it usually runs on.
    """
    if name not in SERVING_RUNTIMES:
        _import_file(name)
    engine = SERVING_RUNTIMES[name] if name in SERVING_RUNTIMES else _engine_spelled(name)
    return at_version(engine, version)


def has_serving_runtime(name: str) -> bool:
    """Whether a file here has the serving engine of this name, or it is registered already."""
    if name not in SERVING_RUNTIMES:
        _import_file(name)
    return name in SERVING_RUNTIMES


def training_runtimes() -> tuple[str, ...]:
    """The names of all training runtimes, the most common first."""
    _import_all()
    return tuple(runtime.name for runtime in sorted(TRAINING_RUNTIMES.values(), key=_place))


def serving_runtimes() -> tuple[str, ...]:
    """The names of all serving engines, the most common first."""
    _import_all()
    return tuple(engine.name for engine in sorted(SERVING_RUNTIMES.values(), key=_place))


def runtimes_with(option: str) -> str:
    """The training runtimes that have one of our options which others do not, as a text."""
    return listed(
        name for name in training_runtimes() if option in TRAINING_RUNTIMES[name].options and not _variant(name)
    )


def narrow_runtimes() -> tuple[str, ...]:
    """The training runtimes whose layers multiply in fewer than 16 bit where the recipe says so."""
    names = training_runtimes()
    return tuple(name for name in names if TRAINING_RUNTIMES[name].multiplies_narrow and not _variant(name))


def _variant(name: str) -> bool:
    """Whether a runtime runs another's layers under a name of its own, as Megatron-FSDP does Megatron's."""
    framework = TRAINING_RUNTIMES[name].framework
    return framework != name and framework in TRAINING_RUNTIMES


def model_codes() -> tuple[str, ...]:
    """Whose code of a model some runtime runs."""
    return tuple(dict.fromkeys(code for name in training_runtimes() for code in TRAINING_RUNTIMES[name].model_codes))


def _place(runtime: TrainingRuntime | ServingRuntime) -> tuple[int, str]:
    return runtime.listed, runtime.name


def _engine_spelled(name: str) -> ServingRuntime:
    """The engine that is spelled otherwise: letters and digits alone are compared."""
    letters, engines = letters_of(name), serving_runtimes()
    for engine in map(SERVING_RUNTIMES.__getitem__, engines):
        if letters == letters_of(engine.name) or letters in engine.aliases:
            return engine
    from tonnage.runtimes.parts.engine_tools import ENGINE_TOOLS
    from tonnage.runtimes.parts.tool import find_tool

    tool = find_tool(ENGINE_TOOLS, name)
    if tool is not None:
        return serving_runtime(tool.engines[0])
    raise unknown("serving engine", name, engines, () if nearest(name, engines) else nearest(name, ENGINE_TOOLS))


def _import_file(name: str) -> None:
    """Import the file of a runtime, if there is one of this name."""
    module = name.replace("-", "_").replace(".", "_")
    if module.isidentifier() and module.islower() and not module.startswith("_"):
        try:
            import_module(f"{__name__}.{module}")
        except ModuleNotFoundError as error:
            if error.name != f"{__name__}.{module}":
                raise


@cache
def _import_all() -> None:
    from pkgutil import iter_modules

    for module in iter_modules(__path__):
        if not module.ispkg:
            import_module(f"{__name__}.{module.name}")
    _import_plug_ins()


@cache
def _import_plug_ins() -> None:
    """Import what installed packages name as their runtimes; importing registers them."""
    if not _are_named():
        return
    from importlib.metadata import entry_points

    for point in entry_points(group=PLUG_INS):
        point.load()


def _are_named() -> bool:
    """Whether an installed package may name runtimes: `importlib.metadata`, which knows, takes as long as an answer."""
    if any(hasattr(finder, "find_distributions") and finder is not PathFinder for finder in sys.meta_path):
        return True
    for folder in sys.path:
        try:
            names = [name for name in os.listdir(folder or ".") if name.endswith(ENDINGS)]  # noqa: PTH208
        except FileNotFoundError:
            continue
        except OSError:  # an archive, of which only importlib.metadata knows
            return True
        for name in names:
            try:
                with open(os.path.join(folder, name, "entry_points.txt"), "rb") as file:  # noqa: PTH118, PTH123
                    if PLUG_INS.encode() in file.read():
                        return True
            except OSError:  # it names none
                continue
    return False
