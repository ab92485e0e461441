"""Every number opens its card."""

import pytest

from conftest import asked
from tonnage.estimate.bands.part_errors import part_errors

SERVED = "tab=serve&model=llama-3.1-70b&on=8xH100-SXM-80GB&concurrency=64&input_tokens=1024&output_tokens=1024"
QUESTION = {
    "model": "llama-3.1-70b",
    "on": "8xH100-SXM-80GB",
    "concurrency": 64,
    "input_tokens": 1024,
    "output_tokens": 1024,
}

sync = pytest.importorskip("playwright.sync_api", reason="the page is tested with Playwright (extra test)")
expect = sync.expect


@pytest.mark.parametrize("view", ["memory", "time", "cost", "options", "sure"])
@pytest.mark.parametrize("name", ["fits", "tight", "no", "tune", "serve"])
def test_every_number_opens_a_card_with_its_value_and_how_it_is_known(staying, name, view):
    visit = staying()
    visit.go_on(name, view)
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


def test_a_card_leads_on_to_what_its_number_was_made_of(staying):
    page = staying().go_on("fits")
    page.locator('tr[data-part-name="optimizer"] .n').click()
    expect(page.locator("#inspector .path")).to_contain_text("Memory per GPU")
    page.locator("#inspector dd .n").first.click()
    expect(page.locator("#inspector .path")).to_contain_text("optimizer")


def test_a_formulas_card_has_the_numbers_put_in_and_what_its_letters_mean(staying):
    page = staying().go_on("fits")
    page.locator(".facts .n", has_text="%").first.click()
    box = page.locator("#inspector")
    expect(box).to_contain_text("C / (tau * n * P)")
    expect(box.locator("pre").nth(1)).to_contain_text("/ (")
    expect(box.locator("dl")).to_contain_text("tau")
    expect(box.locator("dl small")).to_have_count(4)
    expect(box.locator(".source")).to_contain_text("Chowdhery2022")


def test_a_segment_of_a_bar_and_its_row_light_up_together(staying):
    page = staying().go_on("fits")
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


def open_part(page, name):
    page.locator(f'tr[data-part-name="{name}"] .n').first.click()
    return page.locator("#inspector")


def test_a_sum_of_one_part_opens_on_the_formula_of_that_part(staying):
    page = staying().go_on("fits")
    weights = asked("train", {"model": "llama-3.1-8b", "on": "8xH100-SXM-80GB"})["ranks"][0]["children"][0]
    (only,) = weights["children"]
    assert weights["combine"] == "sum" and only["combine"] == "product"
    card = open_part(page, "weights")
    expect(card.locator("h2")).to_have_text("weights")
    expect(card).to_contain_text(f"Formula of its only part, {only['name']}")
    expect(card.locator("pre").first).to_have_text(" × ".join(child["name"] for child in only["children"]))
    expect(card.locator(".source").first).to_have_text(only["children"][0]["source"])


def test_a_sum_shows_its_parts_with_their_shares_and_formulas(staying):
    page = staying().go_on("fits")
    rank = asked("train", {"model": "llama-3.1-8b", "on": "8xH100-SXM-80GB"})["ranks"][0]
    activations = next(child for child in rank["children"] if child["name"] == "activations")
    assert len(activations["children"]) > 1
    card = open_part(page, "activations")
    for child in activations["children"]:
        expect(card.locator("dt", has_text=child["name"])).to_have_count(1)
        expect(card.locator("dl")).to_contain_text(f"{100 * child['value'] / activations['value']:.1f} %")
    assert card.locator("dt .made code").count() == len(activations["children"])
    card.locator("dd .n").last.click()
    expect(card.locator("h2")).to_have_text(activations["children"][-1]["name"])


def test_a_card_says_what_one_more_user_or_sequence_adds(staying):
    page = staying().go_on(SERVED)
    slopes = asked("serve", QUESTION)["slopes"]
    card = open_part(page, "kv cache")
    expect(card).to_contain_text(f"One more user of 2,048 tokens adds {slopes['bytes_per_sequence'] / 2**20:.3g} MiB")
    expect(card).to_contain_text(f"One more token of context adds {slopes['bytes_per_token'] / 2**10:.1f} KiB")
    page = staying().go_on("fits")
    expect(open_part(page, "activations")).to_contain_text("One more sequence in a micro-batch adds")


def test_a_card_has_the_error_of_its_part_where_rows_measured_it_and_says_so_where_none_did(staying):
    page = staying().go_on(SERVED)
    measured = {each.part: each for each in part_errors() if each.runtime == "vllm"}
    for part in ("weights", "kv cache", "activations"):
        expect(open_part(page, part)).to_contain_text(
            f"± {100 * measured[part].p90:.2g} %: nine in ten of {measured[part].rows} measurements of vllm"
        )
    page = staying().go_on("fits")
    for part in ("weights", "optimizer", "activations"):
        expect(open_part(page, part)).to_contain_text("No measured rows for this part.")


def test_a_part_has_the_same_name_in_the_bar_the_table_and_the_card_in_both_languages(visiting):
    page = visiting().open(SERVED)
    for language, word in (("EN", "KV cache"), ("中文", "KV 缓存")):
        page.get_by_role("button", name=language).first.click()
        expect(page.locator('tr[data-part-name="kv cache"] th')).to_contain_text(word)
        expect(page.locator(".legend").first).to_contain_text(word)
        expect(open_part(page, "kv cache").locator("h2")).to_have_text(word)
