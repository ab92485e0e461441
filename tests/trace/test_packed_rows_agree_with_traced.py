"""Packed rows in the estimate against the trace of the same program: a mask of the rows joined, kept by every layer
in numbers.
"""

from dataclasses import replace

import pytest
import torch

from tonnage.catalogue import cluster
from tonnage.estimate.answer.answers import train
from tonnage.estimate.plan.training_options import TrainingOptions
from tonnage.models import read
from tonnage.trace.against import compare
from tonnage.trace.answer import answer
from tonnage.trace.profiles import profile
from tonnage.trace.record import huggingface
from tonnage.trace.record.model import record_model
from tonnage.trace.request import TraceOptions, checked

LENGTH = 512


@pytest.fixture
def packed(monkeypatch):
    """Every traced program is given the rows of its micro-batch as one, with positions that begin again, as
    collators of packed texts do.
    """
    plain = huggingface.training_program

    def program(model, **said):
        made = plain(model, **said)
        tokens = made.inputs["input_ids"].reshape(1, -1)
        positions = torch.arange(tokens.shape[1], device=tokens.device).reshape(1, -1)
        return replace(made, inputs={"input_ids": tokens, "labels": tokens, "position_ids": positions})

    monkeypatch.setattr(huggingface, "training_program", program)
    # the recording has no values to look for starts of sequences in
    monkeypatch.setattr(
        "transformers.masking_utils.find_packed_sequence_indices", lambda positions: positions.cumsum(-1)
    )


def both(name, layers, **said):
    model = read(name, offline=True, overrides={"num_hidden_layers": layers})
    options = checked(model, TraceOptions(sequence_length=LENGTH, optimizer_implementation="fused", **said))
    traced = answer(record_model(model, options, profile("torch-2.13-h100")))
    estimated = train(
        model,
        cluster("H100-SXM-80GB"),
        TrainingOptions(
            sequence_length=LENGTH,
            precision="bf16",
            runtime="transformers",
            model_code="transformers",
            packing=True,
            **said,
        ),
    )
    return compare(traced, estimated.phases)


@pytest.mark.parametrize(
    ("name", "layers", "said"),
    [
        ("llama-3.2-1b", 4, {"micro_batch_size": 4}),
        ("llama-3.2-1b", 4, {"micro_batch_size": 4, "recompute": "full"}),
        ("llama-3.2-1b", 4, {"micro_batch_size": 4, "attention": "eager"}),
        ("gemma-3-1b-pt", 7, {"micro_batch_size": 4}),
    ],
)
def test_packed_rows_take_what_the_trace_of_them_says(packed, name, layers, said):
    made = both(name, layers, **said)
    assert abs(made.relative_error) <= 0.001, made.rows
