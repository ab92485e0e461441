"""Configs, metadata and headers with something changed: an answer or a clear error, within bounded time and memory."""

import json
from collections.abc import Iterator, Mapping
from copy import deepcopy
from functools import cache
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from models.files import LLAMA, folder, framed, llama, safetensors, write_gguf
from tonnage.catalogue import cluster, model_file, model_names
from tonnage.documents.document import builtins
from tonnage.estimate.answer import answers
from tonnage.kernel.errors import TonnageError
from tonnage.models import read
from tonnage.models.contents import Contents
from tonnage.models.reconcile import assemble
from tonnage.verbs.models import describe

MACHINE = cluster("8xh100")
CONFIGS = [model_file(name).config for name in model_names()]
TINY = [
    json.loads(line) for line in (Path(__file__).parent / "gguf_tiny.jsonl").read_text(encoding="utf-8").splitlines()
]
SCALARS = st.sampled_from(
    [
        None,
        True,
        False,
        0,
        1,
        2,
        3,
        7,
        64,
        -1,
        -(2**40),
        2**34,
        2**34 - 1,
        10**30,
        10**400,
        20_000,
        0.5,
        -1.5,
        1e-300,
        1e308,
        float("nan"),
        float("inf"),
        "",
        "x",
        "full_attention",
        "M-*E",
        "F" * 5000,
        "9" * 5000,
    ]
)
ODD = st.one_of(
    SCALARS,
    st.lists(SCALARS, max_size=4),
    st.sampled_from(
        [
            {},
            {"a": 1},
            {"model_type": "llama"},
            {"hidden_size": 8},
            [{}],
            [[1, 2], 3],
            [1] * 20_001,
            [["global"], 12],
            ["x"] * 5000,
            list(range(20_000)),
        ]
    ),
)


@cache
def tiny_gguf(path: Path, number: int) -> bytes:
    """The file of one of the tiny models."""
    case = TINY[number]
    shapes = {name: ("F32", tuple(shape)) for name, shape in case["tensors"].items()}
    return write_gguf(path, case["metadata"], shapes, case["architecture"], file_type=0).read_bytes()


def paths(fields: Mapping[str, Any], path: tuple[str, ...] = ()) -> Iterator[tuple[str, ...]]:
    for key, value in fields.items():
        yield (*path, key)
        if isinstance(value, dict):
            yield from paths(value, (*path, key))


def mutated(draw: Any, fields: Mapping[str, Any], names: list[str]) -> dict[str, Any]:
    """The fields with one to three of them gone, moved, scaled or of another type, or new."""
    made: dict[str, Any] = deepcopy(dict(fields))
    for _ in range(draw(st.integers(1, 3))):
        known = list(paths(made))
        path = draw(st.sampled_from(known) | st.sampled_from(names).map(lambda name: (name,)))
        inner = made
        for key in path[:-1]:
            inner = inner[key]
        before = inner.get(path[-1])
        if isinstance(before, list) and before and draw(st.booleans()):
            inner[path[-1]] = [*before[:-1], draw(ODD)]
        elif isinstance(before, int) and draw(st.booleans()):
            inner[path[-1]] = before * draw(st.sampled_from([-1, 2, 3, 1000])) + draw(st.integers(-1, 1))
        elif draw(st.integers(0, 7)) == 0:
            inner.pop(path[-1], None)
        else:
            inner[path[-1]] = draw(ODD.map(deepcopy))
    return made


NAMES = sorted(
    {path[-1] for config in CONFIGS for path in paths(config)} - {"quantization_config"}
    | {"rope_scaling", "rope_parameters", "rotary_dim"}
)


@given(st.data())
def test_a_config_of_any_family_with_changed_fields_is_answered_or_a_clear_error(data: st.DataObject):
    fields = dict(data.draw(st.sampled_from(CONFIGS)))
    fields.pop("quantization_config", None)
    contents = Contents(name="x", source="x", where="config.json", fields=mutated(data.draw, fields, NAMES))
    try:
        model = assemble(contents, {})
        document, _ = describe(model)
    except TonnageError as error:
        assert 0 < len(str(error)) < 2000
    else:
        assert type(model.num_parameters()) is int and model.num_parameters() > 0
        assert 0 <= model.num_active_parameters() <= model.num_parameters()
        json.dumps(builtins(document), allow_nan=False)
        for question in (answers.train, answers.serve):  # what computes reads fields that no family does
            try:
                question(model, MACHINE, advise=False)
            except TonnageError as error:
                assert 0 < len(str(error)) < 2000


