"""The question that a log carries: the command that started the run, or the arguments that an engine prints, and the
accelerators that it names.
"""

import ast
import re
import shlex
from collections.abc import Iterator, Mapping
from typing import Any

from msgspec import Struct

from tonnage.interchange.check import Understood, recognised, understood
from tonnage.interchange.diagnose.log import LONGEST, Log
from tonnage.interchange.reading import Asker
from tonnage.interchange.source import Source, command_source
from tonnage.kernel.errors import TonnageError

MOST = 40  # lines that may be commands
# How a command begins, and what stands before it where that is a module or a script.
_STARTS = {
    **dict.fromkeys(("vllm.entrypoints", "sglang.launch_server", "torch.distributed.run"), "python -m "),
    **dict.fromkeys(("vllm serve ", "sglang serve ", "trtllm-serve ", "llama-server ", "llama-cli ", "torchrun "), ""),
    **dict.fromkeys(("accelerate launch ", "deepspeed ", "axolotl train ", "llamafactory-cli train "), ""),
    **dict.fromkeys(("tune run ", "trl sft ", "trl dpo ", "trl grpo "), ""),
    "pretrain_gpt.py ": "python ",
}
_ENGINE_ARGS = re.compile(r"non-default args: (\{.*\})")
_SERVER_ARGS = re.compile(r"(?:server_args=)?ServerArgs\((.*)\)")
_ARGUMENT = re.compile(r"(\w+)=('[^']{0,300}'|\"[^\"]{0,300}\"|[-\w.]{1,40})")
# Arguments of SGLang that change memory; it prints every one with its default.
_SGLANG = (
    *(
        "model_path",
        "tp_size",
        "pp_size",
        "dp_size",
        "ep_size",
        "context_length",
        "mem_fraction_static",
        "quantization",
    ),
    *("kv_cache_dtype", "max_running_requests", "chunked_prefill_size", "max_total_tokens", "disable_cuda_graph"),
    *("quantization", "cpu_offload_gb", "speculative_algorithm", "dtype"),
)
_GPU = re.compile(
    r"(NVIDIA [A-Z][\w .-]{2,40}?|Tesla [A-Z]\d{1,3}[\w.-]{0,20}|AMD Instinct [\w-]{2,20})(?= {2,}|[,|;)\]:\"']|$)"
)


class RunCommand(Struct, frozen=True, kw_only=True):
    """What a log says of the run: what was understood of its command, or why it was not."""

    understood: Understood | None = None
    problem: str = ""


def command_of_run(log: Log, asker: Asker) -> RunCommand:
    """The first command or list of arguments in a log that can be read."""
    on = asker.on or machine_of(log)
    asker = Asker(model=asker.model, on=on, tool=asker.tool, version=asker.version, is_lenient=True)
    problem = ""
    for source in _sources(log):
        try:
            recognised(source, asker)
        except TonnageError:
            continue
        try:
            return RunCommand(understood=understood(source, asker))
        except TonnageError as error:
            problem = problem or str(error)
    return RunCommand(problem=problem)


def machine_of(log: Log) -> str:
    """The accelerators that a log names, such as 8xH100-SXM-80GB; "" where none of the catalogue is among them."""
    from tonnage.catalogue import accelerator

    for hint in ("NVIDIA ", "Tesla ", "AMD Instinct "):
        for index in log.with_literal(hint, MOST):
            match = _GPU.search(log.at(index).text)
            if match is None:
                continue
            try:
                return accelerator(match[1].strip().lower().replace(" ", "-")).name
            except TonnageError:
                continue
    return ""


def _sources(log: Log) -> Iterator[Source]:
    for words in (*_engine_arguments(log), *_commands(log)):
        yield command_source(words)


def _engine_arguments(log: Log) -> Iterator[list[str]]:
    for index in log.with_literal("non-default args", MOST):
        match = _ENGINE_ARGS.search(log.at(index).text)
        values = _literal(match[1]) if match else None
        if isinstance(values, Mapping):
            yield ["vllm", "serve", *_words(values, {"model_tag": ""})]
    for index in log.with_literal("ServerArgs(", MOST):
        match = _SERVER_ARGS.search(log.at(index).text)
        if match:
            arguments = {name: _literal(value) for name, value in _ARGUMENT.findall(match[1]) if name in _SGLANG}
            yield ["python", "-m", "sglang.launch_server", *_words(arguments, {})]


def _words(values: Mapping[Any, Any], renamed: Mapping[str, str]) -> Iterator[str]:
    """Options of a command, of values that are none of them left out."""
    tag = values.get("model_tag")
    if isinstance(tag, str):
        yield tag
    for name, value in values.items():
        if not isinstance(name, str) or name in renamed or value is None or value is False or value == "auto":
            continue
        if isinstance(value, dict | list | tuple) or (name == "model" and value == tag):
            continue
        yield f"--{name.replace('_', '-')}"
        if value is not True:
            yield str(value)


def _literal(text: str) -> Any:
    try:
        return ast.literal_eval(text[:LONGEST])
    except (ValueError, SyntaxError, MemoryError, RecursionError, TypeError):
        return None


def _commands(log: Log) -> Iterator[list[str]]:
    seen = set[str]()
    for start, before in _STARTS.items():
        for index in log.with_literal(start, MOST):
            text = _joined(log, index)
            command = before + text[max(text.find(start), 0) :].rstrip("`'\")")
            if start not in command or command in seen:
                continue
            seen.add(command)
            try:
                words = shlex.split(command)
            except ValueError:  # a quote that is not closed
                continue
            if len(words) > 2:
                yield words


def _joined(log: Log, index: int) -> str:
    """A line, with those below it while they end in a backslash."""
    text = log.at(index).text
    while text.rstrip().endswith("\\") and index + 1 < len(log) and len(text) < LONGEST:
        index += 1
        text = f"{text.rstrip()[:-1]} {log.at(index).text}"
    return text
