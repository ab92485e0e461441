"""Every model of the catalogue builds, and counts what its publisher says."""

import importlib.util
import tomllib
from datetime import date
from decimal import ROUND_DOWN, ROUND_HALF_UP, Decimal
from functools import cache
from pathlib import Path

import msgspec
import pytest

from every_row import every_row
from tonnage.architectures import Model, build
from tonnage.catalogue import toml_files
from tonnage.catalogue.models import COUNTS, ModelFile, find, load, model_names
from tonnage.kernel.errors import InvalidInput
from tonnage.ops import Embedding

FOLDER = toml_files.HERE / "models"
NAMES = toml_files.names("models")
SCALES = {"K": 3, "M": 6, "B": 9, "T": 12}
TOWERS = ("vision", "audio", "draft")


@cache
def entry(name: str) -> ModelFile:
    return load(FOLDER / f"{name}.toml")


@cache
def built(name: str) -> Model:
    return build(entry(name).config, name)


def parameters(model: Model, active: bool = False) -> int:
    """Of the language model, without towers and draft layers."""
    weights = [pair for branch in model.branches if branch.kind not in TOWERS for pair in branch.weighted()]
    return sum((w.num_active_parameters if active else w.num_parameters) * count for w, count in weights)


def table(model: Model) -> int:
    return sum(op.num_embeddings * op.width for op in model.decoder.before if isinstance(op, Embedding))


def counted(model: Model, counts: str) -> int:
    """The count that `counts` of a Published names."""
    embedding = model.num_embedding_parameters()
    return {
        "all": lambda: model.num_parameters(drafts=True),
        "model": model.num_parameters,
        "text": lambda: parameters(model),
        "non-embedding": lambda: model.num_parameters() - embedding,
        "active": lambda: parameters(model, active=True),
        "active without table": lambda: parameters(model, active=True) - table(model),
        "active non-embedding": lambda: parameters(model, active=True) - embedding,
    }[counts]()


def agrees(published: int | str, count: int) -> bool:
    """Exactly for a number; for a text such as "8.03B" to its last digit, rounded half up or cut off.

    Zeros that end a whole number may only hold its place: "40B" is also 41.3 billion, rounded half up.
    """
    if isinstance(published, int):
        return published == count
    printed, exact = Decimal(published[:-1]), Decimal(count).scaleb(-SCALES[published[-1]])
    last, nonzero = printed.as_tuple().exponent, printed.normalize().as_tuple().exponent
    ways = ((last, ROUND_HALF_UP), (last, ROUND_DOWN), (nonzero, ROUND_HALF_UP))
    return any(exact.quantize(Decimal(1).scaleb(digit), how) == printed for digit, how in ways)


@pytest.mark.parametrize(
    ("text", "count", "right"),
    [
        ("8.03B", 8_030_261_248, True),
        ("8.02B", 8_030_261_248, False),
        ("6.7B", 6_738_415_616, True),
        ("6.8B", 6_738_415_616, False),
        ("65.2B", 65_285_660_672, True),
        ("180B", 178_557_088_768, True),
        ("170B", 178_557_088_768, False),
        ("40B", 41_303_293_952, True),
        ("42B", 41_303_293_952, False),
        ("190B", 178_557_088_768, False),
        ("1T", 1_026_408_232_448, True),
        ("355M", 355_359_744, True),
    ],
)
def test_a_rounded_count_agrees_to_its_last_digit(text, count, right):
    assert agrees(text, count) is right


def test_an_exact_count_agrees_only_with_itself():
    assert agrees(8_030_261_248, 8_030_261_248)
    assert not agrees(8_030_261_248, 8_030_261_249)


def test_there_are_at_least_140_models():
    assert len(NAMES) >= 140


@every_row("name", NAMES, at_least=380)
def test_a_model_counts_what_was_published(name):
    for published in entry(name).published:
        count = counted(built(name), published.counts)
        assert agrees(published.parameters, count), (published.parameters, published.counts, count, published.source)


@every_row("name", NAMES, at_least=380)
def test_a_model_has_a_published_count_a_source_and_dates(name):
    form = entry(name)
    assert form.published
    assert "config" in form.sources
    for fact in (*form.sources.values(), *form.published):
        assert len(fact.source) > 10
        assert date(2017, 6, 1) <= date.fromisoformat(fact.as_of)
    assert not form.released or date.fromisoformat(form.released)


@every_row("name", NAMES, at_least=380)
def test_a_file_is_named_after_its_model(name):
    form = entry(name)
    assert form.name == name == toml_files.key(name)
    assert not form.hub or name == toml_files.key(form.hub.rsplit("/", 1)[-1])


@every_row("name", NAMES, at_least=380)
def test_every_name_of_a_model_finds_it(name):
    path = FOLDER / f"{name}.toml"
    assert find(name) == path
    for alias in (*entry(name).aliases, entry(name).hub):
        assert not alias or find(alias) == path, alias


def test_no_alias_is_given_twice_or_hides_a_file():
    owners: dict[str, str] = {}
    for name in NAMES:
        for alias in entry(name).aliases:
            assert alias == toml_files.key(alias), (name, alias)
            assert alias not in NAMES, (name, alias)
            assert owners.setdefault(alias, name) == name, (name, owners[alias], alias)


