"""Every number opens its card."""

import pytest

sync = pytest.importorskip("playwright.sync_api", reason="the page is tested with Playwright (extra test)")
expect = sync.expect


@pytest.mark.parametrize("name", ["fits", "tight", "no", "tune", "serve"])
def test_every_number_opens_a_card_with_its_value_and_how_it_is_known(visiting, name):
    visit = visiting()
    visit.open(name)
    page = visit.rest()
    paths = page.eval_on_selector_all(".n[data-card]", "all => all.map(each => each.dataset.card)")
    assert len(paths) > 12
    for path in dict.fromkeys(paths):
        page.evaluate('path => document.querySelector(`.n[data-card="${CSS.escape(path)}"]`).click()', path)
        card = page.evaluate("""() => ({
            name: document.querySelector("#inspector h2")?.textContent, big: document.querySelector("#inspector .big")?.textContent,
            basis: document.querySelector("#inspector .basis")?.textContent,
            made: document.querySelectorAll("#inspector pre, #inspector dl, #inspector .source").length })""")
        assert card["big"] and card["basis"] and card["name"] != "Pick any underlined number", path
        assert card["made"] > 0, f"the card of {path} says nothing of how it was made"


def test_a_card_leads_on_to_what_its_number_was_made_of(visiting):
    page = visiting().open("fits")
    page.locator('tr[data-part-name="optimizer"] .n').click()
    expect(page.locator("#inspector .path")).to_contain_text("Memory per GPU")
    page.locator("#inspector dd .n").first.click()
    expect(page.locator("#inspector .path")).to_contain_text("optimizer")


def test_a_formulas_card_has_the_numbers_put_in_and_what_its_letters_mean(visiting):
    page = visiting().open("fits")
    page.locator(".facts .n", has_text="%").first.click()
    box = page.locator("#inspector")
    expect(box).to_contain_text("C / (tau * n * P)")
    expect(box.locator("pre").nth(1)).to_contain_text("/ (")
    expect(box.locator("dl")).to_contain_text("tau")
    expect(box.locator("dl small")).to_have_count(4)
    expect(box.locator(".source")).to_contain_text("Chowdhery2022")


def test_a_segment_of_a_bar_and_its_row_light_up_together(visiting):
    page = visiting().open("fits")
    page.locator('rect[data-part-name="activations"]').hover()
    expect(page.locator('tr[data-part-name="activations"]')).to_have_class("hot")
    page.locator('rect[data-part-name="activations"]').click()
    expect(page.locator("#inspector h2")).to_have_text("activations")


def test_the_sheet_of_a_phone_closes_by_escape_and_gives_the_focus_back(visiting):
    page = visiting(viewport={"width": 390, "height": 800}).open("fits")
    number = page.locator("#v-line .n").first
    number.click()
    expect(page.locator("#inspector")).to_be_visible()
    page.keyboard.press("Escape")
    expect(page.locator("#inspector")).to_be_hidden()
    expect(page.locator("#v-line .n").first).to_be_focused()


def test_a_link_may_carry_an_open_card(visiting):
    visit = visiting()
    page = visit.open("fits")
    page.locator('tr[data-part-name="weights"] .n').click()
    link = page.evaluate("location.hash.slice(1)")
    other = visiting()
    other.page.goto(f"{other.server}#{link}")
    expect(other.page.locator("#inspector h2")).to_have_text("weights")
