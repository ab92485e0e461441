"""tonnage measure: a training program on the GPU of this machine, stage by stage."""

import argparse
from pathlib import Path
from typing import Any

from tonnage.cli.common.parser import add, add_groups, add_named_values, help_of, named_values
from tonnage.cli.common.print import Bar
from tonnage.kernel.errors import InvalidInput, shown
from tonnage.kernel.reach import is_there
from tonnage.kernel.units import parse_length
from tonnage.language import say, worded
from tonnage.language.columns import left
from tonnage.question.form import Given, values
from tonnage.question.forms import number, whole, word
from tonnage.question.looked_up import read_model
from tonnage.question.option import Option
from tonnage.question.subjects.model import DIMENSIONS
from tonnage.question.verbs import model_groups

HELP = "memory and time of a training program on the GPU of this machine, stage by stage, as rows of validation/"
MODEL = (
    Option(
        "sequence_length",
        "tokens of a sequence; 32k is 32768",
        parse_length,
        ("--seq",),
        "tokens",
        "the model's context, at most 4096",
    ),
    Option("micro_batch_size", "sequences of one forward pass", whole, ("--mbs",), "sequences", "1"),
    Option("num_microbatches", "micro-batches in a step", whole, unit="micro-batches", default="1"),
    Option("recompute", "activations: none or full are recomputed", word, unit="policy", default="none"),
    Option(
        "precision", "bf16, fp16, fp32, or bf16-mixed (fp32 weights under autocast)", word, unit="name", default="bf16"
    ),
    Option("optimizer", "adamw, adam, sgd or sgd-momentum of torch.optim", word, unit="name", default="adamw"),
    Option(
        "optimizer_implementation", "default, foreach, fused or loop", word, unit="name", default="PyTorch's own choice"
    ),
    Option("clip_grad_norm", "norm that gradients are clipped to", number, unit="norm", default="not clipped"),
)
RUN = (
    Option(
        "device",
        "cuda, cuda:1 and so on; cpu tries a program out and measures no GPU",
        word,
        unit="device",
        default="cuda",
    ),
    Option(
        "attention",
        "sdpa (PyTorch's choice), flash, efficient, cudnn or math alone, or eager",
        word,
        unit="kernel",
        default="sdpa",
    ),
    Option(
        "steps",
        "steps that are measured stage by stage; optimizer states appear in the first",
        whole,
        unit="steps",
        default="2",
    ),
    Option("repeats", "timed steps after two to warm up; 0: none", whole, unit="steps", default="5"),
    Option("snapshot", "file for PyTorch's memory snapshot of the measured steps", word, unit="file"),
    Option("out", "YAML file to write the row to; it replaces a row of the same id", word, unit="file"),
)
OPTIONS = (*MODEL, *RUN)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_groups(parser, model_groups())
    for action in parser._actions:
        if action.dest == "model":
            program = say(
                "FILE.py:callable, which gives model, inputs, loss and optimizer; or {other}",
                other=help_of(action) or "",
            )
            action.help = program
    add(parser, MODEL, "training, of a MODEL")
    add(parser, RUN, "how it is measured")
    add_named_values(parser)
    group = parser.add_argument_group("output")
    group.add_argument("--json", action="store_true", help="print one JSON document (schema tonnage/2)")


def run(arguments: Given) -> int:
    from tonnage.measure.answer import Options, measure_file, measure_model

    model_options, options = values(arguments, MODEL), values(arguments, RUN)
    out = options.pop("out", None)
    chosen = model_options.pop("optimizer_implementation", "default")
    if chosen != "default":
        model_options["implementation"] = chosen
    _check_out(out, options.get("device", "cuda"))
    overrides = values(arguments, DIMENSIONS)
    text, bar = arguments.model or "", Bar()
    if ".py:" in text or text.endswith(".py"):
        if model_options or overrides:
            name = next(iter({**model_options, **overrides})).replace("_", "-")
            raise InvalidInput(
                "--{name} is of a MODEL; a program in a file sets it itself. Pass it on with --argument NAME=VALUE.",
                name=name,
            )
        answer = measure_file(text, named_values(arguments.argument), Options(**options), bar)
    else:
        if arguments.argument:
            raise InvalidInput("--argument is of a program FILE.py:callable; a MODEL has options of its own.")
        answer = measure_model(read_model(arguments), overrides, Options(**options, model=model_options), bar)
    bar.over()
    _print(answer, as_json=arguments.json)
    if out is not None:
        from tonnage.measure.rows import in_own_form, merge

        merge(Path(out), [in_own_form(answer.row)])
    return answer.status


def _check_out(out: str | None, device: str) -> None:
    """Before a GPU has worked for it: that the rows can go there."""
    if out is None:
        return
    if device.strip() == "cpu":
        raise InvalidInput("--out holds rows of GPUs; --device cpu only tries a program out. Leave one of them out.")
    if len(Path(out).name) > 200:  # it is written beside first, under a longer name
        raise InvalidInput("--out is a file of at most 200 characters. Got {out}.", out=shown(out))
    if is_there(out):
        from tonnage.validation import read

        read([out])


def _print(answer: Any, *, as_json: bool) -> None:
    from tonnage.cli.common.print import print_json, print_lines

    if as_json:
        print_json(answer.document)
        return
    print_lines(_lines(answer))


def _lines(answer: Any) -> list[str]:
    from tonnage.kernel.units import human
    from tonnage.render.text import table_lines

    measurement, row = answer.measurement, answer.row
    place = (
        row["config"]["gpu"]
        if answer.on_gpu
        else say("this host, which stands for no GPU: resident memory of the process")
    )
    if measurement.failure is None:
        first = say(
            "{model} on {place}: {peak_reserved} reserved at most",
            model=row["model"]["name"],
            place=place,
            peak_reserved=human(measurement.peak_reserved, "bytes"),
        )
        first += (
            say(", {peak_allocated} allocated", peak_allocated=human(measurement.peak_allocated, "bytes"))
            if answer.on_gpu
            else ""
        )
    else:
        first = say("out of memory: {model} on {place}", model=row["model"]["name"], place=place)
    stages = [
        (
            say(stage.name),
            *(
                human(size, "bytes")
                for size in (stage.allocated, stage.reserved, stage.peak_allocated, stage.peak_reserved)
            ),
        )
        for stage in measurement.stages
    ]
    lines = [first, "", *table_lines(stages, ("stage", "allocated", "reserved", "peak allocated", "peak reserved"))]
    lines += ["", *(f"  {left(say(name), 28)} {human(size, 'bytes')}" for name, size in measurement.held.items())]
    for name, size in (
        (say("process, as the driver says"), measurement.process_bytes),
        (say("device in use"), measurement.device_bytes),
    ):
        lines += [f"  {left(say(name), 28)} {human(size, 'bytes')}"] if size is not None else []
    if measurement.step_time is not None:
        lines.append(
            f"  {left(say('step time'), 28)} "
            + say(
                "{step_time} (median of {step_seconds_count})",
                step_time=human(measurement.step_time, "s"),
                step_seconds_count=len(measurement.step_seconds),
            )
        )
    if measurement.failure is not None:
        lines += ["", worded(measurement.failure)]
    return [*lines, "", say("row {id}", id=row["id"])]
