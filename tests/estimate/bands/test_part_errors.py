"""The errors of single parts of the memory are those of the published rows, and of them alone."""

import part_errors as script
from tonnage.estimate.bands.part_errors import FILE, part_errors


def test_the_file_is_what_the_measurements_give():
    assert FILE.read_text(encoding="utf-8") == script.text(), "run scripts/part_errors.py"


def test_every_figure_holds_nine_in_ten_of_its_rows():
    measured = script.errors()
    found = part_errors()
    assert {each.part for each in found} >= {"weights", "kv cache", "activations"}
    for each in found:
        shares = measured[each.runtime, each.part]
        assert each.rows == len(shares) >= script.FEWEST
        inside = sum(share <= each.p90 + 1e-6 for share in shares)
        assert inside >= 0.9 * len(shares) > sum(share < each.p90 - 1e-6 for share in shares)
        assert sum(share <= each.median + 1e-6 for share in shares) >= len(shares) / 2


def test_a_row_that_leaves_something_out_makes_no_figure():
    rows = script.read([str(script.CORPUS)])
    left = {row.id for row in rows} - {row.id for row in script.full(rows)}
    assert any(row.completeness_class == "partial" for row in rows if row.id in left)
    assert all(row.completeness_class == "full" for row in script.full(rows))
