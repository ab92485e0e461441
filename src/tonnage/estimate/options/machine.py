"""What the user should know about a machine beside its memory. Training and serving ask the same questions."""

import re
from typing import Any

from tonnage.architectures import Model
from tonnage.estimate.inputs import Question
from tonnage.estimate.step.communication import MEASURED_VENDORS
from tonnage.kernel.errors import InvalidInput
from tonnage.kernel.message import Message, listed
from tonnage.question.amounts import link_rate
from tonnage.spec import Accelerator, Cluster

_MIG = re.compile(r":\d+g\.\d+gb", re.IGNORECASE)  # the variant of a slice: H100-SXM-80GB:1g.10gb


def stated_links(
    inter_node: float | str | None, intra_node: float | str | None, question: Question
) -> dict[str, float | None]:
    """The fields of a plan that state links in place of the catalogue's."""
    said = {"inter_node_bandwidth": inter_node, "intra_node_bandwidth": intra_node}
    read = {name: link_rate(name, value) for name, value in said.items()}
    for name, value in read.items():
        if value is not None:
            question.put(name, value, "given")
    return read


def site_of(calibrated: bool | None, question: Question) -> Any:
    """What the site's own runs correct, where that was asked for: the field `site` of a plan."""
    if not calibrated:
        return None
    from tonnage.estimate.site.stored import corrections  # a data base, which no other question opens

    return corrections(question)


def check_uncalibrated(calibrated: bool | None) -> None:
    """InvalidInput where own runs are to correct a search: its bounds are of estimates alone."""
    if calibrated:
        raise InvalidInput(Message("{@calibrated} is of train, serve and compare: a search compares estimates alone."))


def warn_of_machine(
    question: Question, cluster: Cluster, compute: str, tensor_parallel_size: int, *, fixed_counted: bool | None
) -> None:
    """Warn of arithmetic that the accelerator does not have, of fixed amounts of another vendor, of slices that cannot
    talk.

    `compute` names the peak that matrix products need. `fixed_counted`: amounts measured on NVIDIA are in the figure
    whatever the vendor; else they are left out; None: there are none.
    """
    accelerator = cluster.accelerator
    if accelerator.dense_flops and compute not in accelerator.dense_flops:
        known = listed(accelerator.dense_flops)
        wide = compute in ("bf16", "fp16") and not {"bf16", "fp16"} & set(accelerator.dense_flops)
        what = (
            "which says nothing of whether it runs"
            if wide
            else Message("{compute} may be slow on it, or not run", compute=compute)
        )
        question.warn(
            Message(
                "no source gives a {compute} peak of {accelerator}: {what}. Peaks are known of {known}.",
                compute=compute,
                accelerator=accelerator.name,
                what=what,
                known=known,
            )
        )
    if fixed_counted is not None and accelerator.vendor not in MEASURED_VENDORS:
        what = (
            "what the engine holds beside its tensors was measured on NVIDIA, and is taken over"
            if fixed_counted
            else "its context and collective buffers are not counted, and the allocator's reserve was measured on "
            "NVIDIA"
        )
        question.warn(
            Message(
                "{accelerator} is by {vendor}: {what}.",
                accelerator=accelerator.name,
                vendor=accelerator.vendor,
                what=what,
            )
        )
    if tensor_parallel_size > 1 and is_slice(accelerator):
        question.warn(
            Message(
                "{accelerator} is a MIG slice: slices have no peer-to-peer link, so "
                "{@tensor_parallel_size} {tensor_parallel_size} is slow at best, and NCCL does not join "
                "slices of one GPU.",
                accelerator=accelerator.name,
                tensor_parallel_size=tensor_parallel_size,
            )
        )


def is_slice(accelerator: Accelerator) -> bool:
    """Whether it is a MIG slice of a GPU."""
    return _MIG.search(accelerator.name) is not None


def arithmetic_of(model: Model) -> str:
    """The peak that a model in its own type needs."""
    return {"float32": "fp32", "float16": "fp16"}.get(model.dtype or "", "bf16")