def test_the_names_that_people_type_are_known():
    typed = {
        "llama3.1:8b": "llama-3.1-8b",
        "meta-llama/Meta-Llama-3.1-8B": "llama-3.1-8b",
        "Llama 3.1 8B": "llama-3.1-8b",
        "qwen2.5:72b": "qwen2.5-72b",
        "通义千问2.5-7b": "qwen2.5-7b",
        "LLM-Research/Meta-Llama-3-8B": "meta-llama-3-8b",
        "deepseek-r1:671b": "deepseek-r1",
        "deepseek-v3": "deepseek-v3",
        "gpt-oss:20b": "gpt-oss-20b",
        "mixtral": "mixtral-8x7b-v0.1",
        "ZhipuAI/chatglm3-6b": "chatglm3-6b",
        "llama-2-7b": "llama-2-7b-hf",
        "gpt-3": "gpt3-175b",
        "kimi-k2": "kimi-k2-instruct",
        "百川2-7b": "baichuan2-7b-base",
        "qwen3": "qwen3-8b",
    }
    for given, name in typed.items():
        assert find(given) == FOLDER / f"{name}.toml", given


@every_row("name", NAMES, at_least=380)
def test_a_config_names_its_class_and_the_model_its_context_or_none_at_all(name):
    model = built(name)
    assert model.architecture
    assert model.hidden_size > 0 and model.num_layers > 0 and model.vocab_size > 0
    assert model.context is None or model.context >= 448


def test_the_kinds_of_count_are_those_of_the_form():
    model = built("llama-3.1-8b")
    assert all(counted(model, kind) > 0 for kind in COUNTS)


def test_models_lists_every_file(tmp_path: Path, monkeypatch):
    monkeypatch.setenv("TONNAGE_CONFIG", str(tmp_path))
    assert model_names() == NAMES


def add_model():
    path = Path(__file__).parents[2] / "scripts/add_model.py"
    spec = importlib.util.spec_from_file_location("add_model", path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.mark.parametrize("name", ["llama-3.1-8b", "kimi-k3", "llama-3-3-nemotron-super-49b-v1", "gpt-neo-125m"])
def test_an_entry_that_add_model_writes_reads_back_as_it_was(name):
    fields = msgspec.to_builtins(entry(name))
    assert tomllib.loads(add_model().text(fields)) == {key: value for key, value in fields.items() if value != {}}


def test_add_model_keeps_sizes_dropout_and_unknown_keys_and_drops_noise_and_nulls():
    given = {
        "hidden_size": 8,
        "eos_token_id": 2,
        "head_dim": None,
        "attention_dropout": 0.1,
        "new_kind_of_width": 3,
        "hidden_dropout": 0.0,
        "classifier_dropout": 0.1,
        "output_proj_dims": 4,
        "output_attentions": False,
        "vision_config": {"depth": 2, "initializer_range": 0.02},
    }
    kept = {
        "hidden_size": 8,
        "attention_dropout": 0.1,
        "new_kind_of_width": 3,
        "output_proj_dims": 4,
        "vision_config": {"depth": 2},
    }
    assert add_model().kept(given) == kept


def test_add_model_names_the_nulls_that_decide_something_those_of_sections_too():
    given = {
        "q_lora_rank": None,
        "eos_token_id": None,
        "text_config": {"sliding_window": None, "hidden_size": 8},
        "head_dim": 4,
    }
    assert list(add_model().nulls(given)) == ["q_lora_rank", "text_config.sliding_window"]


def test_a_null_of_a_config_json_is_a_none_of_the_entrys_config():
    assert load(FOLDER / "deepseek-v2-lite.toml").config["q_lora_rank"] is None
    assert load(FOLDER / "pixtral-12b.toml").config["text_config"]["sliding_window"] is None


@pytest.mark.parametrize(
    ("null", "why"),
    [("hidden_size", "has 'hidden_size' already"), ("text_config.sliding_window", "has no section 'text_config'")],
)
def test_a_null_that_is_no_gap_of_the_config_is_refused(null, why, tmp_path: Path):
    path = tmp_path / "mine.toml"
    path.write_text(f'name = "mine"\nnulls = ["{null}"]\n[config]\nhidden_size = 8\n', encoding="utf-8")
    with pytest.raises(InvalidInput, match=why):
        load(path)


def test_add_model_names_a_file_as_the_catalogue_looks_for_it():
    assert add_model().stem("Qwen/Qwen-1_8B") == "qwen-1-8b" == toml_files.key("Qwen-1_8B")


def test_add_model_takes_digits_as_an_exact_count_and_anything_else_as_printed():
    read = add_model().published
    assert read("8030261248;card;all", "2026-11-21")["parameters"] == 8_030_261_248
    assert read("8.03B;card", "2026-11-21") == {
        "parameters": "8.03B",
        "source": "card",
        "as_of": "2026-11-21",
        "counts": "model",
    }


def test_add_model_writes_an_entry_that_the_catalogue_reads(tmp_path: Path, monkeypatch, capsys):
    config = tmp_path / "config.json"
    config.write_bytes(msgspec.json.encode(entry("llama-3.1-8b").config))
    given = ["add_model.py", str(config), "--hub", "me/My_Llama", "--source", "my disk", "--out", str(tmp_path)]
    monkeypatch.setattr("sys.argv", [*given, "--published", "8.03B;my disk"])
    assert add_model().main() == 0
    assert "8,030,261,248" in capsys.readouterr().out
    assert load(tmp_path / "my-llama.toml").published[0].parameters == "8.03B"
