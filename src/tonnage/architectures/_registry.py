"""The registry of architectures. An architecture turns a config.json into a Model; it contains no formula."""

from collections.abc import Callable, Iterable, Mapping
from importlib import import_module
from pathlib import Path
from typing import TypeVar

from msgspec.structs import replace

from tonnage.architectures._config import LARGEST_DEPTH, Config
from tonnage.architectures._model import Branch, Model
from tonnage.kernel.errors import InvalidInput, MissingDatum, shown
from tonnage.kernel.message import listed
from tonnage.kernel.registry import Registry
from tonnage.ops import Head, Linear, Op

T = TypeVar("T")
Architecture = Callable[[Config], Model]
Tower = Callable[[Config], Branch]
ARCHITECTURES: Registry[Architecture] = Registry("architecture")
MODEL_TYPES: Registry[Architecture] = Registry("model type")
TOWERS: Registry[Tower] = Registry("vision or audio tower")
HERE = Path(__file__).parent


def architecture(*names: str, model_types: Iterable[str] = ()) -> Callable[[Architecture], Architecture]:
    """Register the decorated function under the class names and model types that config.json uses."""

    def declare(build: Architecture) -> Architecture:
        for name in names:
            ARCHITECTURES.add(name, build)
        for model_type in model_types:
            MODEL_TYPES.add(model_type, build)
        return build

    return declare


def tower(*model_types: str) -> Callable[[Tower], Tower]:
    """Register a vision or audio tower under the model types of vision_config and audio_config."""

    def declare(build: Tower) -> Tower:
        for model_type in model_types:
            TOWERS.add(model_type, build)
        return build

    return declare


def families() -> list[str]:
    """The family modules, by file name."""
    return sorted(path.stem for path in HERE.glob("*.py") if not path.stem.startswith("_"))


def load_all() -> None:
    """Import every family: for listings and for suggestions."""
    for family in families():
        import_module(f"tonnage.architectures.{family}")


def find(registry: Registry[T], name: str, everywhere: bool = True) -> T:
    """The entry of `registry`; imports only the family files that mention the name, since most commands need one of
    forty.

    `everywhere`: if none mentions it, import all of them before giving up.
    """
    if name not in registry:
        quoted = f'"{name}"'
        for path in sorted(HERE.glob("[!_]*.py")):
            if quoted in path.read_text(encoding="utf-8"):
                import_module(f"tonnage.architectures.{path.stem}")
                if name in registry:
                    break
        else:
            if everywhere:
                load_all()
    return registry[name]


# ---- Heads by class name: no head, a score of the sequence, labels of the tokens.
#
# Embedding models and rerankers are decoders without their output projection. In transformers the base class is
# `XModel`;
# the scores are those of GenericForSequenceClassification, GenericForTokenClassification and
# GenericForQuestionAnswering
# (huggingface/transformers src/transformers/modeling_layers.py, v5.23). A family that registers such a name builds it
# itself. Qwen2's reward models score through a hidden layer: vllm-project/vllm vllm/model_executor/models/qwen2_rm.py.

TASKS = ("ForSequenceClassification", "ForTokenClassification", "ForQuestionAnswering", "RewardModel", "Model")
REWARDS = {"Qwen2ForRewardModel": 1, "Qwen2ForProcessRewardModel": 2}  # outputs of the score
LANGUAGE_MODELS = ("ForCausalLM", "LMHeadModel", "ForConditionalGeneration")


def class_name(c: Config) -> str:
    """The first of `architectures`, or an empty string."""
    names = c.items("architectures", default=[])
    if names and not isinstance(names[0], str):
        raise InvalidInput(
            "{where}: architectures must hold class names. Got {names}.", where=c.where, names=shown(names[0])
        )
    return names[0] if names else ""


def task(name: str) -> str:
    """The ending of TASKS in the class name; empty for a language model or an unknown class."""
    if name.endswith(LANGUAGE_MODELS):
        return ""
    return next((ending for ending in TASKS if name.endswith(ending) and name != ending), "")


def language_models(name: str) -> list[str]:
    """Names that the language model of the same family may have: LlamaModel -> LlamaForCausalLM and so on."""
    stem = name.removesuffix(task(name)).removesuffix("ForProcess").removesuffix("For") if task(name) else ""
    return [stem + ending for ending in LANGUAGE_MODELS] if stem else []


def num_labels(c: Config, default: int = 2) -> int:
    """Outputs of a classifier: the number of labels in id2label, else `num_labels`."""
    labels = c.raw("id2label")
    if labels is None:
        return c.size("num_labels", default=default, largest=LARGEST_DEPTH)
    if not isinstance(labels, Mapping) or not labels:
        raise InvalidInput(
            "{where}: id2label must map numbers to names. Got {type}.", where=c.where, type=type(labels).__name__
        )
    return len(labels)


def score(c: Config, kind: str, width: int) -> tuple[Op, ...]:
    """The layers that replace the language model's head."""
    if kind == "RewardModel":
        return _reward(c, width)
    if kind == "ForSequenceClassification":
        return (Linear(name="score", in_features=width, out_features=num_labels(c), part="head"),)
    if kind == "ForTokenClassification":
        return (Linear(name="score", in_features=width, out_features=num_labels(c), bias=True, part="head"),)
    if kind == "ForQuestionAnswering":
        return (Linear(name="qa_outputs", in_features=width, out_features=2, bias=True, part="head"),)
    return ()


def _reward(c: Config, width: int) -> tuple[Op, ...]:
    name = class_name(c)
    if name not in REWARDS:
        raise MissingDatum(
            "{where}: the score of {name} is not described. Known: {rewards}.",
            where=c.where,
            name=name,
            rewards=listed(REWARDS),
        )
    hidden = Linear(name="score.0", in_features=width, out_features=width, bias=True)
    return hidden, Linear(name="score.2", in_features=width, out_features=REWARDS[name], bias=True, part="head")


def with_head(built: Model, head: tuple[Op, ...]) -> Model:
    """Replace the output projection to the vocabulary by `head`."""
    main = built.decoder
    others = tuple(op for op in main.after if not isinstance(op, Head))
    changed = replace(main, after=others + head)
    branches = tuple(changed if branch is main else branch for branch in built.branches)
    return replace(built, branches=branches, tied=False)


def dressed(built: Model, c: Config) -> Model:
    """Replace the head by that of the class of `c`, where the family built a language model of it."""
    kind, main = task(class_name(c)), built.decoder
    if not kind or not any(isinstance(op, Head) for op in main.after):
        return built
    return with_head(built, score(c, kind, main.hidden_size))
