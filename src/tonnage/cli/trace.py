"""tonnage trace: what PyTorch would allocate, without a GPU."""

import argparse
from pathlib import Path
from typing import Any

from tonnage.cli.common.parser import add, add_named_values, named_values
from tonnage.cli.common.print import Bar
from tonnage.kernel.errors import InvalidInput, MissingDatum, shown
from tonnage.kernel.reach import is_file
from tonnage.kernel.units import parse_bytes, parse_length
from tonnage.question.form import Given, values
from tonnage.question.forms import number, whole, word
from tonnage.question.option import Option

HELP = "what PyTorch would allocate, without a GPU: a program, a model, or a recording"
HOW = (
    Option(
        "profile",
        "PyTorch's version and the GPU, such as torch-1.13-a100 or h100",
        word,
        unit="name",
        default="torch-2.13-h100",
    ),
    Option(
        "front_end", "meta tensors, or fake cuda ones", word, unit="name", default="meta; cuda where a program needs it"
    ),
    Option("steps", "training steps; states and buckets appear in the first", whole, unit="steps", default="2"),
    Option(
        "capacity",
        "memory to run in; it says whether, where and why it would run out",
        parse_bytes,
        unit="bytes",
        default="unlimited",
    ),
    Option("on", "an accelerator whose memory is the capacity", word, unit="name"),
    Option(
        "outside",
        "memory of the capacity that the allocator cannot use: CUDA context, NCCL buffers",
        parse_bytes,
        unit="bytes",
        default="with --on 522 MiB, as on an H100; else 0",
    ),
    Option(
        "allocator",
        "PYTORCH_CUDA_ALLOC_CONF, such as expandable_segments:True",
        word,
        unit="settings",
        default="PyTorch's own",
    ),
)
MODEL = (
    Option("mode", "train or generate", word, unit="name", default="train"),
    Option(
        "sequence_length",
        "tokens of a sequence, or of the prompt",
        parse_length,
        ("--seq",),
        "tokens",
        "the model's context, at most 4096",
    ),
    Option("micro_batch_size", "sequences of one forward pass", whole, ("--mbs",), "sequences", "1"),
    Option("num_microbatches", "micro-batches in a step", whole, unit="micro-batches", default="1"),
    Option("precision", "bf16, fp16, fp32, bf16-mixed or fp16-mixed", word, unit="name", default="bf16"),
    Option("optimizer", "adamw, adamw-8bit, sgd-momentum, adafactor, muon, ...", word, unit="name", default="adamw"),
    Option(
        "optimizer_implementation", "default, foreach, fused or loop", word, unit="name", default="the profile's own"
    ),
    Option("recompute", "none or full", word, unit="policy", default="none"),
    Option(
        "attention",
        "sdpa (its backend as the GPU would choose it) or eager",
        word,
        unit="name",
        default="transformers' own",
    ),
    Option("clip_grad_norm", "norm to which gradients are clipped", number, unit="norm"),
    Option("num_layers", "fewer layers than the model's", whole, unit="layers", default="the model's"),
    Option("lora_rank", "train only LoRA adapters of this rank", whole, unit="rank"),
    Option(
        "base",
        "what LoRA's base is quantised to: nf4, nf4-double, fp4, int8",
        word,
        unit="name",
        default="not quantised",
    ),
    Option(
        "upcast_base",
        "norms, embedding and head of a quantised base in fp32, as peft's prepare_model_for_kbit_training leaves them",
        default="on",
    ),
    Option("runtime", "single, fsdp2 or ddp", word, unit="name", default="single; fsdp2 with several ranks"),
    Option("world_size", "ranks", whole, unit="ranks", default="1"),
    Option("rank", "the rank that is traced", whole, unit="rank", default="0"),
    Option("tensor_parallel_size", "ranks that share each matrix", whole, ("--tp",), "ranks", "1"),
    Option("new_tokens", "tokens to generate", whole, unit="tokens", default="32"),
    Option("cache", "dynamic or static", word, unit="name", default="dynamic"),
    Option("fold", "trace few layers and repeat their events"),
)
OUT = (
    Option(
        "against",
        "analytic, or a memory snapshot, profiler trace, Nsight export or XLA report to compare with",
        word,
        unit="file",
    ),
    Option("save", "write the recording", word, unit="file"),
    Option("snapshot", "write a memory snapshot that PyTorch's viewer opens", word, unit="file"),
    Option("plot", "write the timeline as SVG", word, unit="file"),
)
OPTIONS = (*HOW, *MODEL, *OUT)

