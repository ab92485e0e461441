"""docs/catalogue.md explains every key of the forms, and its examples load."""

import re
from pathlib import Path

import pytest

from tonnage.catalogue import accelerators, acceptance, api_prices, failures, grids, models, nodes, prices, skypilot
from tonnage.catalogue.accelerators import LinkForm
from tonnage.cli import main
from tonnage.kernel.errors import InvalidInput
from tonnage.models import read

GUIDE = Path(__file__).parents[2] / "docs" / "catalogue.md"
TEXT = GUIDE.read_text(encoding="utf-8")
EXAMPLES = re.findall(r"```toml\n(.*?)```", TEXT, re.DOTALL)
FORMS = [
    accelerators.AcceleratorFile,
    accelerators.MemoryForm,
    accelerators.VariantForm,
    LinkForm,
    nodes.NodeFile,
    prices.Price,
    prices.Purchase,
    api_prices.ApiPrice,
    acceptance.Method,
    acceptance.AcceptanceFact,
    failures.FailureRate,
    failures.Cause,
    skypilot.Name,
    grids.Grid,
    models.ModelFile,
    models.Published,
    models.Variant,
]


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.__name__)
def test_the_guide_explains_every_key(form):
    unexplained = [field for field in form.__struct_fields__ if f"`{field}`" not in TEXT]
    assert not unexplained


@pytest.mark.parametrize("precision", accelerators.PRECISIONS)
def test_the_guide_names_every_precision(precision):
    assert f"`{precision}`" in TEXT


@pytest.mark.parametrize("counts", models.COUNTS)
def test_the_guide_names_every_kind_of_count(counts):
    assert f"`{counts}`" in TEXT


PLACES = re.search(r"```\n(accelerators/.*?)```", TEXT, re.DOTALL)[1].split()
COMMANDS = [
    line.removeprefix("$ ")
    for block in re.findall(r"```console\n(.*?)```", TEXT, re.DOTALL)
    for line in block.splitlines()
]


@pytest.fixture
def directory(tmp_path, monkeypatch):
    """A configuration directory with the examples of the guide at the places that it names, and we are in it."""
    for place, example in zip(PLACES, EXAMPLES, strict=True):
        path = tmp_path / place
        path.parent.mkdir()
        path.write_text(example, encoding="utf-8")
    monkeypatch.setenv("TONNAGE_CONFIG", str(tmp_path))
    monkeypatch.chdir(tmp_path)
    prices.forget()
    api_prices.forget()
    grids.grids.cache_clear()
    acceptance.method.cache_clear()
    failures.failure_rate.cache_clear()
    failures.rate_of_generation.cache_clear()
    yield tmp_path
    prices.forget()
    api_prices.forget()
    grids.grids.cache_clear()
    acceptance.method.cache_clear()
    failures.failure_rate.cache_clear()
    failures.rate_of_generation.cache_clear()


def test_the_guide_has_an_example_for_every_kind_at_its_place():
    assert [place.partition("/")[0] for place in PLACES] == [
        "accelerators",
        "nodes",
        "models",
        "prices",
        "api_prices",
        "acceptance",
        "failures",
        "grids",
    ]


def test_the_examples_of_the_guide_load(directory):
    for place, load in zip(
        PLACES,
        (
            *(accelerators.load, nodes.load, models.load, prices.load, api_prices.load),
            *(acceptance.load, failures.load, grids.load),
        ),
        strict=True,
    ):
        assert load(directory / place)


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_of_the_guide_answers(directory, capsys, command):
    program, *arguments = command.split()
    assert program == "tonnage"
    assert main(arguments) in (0, 2, 3)
    assert not capsys.readouterr().err


def test_the_examples_of_the_guide_are_found_by_name_and_before_the_shipped_ones(directory):
    assert read("the-small-one").num_parameters() == 1_235_814_400
    assert next(price for price in prices.prices() if price.provider == "Example Cloud") == prices.prices()[0]
    assert prices.purchases()[0].source == "an offer"
    (directory / "models" / "gpt2.toml").write_text((directory / "models" / "example-1b.toml").read_text())
    assert read("gpt2").num_parameters() == 1_235_814_400


@pytest.mark.parametrize(
    ("old", "new", "says"),
    [
        ('counts = "model"', 'counts = "some"', "counts must be one of all"),
        ('parameters = "1.24B"', 'parameters = "lots"', "such as 8.03B. Got 'lots'"),
        ('parameters = "1.24B"', "parameters = -3", "Got -3"),
        ('as_of = "2026-11-21"', 'as_of = "today"', "must be a date"),
        ('source = "https://example.com/model-card"', 'source = " "', "published 1: source is empty"),
        ("[config]", "[konfig]", "konfig|config"),
        ('name = "example-1b"', "name = 3", "name"),
        ("hidden_size = 2048", "hidden_size = nan", "hidden_size must be a whole number"),
        ("hidden_size = 2048", f"hidden_size = {'9' * 5000}", "not TOML"),
        ("hidden_size = 2048", "hiden_size = 2048", "lacks hidden_size"),
    ],
)
def test_a_model_of_ones_own_is_checked_strictly_and_named_with_its_file(directory, old, new, says):
    path = directory / "models" / "example-1b.toml"
    path.write_text(path.read_text().replace(old, new))
    with pytest.raises(InvalidInput, match=says) as error:
        read("example-1b")
    assert "example-1b.toml" in str(error.value)


def test_a_model_of_ones_own_needs_a_name_and_a_config_alone(directory):
    path = directory / "models" / "bare.toml"
    path.write_text('name = "bare"\n[config]\nmodel_type = "gpt2"\nn_embd = 64\nn_layer = 2\nn_head = 2\n')
    assert read("bare").num_layers == 2
