"""Grids: what a kilowatt-hour emits, each figure with its source, and none made up."""

import pytest

from tonnage.catalogue.grids import grid, grids, load
from tonnage.kernel.errors import InvalidInput, MissingDatum

ROW = '[[grid]]\nname = "Ours"\ngrams_co2e_per_kwh = 12\nyear = 2025\nsource = "our turbines"\nas_of = "2026-11-21"\n'


def test_a_grid_is_found_by_its_name_its_code_and_in_any_case():
    assert grid("China") == grid("cn") == grid("中国")
    assert grid("france").grams_co2e_per_kwh == 41
    assert len(grids()) >= 15 and all(10 < one.grams_co2e_per_kwh < 800 for one in grids())


def test_no_two_grids_answer_to_one_name():
    names = [name.lower() for one in grids() for name in (one.name, *one.aliases)]
    assert len(names) == len(set(names))


def test_a_grid_that_no_source_describes_is_missing_and_the_others_are_listed():
    with pytest.raises(MissingDatum, match=r"'Atlantis' emits. Give gCO2e per kWh as a number, or one of: Australia, "):
        grid("Atlantis")


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("= 12", "= 0", "grams_co2e_per_kwh must be above 0"),
        ("= 12", "= nan", "grams_co2e_per_kwh"),
        ('"our turbines"', '" "', "source is empty"),
        ("2026-11-21", "soon", "must be a date"),
        ("year = 2025", 'year = "last"', "year"),
        ("name =", "nom =", "nom|name"),
    ],
)
def test_a_mistake_in_a_file_is_a_clear_invalid_input(tmp_path, old, new, message):
    path = tmp_path / "mine.toml"
    path.write_text(ROW.replace(old, new, 1), encoding="utf-8")
    with pytest.raises(InvalidInput, match=message):
        load(path)
