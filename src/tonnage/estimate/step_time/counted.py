"""FLOPs and MFU of a step as others count them, each under its name beside ours, with what it leaves out."""

from collections.abc import Mapping, Sequence
from typing import Any, overload

from tonnage.architectures import Model
from tonnage.documents.run import CountedDocument
from tonnage.estimate.step_time.conventions import CONVENTIONS, Convention, flops_per_token
from tonnage.formulas.flops import counted_flops
from tonnage.formulas.time import flops_utilization
from tonnage.kernel.formula import Number
from tonnage.kernel.message import Message, joined
from tonnage.kernel.term import Term
from tonnage.spec import TrainingPlan

CONVENTIONS.add(
    "kaplan recomputed",
    Convention(
        name="kaplan recomputed",
        text="8N with all parameters, nothing for attention: with full recomputation",
        of=lambda model, length: flops_per_token(model, length, "kaplan") * 8 / 6,
        recomputes=True,
        source="Kaplan2020, sec. 2.1; Narayanan2021, sec. 3.5: a second forward pass",
    ),
)

# What none of them counts: norms, activations, softmax, routing, the optimizer, scores that flash attention makes
# again.
LEAVES_OUT: Mapping[str, str] = {
    "kaplan": (
        "attention's scores and values; it counts the table, which is looked up, and experts that a token does not pass"
    ),
    "kaplan recomputed": (
        "attention's scores and values; it counts the table, unused experts, and a second forward pass whether "
        "it is run or not"
    ),
    "palm": (
        "nothing of attention: half of its scores are masked and counted all the same; it counts the table as if "
        "it were multiplied"
    ),
    "megatron": "the masked half of attention, and what is run again",
    "torchtitan": "the table, and what is run again; it counts scores that are masked",
    "mosaicml": "what is run again; it counts scores that are masked, and the table as if it were multiplied",
    "narayanan": "gates of feed-forward layers, grouped heads, experts: it is of GPT's layers, four times as wide "
    "inside; it counts scores that are masked",
    "narayanan hardware": "as narayanan; it counts a second forward pass whether it is run or not",
}
ADAPTERS = "it counts gradients of weights that do not train"


class Conventions(Sequence[CountedDocument[Term]]):
    """All of them for one step, counted when they are asked for. `seconds`: of the step; `peak`: FLOP/s of one
    accelerator.
    """

    def __init__(self, model: Model, plan: TrainingPlan, seconds: Number, peak: float):
        self.model, self.plan, self.seconds, self.peak = model, plan, seconds, peak

    def __len__(self) -> int:
        return len(CONVENTIONS)

    @overload
    def __getitem__(self, at: int) -> CountedDocument[Term]: ...
    @overload
    def __getitem__(self, at: slice) -> list[CountedDocument[Term]]: ...
    def __getitem__(self, at: Any) -> Any:
        names = list(CONVENTIONS)[at]
        return self._counted(names) if isinstance(names, str) else [self._counted(name) for name in names]

    def _counted(self, name: str) -> CountedDocument[Term]:
        """A step under one convention."""
        plan, convention = self.plan, CONVENTIONS[name]
        per_token = flops_per_token(self.model, plan.sequence_length, name)
        flops = Term.of(
            Message("FLOPs as {name} counts", name=name),
            counted_flops,
            source=convention.source,
            y=per_token,
            T=plan.tokens_per_step,
        )
        word = "HFU" if convention.recomputes else "MFU"
        share = Term.of(
            Message("{word} as {name} counts", word=word, name=name),
            flops_utilization,
            C=flops.value,
            tau=self.seconds,
            n=plan.world_size,
            P=self.peak,
        )
        return CountedDocument(
            name=convention.name,
            text=convention.text,
            leaves_out=LEAVES_OUT[name] if plan.tuning.method == "full" else joined("; ", (LEAVES_OUT[name], ADAPTERS)),
            recomputes=convention.recomputes,
            source=convention.source,
            flops=flops,
            utilization=share,
        )
