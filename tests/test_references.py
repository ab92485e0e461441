"""The bibliography is well formed, and whatever is cited is in it."""

import importlib
import pkgutil
import re

import pytest

import tonnage.formulas
from tonnage.errors import UnknownName
from tonnage.formula import FORMULAS
from tonnage.optimizers import OPTIMIZERS
from tonnage.precisions import PRECISIONS, TRAINING_RECIPES
from tonnage.references import cited, reference, references

PAPER = re.compile(r"[A-Z][A-Za-z]+[12][0-9]{3}[A-Za-z0-9]*")
NAME = re.compile(r"[A-Za-z][A-Za-z0-9.-]*")


def test_every_entry_says_who_what_where_and_what_was_checked():
    for key, entry in references().items():
        assert NAME.fullmatch(key), key
        assert entry.authors and entry.title and entry.where and entry.checked, key
        assert entry.year is None or 1974 <= entry.year <= 2026, key


def test_a_papers_key_ends_with_its_year_or_that_of_its_preprint():
    for key, entry in references().items():
        if PAPER.fullmatch(key) and entry.year:
            assert str(entry.year) in key, key


def test_an_arxiv_number_is_of_the_month_that_the_key_allows():
    for key, entry in references().items():
        for number in re.findall(r"arXiv:(\d{4})\.(\d{4,5})", entry.where):
            year = 2000 + int(number[0][:2])
            assert entry.year is not None and 0 <= entry.year - year <= 1, key


def test_no_two_entries_are_the_same_publication():
    numbers = [number for entry in references().values() for number in re.findall(r"arXiv:[\d.]+", entry.where)]
    assert len(numbers) == len(set(numbers))


def test_a_source_names_the_keys_at_the_start_of_its_parts():
    assert cited("Korthikanti2022, eq. 2; Megatron-LM, arguments.py") == ("Korthikanti2022", "Megatron-LM")
    assert cited("llama.cpp, src/llama-quant.cpp") == ("llama.cpp",)
    assert cited("somebody said so") == ()


def test_an_unknown_key_suggests_the_nearest():
    with pytest.raises(UnknownName, match="Hoffmann2022"):
        reference("Hofmann2022")


def test_every_formula_cites_the_bibliography():
    for module in pkgutil.iter_modules(tonnage.formulas.__path__):
        importlib.import_module(f"tonnage.formulas.{module.name}")
    uncited = {name: formula.source for name, formula in FORMULAS.items() if not cited(formula.source)}
    assert uncited == {}


@pytest.mark.parametrize("registry", [PRECISIONS, TRAINING_RECIPES, OPTIMIZERS], ids=lambda registry: registry.kind)
def test_every_part_of_a_source_of_the_catalogues_is_a_known_key(registry):
    for name, entry in registry.items():
        assert len(cited(entry.source)) == len(entry.source.split(";")), (name, entry.source)


def test_a_citation_reads_as_people_write_them():
    assert reference("Shazeer2020").citation == "N. Shazeer (2020). GLU Variants Improve Transformer. arXiv:2002.05202."
    assert "(no date)" in reference("DocumentA").citation
