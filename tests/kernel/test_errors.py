"""What errors quote of a user's value: enough to know it again, never all of something huge."""

import pytest

from tonnage import catalogue
from tonnage.architectures import build
from tonnage.cli import main
from tonnage.kernel import units
from tonnage.kernel.errors import InvalidInput, TonnageError, shown
from tonnage.kernel.registry import unknown
from tonnage.models import read
from tonnage.question.forms import word

HUGE = "x" * 2_000_000


@pytest.mark.parametrize(
    "value",
    [
        "a" * 10**6,
        b"\xff" * 10**6,
        "\0" * 10**6,
        list(range(10**6)),
        {"k": "v" * 10**6},
        {HUGE: 1},
        10**5000,
        [10**5000],
        [[[[[[[[[["deep"] * 9] * 9] * 9] * 9] * 9] * 9] * 9] * 9] * 9],
    ],
    ids=["text", "bytes", "escapes", "list", "dict", "key", "digits", "digits inside", "nest"],
)
def test_a_huge_value_is_shown_in_80_characters(value: object):
    assert 0 < len(shown(value)) <= 80


@pytest.mark.parametrize("value", ["text", "", None, 3, -1.5, [1, "a"], {"a": [1]}, True, float("nan")])
def test_a_small_value_is_shown_as_it_is(value: object):
    assert shown(value) == repr(value)


def test_what_is_cut_ends_with_dots():
    assert shown("a" * 100).endswith("a...")
    assert shown("abc" * 100, 10) == "'abcabc..."


@pytest.mark.parametrize(
    "ask",
    [
        lambda: units.parse_count(HUGE, "x"),
        lambda: units.parse_bytes("9" * 10**6, "x"),
        lambda: units.parse_length("1" + HUGE, "x"),
        lambda: units.parse_seconds(f"3.{'1' * 10**6} parsecs", "x"),
        lambda: catalogue.cluster(HUGE),
        lambda: catalogue.cluster(HUGE[:300]),
        lambda: catalogue.cluster(f"{HUGE[:300]}.toml"),
        lambda: catalogue.cluster("9" * 4000 + "xh100"),
        lambda: catalogue.cluster("h100:" + "9" * 4090),
        lambda: catalogue.cluster("h100:" + "y" * 4000),
        lambda: read(HUGE),
        lambda: read("./" + HUGE[:4000]),
        lambda: read(HUGE[:300]),
        lambda: read("gpt2", revision=HUGE),
        lambda: read("hf:a/b", revision=HUGE),
        lambda: read("hf:" + "/" * 4000),
        lambda: read("gpt2", overrides={HUGE: 1}),
        lambda: read("gpt2", overrides={"n_layer": HUGE}),
        lambda: read("gpt2", overrides={"n_layer": 10**5000}),
        lambda: build({"model_type": HUGE}, "x"),
        lambda: build({"architectures": [[HUGE]]}, "x"),
        lambda: build({"model_type": "llama", "torch_dtype": HUGE}, "x"),
        lambda: catalogue.model_file(HUGE),
    ],
)
def test_an_error_never_prints_all_of_a_huge_value(ask):
    with pytest.raises(TonnageError) as error:
        ask()
    assert len(str(error.value)) < 1500
    assert len(str(unknown("thing", HUGE, ["a", "b"]))) < 200


@pytest.mark.parametrize("given", ["", " ", "\t"])
def test_an_empty_word_is_refused_with_the_name_of_the_option(given: str):
    with pytest.raises(InvalidInput, match="--weights is empty"):
        word(given, "--weights")


@pytest.mark.parametrize(
    "command",
    [
        "train gpt2 --on=",
        "train gpt2 --on h100 --precision=",
        "serve gpt2 --on h100 --weights=",
        "models gpt2 --family=",
        "models gpt2 --revision=",
        "train gpt2 --on h100 --optimizer=",
    ],
)
def test_an_empty_option_is_wrong_usage(command: str, capsys: pytest.CaptureFixture[str]):
    assert main(command.split()) == 64
    option = command.rpartition(" ")[2].strip("-=")
    assert option in capsys.readouterr().err


@pytest.mark.parametrize("name", ["nothing", "file"])
def test_a_config_directory_that_is_none_is_named_with_its_variable(tmp_path, monkeypatch, capsys, name: str):
    (tmp_path / "file").write_text("x")
    monkeypatch.setenv("TONNAGE_CONFIG", str(tmp_path / name))
    assert main(["train", "gpt2", "--on", "h100"]) == 64
    said = capsys.readouterr().err
    assert "TONNAGE_CONFIG" in said and str(tmp_path / name) in said


def test_a_missing_toml_of_a_cluster_is_told_as_a_missing_file():
    with pytest.raises(InvalidInput, match=r"there is no file '\./mine.toml'"):
        catalogue.cluster("4x./mine.toml")
