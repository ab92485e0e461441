"""A breakdown cannot disagree with itself."""

import numpy as np
import pytest

from tonnage.formulas.memory import kv_cache_bytes, state_bytes
from tonnage.kernel.term import Term, weaker


def leaf(name="weights", N=10, w=2, **options):
    return Term.of(name, state_bytes, N=N, w=w, **options)


def test_a_sum_is_computed_from_its_children():
    tree = Term.sum("all", leaf("a"), Term.sum("b", leaf("c", 5), leaf("d", 1)))
    assert tree.value == 20 + 10 + 2
    assert [(depth, node.name) for depth, node in tree.walk()] == [(0, "all"), (1, "a"), (1, "b"), (2, "c"), (2, "d")]


def test_a_maximum_a_product_and_a_ratio_are_computed_from_their_children():
    assert Term.max("peak", leaf(N=3), leaf(N=4)).value == 8
    assert Term.product("both", "bytes", leaf(N=3), leaf(N=4)).value == 48
    assert Term.ratio("share", "", leaf(N=3), leaf(N=4)).value == 0.75


def test_units_do_not_mix_in_a_sum():
    other = Term("tokens", 3, "tokens")
    with pytest.raises(TypeError, match="combines different units"):
        Term.sum("nonsense", leaf(), other)


def test_an_empty_sum_needs_a_unit_and_is_nothing():
    assert Term.sum("nothing", unit="bytes").value == 0
    with pytest.raises(TypeError):
        Term.sum("nothing")


def test_a_node_is_as_weak_as_its_weakest_child():
    tree = Term.sum("all", leaf(basis="measured"), leaf(basis="rule"), leaf(basis="traced"))
    assert tree.basis == "rule"
    assert weaker("analytic", "measured") == "analytic"


def test_a_tree_of_arrays_holds_the_tree_of_each_plan():
    contexts = np.array([1024.0, 4096.0])
    tree = Term.sum("cache", Term.of("kv", kv_cache_bytes, L=32, k=8, dh=128, s=contexts, R=1, w=2))
    assert tree.at(1).value == kv_cache_bytes(L=32, k=8, dh=128, s=4096, R=1, w=2)
    assert tree.at(1).children[0].inputs["s"] == 4096


def test_the_document_of_a_term_says_everything_that_made_it():
    document = Term.sum("all", leaf()).to_dict()
    assert document == {
        "name": "all",
        "value": 20,
        "unit": "bytes",
        "combine": "sum",
        "basis": "analytic",
        "formula": None,
        "text": "weights",
        "source": "",
        "inputs": {},
        "children": [
            {
                "name": "weights",
                "value": 20,
                "unit": "bytes",
                "combine": "leaf",
                "basis": "analytic",
                "formula": "state_bytes",
                "text": "N * w",
                "source": "Rajbhandari2020, sec. 3.1",
                "inputs": {"N": 10, "w": 2},
                "children": [],
            }
        ],
    }


def test_a_figure_of_a_procedure_names_it():
    term = Term.by(
        "replay", 5, "bytes", basis="traced", source="torch", procedure="allocator replay", version="1", events=7
    )
    assert term.combine == "method"
    assert term.to_dict()["method"] == {"procedure": "allocator replay", "version": "1", "parameters": {"events": 7}}
