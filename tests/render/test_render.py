"""Lines for people: a breakdown cannot be misread."""

import re

import pytest

import tonnage
from tonnage.formulas.memory import fixed_bytes
from tonnage.formulas.rules import overhead_share_rule
from tonnage.kernel.term import Term
from tonnage.render.text import table_lines, tree_lines


def _leaf(name, value):
    return Term.of(name, fixed_bytes, M=value)


TREE = Term.sum(
    "all",
    Term.max("peak", _leaf("one phase", 10), _leaf("another", 7)),
    Term.product("three of them", "bytes", _leaf("count", 3), _leaf("one", 5)),
    Term.sum("nothing", _leaf("no bytes", 0)),
)


def test_children_that_do_not_add_up_are_marked_at_their_parent():
    lines = tree_lines(TREE, depth=9)
    assert [line.split() for line in lines] == [
        ["all", "25", "B"],
        ["peak", "10", "B", "the", "largest", "of", "these:"],
        ["one", "phase", "10", "B"],
        ["another", "7", "B"],
        ["three", "of", "them", "15", "B", "the", "product", "of", "these:"],
        ["count", "3", "B"],
        ["one", "5", "B"],
    ]


def test_a_mark_stands_only_where_the_children_are_seen():
    assert [line.split() for line in tree_lines(TREE, depth=0)] == [["all", "25", "B"]]
    assert not any("these" in line for line in tree_lines(TREE, depth=1))


def test_the_children_that_a_reader_sees_add_up_unless_their_parent_says_otherwise():
    """On real answers, from the printed lines alone: what is printed under a line adds up to it, or the line says
    how not.
    """
    serving = tonnage.serve("qwen3-32b", on="8xh100", context=8192, tensor_parallel_size=4, pipeline_parallel_size=2)
    training = tonnage.train(
        "deepseek-v3", on="32x8xh800", runtime="megatron", pipeline_parallel_size=16, recompute="full"
    )
    unmarked = 0
    for term in (serving.memory, training.memory):
        for depth, node in term.walk():
            children = [child for child in node.children if child.value]
            line = tree_lines(node, depth=1)[0]
            if children and "of these:" not in line and "over the second:" not in line:
                unmarked += 1
                assert sum(child.value for child in children) == node.value, (depth, node.name)
    assert unmarked > 20


def test_no_printed_line_says_one_of_many():
    answer = tonnage.train(
        "llama-3.1-8b", on="8xh100", runtime="megatron", pipeline_parallel_size=2, num_microbatches=1
    )
    printed = "\n".join(tree_lines(answer.memory, depth=99, formulas=True))
    assert "1 micro-batch " in printed
    assert not re.search(r"(?<![\d,.])1 (micro-batches|layers|requests|accelerators|parameters)\b", printed)


def test_long_names_keep_the_columns():
    term = Term.sum("n" * 80, _leaf("short", 10), _leaf("m" * 70, 5))
    assert len({len(line) for line in tree_lines(term, depth=1)}) == 1


def test_a_ratio_says_which_is_divided():
    assert (
        "the first of these over the second:"
        in tree_lines(Term.ratio("r", "", _leaf("a", 6), _leaf("b", 3)), depth=1)[0]
    )


def test_an_empty_table_is_its_header():
    assert table_lines([], ("a", "b")) == ["a  b", "-  -"]


def test_a_formula_is_shown_with_its_numbers():
    line = tree_lines(Term.of("x", overhead_share_rule, M=8.0, rho=0.2), depth=1, formulas=True)[0]
    assert "8.0 / (1 - 0.2)" in line


@pytest.mark.parametrize("way", ["text", "report"])
def test_inputs_that_are_times_or_rates_have_their_unit_and_are_rounded(way):
    run = tonnage.train("llama-3.1-8b", on="8xH100-SXM-80GB", tokens="1T")
    served = tonnage.serve("llama-3.1-8b", on="H100-SXM-80GB", request_rate=2.5, ttft="1s", tpot="25ms")
    lines = {}
    for answer in (run, served):
        text = (
            answer.text(verbose=True) if way == "text" else answer.to_markdown().replace("|", " ").replace("\\_", "_")
        )
        lines |= {found[1]: found[2].strip() for found in re.finditer(r"(?m)^ +([a-z_]+)  +(.+?)(?:  |$)", text)}
    said = {
        "accelerator_mtbf": "5.79 years",
        "checkpoint_seconds": "98.68 s",
        "restart_seconds": "698.68 s",
        "checkpoint_interval": "18.62 h",
        "storage_bandwidth": "976.56 MB/s",
        "ttft": "1.00 s",
        "tpot": "25.00 ms",
        "request_rate": "2.5 requests/s",
    }
    assert {name: lines[name] for name in said} == said
    assert run.question["accelerator_mtbf"].value == pytest.approx(182437208.59, rel=1e-9), (
        "the document keeps the number"
    )
