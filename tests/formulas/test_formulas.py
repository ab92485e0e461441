"""Every registered formula: its text is its code, and the same code takes numbers and arrays."""

import numpy as np
import pytest

from every_row import every_row
from tonnage.cli.explain import load_formulas
from tonnage.kernel import formula as kernel
from tonnage.kernel.formula import FORMULAS, check, formula
from tonnage.kernel.glossary import SYMBOLS

load_formulas()
NAMES = list(FORMULAS)
PLANS = 200
# What a letter may be where integers up to 4096 make no sense of the formula.
BETWEEN = {
    "alpha": (0.1, 0.9),
    "beta": (0.1, 0.9),
    "u": (0.1, 0.95),
    "rho": (0.05, 0.9),
    "USD_buy": (1e4, 1e6),
    "USD_rent": (1.0, 9.0),
    "USD_run": (0.01, 0.9),
    "fx": (0.5, 9.0),
    "share_net": (0.01, 0.9),
    "years": (1.0, 9.0),
    "pw": (100.0, 900.0),
    "pue": (1.0, 2.0),
    "USD_kwh": (0.01, 0.9),
    "C": (1e15, 1e25),
    "P": (1e12, 1e16),
    "eta": (0.1, 1.0),
    "q_slow": (0.0, 0.9),
    "kappa": (1.0, 3.0),
    "p_take": (0.0, 0.95),
    "n_draft": (1.0, 8.0),
    "load": (0.05, 0.95),
    "share_m": (0.01, 0.9),
    "share_w": (0.01, 0.9),
    "spread": (0.05, 0.9),
    "cv2": (0.0, 2.0),
    "scv": (0.0, 9.0),
    "z_free": (0.0, 6.0),
}


def _columns(chosen):
    rng = np.random.default_rng(0)
    return {
        letter: rng.uniform(*BETWEEN[letter], PLANS)
        if letter in BETWEEN
        else rng.integers(1, 4096, PLANS).astype(float)
        for letter in chosen.symbols
    }


@every_row("name", NAMES, at_least=285)
def test_a_formula_gives_an_array_what_it_gives_each_number(name):
    chosen = FORMULAS[name]
    columns = _columns(chosen)
    one_by_one = [chosen(**{letter: values[i].item() for letter, values in columns.items()}) for i in range(PLANS)]
    together = chosen(**columns)
    # numpy's power, logarithm and exponential and the C library's may differ in the last bit, and powers of powers add
    # to that
    if "exp" in chosen.text or chosen.text.count("**") > 2:
        np.testing.assert_allclose(together, one_by_one, rtol=1e-13)
    elif "**" in chosen.text or "log2" in chosen.text:
        np.testing.assert_allclose(together, one_by_one, rtol=1e-15)
    else:
        assert np.array_equal(together, one_by_one)


@every_row("name", NAMES, at_least=285)
def test_the_text_of_a_formula_is_the_code_that_ran(name):
    chosen = FORMULAS[name]
    inputs = {letter: values[0].item() for letter, values in _columns(chosen).items()}
    assert eval(chosen.text, vars(kernel), inputs) == chosen(**inputs)
    assert eval(chosen.substituted(inputs), vars(kernel)) == chosen(**inputs)


@every_row("name", NAMES, at_least=285)
def test_a_formula_is_a_docstring_and_one_expression_with_unit_and_source(name):
    chosen = FORMULAS[name]
    check(chosen)
    assert chosen.source
    assert chosen.summary.endswith(".")
    assert chosen.unit or name in {
        "goodput",
        "speed_with_replicas_left",
        "time_with_nodes",
        "gradients_carried",
        "gradients_fresh",
        "straggler_factor",
        "several_ranks",
        "full_mesh_share",
        "cube_mesh_share",
        "flops_utilization",
        "rollout_share",
        "generated_share",
        "share_that_leaves",
        "share_that_stays",
        "passes",
        "share_of_prompt_passes",
        "prompt_cost_share",
        "answer_cost_share",
        "share_that_waits",
        "cold_share",
        "drain_share",
        "loop_factor",
        "training_to_inference_rule",
    }  # pure numbers


@every_row("name", NAMES, at_least=285)
def test_integers_stay_exact(name):
    chosen = FORMULAS[name]
    inputs = {letter: int(values[0]) or 1 for letter, values in _columns(chosen).items()}
    if not (set(chosen.symbols) & set(BETWEEN)):
        assert float(chosen(**inputs)) == chosen(**{letter: float(value) for letter, value in inputs.items()})


def test_every_letter_is_used_and_has_a_unit_and_a_meaning():
    used = {letter for chosen in FORMULAS.values() for letter in chosen.symbols}
    assert set(SYMBOLS) == used
    for symbol in SYMBOLS.values():
        assert symbol.name and symbol.meaning


def test_a_formula_may_not_branch():
    @formula(unit="bytes", source="nowhere")
    def crooked_for_a_test(N, t):
        """No."""
        return N if t > 1 else 0

    try:
        with pytest.raises(TypeError, match="branches on a number"):
            check(crooked_for_a_test)
    finally:
        del FORMULAS._items["crooked_for_a_test"]


def test_a_formula_is_one_return_expression():
    @formula(unit="bytes", source="nowhere")
    def long_winded_for_a_test(N, t):
        """No."""
        half = N / 2
        return half / t

    try:
        with pytest.raises(TypeError, match="one return expression"):
            check(long_winded_for_a_test)
    finally:
        del FORMULAS._items["long_winded_for_a_test"]


def test_a_formula_may_only_use_declared_letters():
    with pytest.raises(TypeError, match=r"glossary\.py does not declare"):

        @formula(unit="bytes", source="nowhere")
        def foreign(N, zzz):
            """No."""
            return N * zzz


def test_a_formula_is_defined_once():
    with pytest.raises(ValueError, match="already registered"):

        @formula(unit="bytes", source="nowhere")
        def kv_cache_bytes(N):
            """No."""
            return N


def test_large_products_do_not_wrap():
    assert FORMULAS["compute_rule"](N=7 * 10**10, D=15 * 10**12) == 6 * 7 * 10**10 * 15 * 10**12