PYTHON = ".py"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "target",
        metavar="TARGET",
        help="FILE.py:callable, a model as `tonnage train` takes it, a recording that --save wrote, or E5",
    )
    add_named_values(parser)
    parser.add_argument("--revision", metavar="REV", help="branch, tag or commit on the Hub (default: main)")
    parser.add_argument("--offline", action="store_true", default=None, help="never ask the network")
    add(parser, HOW, "the run")
    add(parser, MODEL, "a model's config")
    add(parser, OUT, "beside the answer")
    group = parser.add_argument_group("output")
    group.add_argument("--json", action="store_true", help="print one JSON document")


def run(arguments: Given) -> int:
    from tonnage.estimate.step.communication import CONTEXT
    from tonnage.trace.allocator import parse_settings
    from tonnage.trace.answer import answer

    how, model_options, out = (values(arguments, table) for table in (HOW, MODEL, OUT))
    settings = parse_settings(how.get("allocator", ""))
    capacity, total = _capacity(how)
    recording, model, options = _recorded(arguments, how, model_options)
    outside = how.get("outside", CONTEXT if "on" in how else 0)
    traced = answer(recording, settings, capacity=capacity, total=total, outside=outside)
    document = traced.document
    if "against" in out:
        document.against = _against(out["against"], traced, model, options)
    _write(out, traced, document.timeline)
    if arguments.json:
        from tonnage.cli.common.print import print_json

        print_json(document)
    else:
        from tonnage.cli.common.print import print_lines
        from tonnage.documents.document import builtins
        from tonnage.render.trace import trace_lines

        print_lines(trace_lines(builtins(document), traced.memory))
    return traced.status


def _capacity(how: dict[str, Any]) -> tuple[int | None, int | None]:
    if "on" in how:
        from tonnage.catalogue import accelerator

        if "capacity" in how:
            raise InvalidInput("--on gives the capacity: say one of --on and --capacity.")
        total = accelerator(how["on"]).memory.usable_bytes
        return total, total
    return how.get("capacity"), None


def _recorded(arguments: Given, how: dict[str, Any], model_options: dict[str, Any]) -> tuple[Any, Any, Any]:
    """The recording, and the model and options that it was made from, if it was."""
    target = arguments.target
    if target.lower() == "e5":
        _refuse({**model_options, **_recording_fixes(how, but="profile")}, arguments, "E5 is recorded")
        return _shipped(how), None, None
    if _is_recording(target):
        from tonnage.trace.recording import load

        _refuse({**model_options, **_recording_fixes(how)}, arguments, "a recording")
        return load(Path(target)), None, None
    profile = how.get("profile", "h100")
    front_end = _front_end(how)
    steps = how.get("steps", 2)
    _check_target(arguments)
    _need_torch()
    bar = Bar(steps * (2 * model_options.get("num_microbatches", 1) + 1))
    try:
        return _traced(arguments, model_options, profile, front_end, steps, bar)
    finally:
        bar.over()


def _traced(
    arguments: Given, model_options: dict[str, Any], profile: str, front_end: Any, steps: int, bar: Bar
) -> tuple[Any, Any, Any]:
    target = arguments.target
    if ".py:" in target:
        from tonnage.trace.record.user import record_file

        _refuse(model_options, None, "a program in a file sets it itself: pass it on with --argument NAME=VALUE. It")
        return record_file(target, front_end, profile, steps, named_values(arguments.argument), bar), None, None
    if arguments.argument:
        raise InvalidInput("--argument is of a program FILE.py:callable; a model has options of its own.")
    from tonnage.models import read
    from tonnage.trace.profiles import profile as profile_of
    from tonnage.trace.request import TraceOptions, checked

    model = read(target, revision=arguments.revision, offline=arguments.offline)
    options = checked(model, TraceOptions(**model_options, steps=steps))
    from tonnage.trace.record.model import record_model

    return record_model(model, options, profile_of(profile), front_end, bar), model, options


