"""The list of cases: what is measured, in which order, and about how long it takes on an H100. No torch here."""

from dataclasses import dataclass, field, replace
from typing import Any

from gpu.rate_items import attention_items, copy_items, elementwise_items, kernel_items, matmul_items
from gpu.shapes import SHAPES, Shape
from tonnage.measure.programs import Training

START = 2.5  # seconds of a new process: CUDA's context, cuBLAS, the model
STEPS = 9  # two measured, two to warm up, five timed
RATES = {
    "bf16": 300e12,
    "bf16-mixed": 200e12,
    "fp16": 300e12,
    "fp32": 35e12,
}  # FLOP/s that estimates of time reckon with
EXPANDABLE = {"PYTORCH_CUDA_ALLOC_CONF": "expandable_segments:True"}


@dataclass(frozen=True, kw_only=True)
class TrainingRow:
    """`shape`: a name of shapes.SHAPES, or "linear-relu" for the program of rule E5; `library`: own or transformers."""

    shape: str
    training: Training
    experts: str = "loop"
    library: str = "own"
    snapshot: bool = False
    fits: bool = True  # into 80 GB; what does not is over in its first forward

    @property
    def name(self) -> str:
        if self.shape == "linear-relu":
            return "-".join(
                filter(
                    None, (self.shape, self.training.precision, self.training.optimizer, self.training.implementation)
                )
            )
        parts = [self.shape, "transformers" if self.library == "transformers" else "", self.training.words]
        return "-".join(part for part in (*parts, "grouped" if self.experts == "grouped" else "") if part)

    @property
    def seconds(self) -> float:
        if self.shape == "linear-relu":
            return START
        if not self.fits:
            return START + 3
        shape, plan = SHAPES[self.shape], self.training
        tokens = plan.sequence_length * plan.micro_batch_size * plan.num_microbatches
        flops = (
            6 * shape.active_parameters * tokens
            + 6 * shape.layers * plan.sequence_length * shape.heads * shape.width * tokens
        )
        busy = flops * (4 / 3 if plan.recompute == "full" else 1) / RATES[plan.precision]
        kernels = shape.layers * plan.num_microbatches * (60 + 30 * (shape.experts if self.experts == "loop" else 0))
        return START + (5 if self.library == "transformers" else 0) + STEPS * max(busy, kernels * 12e-6)


@dataclass(frozen=True, kw_only=True)
class Case:
    """One process. `items`: what its rows' ids end in; `work`: the function that does it; `priority`: lower comes
    first.
    """

    name: str
    work: str
    items: tuple[str, ...]
    seconds: float
    priority: int
    what: Any = None
    environment: dict[str, str] = field(default_factory=dict)

    @property
    def group(self) -> str:
        return self.work.partition(":")[0]


def cases(tiny: bool = False) -> list[Case]:
    """All cases, in order: the most telling and cheapest first. `tiny`: a few that a CPU does in seconds."""
    found = _tiny() if tiny else [*_constants(), *_training(), *_snapshots(), *_rates()]
    return sorted(found, key=lambda case: (case.priority, case.seconds))


def training_case(name: str) -> TrainingRow:
    """The training case of a name, of either list. Raises KeyError."""
    return {case.what.name: case.what for tiny in (False, True) for case in cases(tiny) if case.group == "training"}[
        name
    ]


def _case(what: TrainingRow, priority: int, environment: dict[str, str] | None = None) -> Case:
    suffix = "-expandable" if environment else ""
    prefix = "snapshot" if what.snapshot else "train"
    name = f"{prefix}-{what.name}{suffix}"
    seconds = what.seconds + (4 if environment else 0)  # its own interpreter
    return Case(
        name=name,
        work="training:run",
        items=(name,),
        seconds=seconds,
        priority=priority,
        what=what,
        environment=environment or {},
    )


def _plan(length: int, batch: int = 1, **changes: Any) -> Training:
    return Training(
        **{"sequence_length": length, "micro_batch_size": batch, "precision": "bf16", "attention": "flash", **changes}
    )


def _training() -> list[Case]:
    return [*_first(), *_second(), *_third()]


