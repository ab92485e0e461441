"""What is known of one run: what its row says, what its source's recipes imply, and what nobody says."""

from collections.abc import Callable, Mapping
from typing import Any

from msgspec import Struct

from rows.source import Row
from rows.training.config import Config
from rows.training.reader import Options
from tonnage.kernel.errors import InvalidInput


class Run:
    """One row on its way to a question.

    `options`: by the names of TrainingOptions; `plan`: fields of TrainingPlan beyond them; `whence`: where inputs come
    from that the row does not say; `guesses`: of what nobody says; `notes`: what else was taken. `layers`,
    `parameters`: of the model; `name`: of it in plain letters. `memory`: bytes of an accelerator.
    """

    def __init__(self, row: Row, options: Options):
        self.row, self.config, self.options = row, Config(row.config), options
        self.plan: dict[str, Any] = {}
        self.notes: list[str] = []
        self.whence: dict[str, str] = {}
        self.guesses: dict[str, str] = {}
        self.layers, self.parameters, self.name = 0, 0, ""
        self.accelerator, self.gpus, self.memory = "", 0, 0

    def implied(self, name: str, value: Any, why: str) -> None:
        """The source's recipe or documentation says so."""
        self.options[name] = value
        self.imply(name, why)

    def imply(self, name: str, why: str) -> None:
        """Where an input comes from that the source's recipe or documentation says."""
        self.whence[name] = why

    def guessed(self, name: str, value: Any, why: str) -> None:
        """Nobody says so; only where the row says nothing."""
        if self.options.get(name) is None:
            self.options[name] = value
            self.guess(name, why)

    def guess(self, about: str, why: str) -> None:
        """Something that makes the row say less than it seems to: an input, or what else it is about."""
        self.guesses[about] = f"{self.guesses[about]}; {why}" if about in self.guesses else why

    @property
    def is_guessed(self) -> bool:
        return bool(self.guesses)

    def default(self, name: str, value: Any, why: str) -> None:
        """As `implied`, only where the row says nothing."""
        if self.options.get(name) is None:
            self.implied(name, value, why)

    def size(self, name: str) -> int:
        """A parallel size; 1 where nothing is said."""
        return int(self.options.get(f"{name}_size") or 1)

    @property
    def chunks(self) -> int:
        """Virtual stages of the whole pipeline."""
        return self.size("pipeline_parallel") * self.size("virtual_pipeline")

    @property
    def replicas(self) -> int:
        """Data-parallel ranks."""
        used = self.size("tensor_parallel") * self.size("pipeline_parallel") * self.size("context_parallel")
        return max(self.gpus // used, 1)


def _nothing(run: Run) -> None:
    return None


class Source(Struct, frozen=True, kw_only=True):
    """One publication. `pattern`: of the row's source. `rules`: what its recipes imply. `convention`: how it counts
    FLOP.

    `hparams`: what all of its models have and its rows do not say; `vocabulary`: likewise, with where that is from.
    `dimensions`: models that it names and does not describe. `accelerator`: that its rows do not say in full.
    """

    name: str
    pattern: str
    rules: Callable[[Run], None] = _nothing
    convention: str = ""
    hparams: Mapping[str, Any] = {}
    vocabulary: tuple[int, str] | None = None
    dimensions: Mapping[str, Mapping[str, Any]] = {}
    accelerator: str = ""
    runtime: str = ""


# GPT as Megatron's papers write it, for sources whose rows give sizes alone.
GPT: Mapping[str, Any] = {
    "mlp": "plain",
    "norm": "LayerNorm",
    "bias": True,
    "pos_emb": "learned",
    "tied_embeddings": True,
}


def even_chunks(run: Run) -> None:
    """An interleaved pipeline of Megatron whose layers do not divide: the first chunks have one more."""
    if run.chunks > run.layers:
        raise InvalidInput(
            f"a pipeline of {run.chunks:,} virtual stages has more of them than the model has layers, {run.layers}"
        )
    if run.size("virtual_pipeline") > 1 and run.layers % run.chunks:
        each, more = divmod(run.layers, run.chunks)
        lay_out(run, [each + (index < more) for index in range(run.chunks)])


def lay_out(run: Run, chunks: list[int]) -> None:
    """Megatron's --pipeline-model-parallel-layout of these layers of each chunk, prediction layers and loss with the
    last.
    """
    parts = ["t" * count for count in chunks]
    parts[-1] += "m" * (run.options.get("mtp_layers") or 0) + "L"
    run.options["pipeline_layout"] = "E" + "|".join(parts)