def _check_target(arguments: Given) -> None:
    """Bad input is said before what is not installed: a program whose file is missing, a model that nobody has."""
    target = arguments.target
    file, is_program, name = target.partition(".py:")
    path = Path(file + PYTHON if is_program else target)
    if is_program or path.suffix == PYTHON:
        if not is_file(path):
            raise InvalidInput("{path}: no such Python file.", path=path)
        if not name:
            raise InvalidInput("{path} must be followed by the callable: FILE.py:callable.", path=shown(str(path)))
        return
    from tonnage.models import read

    read(target, revision=arguments.revision, offline=arguments.offline)


def _is_recording(target: str) -> bool:
    """Whether it is a file that --save wrote."""
    from tonnage.trace.events import SCHEMA
    from tonnage.user_files import open_regular, read_part

    try:
        with open_regular(Path(target)) as file:
            return SCHEMA.encode() in read_part(file, Path(target), 0, 200)
    except InvalidInput:
        return False


def _recording_fixes(how: dict[str, Any], but: str = "") -> dict[str, Any]:
    """What was said of how a program is recorded, which a recording has decided."""
    return {name: how[name] for name in ("profile", "front_end", "steps") if name in how and name != but}


def _refuse(options: dict[str, Any], arguments: Given | None, what: str) -> None:
    """Options that would change nothing are an error."""
    names = [*options, *(["argument"] if arguments is not None and arguments.argument else [])]
    if names:
        raise InvalidInput("--{names}: {what} does not take it.", names=names[0].replace("_", "-"), what=what)


def _front_end(how: dict[str, Any]) -> Any:
    chosen = how.get("front_end")
    if chosen not in (None, "meta", "cuda"):
        from tonnage.kernel.registry import unknown

        raise unknown("front end", chosen, ("meta", "cuda"))
    return chosen


def _shipped(how: dict[str, Any]) -> Any:
    """Rule E5's program, recorded under the profiles that ship."""
    from tonnage.trace.e5 import VARIANTS, recorded
    from tonnage.trace.profiles import profile

    name = profile(how.get("profile", "torch-1.13-a100")).name
    for variant in VARIANTS:
        if variant.profile == name and not variant.arguments:
            return recorded(variant)
    listed = ", ".join(dict.fromkeys(variant.profile for variant in VARIANTS))
    raise MissingDatum(
        f"E5 ships recorded under {listed}. Under {name} it is recorded from "
        "tonnage/trace/programs/linear_relu.py:program."
    )


def _need_torch() -> None:
    try:
        import torch  # noqa: F401
    except ImportError:
        raise MissingDatum(
            "tracing a program or a model needs PyTorch: pip install 'tonnage[trace]'. Recordings and E5 need none."
        ) from None


def _against(what: str, traced: Any, model: Any, options: Any) -> dict[str, Any]:
    if what != "analytic":
        from tonnage.trace.beside import compare_with_real
        from tonnage.trace.foreign import read as read_foreign

        return compare_with_real(traced.recording, traced.replayed, read_foreign(Path(what))).to_dict()
    if model is None or options is None:
        raise InvalidInput("--against analytic: a program or a recording has no analytic estimate; a model has.")
    from tonnage.trace.against import analytic_phases, compare

    return compare(traced, analytic_phases(model, options)).to_dict()


def _write(out: dict[str, Any], traced: Any, timeline: dict[str, Any]) -> None:
    try:
        if "save" in out:
            traced.recording.save(Path(out["save"]))
        if "snapshot" in out:
            from tonnage.trace.foreign.write import write_snapshot
            from tonnage.trace.replay import replay

            events = traced.recording.events
            write_snapshot(replay(events, traced.settings, record=True), events, Path(out["snapshot"]))
        if "plot" in out:
            from tonnage.render.timeline import timeline_svg

            marks = [{"name": mark.name, "position": mark.position} for mark in traced.recording.events.marks]
            svg = timeline_svg(traced.recording.program, timeline, marks, traced.capacity_bytes)
            Path(out["plot"]).write_text(svg, encoding="utf-8")
    except OSError as error:
        where = error.filename or ", ".join(out[name] for name in ("save", "snapshot", "plot") if name in out)
        raise InvalidInput("{where}: cannot be written: {strerror}.", where=where, strerror=error.strerror) from None
