"""A file gets other values, and keeps its comments, its order, and keys that nobody here knows."""

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from tonnage.interchange.edit import edited
from tonnage.interchange.reading import flattened
from tonnage.interchange.source import text_source
from tonnage.kernel.errors import InvalidInput

FILE = """\
# my run
base: llama   # the model
seq: 2048
lr: 1e-4

sharding:
  version: 2  # keep
  offload: false
list:
  - a
  - b
made_up: yes
"""


def put(text, new, name="cfg.yml"):
    return edited(text_source(text, name), new)


def test_values_change_and_all_else_stays():
    assert put(FILE, "base: qwen\nseq: 4096\n") == FILE.replace("llama", "qwen").replace("2048", "4096")


def test_a_key_that_the_file_has_not_comes_behind_its_section():
    found = put(FILE, "sharding: {size: 8}\nnew: {deep: {x: 1, y: 2}}\n")
    assert "  offload: false\n  size: 8\nlist:" in found
    assert found.endswith("made_up: yes\nnew:\n  deep:\n    x: 1\n    y: 2\n")


def test_json_stays_json():
    text = '{\n  "zero": {\n    "stage": 2\n  },\n  "lr": 0.1\n}\n'
    found = put(text, '{"zero": {"stage": 3, "to": "cpu"}, "bf16": true}', "ds.json")
    assert found == '{\n  "zero": {\n    "stage": 3,\n    "to": "cpu"\n  },\n  "lr": 0.1,\n  "bf16": true\n}\n'


def test_a_list_that_would_have_to_change_is_left_to_whoever_asks():
    with pytest.raises(InvalidInput, match="list would have to change"):
        put(FILE, "list: [c]\n")


@pytest.mark.parametrize(("text", "name"), [("vllm serve gpt2", "run.sh"), ("- 1\n", "a.yml"), ("", "b.yml")])
def test_what_is_no_mapping_of_json_or_yaml_is_refused(text, name):
    with pytest.raises(InvalidInput, match="write a new file without --edit"):
        put(text, "a: 1\n", name)


VALUES = st.one_of(st.integers(-9, 9), st.booleans(), st.sampled_from(["yes", "a b", "1e-4", "x/y", "", "null", "#"]))
TREES = st.dictionaries(
    st.sampled_from("abcdef"),
    st.one_of(VALUES, st.dictionaries(st.sampled_from("xyz"), VALUES, min_size=1)),
    min_size=1,
)


@given(TREES, TREES, st.booleans())
def test_what_is_written_is_read_again_and_other_keys_have_their_values(old, new, is_flow):
    text = yaml.safe_dump(old, default_flow_style=is_flow)
    wanted = {key: value for key, value in flattened(new).items() if _may_stand(key, old)}
    if not wanted:
        return
    tree = {}
    for key, value in wanted.items():
        section, _, name = key.rpartition(".")
        (tree.setdefault(section, {}) if section else tree)[name] = value
    found = flattened(text_source(put(text, yaml.safe_dump(tree)), "again.yml").tree)
    assert found == {**flattened(old), **wanted}


def _may_stand(key, old):
    """Whether a key is a scalar where the old file has one, and a section where it has one."""
    section, _, name = key.rpartition(".")
    return isinstance(old.get(section, {}), dict) if section else not isinstance(old.get(name), dict)
