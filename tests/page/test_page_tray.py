"""Up to four answers are pinned beside the one on the page."""

import pytest
from page_visits import QUESTIONS, asked, closed, field

expect = pytest.importorskip("playwright.sync_api", reason="the page is tested with Playwright (extra test)").expect
GIB = 2**30
SERVED = "tab=serve&model=llama-3.1-70b&on=4xH100-SXM-80GB&weights=fp8&concurrency=16"


def test_pinned_answers_stand_beside_the_one_on_the_page_with_the_best_marked(visiting):
    visit = visiting()
    page = visit.open(SERVED)
    page.get_by_role("button", name="Pin to compare").click()
    expect(page.locator("#say")).to_have_text("Pinned")
    expect(page.get_by_role("button", name="Pin to compare")).to_be_focused()
    field(page, "each").fill("8")
    visit.settle()
    closed(page).locator("#side-by-side").click()
    expect(page.locator("#tab-compare")).to_have_attribute("aria-current", "page")
    expect(page.locator("#pinned")).to_have_text("1")
    table = page.locator("table.tray")
    expect(table.locator("thead th")).to_have_count(2)
    question = {"model": "llama-3.1-70b", "on": "4xH100-SXM-80GB", "weights": "fp8", "concurrency": "16"}
    answers = [asked("serve", question), asked("serve", {**question, "on": "8xH100-SXM-80GB"})]
    needs = [answer["verdict"]["needed_bytes"] for answer in answers]
    cells = table.locator("tr", has_text="GiB per GPU").locator("td")
    for cell, need in zip(cells.all(), needs, strict=True):
        expect(cell).to_contain_text(f"{need / GIB:.1f}")
    expect(cells.nth(needs.index(min(needs)))).to_contain_text("▲")
    table.get_by_role("button", name="Open: llama-3.1-70b, 4 × H100-SXM-80GB").click()
    visit.settle()
    expect(page.locator("#tab-serve")).to_have_attribute("aria-current", "page")
    expect(field(page, "each")).to_have_value("4")
    closed(page).locator("#tab-compare").click()
    expect(table.locator("thead th")).to_have_count(1)


def test_four_answers_are_the_most_and_they_outlast_a_reload(visiting):
    visit = visiting()
    page = visit.open(SERVED)
    for users in ("16", "17", "18", "19"):
        field(page, "concurrency").fill(users)
        visit.settle()
        closed(page).get_by_role("button", name="Pin to compare").click()
    field(page, "concurrency").fill("20")
    visit.settle()
    expect(page.get_by_role("button", name="Four answers are pinned")).to_be_disabled()
    closed(page).locator("#side-by-side").click()
    expect(page.locator("table.tray")).to_contain_text("17 concurrent users")
    page.reload()
    page.wait_for_selector("body[data-ready]")
    expect(page.locator("table.tray thead th")).to_have_count(4)
    page.locator("table.tray").get_by_role("button", name="Remove").first.click()
    expect(page.locator("table.tray thead th")).to_have_count(3)
    expect(page.locator("#pinned")).to_have_text("3")
    page.locator("#tab-serve").click()
    expect(page.get_by_role("button", name="Pin to compare")).to_be_enabled()


@pytest.mark.parametrize(("look", "width"), [("light", 1440), ("dark", 1440), ("zh", 1440), ("light", 390)])
@pytest.mark.parametrize("at", ["bar", "table"])
def test_axe_finds_nothing_in_the_tray(visiting, look, width, at):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe comes with axe-playwright-python")
    visit = visiting(
        viewport={"width": width, "height": 900},
        color_scheme="dark" if look == "dark" else "light",
        locale="zh-CN" if look == "zh" else "en-GB",
    )
    page = visit.open(SERVED)
    page.locator("#pin").click()
    page.evaluate(f"location.hash = {QUESTIONS['tune']!r}")
    expect(page.locator("#tab-tune")).to_have_attribute("aria-current", "page")
    visit.settle()
    if at == "bar":
        expect(page.locator("#pins .pin")).to_have_count(2)
    else:
        page.locator("#tab-compare").click()
        expect(page.locator(".tray thead th")).to_have_count(2)
    found = axe.Axe().run(page).response["violations"]
    assert [(each["id"], [node["target"] for node in each["nodes"]][:3]) for each in found] == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width
