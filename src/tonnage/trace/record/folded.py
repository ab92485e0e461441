"""Records programs with many layers by tracing few and folding; in full where they do not fold."""

from collections.abc import Callable

from msgspec.structs import replace

from tonnage.kernel.message import Message
from tonnage.trace.fold import DoesNotFold, fold_recordings, short_layers
from tonnage.trace.profiles import Profile
from tonnage.trace.program import Program
from tonnage.trace.record.fake.environment import FrontEnd, recording
from tonnage.trace.record.layers import Kind, begins_with, kinds
from tonnage.trace.record.train import Progress, train
from tonnage.trace.recording import Recording

MakeProgram = Callable[[int], Program]


def record_folded(
    make_program: MakeProgram,
    num_layers: int,
    *,
    profile: Profile,
    front_end: FrontEnd = "meta",
    steps: int = 2,
    name: str = "",
    progress: Progress = lambda stage: None,
) -> Recording:
    """The recording of `make_program(num_layers)`, which is called inside the recording, also with fewer layers.

    Its events equal those of the full trace. It traces in full, and says so in `notes`, where layers do not repeat or
    there are too few of them to gain anything.
    """
    folding = _Folding(make_program, num_layers, profile, front_end, steps, name, progress)
    try:
        return folding.fold()
    except _NotFolded as reason:
        return _noted(
            folding.trace(num_layers),
            Message("Traced with all {num_layers} layers: {reason}", num_layers=num_layers, reason=reason),
        )


class _NotFolded(Exception):
    """The reason why a program is not folded."""


class _Folding:
    """The traces of one program with several numbers of layers."""

    def __init__(
        self,
        make_program: MakeProgram,
        num_layers: int,
        profile: Profile,
        front_end: FrontEnd,
        steps: int,
        name: str,
        progress: Progress,
    ):
        self.make_program, self.num_layers, self.profile = make_program, num_layers, profile
        self.front_end, self.steps, self.name, self.progress = front_end, steps, name, progress
        self.kinds: list[Kind] | None = None

    def fold(self) -> Recording:
        """Fold three short traces; if they do not fold, replace the shortest by a longer one, and retry."""
        self.kinds = self._kinds()
        layers = None if self.kinds is None else short_layers(self.kinds)
        if layers is None:
            raise _NotFolded("they do not repeat often enough to fold.")
        period = layers[1] - layers[0]
        traces = [self._short(count) for count in layers]
        spent = sum(layers)
        while True:
            try:
                folded = fold_recordings(traces, layers, self.num_layers)
            except DoesNotFold as error:
                longer = layers[2] + period
                spent += longer
                if spent >= self.num_layers:
                    raise _NotFolded(f"{error}") from None
                layers = (layers[1], layers[2], longer)
                traces = [*traces[1:], self._short(longer)]
            else:
                return _noted(
                    folded,
                    Message(
                        "Folded from traces with {layers}, {layers2} and {layers3} layers.",
                        layers=layers[0],
                        layers2=layers[1],
                        layers3=layers[2],
                    ),
                )

    def trace(self, num_layers: int) -> Recording:
        """The full trace with so many layers. Raises _NotFolded if the layers are not of the expected kinds."""
        with recording(self.front_end, self.profile) as recorder:
            program = self.make_program(num_layers)
            if (
                num_layers < self.num_layers
                and self.kinds is not None
                and not begins_with(self.kinds, kinds(program.model, num_layers))
            ):
                raise _NotFolded(
                    Message("with {num_layers} of them the program has other kinds of layers.", num_layers=num_layers)
                )
            train(
                recorder,
                program,
                self.steps,
                lambda stage: self.progress(
                    Message("{num_layers} layers, {stage}", num_layers=num_layers, stage=stage)
                ),
            )
        return recorder.recording(self.name)

    def _short(self, num_layers: int) -> Recording:
        """The trace with fewer layers, of a program that may support only its own number."""
        try:
            return self.trace(num_layers)
        except _NotFolded:
            raise
        except Exception as error:
            raise _NotFolded(
                Message(
                    "with {num_layers} of them the program fails: {type}: {error}",
                    num_layers=num_layers,
                    type=type(error).__name__,
                    error=error,
                )
            ) from error

    def _kinds(self) -> list[Kind] | None:
        with recording(self.front_end, self.profile) as recorder, recorder.pause():
            return kinds(self.make_program(self.num_layers).model, self.num_layers)


def _noted(recording: Recording, note: str) -> Recording:
    return replace(recording, notes=(*recording.notes, note))
