"""Up to four answers are pinned beside the one on the page."""

import pytest
from page_visits import QUESTIONS, asked

expect = pytest.importorskip("playwright.sync_api", reason="the page is tested with Playwright (extra test)").expect
GIB = 2**30
SERVED = "tab=serve&model=llama-3.1-70b&on=4xH100-SXM-80GB&weights=fp8&concurrency=16"


def test_pinned_answers_stand_beside_the_one_on_the_page_with_the_best_marked(visiting):
    visit = visiting()
    page = visit.open(SERVED)
    page.get_by_role("button", name="Pin this answer").click()
    expect(page.locator("#say")).to_have_text("Pinned")
    expect(page.get_by_role("button", name="Pin this answer")).to_be_focused()
    page.locator("#each").fill("8")
    visit.settle()
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
    expect(page.locator("#each")).to_have_value("4")
    expect(table.locator("thead th")).to_have_count(1)


def test_four_answers_are_the_most_and_they_outlast_a_reload(visiting):
    visit = visiting()
    page = visit.open(SERVED)
    for users in ("16", "17", "18", "19"):
        page.get_by_label("Concurrent users", exact=True).fill(users)
        visit.settle()
        page.get_by_role("button", name="Pin this answer").click()
    page.get_by_label("Concurrent users", exact=True).fill("20")
    visit.settle()
    expect(page.get_by_role("button", name="Four answers are pinned")).to_be_disabled()
    expect(page.locator("table.tray")).to_contain_text("17 concurrent users")
    page.reload()
    page.wait_for_selector("body[data-ready]")
    expect(page.locator("table.tray thead th")).to_have_count(5)
    page.locator("table.tray").get_by_role("button", name="Remove").first.click()
    expect(page.locator("table.tray thead th")).to_have_count(4)
    expect(page.get_by_role("button", name="Pin this answer")).to_be_enabled()


@pytest.mark.parametrize(("look", "width"), [("light", 1440), ("dark", 1440), ("zh", 1440), ("light", 390)])
def test_axe_finds_nothing_in_the_tray(visiting, look, width):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe comes with axe-playwright-python")
    visit = visiting(
        viewport={"width": width, "height": 900},
        color_scheme="dark" if look == "dark" else "light",
        locale="zh-CN" if look == "zh" else "en-GB",
    )
    page = visit.open(SERVED)
    page.locator('[data-part="tray"] header .btn').click()
    page.evaluate(f"location.hash = {QUESTIONS['tune']!r}")
    expect(page.locator(".tray thead th")).to_have_count(2)
    visit.settle()
    found = axe.Axe().run(page).response["violations"]
    assert [(each["id"], [node["target"] for node in each["nodes"]][:3]) for each in found] == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width
