"""`tonnage measure`: one program on one device, as a row and as lines."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tonnage.documents.document import builtins
from tonnage.documents.trace import MeasureDocument
from tonnage.kernel.errors import InvalidInput
from tonnage.kernel.registry import unknown
from tonnage.measure import attention, programs
from tonnage.measure.device import Device, open_device
from tonnage.measure.environment import environment, key, slug
from tonnage.measure.rows import Row, training_row
from tonnage.measure.run import Measurement, Timing, measure

TOOL = "tonnage measure"
DEFAULT_SEQUENCE_LENGTH = 4096  # default tokens of a sequence, as in `tonnage train`
ATTENTION = ("sdpa", "eager", *attention.BACKENDS)


@dataclass(frozen=True, kw_only=True)
class Options:
    """Options of a measurement. Those of a model (sequence_length to clip_grad_norm) do not apply to a program in a
    file.
    """

    device: str = "cuda"
    steps: int = 2
    repeats: int = 5
    attention: str = "sdpa"
    snapshot: str | None = None
    model: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class Measured:
    measurement: Measurement
    row: Row
    on_gpu: bool

    @property
    def status(self) -> int:
        """3 where memory ran out, else 0."""
        return 0 if self.measurement.failure is None else 3

    @property
    def document(self) -> MeasureDocument:
        """The document for all faces; a row measured on the host is of kind `trial`."""
        return MeasureDocument(row=self.row)

    def to_dict(self) -> dict[str, Any]:
        """The document as dictionaries and lists."""
        return builtins(self.document)


def measure_file(
    text: str, arguments: Mapping[str, Any], options: Options, progress: Callable[[str], None] = lambda stage: None
) -> Measured:
    """Measure FILE.py:callable. Raises MissingDatum without a GPU, InvalidInput for a program that cannot run."""
    device = _opened(options)
    run, digest = programs.of_file(text, arguments, options.steps, device.kind)
    path, _, name = text.rpartition(":")
    arguments_text = "".join(f"-{key}-{value}" for key, value in arguments.items())
    config = {
        "program": f"{Path(path).name}:{name}",
        "arguments": dict(arguments),
        "file_sha256": digest,
        "attention": options.attention,
    }
    kernel = f"-{options.attention}" if options.attention != "sdpa" else ""
    identity = slug(f"{Path(path).stem}-{name}{arguments_text}{kernel}-{digest}")
    return _measured(device, run, options, identity, {"name": f"{Path(path).name}:{name}"}, config, progress)


def measure_model(
    model: Any, overrides: Mapping[str, Any], options: Options, progress: Callable[[str], None] = lambda stage: None
) -> Measured:
    """Measure a model of the catalogue, a hub or a file (tonnage.models.read), trained through transformers."""
    device = _opened(options)
    context = int(model.config.get("max_position_embeddings") or DEFAULT_SEQUENCE_LENGTH)
    training = programs.Training(
        **{"sequence_length": min(context, DEFAULT_SEQUENCE_LENGTH), **options.model, "attention": options.attention}
    )
    run = programs.of_model(model.config, training, options.steps, device.kind)
    changed = "".join(f"-{name}-{value}" for name, value in overrides.items())
    named = {"name": model.name} | ({"overrides": dict(overrides)} if overrides else {})
    identity = slug(f"{model.name}{changed}-{training.words}")
    return _measured(device, run, options, identity, named, training.config(), progress)


def _opened(options: Options) -> Device:
    if options.attention not in ATTENTION:
        raise unknown("attention", options.attention, ATTENTION)
    for name, least in (("steps", 1), ("repeats", 0)):
        if getattr(options, name) < least:
            raise InvalidInput(
                "{name} must be at least {least}. Got {value}.",
                name=name,
                least=least,
                value=getattr(options, name),
            )
    return open_device(options.device)


def _measured(
    device: Device,
    run: programs.Run,
    options: Options,
    identity: str,
    model: Mapping[str, Any],
    config: Mapping[str, Any],
    progress: Callable[[str], None],
) -> Measured:
    surroundings = environment(device)
    timing = Timing(repeats=options.repeats) if options.repeats else None
    snapshot = Path(options.snapshot) if options.snapshot else None
    with attention.only(options.attention):
        measurement = measure(device, run, timing, snapshot=snapshot, progress=progress)
    parts = [key(surroundings), identity]
    if options.steps != 2:
        parts.append(f"steps-{options.steps}")
    if isinstance(surroundings["allocator"], dict):
        parts += [slug(f"{name}-{value}") for name, value in surroundings["allocator"].items()]
    row = training_row("-".join(parts), model, {**config, "steps": options.steps}, surroundings, measurement, TOOL)
    return Measured(measurement=measurement, row=row, on_gpu=device.kind == "cuda")
