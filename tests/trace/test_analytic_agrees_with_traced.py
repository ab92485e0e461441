"""The analytic estimate of runtime transformers against the trace of the real model: every category, and the peak.

Real widths and few layers: what one layer more would add is added by both in the same way. The fast tier runs a dozen
of the grid, `make soak` all of it.
"""

import os
from itertools import product

import pytest

from tonnage.models import read
from tonnage.trace.against import analytic_phases, compare
from tonnage.trace.answer import answer
from tonnage.trace.profiles import profile
from tonnage.trace.record.model import record_model
from tonnage.trace.request import TraceOptions, checked

FAMILIES = {
    "llama-3.2-1b": 4,
    "qwen3-0.6b": 4,
    "mistral-7b-v0.1": 2,
    "gemma-3-1b-pt": 7,
    "gpt2": 4,
    "olmo-2-0425-1b": 3,
    "phi-3-mini-4k-instruct": 3,
    "qwen3-30b-a3b": 2,
    "deepseek-v2-lite": 3,
    "qwen2.5-1.5b": 3,
}
H100, A100 = ("torch-2.13-h100", "H100-SXM-80GB"), ("torch-2.13-a100", "A100-SXM-80GB")  # cuDNN's attention, and flash
WAYS = [
    (H100, {"sequence_length": 1024}),
    (H100, {"sequence_length": 512, "attention": "eager"}),
    (A100, {"sequence_length": 2048}),
    (H100, {"sequence_length": 2048, "recompute": "full"}),
    (H100, {"sequence_length": 1024, "recompute": "full", "attention": "eager"}),
    (A100, {"sequence_length": 512, "recompute": "full", "micro_batch_size": 2}),
    (H100, {"sequence_length": 1024, "lora_rank": 16}),
    (A100, {"sequence_length": 2048, "lora_rank": 16, "recompute": "full"}),
    (A100, {"sequence_length": 1024, "lora_rank": 16, "base": "nf4", "precision": "fp16", "recompute": "full"}),
    (A100, {"sequence_length": 512, "lora_rank": 16, "base": "nf4-double", "attention": "eager"}),
    (A100, {"sequence_length": 512, "lora_rank": 16, "precision": "fp16", "recompute": "full", "attention": "eager"}),
    (A100, {"sequence_length": 512, "lora_rank": 16, "base": "nf4", "upcast_base": False}),
]
MIXTURES = ("qwen3-30b-a3b", "deepseek-v2-lite")  # peft cannot wrap their experts on tensors without data
GRID = [
    (name, way)
    for name, way in product(FAMILIES, range(len(WAYS)))
    if name not in MIXTURES or "lora_rank" not in WAYS[way][1]
]
FAST = [(name, (3 * number) % 8) for number, name in enumerate(FAMILIES)] + [
    ("llama-3.2-1b", 6),
    ("gpt2", 0),
    *(("llama-3.2-1b", way) for way in range(8, len(WAYS))),
    ("qwen2.5-1.5b", 8),
]
# Without reentrance a layer is computed again when the first saved tensor is asked for; behind adapters two operations
# of its backward have
# run by then, and the estimate computes it again before them: 60 MB of 818 here, and another moment is taken for the
# peak.
KNOWN = {("mistral-7b-v0.1", 7)}
CASES = GRID if os.environ.get("HYPOTHESIS_PROFILE") == "soak" else FAST
TIE = 0.005
SMALL = 0.02  # of the peak: smaller categories are judged by what they are to the peak


def compared(name, way):
    (traced_on, accelerator), said = WAYS[way]
    model = read(name, offline=True, overrides={"num_hidden_layers": FAMILIES[name]})
    said = {**said, "sequence_length": min(said["sequence_length"], model.context)}
    options = checked(model, TraceOptions(optimizer_implementation="fused", **said))
    traced, phases = (
        answer(record_model(model, options, profile(traced_on))),
        analytic_phases(model, options, accelerator),
    )
    made = compare(traced, phases)
    # where two moments need nearly the same, which of them is the peak is chance: any of them may be meant
    *others, step = phases
    largest = max(phase.value for phase in others)
    tied = [compare(traced, (phase, step)) for phase in others if phase.value > (1 - TIE) * largest]
    return made, [made, *tied]


def wrong(made):
    """The categories that differ by more than one percent."""
    least = SMALL * made.traced_bytes
    return [row for row in made.rows if abs(row.difference) > 0.01 * max(row.traced_bytes, least)]


@pytest.mark.parametrize(("name", "way"), CASES)
def test_every_category_agrees_within_one_percent_and_the_peak_within_two(name, way):
    made, alternatives = compared(name, way)
    assert abs(made.relative_error) <= 0.02
    assert any(not wrong(each) for each in alternatives) or (name, way) in KNOWN, wrong(made)
