"""Names of models and machines are found in a list while they are typed."""

import pytest
from page_visits import field

expect = pytest.importorskip("playwright.sync_api", reason="the page is tested with Playwright (extra test)").expect


def test_a_partial_name_shows_models_with_their_size_and_no_error(visiting):
    visit = visiting()
    page = visit.open("fits")
    said = page.locator("#v-line").text_content()
    box = field(page, "model")
    box.click()
    box.press("Control+a")
    page.keyboard.type("llama 70b")
    first = page.locator("#model-list [role=option]").first
    expect(first).to_contain_text("70.6B parameters")
    expect(first).to_contain_text("context")
    expect(first).to_contain_text("dense")
    expect(box).to_have_attribute("aria-expanded", "true")
    visit.settle()
    expect(page.locator(".err:visible, .v-next.bad")).to_have_count(0)
    expect(page.locator("#v-line")).to_have_text(said)


def test_the_list_of_models_is_walked_by_arrows_and_enter_takes(visiting):
    visit = visiting()
    page = visit.open("fits")
    box = field(page, "model")
    box.fill("qwen3")
    box.press("ArrowDown")
    box.press("ArrowDown")
    active = page.locator("#model-list [aria-selected=true]")
    expect(active).to_have_count(1)
    name = active.locator("b").text_content()
    expect(box).to_have_attribute("aria-activedescendant", active.get_attribute("id"))
    box.press("Enter")
    visit.settle()
    expect(page.locator("#model-list")).to_have_count(0)
    expect(page.locator("[data-slot=model]")).to_be_focused()
    expect(page.locator(".resolved")).to_contain_text("parameters")
    assert f"model={name}" in page.url
    said = page.locator("[data-slot=model]").text_content()
    field(page, "model").fill("mixtral-8x")
    page.keyboard.press("Escape")
    expect(page.locator("#model-list")).to_have_count(0)
    expect(page.locator("[data-slot=model]")).to_be_focused()
    expect(page.locator("[data-slot=model]")).to_have_text(said)
    assert f"model={name}" in page.url


def test_a_name_that_is_left_unfinished_is_told_with_names_to_press(visiting):
    visit = visiting()
    page = visit.open("fits")
    field(page, "model").fill("lama-3.1-8b")
    page.keyboard.press("Tab")
    visit.settle()
    expect(page.locator("[data-slot=precision]")).to_be_focused()
    expect(page.locator(".mends [data-repair='llama-3.1-8b']")).to_be_visible()
    expect(field(page, "model")).to_have_attribute("aria-invalid", "true")
    expect(page.locator("#model-err [data-repair='llama-3.1-8b']")).to_be_visible()


def test_another_gpu_of_the_list_keeps_the_counts_and_shows_the_cluster(visiting):
    visit = visiting()
    page = visit.open("tab=train&model=llama-3.1-8b&on=8x8xH100-SXM-80GB")
    expect(page.locator("#cluster-words")).to_have_text("8 nodes × 8 H100-SXM-80GB = 64 GPUs")
    field(page, "on").fill("h200")
    option = page.locator("#machine-list [role=option]", has_text="H200-SXM-141GB").first
    expect(option).to_contain_text("GB/s")
    option.click()
    visit.settle()
    expect(field(page, "nodes")).to_have_value("8")
    expect(field(page, "each")).to_have_value("8")
    expect(page.locator("#machine-about")).to_contain_text("8 nodes × 8 H200-SXM-141GB = 64 GPUs: ")
    field(page, "on").fill("4xl40")
    page.locator("#machine-list [role=option]", has_text="L40S").first.click()
    visit.settle()
    expect(field(page, "each")).to_have_value("4")
    expect(page.locator("#gpus")).to_have_text("4 GPUs")
    expect(page.locator("#cluster-words")).to_have_text("1 node × 4 L40S")


@pytest.mark.parametrize("look", ["light", "dark", "zh"])
def test_axe_finds_nothing_in_an_open_list(visiting, look):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe comes with axe-playwright-python")
    visit = visiting(color_scheme="dark" if look == "dark" else "light", locale="zh-CN" if look == "zh" else "en-GB")
    page = visit.open("fits")
    field(page, "model").fill("qwen")
    field(page, "model").press("ArrowDown")
    expect(page.locator("#model-list [role=option]")).to_have_count(8)
    found = axe.Axe().run(page).response["violations"]
    assert [(each["id"], [node["target"] for node in each["nodes"]][:3]) for each in found] == []