@given(st.data())
def test_overrides_of_any_kind_are_an_answer_or_a_clear_error(data: st.DataObject):
    name = data.draw(st.sampled_from(["gpt2", "llama-3.1-8b", "deepseek-v3", "qwen2.5-vl-7b-instruct", "jamba-v0.1"]))
    given_names = (
        st.sampled_from(NAMES)
        | st.sampled_from(["text_config.hidden_size", "vision_config.depth", "a.b.c", ".", "x.", "model_type"])
        | st.text(max_size=5)
    )
    overrides = data.draw(st.dictionaries(given_names, ODD, max_size=3))
    try:
        assert read(name, overrides=overrides).num_parameters() > 0
    except TonnageError as error:
        assert 0 < len(str(error)) < 2000


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data())
def test_a_gguf_file_of_any_architecture_with_changed_metadata_is_a_model_or_a_clear_error(
    tmp_path: Path, data: st.DataObject
):
    case = data.draw(st.sampled_from(TINY))
    metadata = dict(case["metadata"])
    for _ in range(data.draw(st.integers(1, 3))):
        key = data.draw(st.sampled_from(sorted(metadata)))
        metadata[key] = data.draw(
            st.sampled_from(
                [0, 1, 2, 3, 7, 2**31, 2**32 - 1, 0.5, "x", "", True, [1, 2], [0, 0, 0], [1.5], ["a"], [True]]
            )
        )
    shapes = {name: ("F32", tuple(shape)) for name, shape in case["tensors"].items()}
    for name in data.draw(st.lists(st.sampled_from(sorted(shapes)), max_size=2)):
        shapes[name] = ("F32", data.draw(st.sampled_from([(), (1,), (4,), (0, 3), (3, 5), (2, 2, 2)])))
    path = write_gguf(tmp_path / "x.gguf", metadata, shapes, case["architecture"], file_type=0)
    try:
        model = read(str(path))
        describe(model)
    except TonnageError as error:
        assert 0 < len(str(error)) < 2000
    else:
        assert model.num_parameters() > 0


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(st.data(), st.booleans())
def test_files_of_weights_with_some_bytes_changed_are_a_model_or_a_clear_error(
    tmp_path: Path, data: st.DataObject, gguf: bool
):
    if gguf:
        path, end = tmp_path / "x.gguf", 4000
        whole = bytearray(tiny_gguf(path, data.draw(st.integers(0, len(TINY) - 1))))
    else:
        path = folder(tmp_path / "m", data.draw(st.sampled_from([None, LLAMA]))) / "model.safetensors"
        whole = bytearray(safetensors(llama()))
        end = 8 + int.from_bytes(whole[:8], "little")
    for _ in range(data.draw(st.integers(1, 4))):
        whole[data.draw(st.integers(0, min(end, len(whole)) - 1))] = data.draw(st.integers(0, 255))
    path.write_bytes(bytes(whole[: data.draw(st.sampled_from([len(whole), len(whole), end, end // 2]))]))
    try:
        model = read(str(path))
        describe(model)
    except TonnageError as error:
        assert 0 < len(str(error)) < 2000
    else:
        assert model.num_parameters() > 0
    finally:
        (path.parent / "config.json").unlink(missing_ok=True)


TENSORS = st.dictionaries(
    st.sampled_from(
        [
            "model.embed_tokens.weight",
            "model.norm.weight",
            "lm_head.weight",
            "model.layers.0.self_attn.q_proj.weight",
            "model.layers.99999999.mlp.up_proj.weight",
            "model.layers.1.mlp.experts.3.up_proj.weight",
            "model.layers.1.mlp.experts.up_proj_blocks",
            "model.layers.2.eh_proj.weight",
            "mtp.x.weight",
            "vision_tower.x.weight",
            "model.layers.0.q.qweight",
            "model.layers.0.q.scales",
            "model.layers.0.q.lora_A.weight",
            "x",
            "",
            "layers..weight",
        ]
    ),
    st.tuples(
        st.sampled_from(["F32", "BF16", "U8", "I32", "F8_E4M3", "F4"]),
        st.lists(st.sampled_from([0, 1, 2, 8, 32, 2**20, 2**31]), max_size=4),
    ),
    max_size=8,
)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(TENSORS, st.sampled_from([None, LLAMA, {"architectures": ["NobodyKnows"]}]))
def test_any_tensors_beside_any_config_are_a_model_or_a_clear_error(tmp_path: Path, shapes: dict, config: dict | None):
    header, at = {}, 0
    for name, (dtype, shape) in shapes.items():
        size = 1
        for each in shape:
            size *= each
        taken = size * {"F32": 4, "BF16": 2, "I32": 4}.get(dtype, 1) // (2 if dtype == "F4" else 1)
        header[name] = {"dtype": dtype, "shape": shape, "data_offsets": [at, at + taken]}
        at += taken
    path = folder(tmp_path / "m", config) / "model.safetensors"
    with path.open("wb") as file:
        file.write(framed(header))
        if at < 2**40:
            file.truncate(file.tell() + at)  # holes
    try:
        model = read(str(path.parent))
        describe(model)
    except TonnageError as error:
        assert 0 < len(str(error)) < 2000
    else:
        assert model.num_parameters(True) > 0
    finally:
        (path.parent / "config.json").unlink(missing_ok=True)
