"""A measurement of a few minutes: small models trained on the GPU of this machine, as rows of docs/rows.md."""

from collections.abc import Callable, Iterator
from importlib.util import find_spec
from time import monotonic
from typing import Any, NamedTuple

from tonnage.kernel.errors import InvalidInput, MissingDatum, TonnageError
from tonnage.kernel.message import Message
from tonnage.measure.answer import Options, measure_model
from tonnage.measure.device import open_device
from tonnage.measure.rows import in_own_form
from tonnage.models import read

MINUTES = 5.0


class Trial(NamedTuple):
    """A run that is measured: a model of the catalogue and the options of its training."""

    model: str
    options: dict[str, Any]

    @property
    def name(self) -> str:
        options = ", ".join(f"{name.replace('_', ' ')} {value}" for name, value in self.options.items())
        return Message("{model}: {options}", model=self.model, options=options)


# Sizes apart enough to tell products from launches, and short enough for a card of 16 GB; the most telling first.
TRIALS = (
    Trial("qwen3-0.6b", {"sequence_length": 2048, "micro_batch_size": 1}),
    Trial("llama-3.2-1b", {"sequence_length": 2048, "micro_batch_size": 2}),
    Trial("qwen3-0.6b", {"sequence_length": 4096, "micro_batch_size": 2, "recompute": "full"}),
    Trial("llama-3.2-1b", {"sequence_length": 4096, "micro_batch_size": 1, "recompute": "full"}),
    Trial("qwen3-0.6b", {"sequence_length": 1024, "micro_batch_size": 4, "precision": "bf16-mixed"}),
    Trial("llama-3.2-1b", {"sequence_length": 1024, "micro_batch_size": 4}),
    Trial("qwen3-0.6b", {"sequence_length": 2048, "micro_batch_size": 4, "recompute": "full"}),
    Trial("llama-3.2-1b", {"sequence_length": 512, "micro_batch_size": 1}),
    Trial("qwen3-1.7b", {"sequence_length": 2048, "micro_batch_size": 1, "recompute": "full"}),
    Trial("qwen3-1.7b", {"sequence_length": 1024, "micro_batch_size": 2}),
)


def measured(
    minutes: float = MINUTES, device: str = "cuda", progress: Callable[[str], None] = lambda stage: None
) -> Iterator[dict[str, Any]]:
    """Rows of the trials, one after the other; none is begun after so many minutes. MissingDatum without a GPU."""
    if not 0 < minutes <= 60:
        raise InvalidInput("--minutes must be more than 0 and at most 60. Got {minutes:g}.", minutes=minutes)
    _check_gpu(device)
    begun = monotonic()
    for trial in TRIALS:
        if monotonic() - begun > 60 * minutes:
            return
        progress(trial.name)
        answer = measure_model(read(trial.model, offline=True), {}, Options(device=device, model=trial.options))
        if answer.measurement.failure is None:
            yield in_own_form(answer.row)


def _check_gpu(device: str) -> None:
    try:
        open_device(device)
    except TonnageError as error:
        if find_spec("torch") is None:
            raise
        raise MissingDatum(
            Message(
                "calibrate measures on a GPU that PyTorch sees, and sees none here. Runs that were measured elsewhere "
                "are added with `tonnage calibrate add FILE`."
            )
        ) from error