def _first() -> list[Case]:
    """The program of rule E5, and one model with one thing changed at a time."""
    made = [
        TrainingRow(shape="linear-relu", training=_plan(1, 32, optimizer="adam", attention="sdpa", **how))
        for how in (
            {"precision": "fp32"},
            {"precision": "fp32", "implementation": "loop"},
            {"precision": "fp32", "implementation": "fused"},
            {"precision": "fp16"},
            {"precision": "bf16"},
        )
    ]
    changes: list[dict[str, Any]] = [
        {},
        {"recompute": "full"},
        {"implementation": "fused"},
        {"implementation": "loop"},
        {"optimizer": "sgd"},
        {"optimizer": "sgd-momentum"},
        {"attention": "sdpa"},
        {"attention": "efficient"},
        {"attention": "cudnn"},
        {"attention": "math"},
        {"precision": "bf16-mixed"},
        {"precision": "fp32", "attention": "efficient"},
    ]
    base = SHAPES["llama-1b"]
    made += [TrainingRow(shape=base.name, training=_plan(2048, **change)) for change in changes]
    made += [
        TrainingRow(shape=base.name, training=plan)
        for plan in (
            _plan(2048, 4),
            _plan(8192),
            _plan(8192, recompute="full"),
            _plan(2048, 4, recompute="full", precision="bf16-mixed"),
        )
    ]
    made += [TrainingRow(shape="llama-160m", training=plan) for plan in (_plan(1024), _plan(1024, 8))]
    made += [TrainingRow(shape=shape, training=_plan(2048)) for shape in ("qwen2.5-0.5b", "qwen3-1.7b")]
    made += [
        TrainingRow(shape="mixtral-small", training=_plan(2048), experts=experts) for experts in ("loop", "grouped")
    ]
    return [_case(what, 1) for what in made]


def _second() -> list[Case]:
    """Lengths, batches, other models, what fills the card, what does not fit, transformers' own classes."""
    plans: dict[str, list[Training]] = {
        "llama-1b": [
            _plan(512),
            _plan(1024),
            _plan(4096),
            _plan(16384),
            _plan(32768, recompute="full"),
            _plan(2048, 2),
            _plan(2048, 8),
            _plan(2048, 16, recompute="full"),
            _plan(2048, num_microbatches=4),
            _plan(2048, clip_grad_norm=1.0),
            _plan(2048, precision="bf16-mixed", implementation="fused"),
            _plan(1000),
            _plan(2047, 3),
        ],
        "llama-160m": [_plan(4096, 4), _plan(2048, 16, precision="bf16-mixed"), _plan(512, 64, precision="bf16-mixed")],
        "llama-3b": [
            _plan(2048),
            _plan(4096, recompute="full", implementation="fused"),
            _plan(8192, 2, recompute="full", optimizer="sgd"),
        ],
        "llama-8b-4layers": [_plan(4096), _plan(4096, precision="bf16-mixed", recompute="full")],
        "llama-8b-8layers": [_plan(8192, 2, recompute="full")],
        "llama-8b": [
            _plan(4096, recompute="full", implementation="fused"),
            _plan(4096, recompute="full"),
            _plan(4096),
            _plan(4096, 2, optimizer="sgd"),
            _plan(2048, precision="fp32", attention="efficient", optimizer="sgd"),
        ],
        "qwen2.5-0.5b": [_plan(8192, 2, precision="bf16-mixed"), _plan(4096, 4, recompute="full")],
        "qwen2.5-7b-8layers": [_plan(4096), _plan(4096, 4, recompute="full", precision="bf16-mixed")],
        "qwen3-1.7b": [_plan(4096, 2, recompute="full", precision="bf16-mixed"), _plan(8192)],
        "mixtral-small": [_plan(2048, 4, precision="bf16-mixed")],
    }
    made = [TrainingRow(shape=shape, training=plan) for shape, listed in plans.items() for plan in listed]
    made += [
        TrainingRow(shape=shape, training=plan, experts=experts)
        for shape in ("mixtral-8x7b-2layers", "qwen3-30b-a3b-4layers")
        for experts in ("loop", "grouped")
        for plan in (_plan(4096), _plan(2048, 4, recompute="full"))
    ]
    made += [
        TrainingRow(shape=shape, training=replace(plan, attention="sdpa"), library="transformers")
        for shape, plan in (
            ("llama-160m", _plan(1024)),
            ("llama-1b", _plan(2048)),
            ("llama-1b", _plan(2048, 4, recompute="full", precision="bf16-mixed")),
            ("qwen2.5-0.5b", _plan(2048)),
            ("qwen3-1.7b", _plan(2048)),
            ("mixtral-small", _plan(2048)),
            ("qwen3-30b-a3b-4layers", _plan(2048)),
        )
    ]
    made.append(TrainingRow(shape="llama-8b", training=_plan(65536), fits=False))
    alone = [
        TrainingRow(shape="llama-1b", training=_plan(2048, 4)),
        TrainingRow(shape="mixtral-small", training=_plan(2048)),
        TrainingRow(shape="llama-8b", training=_plan(4096)),
    ]
    return [_case(what, 2) for what in made] + [_case(what, 2, EXPANDABLE) for what in alone]


