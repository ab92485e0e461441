"""The bibliography is well formed, and whatever is cited is in it."""

import importlib
import pkgutil
import re
from pathlib import Path

import pytest

import tonnage.formulas
from tonnage.estimate.step import communication
from tonnage.kernel.errors import UnknownName
from tonnage.kernel.formula import FORMULAS
from tonnage.kernel.references import cited, reference, references
from tonnage.numerics.optimizers import OPTIMIZERS
from tonnage.numerics.precisions import PRECISIONS, TRAINING_RECIPES
from tonnage.runtimes import SERVING_RUNTIMES, TRAINING_RUNTIMES

PAPER = re.compile(r"[A-Z][A-Za-z]+[12][0-9]{3}[A-Za-z0-9]*")
CITED_PAPER = re.compile(r"\b[A-Z][a-z]+(?:[A-Z][a-z]+)?(?:19|20)[0-9]{2}[A-Za-z0-9]*\b")
NAME = re.compile(r"[A-Za-z][A-Za-z0-9.-]*")
PACKAGE = Path(tonnage.formulas.__path__[0]).parent


def formulas():
    for module in pkgutil.iter_modules(tonnage.formulas.__path__):
        importlib.import_module(f"tonnage.formulas.{module.name}")
    return FORMULAS


def code() -> str:
    return "\n".join(path.read_text(encoding="utf-8") for path in sorted(PACKAGE.rglob("*.py")))


def strange(source: str) -> list[str]:
    """The parts of a source that begin with no key of the bibliography."""
    return [part for part in source.split(";") if not cited(part)]


def test_every_entry_says_who_what_where_and_what_was_checked():
    for key, entry in references().items():
        assert NAME.fullmatch(key), key
        assert entry.authors and entry.title and entry.where and entry.checked, key
        assert entry.year is None or 1961 <= entry.year <= 2026, key


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


def test_every_part_of_a_formulas_source_is_a_known_key():
    wrong = {name: strange(formula.source) for name, formula in formulas().items() if strange(formula.source)}
    assert wrong == {}


@pytest.mark.parametrize("registry", [PRECISIONS, TRAINING_RECIPES, OPTIMIZERS], ids=lambda registry: registry.kind)
def test_every_part_of_a_source_of_the_catalogues_is_a_known_key(registry):
    for name, entry in registry.items():
        assert not strange(entry.source), (name, entry.source)


@pytest.mark.parametrize("registry", [TRAINING_RUNTIMES, SERVING_RUNTIMES], ids=lambda registry: registry.kind)
def test_every_part_of_a_source_of_a_runtime_is_a_known_key(registry):
    for name, entry in registry.items():
        for source in (entry.source, getattr(entry, "overhead_source", entry.source)):
            assert source and not strange(source), (name, source)


@pytest.mark.parametrize("source", [communication.CONTEXT_SOURCE, communication.RESERVE_SOURCE])
def test_measured_overheads_cite_the_bibliography(source):
    assert not strange(source)


def test_every_paper_that_the_code_names_is_in_the_bibliography():
    named = set(CITED_PAPER.findall(code()))
    assert len(named) > 30
    assert named <= set(references())


def test_nothing_stands_in_the_bibliography_that_nothing_cites():
    facts = "".join(path.read_text(encoding="utf-8") for path in PACKAGE.glob("catalogue/failures/*.toml"))
    text = code() + facts + "\n".join(entry.checked + entry.errata for entry in references().values())
    # The key stands first, so that the search leaps from one occurrence to the next.
    cited = (rf"{re.escape(key)}(?<![\w/.-]{re.escape(key)})(?![\w-])" for key in references())
    idle = [key for key, pattern in zip(references(), cited, strict=True) if not re.search(pattern, text)]
    assert idle == []


def test_what_was_checked_is_said_in_words_that_can_be_followed():
    for key, entry in references().items():
        assert not re.search(r"name only|\bthe copy\b|\bthe wheel:", entry.checked), key
        assert re.search(r"20[0-9]{2}-[01][0-9]-[0-3][0-9]", entry.checked), key


def test_a_citation_reads_as_people_write_them():
    assert (
        reference("Kalamkar2019").citation
        == "D. Kalamkar, D. Mudigere, N. Mellempudi, D. Das, K. Banerjee, S. Avancha, and others (2019). "
        "A Study of BFLOAT16 for Deep Learning Training. arXiv:1905.12322."
    )
    assert "(no date)" in reference("DocumentA").citation
