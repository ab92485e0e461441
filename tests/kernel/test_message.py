"""A Message is its English text, and keeps its template and values wherever texts go."""

import copy
import pickle

import msgspec
import pytest

from tonnage.kernel.encoding import builtins, encode
from tonnage.kernel.errors import InvalidInput
from tonnage.kernel.message import AND, OR, Message, Quantity, joined, listed, plain
from tonnage.kernel.term import Term
from tonnage.kernel.units import counted, human
from tonnage.language import speaking, worded

NEEDS = Message("{what} needs {size!r} of {free:,}", what=Message("a {part}", part="rank"), size="8", free=1024)


class Document(msgspec.Struct):
    text: str
    texts: dict[str, list[str]]


def _data(text: str) -> tuple[str, dict[str, object]]:
    assert isinstance(text, Message)
    return text.template, dict(text.values)


def test_a_message_is_its_english_text():
    assert NEEDS == "a rank needs '8' of 1,024"
    assert hash(NEEDS) == hash("a rank needs '8' of 1,024")
    assert {NEEDS: 1}["a rank needs '8' of 1,024"] == 1


@pytest.mark.parametrize("made", [NEEDS, counted(3, "requests"), human(8e9, "parameters"), counted(1, "users")])
def test_a_message_keeps_its_data_when_it_is_copied_pickled_or_raised(made):
    for again in (
        copy.copy(made),
        copy.deepcopy(made),
        pickle.loads(pickle.dumps(made)),
        str(made),
        str(ValueError(made)),
    ):
        assert again == made
        assert _data(again) == _data(made)


def test_an_error_keeps_the_data_of_its_message():
    again = pickle.loads(pickle.dumps(InvalidInput(NEEDS)))
    assert _data(str(again)) == _data(NEEDS)


def test_what_is_put_together_keeps_its_parts():
    for whole, text in (
        (NEEDS + ".", f"{plain(NEEDS)}."),
        ("So " + NEEDS, f"So {plain(NEEDS)}"),
        (NEEDS + NEEDS, plain(NEEDS) * 2),
        (joined("; ", ["one", NEEDS]), f"one; {plain(NEEDS)}"),
        (listed([NEEDS, "two"], AND), f"{plain(NEEDS)} and two"),
    ):
        assert whole == text
        assert NEEDS in [part for part in whole.items if isinstance(part, Message)]
        assert pickle.loads(pickle.dumps(whole)).items == whole.items


def test_a_list_has_commas_and_a_word_before_its_last_item():
    assert listed("abc") == "a, b, c"
    assert listed("abc", OR) == "a, b or c"
    assert listed([1], OR) == "1"


def test_a_document_is_encoded_in_english_and_keeps_its_data_until_then():
    document = Document(text=NEEDS, texts={NEEDS: [NEEDS, counted(2, "users"), listed("ab")]})
    assert msgspec.json.decode(encode(document)) == {
        "text": plain(NEEDS),
        "texts": {plain(NEEDS): [plain(NEEDS), "2 users", "a, b"]},
    }
    assert _data(builtins(document)["text"]) == _data(NEEDS)


def test_a_breakdown_whose_names_are_messages_becomes_dictionaries():
    tree = Term.sum(NEEDS, unit="bytes")
    assert tree.to_dict()["name"] == plain(NEEDS)
    assert _data(tree.to_dict()["name"]) == _data(NEEDS)


def test_a_face_encodes_a_document_in_its_language():
    with speaking("zh"):
        assert msgspec.json.decode(encode([counted(2, "users"), "2 users"], worded)) == ["2 个用户", "2 users"]
    assert worded(counted(2, "users")) == "2 users"


def test_no_other_type_becomes_a_text():
    with pytest.raises(NotImplementedError, match="no JSON for object"):
        encode(object())


def test_the_template_of_a_quantity_has_the_plural_of_one_too():
    assert (counted(1, "users"), counted(1, "users").template) == ("1 user", "{n} users")
    assert Quantity("8.03 B", "parameters", "8.03 B parameters").values == {"n": "8.03 B"}
