"""What a file, a text or a command is taken apart into, without knowing whose it is."""

import shlex

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tonnage.interchange.shell import MAX_CHARACTERS, MAX_LINE, MAX_LINES
from tonnage.interchange.source import MAX_COMMANDS, command_source, commands_of, file_source, text_source
from tonnage.kernel.errors import InvalidInput


def words(script):
    return [command.words for command in commands_of(script)]


def test_a_line_that_ends_in_a_backslash_goes_on_in_the_next():
    assert words("vllm serve \\\n  gpt2 \\\n  --port 8000\n") == [("vllm", "serve", "gpt2", "--port", "8000")]


def test_a_comment_inside_a_long_command_is_skipped():
    assert words("vllm serve gpt2 \\\n  # longer\n  --port 8000\n") == [("vllm", "serve", "gpt2", "--port", "8000")]


def test_variables_of_the_script_are_put_in_and_others_stay():
    script = "MODEL=gpt2\nexport TP=2\nvllm serve $MODEL -tp ${TP} --port ${PORT:-8000} --seed $SEED\n"
    assert words(script) == [("vllm", "serve", "gpt2", "-tp", "2", "--port", "8000", "--seed", "$SEED")]


def test_what_stands_before_a_command_is_its_environment():
    (command,) = commands_of("CUDA_VISIBLE_DEVICES=0 env VLLM_USE_V1=1 vllm serve gpt2")
    assert command.words == ("env", "VLLM_USE_V1=1", "vllm", "serve", "gpt2") or command.environment


def test_commands_of_one_line_are_parted():
    assert words("cd /work && vllm serve gpt2; echo done | tee log") == [
        ("cd", "/work"),
        ("vllm", "serve", "gpt2"),
        ("echo", "done"),
        ("tee", "log"),
    ]


def test_a_quote_that_is_not_closed_is_no_command():
    assert words("echo 'never closed\nvllm serve gpt2\n") == [("vllm", "serve", "gpt2")]


def test_a_file_of_yaml_may_have_several_documents():
    source = text_source("a: 1\n---\n# nothing\n---\nb: 2\n", "two.yaml")
    assert source.documents == ({"a": 1}, {"b": 2})
    assert source.tree == {}


@pytest.mark.parametrize(
    ("name", "kind"), [("ds.json", "json"), ("c.yml", "yaml"), ("t.toml", "toml"), ("run.sh", "text")]
)
def test_the_ending_of_a_name_says_what_a_file_is(name, kind):
    assert text_source("", name).kind == kind


def test_a_pasted_object_is_json():
    assert text_source('{"zero_optimization": {"stage": 2}}').tree == {"zero_optimization": {"stage": 2}}


def test_the_comment_of_a_file_says_what_it_has_no_words_for():
    assert text_source("#!/bin/sh\n# tonnage: serve gpt2 --on h100\nvllm serve gpt2\n").mark == (
        "serve",
        "gpt2",
        "--on",
        "h100",
    )


def test_a_file_that_is_named_where_none_may_be_read_is_refused():
    with pytest.raises(InvalidInput, match="names a file"):
        text_source("deepspeed: ds.json", "cfg.yml").sibling("ds.json")


def test_a_file_is_looked_for_beside_the_one_that_names_it(tmp_path):
    (tmp_path / "ds.json").write_text("{}")
    (tmp_path / "cfg.yml").write_text("deepspeed: ds.json")
    assert file_source(str(tmp_path / "cfg.yml")).sibling("ds.json").text == "{}"


def test_a_command_with_an_open_quote_is_refused_with_its_text():
    with pytest.raises(InvalidInput, match="the command is no command"):
        command_source(["vllm serve 'gpt2"])


@given(st.text(max_size=300))
def test_any_script_is_taken_apart_without_a_failure(text):
    assert all(command.words for command in commands_of(text))


@pytest.mark.parametrize(
    ("script", "limit"),
    [
        ("a" * 10 + "\n" + "#" * MAX_CHARACTERS, f"more than {MAX_CHARACTERS:,} characters: give only the commands"),
        ("\n" * (MAX_LINES + 1), f"more than {MAX_LINES:,} lines: give only the commands"),
        ("a" * (MAX_LINE + 1), f"more than {MAX_LINE:,} characters in one line"),
        ("python train.py --lr 1 \\\n" * (MAX_LINE // 20), f"more than {MAX_LINE:,} characters in one line"),
        ("a;" * (MAX_COMMANDS + 1), f"more than {MAX_COMMANDS:,} commands"),
        ("A=1\n" * (MAX_COMMANDS + 1), f"more than {MAX_COMMANDS:,} commands"),
    ],
)
def test_a_script_that_would_take_seconds_to_read_is_refused_with_the_limit(script, limit):
    source = text_source(script, "run.sh")
    with pytest.raises(InvalidInput, match=rf"run\.sh has {limit}"):
        assert source.commands


def test_a_script_at_the_limits_is_read():
    assert len(words("a;" * MAX_COMMANDS)) == MAX_COMMANDS
    assert words("a" * MAX_LINE) == [("a" * MAX_LINE,)]
    assert words("# why\n" * MAX_LINES + "a") == [("a",)]


def test_a_command_as_one_text_has_the_limit_of_a_line():
    with pytest.raises(InvalidInput, match=f"the command has more than {MAX_LINE:,} characters in one line"):
        command_source(["vllm serve " + "a" * MAX_LINE])


@given(st.lists(st.text("ab$=-{}[]()*!%,.:/~\"'\\#;&|<> ", max_size=12), max_size=6))
def test_a_line_without_special_characters_has_the_words_that_shlex_finds(parts):
    """Most lines are split at blanks alone, which is faster: the words are the same."""
    line = " ".join(part for part in parts if not set(part) & set("\"'\\;&|<>#"))
    assert [word for command in commands_of(f"run {line}") for word in command.words] == shlex.split(f"run {line}")


def test_where_output_goes_is_no_word_of_a_command():
    script = (
        "a --x 1 2>&1 | tee log\n"
        "b > out.log 2> err.log < in &\n"
        "c 2>/dev/null >>x -y\n"
        "d &> all.log\n"
        'e "a>b" --n>=3 <<EOF\n'
    )
    words = [command.words for command in commands_of(script)]
    assert words == [("a", "--x", "1"), ("tee", "log"), ("b",), ("c", "-y"), ("d",), ("e", "a>b", "--n>=3")]
