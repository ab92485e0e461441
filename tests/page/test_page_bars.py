"""What bars of memory and time show: each part apart, over the whole width, with the error band stated once."""

import pytest

from conftest import asked

expect = pytest.importorskip("playwright.sync_api", reason="the page is tested with Playwright (extra test)").expect
GIB = 2**30
SERVED = {
    "model": "llama-3.1-70b",
    "on": "4xH100-SXM-80GB",
    "weights": "fp8",
    "input_tokens": 8192,
    "output_tokens": 1024,
    "concurrency": 64,
}
UNUSED = "left unused by vLLM"


def unused_part():
    memory = asked("serve", SERVED)["memory"]
    (runtime,) = (part for part in memory["children"] if part["name"] == "runtime overhead")
    (unused,) = (part for part in runtime["children"] if part["name"].startswith(UNUSED))
    return runtime["value"], unused["value"]


def test_what_the_engine_leaves_unused_is_a_part_of_its_own_beside_the_runtime(staying):
    runtime, unused = unused_part()
    page = staying().go_on("serve", "memory")
    legend = page.locator("[data-part=bar] .legend > span")
    expect(legend.filter(has_text=UNUSED)).to_contain_text(f"{unused / GIB:.1f}")
    expect(legend.filter(has_text="runtime")).to_contain_text(f"{(runtime - unused) / GIB:.1f}")
    expect(page.locator('[data-part=bar] rect.seg-part[fill="url(#p-reserved)"]')).to_have_count(1)
    rows = page.locator("table.breakdown tbody tr")
    expect(rows.filter(has_text=UNUSED)).to_contain_text(f"{unused / GIB:.2f}")
    page.get_by_role("button", name="Parts of runtime").click()
    expect(rows.filter(has_text=UNUSED)).to_have_count(1)


def test_the_card_of_the_runtime_sums_what_the_bar_shows(staying):
    runtime, unused = unused_part()
    page = staying().go_on("serve", "memory")
    page.locator("[data-part=bar] .legend > span").filter(has_text="runtime").locator(".n").click()
    expect(page.locator("#inspector .big")).to_contain_text(f"{(runtime - unused) / GIB:.2f}")
    expect(page.locator("#inspector")).not_to_contain_text(UNUSED)


def test_the_error_band_below_the_bar_is_stated_once_and_both_ends_open_cards(staying):
    page = staying().go_on("tight")
    shown = page.locator("[data-part=bar], [data-part=below]")
    assert sum(text.lower().count("error band") for text in shown.all_inner_texts()) == 1
    page.locator("[data-part=bar] .legend .n").last.click()
    expect(page.locator("#inspector h2")).to_have_text("high end of the error band")


def test_the_bars_of_the_stages_take_the_width_that_they_have_when_the_page_opens(visiting):
    page = visiting().open("tight", "memory")
    plot = page.locator("[data-part=bars] .plot")
    width, drawn = plot.evaluate("plot => [plot.clientWidth, plot.querySelector('svg').clientWidth]")
    assert width > 500
    assert drawn == pytest.approx(width, abs=2)


def test_no_two_parts_of_a_request_have_the_same_pattern(staying):
    page = staying().go_on("serve", "time")
    swatches = page.locator("[data-part=timeline] .legend").first.locator(".sw rect")
    patterns = swatches.evaluate_all("all => all.map((each) => each.getAttribute('fill'))")
    assert len(patterns) > 5
    assert len(set(patterns)) == len(patterns)


@pytest.mark.parametrize("question", ["tight", "tab=train&model=qwen3-8b&on=RTX-4090"])
def test_a_change_of_the_machine_is_not_recommended_where_the_own_machine_can_do_it(staying, question):
    page = staying().go_on(question)
    best = page.locator(".decision .best")
    expect(best).to_have_count(1)
    expect(best.locator("small").first).not_to_contain_text("changes the machine")
    expect(best.locator(".moves")).to_contain_text("full recomputation")
    expect(best.locator('td[data-head="Speed"]')).not_to_contain_text("unknown")


def test_one_request_is_said_in_the_singular(staying):
    page = staying().go_on("tab=serve&model=qwen3-8b&on=RTX-4090")
    expect(page.locator("[data-part=below] .worst")).to_contain_text("room for one request of ")
    expect(page.locator("[data-part=facts]")).to_contain_text("1 request at most")


def test_no_line_of_the_sentence_ends_with_an_opening_bracket(visiting):
    page = visiting(viewport={"width": 390, "height": 800}).open("tab=serve&model=llama-3.1-8b&on=H100-SXM-80GB")
    expect(page.locator("#sentence .nw").first).to_have_text("(bf16)")
