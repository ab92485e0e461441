"""What a format says of the keys of a file, and what is left of them."""

import pytest

from tonnage.interchange.reading import Asker, Reading, flattened, options_of_command
from tonnage.interchange.source import text_source
from tonnage.kernel.errors import InvalidInput


def reading(values, **asker):
    found = Reading(text_source("", "cfg.yml"), values, Asker(**asker))
    found.tool, found.version = "Tool", "1.2"
    return found


def statuses(document):
    return {key.key: key.status for key in document.keys}


def test_every_key_is_used_assumed_ignored_or_not_understood():
    r = reading({"seq": 8, "lr": 1e-4, "sqe": 9, "fast": True})
    r.put("sequence_length", r.integer("seq"), "seq")
    r.ignore(["lr"])
    r.unsure("fast", "faster in a way that is not estimated")
    r.assume("micro", 8, "micro_batch_size")
    document = r.document(["seq", "micro"])
    assert statuses(document) == {
        "fast": "not understood",
        "sqe": "not understood",
        "seq": "used",
        "micro": "assumed",
        "lr": "ignored",
    }
    assert not document.is_sure
    assert r.question == {"sequence_length": 8, "micro_batch_size": 8}


def test_a_key_that_is_misspelled_gets_the_nearest_that_the_tool_has():
    (key,) = reading({"sequnce_len": 8}).document(["sequence_len", "micro_batch_size"]).keys
    assert "sequence_len" in key.why


def test_a_default_says_the_tool_and_the_version_that_it_is_of():
    r = reading({})
    r.assume("per_device_train_batch_size", 8, "micro_batch_size")
    assert r.document().keys[0].why == "default of Tool 1.2"


def test_a_default_is_not_assumed_where_the_file_says_the_key():
    r = reading({"micro": 2})
    r.assume("micro", 8, "micro_batch_size")
    assert r.question == {}


def test_who_is_lenient_is_sure_of_the_rest():
    assert reading({"sqe": 9}, is_lenient=True).document().is_sure


def test_an_older_name_is_read_as_the_newer_and_shown_as_it_is_written():
    r = reading({"old": 4})
    r.rename({"old": "new"})
    r.put("micro_batch_size", r.integer("new"), "new")
    assert statuses(r.document()) == {"old": "used"}
    assert r.origins == {"micro_batch_size": ("old",)}


def test_a_key_that_changes_nothing_at_its_default_makes_unsure_elsewhere():
    for value, status in ((False, "ignored"), (0, "ignored"), (None, "ignored"), (3, "not understood")):
        r = reading({"buffer": value})
        r.needs_default("buffer", 0, why="it keeps a buffer")
        assert statuses(r.document()) == {"buffer": status}


@pytest.mark.parametrize(
    ("take", "value"),
    [
        ("integer", "many"),
        ("integer", 1.5),
        ("integer", True),
        ("number", [1]),
        ("number", 1e30),
        ("flag", "perhaps"),
        ("text", []),
    ],
)
def test_a_value_of_the_wrong_kind_is_refused_with_file_key_and_value(take, value):
    with pytest.raises(InvalidInput, match=r"cfg\.yml: seq must be"):
        getattr(reading({"seq": value}), take)("seq")


def test_a_size_is_a_whole_number_above_0_with_a_limit():
    r = reading({"seq": "4096", "none": 0, "huge": 10**8})
    assert (r.size("seq"), r.size("missing"), r.size("missing", 8), r.size("huge", largest=10**9)) == (
        4096,
        0,
        8,
        10**8,
    )
    for key in ("none", "huge"):
        with pytest.raises(InvalidInput, match=rf"cfg\.yml: {key} must be a whole number above 0"):
            r.size(key)


def test_numbers_and_switches_may_be_written_as_texts():
    r = reading({"a": "4_096", "b": "true", "c": 0, "d": ""})
    assert (r.integer("a"), r.flag("b"), r.flag("c"), r.flag("d")) == (4096, True, False, True)


def test_a_choice_that_there_is_not_is_refused_with_the_nearest():
    with pytest.raises(InvalidInput, match="adamw_torch"):
        reading({"optim": "adamw_toch"}).choice("optim", {"adamw_torch": 1, "sgd": 2})


def test_an_accelerator_alone_gets_the_numbers_of_the_file():
    r = reading({}, on="h100")
    r.count_machines(nodes=2, per_node=8)
    assert (r.on, r.num_accelerators) == ("2x8xh100", 16)


def test_a_cluster_that_the_asker_counts_stays_as_it_is():
    r = reading({}, on="4xh100")
    r.count_machines(nodes=2, per_node=8)
    assert (r.on, r.num_accelerators) == ("4xh100", 4)


def test_a_file_without_machines_asks_for_them():
    with pytest.raises(InvalidInput, match="names no accelerators"):
        reading({}).on  # noqa: B018


def test_sections_are_joined_by_dots_and_lists_stay():
    assert flattened({"a": {"b": 1, "c": {"d": [1, {"e": 2}]}}, "f": {}}) == {"a.b": 1, "a.c.d": [1, {"e": 2}]}


def test_options_of_a_command_are_named_without_dashes_however_they_are_written():
    options, alone = options_of_command(
        ["gpt2", "--tp-size", "2", "--max_len=8", "-pp", "3", "--eager", "--lora", "a", "b", "--x", "-1"],
        several={"lora"},
    )
    assert options == {"tp-size": "2", "max-len": "8", "pp": "3", "eager": True, "lora": ["a", "b"], "x": "-1"}
    assert alone == ["gpt2"]


def test_an_option_that_is_given_twice_is_a_list():
    assert options_of_command(["--lora", "a", "--lora", "b"])[0] == {"lora": ["a", "b"]}
