"""Configs of every model_type with one field that cannot be, asked what people ask: an answer or a clear error,
never a crash of what computes.
"""

from collections.abc import Iterator, Mapping
from copy import deepcopy
from typing import Any

import pytest

from tonnage.catalogue import cluster, model_file, model_names
from tonnage.cli.models import describe
from tonnage.estimate.answer import answers
from tonnage.kernel.errors import InvalidInput, TonnageError
from tonnage.models.contents import Contents
from tonnage.models.reconcile import assemble

MACHINE = cluster("8xh100")
LLAMA = {
    "model_type": "llama",
    "architectures": ["LlamaForCausalLM"],
    "hidden_size": 4096,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "intermediate_size": 14336,
    "vocab_size": 128256,
}
ODD: tuple[Any, ...] = (
    3,
    "x",
    True,
    [1],
    1e308,
    {"a": 1},
    {"rope_type": "linear", "factor": 1e308, "partial_rotary_factor": "x"},
)
Path = tuple[str, ...]


def one_of_each() -> dict[str, dict[str, Any]]:
    """model_type -> the first config of it in the catalogue."""
    found: dict[str, dict[str, Any]] = {}
    for name in model_names():
        config = dict(model_file(name).config)
        found.setdefault(str(config.get("model_type") or config.get("architectures")), config)
    return found


CONFIGS = one_of_each()


def leaves(fields: Mapping[str, Any], path: Path = ()) -> Iterator[tuple[Path, Any]]:
    """Every field with its place."""
    for key, value in fields.items():
        yield (*path, key), value
        if isinstance(value, dict):
            yield from leaves(value, (*path, key))


# What holds an object in the config of any family.
OBJECTS = sorted(
    {path[-1] for config in CONFIGS.values() for path, value in leaves(config) if isinstance(value, dict)}
    | {"rope_scaling", "rope_parameters", "quantization", "compression_config"}
)


def changed(config: Mapping[str, Any], path: Path, value: Any) -> dict[str, Any]:
    """The config with another value there."""
    made = deepcopy(dict(config))
    inner = made
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    return made


def asked(config: Mapping[str, Any]) -> str:
    """Everything that may be asked of it; the error, "" where all is answered."""
    said = ""
    try:
        model = assemble(Contents(name="x", source="x", where="config.json", fields=dict(config)), {})
        describe(model)
    except TonnageError as error:
        return str(error)
    for question in (answers.train, answers.serve):
        try:
            question(model, MACHINE, advise=False)
        except TonnageError as error:
            said = said or str(error)
    return said


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
def test_a_size_of_zero_is_an_answer_or_a_clear_error(config):
    for path, value in leaves(config):
        if type(value) is int:
            assert len(asked(changed(config, path, 0))) < 2000


@pytest.mark.parametrize("config", CONFIGS.values(), ids=CONFIGS)
def test_what_is_no_object_where_one_belongs_is_an_answer_or_a_clear_error(config):
    sections: list[Path] = [
        (),
        *(path for path, value in leaves(config) if path[-1] == "text_config" and isinstance(value, dict)),
    ]
    for number, path in enumerate((*section, name) for section in sections for name in OBJECTS):
        assert len(asked(changed(config, path, ODD[(number + len(config)) % len(ODD)]))) < 2000


@pytest.mark.parametrize("name", ["rope_scaling", "rope_parameters", "quantization_config", "text_config"])
@pytest.mark.parametrize("value", [3, "x", True, [1]], ids=str)
def test_a_section_that_is_no_object_is_named_with_what_it_holds(name, value):
    with pytest.raises(InvalidInput, match=rf"config\.json: {name} must be an object\. Got "):
        assemble(Contents(name="x", source="x", where="config.json", fields={**LLAMA, name: value}), {})


@pytest.mark.parametrize("name", ["index_head_dim"])
@pytest.mark.parametrize("kind", ["deepseek_v32", "glm_moe_dsa"])
def test_an_indexer_without_width_is_refused_as_a_head_without_width_is(kind, name):
    assert (
        asked(changed(CONFIGS[kind], (name,), 0))
        == f"config.json: {name} must be a whole number from 1 to {2**34}. Got 0."
    )
    without = {key: value for key, value in CONFIGS[kind].items() if key != name}
    assert name in asked(without)
