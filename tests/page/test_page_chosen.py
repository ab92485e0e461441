"""What tonnage chose so that it fits, the first answer of the page, and targets."""

import re

import pytest
from page_visits import asked, closed, field, turn

expect = pytest.importorskip("playwright.sync_api", reason="the page is tested with Playwright (extra test)").expect
GIB = 2**30
ASKED = "tab=train&model=llama-3.1-70b&on=8x8xH100-SXM-80GB"
QUESTION = {"model": "llama-3.1-70b", "on": "8x8xH100-SXM-80GB"}


def test_the_verdict_says_what_was_chosen_and_what_the_defaults_need(visiting):
    page = visiting().open(ASKED)
    answer = asked("train", QUESTION)
    assert answer["chosen"]["change"] == {"recompute": "full"}
    expect(page.locator("#v-line strong")).to_have_text("Fits with full recomputation:")
    chosen = page.get_by_role("group", name="Chosen for you")
    expect(chosen).to_contain_text(f"{answer['chosen']['needed_bytes'] / GIB:.2f} GiB of")
    expect(chosen).to_contain_text("instead of")


def test_what_starts_the_run_and_what_else_would_fit_have_what_was_chosen(visiting):
    visit = visiting()
    page = visit.open(ASKED)
    visit.rest()
    expect(page.get_by_role("region", name="Launch settings")).to_contain_text("activation_checkpoint:full")
    turn(page, "options")
    expect(page.locator("table.takes tr", has_text="H100-SXM-80GB").first).to_be_visible()
    page.get_by_role("button", name="Use default: full recomputation").click()
    visit.rest()
    expect(page.get_by_role("region", name="Launch settings")).to_contain_text("activation_checkpoint:none")
    expect(page.locator("main")).not_to_contain_text("has no field")


def test_the_default_can_be_taken_instead_by_its_chip_and_by_the_switch(visiting):
    visit = visiting()
    page = visit.open(ASKED)
    page.get_by_role("button", name="Use default: full recomputation").click()
    visit.settle()
    expect(page.locator("#v-line strong")).to_have_text("Does not fit:")
    expect(page.locator("#say")).to_have_text("Does not fit")
    switch = page.get_by_role("switch", name="Defaults only")
    expect(switch).to_be_checked()
    switch.focus()
    page.keyboard.press("Space")
    visit.settle()
    expect(page.locator("#v-line strong")).to_have_text("Fits with full recomputation:")
    expect(switch).not_to_be_checked()
    expect(switch).to_be_focused()


def test_what_was_chosen_can_be_kept_as_the_users_own(visiting):
    visit = visiting()
    page = visit.open(ASKED)
    page.get_by_role("button", name="Keep: full recomputation").click()
    visit.settle()
    expect(page.locator("#v-line strong")).to_have_text("Fits:")
    field(page, "recompute")
    expect(page.locator('[data-row="recompute"]')).to_have_attribute("data-set", "")
    expect(page.locator(".v-chosen")).to_have_count(0)


def test_chosen_layouts_are_said_in_chinese(visiting):
    page = visiting().open("tab=serve&model=deepseek-r1&on=2x8xH100-SXM-80GB&lang=zh")
    expect(page.locator("#v-line strong")).to_have_text("放得下（2 个流水段）：")
    expect(page.get_by_role("group", name="自动选定")).to_contain_text("用默认值")


def test_a_page_without_a_question_opens_on_an_answer_with_its_targets(visiting):
    visit = visiting()
    page = visit.open()
    expect(page.locator("#v-line")).to_contain_text("Fits:")
    expect(page.locator(".example[aria-pressed='true']")).to_have_count(1)
    expect(field(page, "ttft")).to_have_value("2s")
    expect(field(page, "tpot")).to_have_value("50ms")
    expect(page.locator("[data-slot=targets]")).to_have_text("TTFT 2 s, TPOT 50 ms")
    expect(page.locator(".facts .aim").first).to_contain_text("≤ 2.00 s")
    expect(page.locator(".facts .aim").first).to_contain_text("target met")


def test_a_run_that_misses_its_deadline_fits_but_is_late(visiting):
    visit = visiting()
    page = visit.open(f"{ASKED}&tokens=1T&plan_deadline=30d")
    expect(page.locator("#v-line strong")).to_have_text(
        re.compile(r"^Fits, but the run takes .* days, the deadline is 30.0 days:$")
    )
    expect(page.locator("#v-line h1 > svg")).to_have_class(re.compile("tight"))
    expect(page.locator(".facts .aim > .no")).to_have_count(1)
    expect(page.locator(".decision [data-move]").first).to_contain_text("Fits, misses the targets")
    field(page, "plan_deadline").fill("soon")
    expect(page.locator("#in-plan_deadline-err")).to_contain_text("Deadline must be a time such as 30d")
    field(page, "plan_deadline").fill("900d")
    visit.settle()
    expect(page.locator("#v-line strong")).to_have_text("Fits with full recomputation:")
    closed(page).locator("#tab-plan").click()
    expect(page.locator(".wish", has_text="Deadline").locator("input")).to_have_value("900d")


@pytest.mark.parametrize("width", [1440, 1280, 768, 390])
def test_no_figure_of_a_tile_breaks_at_any_width(visiting, width):
    page = visiting(viewport={"width": width, "height": 900}).open(f"{ASKED}&tokens=15T")
    broken = "all => all.filter((each) => each.getClientRects().length > 1 || each.getBoundingClientRect().right > each.closest('div').getBoundingClientRect().right + 1).map((each) => each.textContent)"
    assert page.locator(".facts .n").evaluate_all(broken) == []
    expect(page.locator(".facts [data-card=cost]")).to_have_text(re.compile(r"^\$[\d.]+\u00a0M$"))


@pytest.mark.parametrize(("look", "width"), [("light", 1440), ("dark", 1440), ("zh", 1440), ("light", 390)])
@pytest.mark.parametrize("name", ["", f"{ASKED}&tokens=1T&plan_deadline=30d"])
def test_axe_finds_nothing_where_something_was_chosen(visiting, name, look, width):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe comes with axe-playwright-python")
    visit = visiting(
        viewport={"width": width, "height": 900},
        color_scheme="dark" if look == "dark" else "light",
        locale="zh-CN" if look == "zh" else "en-GB",
    )
    page = visit.open(name)
    visit.settle()
    found = axe.Axe().run(page).response["violations"]
    assert [(each["id"], [node["target"] for node in each["nodes"]][:3]) for each in found] == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width
