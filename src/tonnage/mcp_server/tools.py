"""The tools: few, and typed by the options of the command line, with their units and defaults.

An assistant is told of all tools in every conversation, before it asks anything: of each verb the usual options are
described, in few words; the tool `options` names all, and `explain` says what each means.
"""

import re
from collections.abc import Mapping
from typing import Any, NamedTuple

from tonnage.documents.document import OptionsDocument
from tonnage.interchange.json_questions import ABOUT, CHECK
from tonnage.interchange.log_questions import DIAGNOSE, RECONCILE
from tonnage.question.form import CONTENTS
from tonnage.question.option import Option
from tonnage.question.verbs import form_of
from tonnage.verbs.answered import FULL, SUMMARY

MACHINE = ("model", "on")
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
OPTIONS = "options"  # the tool that names all options of a verb
AS_ABOVE = "as of train"
SHORT = 50  # characters of what is said of an option, without its unit and default
LONGEST_DEFAULT = 35
BREAKS = re.compile(r"[,;:] | \(")  # where a help may end


class Tool(NamedTuple):
    """`verb`: what answers; `spelled`: the fields that are described, the commonest ones: every other option of the
    verb is taken too; `forms`: whose options -> which form of the verb has them; `lists`: whether a field takes
    several values.
    """

    verb: str
    about: str
    spelled: tuple[str, ...]
    forms: Mapping[str, str]
    needed: tuple[str, ...] = ()
    lists: bool = False


TOOLS = (
    Tool(
        "train",
        "Does this training or fine-tuning run fit the machine, where does its memory go, how long is a step, what "
        "does it cost, and what would make it fit?",
        (*MACHINE, *TRAINING),
        {"train": ""},
        ("on",),
    ),
    Tool(
        "serve",
        "Does this model serve these requests on the machine, for how many users, how fast, and at what price?",
        (*MACHINE, *SERVING, "frontier", "for_my_machine"),
        {"serve": ""},
    ),
    Tool(
        "plan",
        "Search the best plans and machines of a training run, for users (serve), or for a pool of unlike machines "
        "(inventory). It may take minutes.",
        (*MACHINE, "inventory", "goal", "top", "max_accelerators", "vary"),
        {"train": "train", "serve": "serve", "inventory": "inventory"},
    ),
    Tool(
        "max",
        "The largest context, users, sequence, micro-batch, layers, LoRA rank or model that fits the machine, "
        "checked at the answer and just beyond it.",
        ("what", *MACHINE),
        {"serve": "serve", "train": "train"},
        ("what", "on"),
    ),
    Tool(
        "compare",
        "One table of answers over models, machines, precisions, contexts and any other field: does it fit, how "
        "fast, at what price? A field with several values, in a list, is an axis.",
        (*MACHINE, "count", "sort"),
        {"serve": "serve", "train": "train"},
        ("on",),
        lists=True,
    ),
    Tool(
        "explain",
        "What a formula, a symbol, a word of the answers, a field of a question, a source or a rule of thumb means: "
        "text, unit, source. Without name: the names.",
        ("name",),
        {"explain": ""},
    ),
)
BY_NAME = {tool.verb: tool for tool in TOOLS}
# Words that choose between the forms of a verb: a question says them as true.
CHOICES = {
    "plan": {"train": "a training run (the default)", "serve": "for users, or for requests that arrive"},
    "max": {"train": "of training, where serving has it too: layers, model"},
    "compare": {"train": "training runs, not served models"},
}
DETAIL = {"type": "string", "enum": [SUMMARY, FULL], "default": SUMMARY}
OTHERS = {
    "name": OPTIONS,
    "description": "All options of a verb, by subject; explain tells each.",
    "input_schema": {
        "type": "object",
        "properties": {"verb": {"type": "string", "enum": [tool.verb for tool in TOOLS if tool.verb != "explain"]}},
        "required": ["verb"],
        "additionalProperties": False,
    },
}

CHECKS = {
    "name": CHECK,
    "description": ("Does what another tool's config, command or job asks for fit? `read` has its keys."),
    "input_schema": {
        "type": "object",
        "properties": {
            "text": {"type": "string", "description": ABOUT["text"]},
            "model": {"type": "string", "description": "if the text names none"},
            "on": {"type": "string", "description": "the machines, or an accelerator"},
        },
        "required": ["text"],
    },
}


