"""scripts/fit_site.py, and what its trial over publications found."""

import json
import sys
from pathlib import Path

import pytest

from tonnage.estimate.site.cases import Case, Compared

ROOT = Path(__file__).parents[2]
FOUND = json.loads((ROOT / "validation" / "calibration.json").read_text(encoding="utf-8"))


@pytest.fixture(scope="module")
def script():
    """The script, imported as it is run: from its folder."""
    sys.path.insert(0, str(ROOT / "scripts"))
    try:
        import fit_site

        yield fit_site
    finally:
        sys.path.remove(str(ROOT / "scripts"))


def site(own: float, of_accelerator: dict[str, float]) -> tuple[Compared, ...]:
    return tuple(
        Compared(
            quantity="step_time",
            error=own + error + 0.01 * (-1) ** number,
            case=Case(
                accelerator=name, runtime="megatron", release="", model=f"model-{number % 3}", precision="bf16",
                sizes=(float(number), 2.0 * (number % 2), 33.0),
            ),
        )
        for name, error in of_accelerator.items()
        for number in range(8)
    )  # fmt: skip


def test_sites_whose_accelerators_differ_make_the_level_of_accelerators_large(script):
    fit = script.Fit(("step_time",), 3)
    alike = [site(error, {"H100": 0.0, "A100": 0.0}) for error in (0.2, -0.2, 0.1)]
    apart = [site(error, {"H100": 0.25, "A100": -0.25}) for error in (0.2, -0.2, 0.1)]
    deviations = [
        {level.alike: level.deviation for level in fit.prior(fit.fitted(sites, 10)).levels if not level.sizes}
        for sites in (alike, apart)
    ]
    assert deviations[1]["accelerator",] > 1.5 * deviations[0]["accelerator",]


def test_half_of_a_site_that_is_off_by_the_same_corrects_the_other_half(script):
    fit = script.Fit(("step_time",), 3)
    tried = script.tried(site(0.3, {"H100": 0.0, "A100": 0.0}), fit.prior(fit.usual))["step_time"]
    assert max(tried["before"]) > 0.2
    assert max(tried["after"]) < 0.1


def test_every_row_that_a_fit_may_read_is_compared_by_its_publication(script):
    sites = script.sites()
    runs = [one for site in sites.values() for one in site]
    assert len(sites) > 50
    assert {one.quantity for one in runs} == {"step_time", "training_memory", "ttft", "tpot", "request_time"}
    assert all(len(one.case.sizes) == (8 if one.quantity in ("ttft", "tpot", "request_time") else 11) for one in runs)


def test_no_publication_gets_worse_by_more_than_the_trial_allows():
    """The one that does, in one draw of eight, is named in docs/LOG.md."""
    worse = {(line["site"], line["quantity"]) for line in FOUND if line["after"] > line["before"] + 0.01}
    assert worse <= {("sglang-pull-requests", "request_time")}
