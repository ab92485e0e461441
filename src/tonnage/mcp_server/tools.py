"""The tools: few, and typed by the options of the command line, with their units, help and defaults."""

from collections.abc import Mapping
from typing import Any, NamedTuple

from tonnage.question.form import CONTENTS
from tonnage.question.option import Option
from tonnage.question.verbs import form_of

SUMMARY, FULL = "summary", "full"
MACHINE = ("model", "on")
MONEY = ("price_per_accelerator_hour", "price_kind", "grid")
LOAD = ("context", "concurrency", "input_tokens", "output_tokens", "request_rate", "ttft", "tpot")
SPLIT = ("tensor_parallel_size", "pipeline_parallel_size", "expert_parallel_size")
STEP = ("sequence_length", "micro_batch_size", "precision", "optimizer", "recompute", "method", "runtime")
RUN = ("global_batch_size", "num_microbatches", "tokens", "deadline", "budget")
TRAINING = (*STEP, *RUN, *SPLIT, "context_parallel_size", "data_parallel_size", "zero_stage", "lora_rank")
SERVING = (*LOAD, "weights", "kv_cache", *SPLIT, "engine", "gpu_memory_utilization")
VARIED = (
    'an option of training to try besides, with its values: {"precision": ["bf16-mixed", "fp8-te"]}; of serve a '
    "text: engine, kv-cache, batch, disaggregation, or all"
)
SEVERAL = {"train": ("train",), "serve": ("serve",)}  # whose options a verb has


class Tool(NamedTuple):
    """`verb`: what answers; `spelled`: the fields that are described, the commonest ones: every other option of the
    verb is taken too; `forms`: whose options -> which form of the verb has them; `lists`: whether a field takes
    several values; `short`: whether there is a summary, or every answer is whole.
    """

    verb: str
    about: str
    spelled: tuple[str, ...]
    forms: Mapping[str, str]
    needed: tuple[str, ...] = ()
    lists: bool = False
    short: bool = True


TOOLS = (
    Tool(
        "train",
        (
            "Does this training or fine-tuning run fit the machine, where does its memory go, how long is a "
            "step, what does it cost, and what would make it fit?"
        ),
        (*MACHINE, *TRAINING, *MONEY),
        {"train": ""},
        ("on",),
    ),
    Tool(
        "serve",
        "Does this model serve these requests on the machine, for how many users, how fast, and at what price?",
        (*MACHINE, *SERVING, *MONEY, "frontier", "for_my_machine"),
        {"serve": ""},
    ),
    Tool(
        "plan",
        (
            "Search the best plans and machines of a training run, for users, or for a pool of unlike machines. "
            "It may take minutes."
        ),
        (
            *MACHINE,
            "inventory",
            "goal",
            "top",
            "max_accelerators",
            "vary",
            "sequence_length",
            *RUN,
            *LOAD,
            "runtime",
            "engine",
        ),
        {"train": "train", "serve": "serve", "inventory": "inventory"},
    ),
    Tool(
        "max",
        (
            "The largest context, users, sequence, micro-batch, layers, LoRA rank or model that fits the "
            "machine, checked at the answer and just beyond it."
        ),
        ("what", *MACHINE, *LOAD, *SPLIT, "weights", "kv_cache", "engine", *STEP),
        {"serve": "serve", "train": "train"},
        ("what", "on"),
    ),
    Tool(
        "compare",
        "One table of answers over models, machines, precisions, contexts and any other field: does it fit, "
        "how fast, at what price? "
        "A field with several values, in a list, is an axis.",
        (*MACHINE, "count", "sort", *LOAD, *SPLIT, "weights", "kv_cache", "engine", *STEP),
        {"serve": "serve", "train": "train"},
        ("on",),
        lists=True,
    ),
    Tool(
        "explain",
        (
            "What a formula, a symbol, a word of the answers, a field of a question, a source or a rule of thumb "
            "means: text, unit, source. Without name: the names."
        ),
        ("name",),
        {"explain": ""},
        short=False,
    ),
)
BY_NAME = {tool.verb: tool for tool in TOOLS}
# Words that choose between the forms of a verb: a question says them as true.
CHOICES = {
    "plan": {"train": "a training run (the default)", "serve": "for users, or for requests that arrive"},
    "max": {"train": "of training, where serving has it too: layers, model"},
    "compare": {"train": "training runs, not served models"},
}
DETAIL = {
    "type": "string",
    "enum": [SUMMARY, FULL],
    "default": SUMMARY,
    "description": (
        "summary: the figures, and the first levels of each breakdown. full: the whole document with every rank, "
        "phase, formula, input and source, up to some 100,000 tokens"
    ),
}

WHOLE = {
    **DETAIL,
    "description": "is taken as by the other tools; the answer of this one is the whole document either way",
}


def description(tool: Tool) -> str:
    """What the tool is for, and what it takes that is not spelled out."""
    own = {*fields(tool)} - {*tool.spelled} - {"train", "serve"}
    others = [BY_NAME[name] for name in tool.forms if name in SEVERAL and name != tool.verb]
    for other in others:
        own -= {*fields(other)}
    others_fields = [f"the other fields of {' and of '.join(other.verb for other in others)}"] if others else []
    others_fields += [f"these options of `tonnage {tool.verb}`: {', '.join(sorted(own))}"] if own else []
    meant = "" if others else " (explain says what each means)"
    return f"{tool.about} Takes also {'; and '.join(others_fields)}{meant}." if others_fields else tool.about


def input_schema(tool: Tool) -> dict[str, Any]:
    """The JSON Schema of the fields."""
    known = fields(tool)
    properties = {name: _schema(name, known[name], tool) for name in tool.spelled}
    properties |= {
        name: {"type": "boolean", "description": about} for name, about in CHOICES.get(tool.verb, {}).items()
    }
    properties["detail"] = DETAIL if tool.short else WHOLE
    rest = {"type": ["string", "number", "boolean", "array", "object"]} if tool.short else False
    return {"type": "object", "properties": properties, "required": list(tool.needed), "additionalProperties": rest}


def fields(tool: Tool) -> dict[str, dict[str, Option]]:
    """Every field that the verb takes -> what it is in each form of the verb."""
    by_name: dict[str, dict[str, Option]] = {}
    for whose, kind in tool.forms.items():
        for name, field in form_of(tool.verb, kind).of_face("json").items():
            by_name.setdefault(name, {})[whose] = field
    return by_name


def _schema(name: str, forms: Mapping[str, Option], tool: Tool) -> dict[str, Any]:
    helps = {form: field.about for form, field in forms.items()}
    same_help = len({*helps.values()}) == 1
    about = (
        next(iter(helps.values()))
        if same_help
        else "; ".join(f"{form}: {help_text}" for form, help_text in helps.items())
    )
    kinds = ["string", "number"]
    if all(field.kind == "switch" for field in forms.values()):
        kinds = ["boolean"]
    elif name in CONTENTS:
        kinds, about = ["string", "object"], f"{about}; or what the file holds, as an object"
    elif name == "vary":
        kinds, about = ["object", "string"], VARIED
    elif name in ("on", "what", "name", "goal"):
        kinds = ["string"]
    if tool.lists:
        kinds = [*kinds, "array"]
    return {"type": kinds if len(kinds) > 1 else kinds[0], "description": about}


def listed() -> list[dict[str, Any]]:
    """The tools, as an assistant is told of them."""
    return [{"name": tool.verb, "description": description(tool), "input_schema": input_schema(tool)} for tool in TOOLS]
