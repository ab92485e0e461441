"""Rows of kind `train_memory`: a config as its source writes it -> a question of `tonnage train`, and what its figures
are.

A dialect is one small file with a READER. Nothing here is about a single row.
"""

from collections.abc import Mapping
from functools import cache
from importlib import import_module
from typing import Any

from rows.describe import machine, model
from rows.params import model_of
from rows.reading import Reading, unit_name
from rows.source import OUT_OF_MEMORY, Measured, Row
from rows.training.config import Config
from rows.training.figures import Figure, figure_of
from rows.training.machines import cluster_of, is_known
from rows.training.options import training_options
from rows.training.reader import Reader, common, parallel_sizes
from tonnage.estimate.options.plans import DEFAULT_SEQUENCE_LENGTH
from tonnage.kernel.errors import MissingDatum, shown

# Dialects in the order in which they are tried: what names another's words comes before it.
DIALECTS = (
    "korthikanti",
    "fitcheck",
    "torchtitan",
    "torchtune",
    "llama_factory",
    "nanotron",
    "litgpt",
    "galvatron",
    "llm_foundry",
    "maxtext",
    "peft",
    "qlora",
    "unsloth",
    "megatron",
    "deepspeed",
    "trainer",
    "plain",
)


@cache
def readers() -> tuple[Reader, ...]:
    """All dialects; their files are imported when the first row asks."""
    return tuple(import_module(f"{__name__}.{name}").READER for name in DIALECTS)


def reader_of(row: Row) -> Reader:
    """The dialect of a row: by its framework, else by its source; a harness drives a framework of others, and its
    source says so.
    """
    framework = Config(row.config).text("framework")
    source = row.source_name.lower()
    for reader in readers():
        if reader.matches(framework, source if reader.is_harness or not framework else ""):
            return reader
    raise MissingDatum(f"config.framework {shown(framework)} is a dialect that nothing reads")


def read(row: Row, references: Mapping[str, Row]) -> Reading:
    """What a row asks; a TonnageError that names the field where it cannot be read."""
    config = Config(row.config)
    reader = reader_of(row)
    found = reader.read(config)
    options, notes = training_options(found)
    layers = config.size("layers", "num_layers", "num_hidden_layers")
    unsaid = {"context": options.sequence_length or DEFAULT_SEQUENCE_LENGTH, **reader.hparams(config)}
    made = model_of(row, references, unsaid, layers)
    cluster, note = cluster_of(config, parallel_sizes(config))
    question = {
        "model": model(made),
        "on": machine(cluster, is_known(cluster.accelerator), any_node=True),
        **given(options),
    }
    return Reading(
        verb="train",
        question=question,
        implied=_implied(reader, config, question),
        guessed={"on": note} if note else {},
        remarks=tuple(notes),
        labels={},
        figure=lambda measured: _figure(measured, row, reader),
    )


def given(options: Any) -> dict[str, Any]:
    """The options that are set."""
    return {name: value for name in options.__struct_fields__ if (value := getattr(options, name)) is not None}


def _implied(reader: Reader, config: Config, question: Mapping[str, Any]) -> dict[str, str]:
    """What the dialect says beyond, or other than, the row's own words."""
    own, said = reader.options(config), common(config, reader.plain_16_bit)
    where = f"{reader.name}'s recipes and defaults, scripts/rows/training/{reader.file}.py"
    return {
        name: where
        for name, value in own.items()
        if value is not None and value != said.get(name) and name in question and name != "runtime"
    }


QUANTITIES = {
    "allocated": "allocated_memory",
    "reserved": "reserved_memory",
    "process": "process_memory",
    "activations": "activation_memory",
    "states": "state_memory",
    "beyond-states": "memory_beyond_states",
    "forward": "forward_memory",
    "ratio": "activation_share",
    "bound": "fits_in",
    "needs-more": "needs_more_than",
}


def _figure(measured: Measured, row: Row, reader: Reader) -> dict[str, Any]:
    found = figure_of(measured, reader.figure, reader.gigabyte, reader.activations)
    if found.kind == "needs-more" and measured is not row.measured and measured.value != OUT_OF_MEMORY:
        raise MissingDatum(f"{shown(measured.metric)} is about another run")
    return {"quantity": QUANTITIES[found.kind], **_whose(found), **_unit(measured, found, reader)}


def _whose(found: Figure) -> dict[str, Any]:
    return {name: value for name in ("rank", "stage") if (value := getattr(found, name)) is not None}


def _unit(measured: Measured, found: Figure, reader: Reader) -> dict[str, Any]:
    if found.kind != "ratio":
        return {"unit": unit_name(found.unit)}
    if not reader.baseline and measured.value != OUT_OF_MEMORY:
        raise MissingDatum(f"{shown(measured.metric)}: what it is relative to is not known for {reader.name}")
    return {"unit": "%", "relative_to": dict(reader.baseline)}