def _of_logs(verb: str, description: str, fields: Mapping[str, str]) -> dict[str, Any]:
    """A tool that takes the text of a log and what is known of the run. It takes `config` too, as HTTP does."""
    kinds = {"options": "object"}
    properties = {
        name: {"type": kinds.get(name, "string"), **({"description": about} if about else {})}
        for name, about in fields.items()
    }
    return {
        "name": verb,
        "description": description,
        "input_schema": {"type": "object", "properties": properties, "required": ["text"]},
    }


LOGS = (
    _of_logs(
        DIAGNOSE,
        "Why did a run run out of memory, and what frees it?",
        {"text": "the log", "model": "", "on": "", "options": "of train or serve"},
    ),
    _of_logs(
        RECONCILE,
        "The estimate beside figures of a log, metrics or a benchmark.",
        {"text": "", "verb": "", "model": "", "on": "", "options": ""},
    ),
)


def description(tool: Tool) -> str:
    """What the tool is for, and what it takes that is not spelled out."""
    if tool.verb == "explain":
        return tool.about
    of = " and ".join(name for name in tool.forms if name != tool.verb and name in BY_NAME)
    others = f"the fields of {of}, and others" if of else "other options"
    return f"{tool.about} Takes {others}: {OPTIONS} names all."


def input_schema(tool: Tool) -> dict[str, Any]:
    """The JSON Schema of the fields. What is not spelled out is taken too, and refused with the nearest name."""
    known = fields(tool)
    properties = {name: _schema(name, known[name], tool) for name in tool.spelled}
    properties |= {
        name: {"type": "boolean", "description": about} for name, about in CHOICES.get(tool.verb, {}).items()
    }
    properties["detail"] = DETAIL
    return {
        "type": "object",
        "properties": properties,
        "required": list(tool.needed),
        "additionalProperties": tool.verb != "explain",
    }


def options_of_verb(verb: str) -> OptionsDocument:
    """The document of the tool `options`: subject -> names of options that the verb takes."""
    tool, by_subject = BY_NAME[verb], dict[str, list[str]]()
    seen: set[str] = set()
    for kind in tool.forms.values():
        form = form_of(verb, kind)
        taken = form.of_face("json")
        for group in form.groups:
            names = [option.name for option in group.options if option.name in taken and option.name not in seen]
            seen.update(names)
            if names:
                by_subject.setdefault(str(group.title), []).extend(names)
    return OptionsDocument(verb=verb, options=by_subject)


def fields(tool: Tool) -> dict[str, dict[str, Option]]:
    """Every field that the verb takes -> what it is in each form of the verb."""
    by_name: dict[str, dict[str, Option]] = {}
    for whose, kind in tool.forms.items():
        for name, field in form_of(tool.verb, kind).of_face("json").items():
            by_name.setdefault(name, {})[whose] = field
    return by_name


def _schema(name: str, forms: Mapping[str, Option], tool: Tool) -> dict[str, Any]:
    helps = {form: brief(field) for form, field in forms.items()}
    about = next(iter(helps.values()))
    if len({*helps.values()}) > 1:
        about = "; ".join(f"{form}: {help_text}" for form, help_text in helps.items())
    kinds = ["string", "number"]
    if all(field.kind == "switch" for field in forms.values()):
        kinds = ["boolean"]
    elif name in CONTENTS:
        kinds, about = ["string", "object"], f"{about}; or what the file holds, as an object"
        about = AS_ABOVE if name == "model" and tool is not TOOLS[0] else about
    elif name == "vary":
        kinds, about = ["object", "string"], VARIED
    elif name in ("on", "what", "name", "goal"):
        kinds = ["string"]
    if tool.lists:
        kinds = [*kinds, "array"]
    return {"type": kinds if len(kinds) > 1 else kinds[0], "description": about}


def brief(option: Option) -> str:
    """What an option is in few words, its unit and its default.

    >>> from tonnage.question.option import Option
    >>> brief(
    ...     Option("attention", "how attention is computed: by a kernel, in blocks, over all scores at once, or eager")
    ... )
    'how attention is computed: by a kernel, in blocks, ...'
    """
    about = option.meaning
    if len(about) > SHORT:
        ends = [found.start() for found in BREAKS.finditer(about[:SHORT])]
        about = f"{about[: ends[-1]]}, ..." if ends else about
    default = f" (default: {option.default})" if option.default and len(option.default) <= LONGEST_DEFAULT else ""
    return about + (f" [{option.unit}]" if option.unit else "") + default


def listed() -> list[dict[str, Any]]:
    """The tools, as an assistant is told of them."""
    told = [{"name": tool.verb, "description": description(tool), "input_schema": input_schema(tool)} for tool in TOOLS]
    return [*told, CHECKS, *LOGS, OTHERS]