def _third() -> list[Case]:
    """Crossings, for what time is left."""
    known = {case.name for case in (*_first(), *_second())}
    made = [
        TrainingRow(shape=shape, training=_plan(length, batch, recompute=recompute, precision=precision))
        for shape in ("llama-160m", "qwen2.5-0.5b", "qwen3-1.7b", "llama-3b", "llama-8b-4layers")
        for length in (1024, 4096, 16384)
        for batch in (1, 4)
        for recompute in ("none", "full")
        for precision in ("bf16", "bf16-mixed")
        if length * batch <= 16384
    ]
    return [case for case in (_case(what, 3) for what in made) if case.name not in known]


def _snapshots() -> list[Case]:
    made = [
        TrainingRow(
            shape="linear-relu",
            training=_plan(1, 32, precision="fp32", optimizer="adam", attention="sdpa"),
            snapshot=True,
        )
    ]
    made += [TrainingRow(shape=shape, training=_plan(1024), snapshot=True) for shape in ("llama-160m", "mixtral-small")]
    return [_case(what, 2) for what in made]


def _constants() -> list[Case]:
    groups = {
        "constants:context": ("context",),
        "constants:allocator": ("allocator",),
        "constants:nccl": ("nccl",),
        "constants:launch": ("launch",),
    }
    return [
        Case(name=name.partition(":")[2], work=name, items=items, seconds=4, priority=0)
        for name, items in groups.items()
    ]


def _rates(each: float = 0.25) -> list[Case]:
    made = []
    for work, priority, items in (
        ("kernels:run", 1, kernel_items()),
        ("rates:matmul", 1, matmul_items(first=True)),
        ("rates:matmul", 2, matmul_items(first=False)),
        ("rates:attention", 1, attention_items(first=True)),
        ("rates:attention", 2, attention_items(first=False)),
        ("rates:copy", 1, copy_items()),
        ("rates:elementwise", 1, elementwise_items()),
    ):
        name = work.partition(":")[2] if work.startswith("rates") else "kernels"
        rest = "-more" if priority == 2 else ""
        made.append(
            Case(
                name=f"{name}{rest}",
                work=work,
                items=tuple(item.name for item in items),
                seconds=START + each * len(items),
                priority=priority,
                what=tuple(items),
            )
        )
    return made


def _tiny() -> list[Case]:
    """One of each kind."""
    plan = {"sequence_length": 16, "precision": "fp32"}
    trained = [
        TrainingRow(shape="tiny", training=Training(**plan)),
        TrainingRow(shape="tiny-qwen", training=Training(**plan, recompute="full", optimizer="sgd", attention="math")),
        TrainingRow(shape="tiny-mixture", training=Training(**{**plan, "precision": "bf16"}), experts="grouped"),
        TrainingRow(shape="tiny-mixture", training=Training(**plan, num_microbatches=2, clip_grad_norm=1.0)),
    ]
    made = [_case(what, 1) for what in trained]
    groups = {
        "rates:matmul": matmul_items,
        "rates:attention": attention_items,
        "rates:copy": copy_items,
        "rates:elementwise": elementwise_items,
        "kernels:run": kernel_items,
    }
    for work, listed in groups.items():
        items = tuple(listed(tiny=True))
        name = work.partition(":")[2] if work.startswith("rates") else "kernels"
        made.append(
            Case(name=name, work=work, items=tuple(item.name for item in items), seconds=1, priority=1, what=items)
        )
    made += [case for case in _constants() if case.name != "nccl"]
    return [replace(case, seconds=1.0) for case in made]


def shape_of(case: TrainingRow) -> Shape | None:
    return SHAPES.get(case.shape)
