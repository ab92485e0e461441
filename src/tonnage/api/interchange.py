"""`check` and `export` of Python: other tools' files and commands in and out."""

import os
from collections.abc import Sequence
from pathlib import Path
from typing import Literal, Unpack

from tonnage.api.answer import Answer, with_text
from tonnage.api.arguments import check_text, public
from tonnage.api.options import AnyOptions
from tonnage.interchange import check as checking
from tonnage.interchange.export import OF_MANY
from tonnage.interchange.export import export as write
from tonnage.interchange.json_questions import VERBS
from tonnage.interchange.reading import Asker
from tonnage.interchange.source import Source, command_source, file_source, text_source
from tonnage.kernel.errors import InvalidInput, shown
from tonnage.kernel.message import OR, listed
from tonnage.question.verbs import form_of
from tonnage.spelling import no_option


@public
def check(
    file: str | os.PathLike[str] | Sequence[str],
    model: str = "",
    on: str = "",
    *,
    tool: str = "",
    tool_version: str = "",
    lenient: bool = False,
) -> Answer:
    """Return the answer to what another tool's file or command asks: does it fit, how fast, at what price.

    file: a path ("ds.json"), the text of a file (with a line break), a command ("vllm serve ..."), or its words in a
        list
    model, on: where the file leaves them open, or instead of what it says; `on` may be an accelerator alone ("h100"),
        of which the file says how many
    tool, tool_version: whose file it is, where that is not to be found out (`tonnage check --help`)
    lenient: keys that are not understood do not make the verdict unsure (default: False)

    Returns an Answer: `read` has every key with what it decides, `question` where each value came from. Nothing is
    chosen: what the file does not say has the tool's default. `status` is 4 where a key that may change memory or time
    was not understood.
    Raises TonnageError: InvalidInput where the file is of no known tool, names no model or machine, or says something
    impossible.

    >>> tonnage.check("vllm serve qwen3-32b --tensor-parallel-size 2", on="2xh100").question[
    ...     "tensor_parallel_size"
    ... ].keys
    ('tensor-parallel-size',)
    """
    for name, value in (("model", model), ("on", on), ("tool", tool), ("tool_version", tool_version)):
        check_text(name, value)
    asker = Asker(model=model, on=on, tool=tool, version=tool_version, is_lenient=lenient)
    return with_text(checking.answer(source_of(file), asker))


@public
def export(format: str, verb: Literal["train", "serve"], model: str, on: str, **options: Unpack[AnyOptions]) -> str:
    """Return the file or command of another tool that starts what a question to `train` or `serve` asks.

    format: such as "vllm", "sglang", "deepspeed", "accelerate", "axolotl", "megatron", "sbatch" or "kubernetes"; its
        runtime or engine is taken
    verb: "train" or "serve"
    model, on, options: as of `tonnage.train` and `tonnage.serve`; where the defaults do not fit, what is chosen so
        that they do is written too

    Raises TonnageError: InvalidInput where no such file can be written, else as the verb.

    >>> "--tensor-parallel-size 2" in tonnage.export("vllm", "serve", "qwen3-32b", on="2xh100")
    True
    """
    for name, value in (("format", format), ("verb", verb), ("model", model), ("on", on)):
        check_text(name, value)
    if verb not in VERBS:
        raise InvalidInput("{@verb} is {verbs}. Got {got}.", verbs=listed(VERBS, OR), got=shown(verb))
    known = {name for name in form_of(verb).of_face("json") if name not in OF_MANY}
    for name in options:
        if name not in known:
            raise no_option(name, known)
    return write(format, verb, {"model": model, "on": on, **options}).text


def source_of(file: str | os.PathLike[str] | Sequence[str]) -> Source:
    """A file, its text, or a command, as Python's functions take them. InvalidInput for anything else."""
    if isinstance(file, os.PathLike):
        return file_source(os.fspath(file))
    if not isinstance(file, str):
        if not isinstance(file, list | tuple) or not file or not all(isinstance(word, str) for word in file):
            raise InvalidInput("file is a path, a text, a command or the words of one. Got {value}.", value=shown(file))
        return command_source(list(file), Path())
    if "\n" in file:
        return text_source(file, folder=Path())
    return command_source([file], Path()) if " " in file.strip() and not Path(file).exists() else file_source(file)
