"""Whoever reads the page can: by keyboard, in the dark, on a phone, in Chinese, with a screen reader."""

import re
import time

import pytest
from page_visits import closed, field

sync = pytest.importorskip("playwright.sync_api", reason="the page is tested with Playwright (extra test)")
expect = sync.expect
WIDE = {"width": 1440, "height": 1000}
PHONE = {"width": 390, "height": 844}


def shown(visit, name):
    """The page on this question; loaded anew for a wrong one, beside which no answer of an earlier question stands."""
    return visit.open(name) if name == "wrong" else visit.go_on(name)


@pytest.mark.parametrize("name", ["fits", "no", "tune", "serve", "wrong", "empty"])
@pytest.mark.parametrize(("look", "size"), [("light", WIDE), ("dark", WIDE), ("light", PHONE), ("zh", WIDE)])
def test_axe_finds_nothing(staying, name, look, size):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe comes with axe-playwright-python")
    visit = staying(
        viewport=size, color_scheme="dark" if look == "dark" else "light", locale="zh-CN" if look == "zh" else "en-GB"
    )
    page = shown(visit, name)
    if look == "zh":
        expect(page.locator("html")).to_have_attribute("lang", "zh-Hans")
    found = axe.Axe().run(page).response["violations"]
    assert [(each["id"], [node["target"] for node in each["nodes"]][:3]) for each in found] == []


@pytest.mark.parametrize("name", ["fits", "no", "tune", "serve", "wrong", "empty"])
@pytest.mark.parametrize("width", [390, 320, 768])
def test_a_small_window_needs_no_sideways_scroll(staying, name, width):
    page = shown(staying(viewport={"width": width, "height": 844}), name)
    assert page.evaluate("document.documentElement.scrollWidth") <= width


def test_a_phone_shows_the_verdict_on_its_first_screen_and_inputs_in_a_sheet(visiting):
    page = visiting(viewport=PHONE).open("fits")
    box = page.locator("#v-line").bounding_box()
    assert box["y"] + box["height"] < PHONE["height"]
    expect(field(page, "model")).to_be_focused()
    sheet = page.locator(".pop").bounding_box()
    assert (sheet["x"], sheet["width"], sheet["y"] + sheet["height"]) == (0, PHONE["width"], PHONE["height"])


def test_dark_follows_the_system_and_the_readers_choice_is_kept(visiting):
    visit = visiting(color_scheme="dark")
    page = visit.open("fits")
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    dark = page.evaluate("getComputedStyle(document.body).backgroundColor")
    page.locator("#theme").click()
    expect(page.locator("html")).to_have_attribute("data-theme", "light")
    assert page.evaluate("getComputedStyle(document.body).backgroundColor") != dark
    page.reload()
    expect(page.locator("html")).to_have_attribute("data-theme", "light")


def test_everything_can_be_done_by_keyboard(visiting):
    visit = visiting()
    page = visit.open("empty")
    page.keyboard.press("Tab")
    expect(page.locator(".skip")).to_be_focused()
    page.locator("#tab-serve").focus()
    for tab in ("train", "tune", "plan", "compare", "rules"):
        page.keyboard.press("Tab")
        expect(page.locator(f"#tab-{tab}")).to_be_focused()
    page.locator("#tab-train").focus()
    page.keyboard.press("Enter")
    expect(page.locator("#tab-train")).to_have_attribute("aria-current", "page")
    page.keyboard.press("/")
    expect(page.locator("#model")).to_be_focused()
    page.keyboard.type("llama-3.1-8b")
    page.keyboard.press("Enter")
    expect(page.locator("[data-slot=model]")).to_be_focused()
    expect(page.locator("#v-line")).to_contain_text("Fits")
    page.locator("#v-line .n").first.focus()
    page.keyboard.press("Enter")
    expect(page.locator("#inspector .big")).to_be_visible()
    expect(page.locator("#v-line .n").first).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.locator("#v-line .n").first).to_be_focused()
    outline = page.evaluate("getComputedStyle(document.activeElement).outlineWidth")
    assert outline == "2px"


def test_typing_keeps_the_focus_and_the_text(visiting):
    visit = visiting()
    page = visit.open("fits")
    box = field(page, "sequence_length")
    box.click()
    box.press("Control+a")
    page.keyboard.type("16384", delay=30)
    visit.settle()
    expect(box).to_be_focused()
    expect(box).to_have_value("16384")


@pytest.mark.parametrize("name", ["no", "tight", "tune", "serve", "wrong", "empty"])
def test_chinese_leaves_no_english_words(visiting, name):
    visit = visiting()
    page = visit.open(name)
    page.wait_for_load_state("networkidle")
    english = texts(page)
    page.get_by_role("button", name="中文").click()
    expect(page.locator("html")).to_have_attribute("lang", "zh-Hans")
    visit.settle()
    chinese = texts_at_last(page, lambda found: not any(map(left_english, found)))
    assert len(chinese) > 30
    assert [text for text in chinese if left_english(text)] == [], "untranslated"
    assert any(left_english(text) for text in english)
    page.get_by_role("button", name="EN", exact=True).click()
    expect(page.locator("html")).to_have_attribute("lang", "en")
    visit.settle()
    assert texts_at_last(page, lambda found: found == english) == english


# Alone in a text: names and units that stay as they are (DESIGN_NOTES, Words).
NAMES = re.compile(
    r"\b(?:tonnage|TTFT|TPOT|MFU|HFU|PUE|GiB|bf16-mixed|fp8|QLoRA|rank|MWh|kWh|Wh|CP|DP|EN|EP|PP|TP|torchtitan|transformers|vLLM|DeepSeek\S*|Llama\S*|Qwen\S*|ms|min|token)\b|[A-Z]{1,2}\d+\S*|RTX\S*"
)
HAN = re.compile(r"[\u4e00-\u9fff]")


SETTING = re.compile(r"\b(?:method|base_weights|loss) [\w-]+")  # an option with its value


def left_english(text):
    """Two English words beside each other, or a text of one that is no name. A name may stand in a Chinese sentence."""
    text = SETTING.sub("", text)
    return bool(re.search(r"[a-z]{2,} [a-z]{2,}", text)) or (
        not HAN.search(text) and bool(re.search(r"[A-Za-z]{2,}", NAMES.sub("", text)))
    )


def texts_at_last(page, wanted):
    """The texts once they are as wanted; sections that ask for themselves come later than the answer."""
    end = time.monotonic() + 20
    while not wanted(found := texts(page)) and time.monotonic() < end:
        page.wait_for_timeout(200)
    return found


def texts(page):
    """Visible text nodes, but code, choices of inputs, sources and what Python's answers name by itself."""
    return page.evaluate("""() => {
        const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT), found = [];
        for (let node = walker.nextNode(); node; node = walker.nextNode()) {
            const at = node.parentElement, text = node.textContent.trim();
            if (text && at.checkVisibility() && !at.closest("code, pre, option, svg.defs, .source, .move, .chips, datalist, button[lang], [data-repair], [data-slot=model]")) found.push(text);
        }
        return found;
    }""")


def test_motion_is_left_out_where_the_reader_asks_for_less(visiting):
    visit = visiting(reduced_motion="reduce")
    page = visit.open("fits")
    page.route("**/v1/train*", lambda route: None)
    field(page, "micro_batch_size").fill("4")
    bar = page.locator(".progress i")
    expect(bar).to_be_visible()
    assert bar.evaluate("each => getComputedStyle(each).animationName") == "none"
    page.unroute("**/v1/train*")


def test_patterns_stay_in_forced_colours(visiting):
    page = visiting(forced_colors="active").open("fits")
    assert page.locator("svg.chart").first.evaluate("each => getComputedStyle(each).forcedColorAdjust") == "none"
    expect(page.locator("#tab-train")).to_have_css("outline-style", "solid")


def test_a_wrong_count_of_nodes_is_not_passed_over(visiting):
    visit = visiting()
    page = visit.open("fits")
    for name, label, text in (
        ("nodes", "Nodes", "0"),
        ("nodes", "Nodes", "-1"),
        ("each", "GPUs per node", "abc"),
        ("each", "GPUs per node", "1e9"),
    ):
        box = field(page, name)
        box.fill(text)
        visit.settle()
        expect(page.locator("#counts-err")).to_have_text(f"{label} must be a whole number of 1 or more. Got {text}.")
        expect(box).to_have_attribute("aria-invalid", "true")
        expect(page.locator(".v-next.bad")).to_contain_text(f"One input needs attention: {label}")
        box.fill("8")
        visit.settle()
    field(page, "each").fill("1000000000")
    visit.settle()
    expect(page.locator("#counts-err")).to_contain_text("from 1 to 10,000,000 accelerators")
    expect(field(page, "each")).to_have_attribute("aria-invalid", "true")
    field(page, "each").fill("2")
    visit.settle()
    expect(page.locator("#gpus")).to_contain_text("16")
    expect(page.locator("#counts-err")).to_be_hidden()
    assert page.locator(".pop [aria-invalid=true]").count() == 0


def test_a_wrong_count_is_forgotten_with_the_cluster_that_it_was_typed_for(visiting):
    visit = visiting()
    page = visit.open("fits")
    field(page, "nodes").fill("many")
    visit.settle()
    page.locator("#machine-list [role=option]", has_text="H200").click()
    visit.settle()
    expect(field(page, "nodes")).to_have_value("1")
    expect(page.locator("#counts-err")).to_be_hidden()
    closed(page).locator("#undo").click()
    expect(field(page, "nodes")).to_have_value("many")


@pytest.mark.parametrize(
    ("typed", "nodes", "each", "accelerators"),
    [
        ("h200", "1", "8", 8),
        ("gb200", "1", "8", 8),
        ("A100", "1", "8", 8),
        ("h200_sxm 141gb", "1", "8", 8),
        ("64xH100", "8", "8", 64),
        ("h100:4", "1", "4", 4),
    ],
)
def test_another_name_in_the_cluster_box_keeps_the_counts_and_shows_those_of_the_answer(
    visiting, typed, nodes, each, accelerators
):
    visit = visiting()
    page = visit.open("fits")
    box = field(page, "on")
    box.fill(typed)
    page.keyboard.press("Tab")
    visit.settle()
    expect(page.locator("#gpus")).to_contain_text(f"{accelerators} GPUs")
    expect(field(page, "nodes")).to_have_value(nodes)
    expect(field(page, "each")).to_have_value(each)
    field(page, "nodes").fill("2")
    visit.settle()
    expect(page.locator("#gpus")).to_contain_text(f"{2 * int(each)} GPUs")


def test_every_slider_of_the_rules_moves_by_arrow_keys(visiting):
    """One press reaches another value, however far apart the whole numbers lie on the slider."""
    visit = visiting()
    page = visit.open("tab=rules&model=llama-3.1-8b")
    page.wait_for_selector("[data-moves]")
    found = {}
    for at, name in enumerate(
        page.eval_on_selector_all("[data-moves]", "all => all.map((each) => each.dataset.moves)")
    ):
        found.setdefault(name, at)
    assert len(found) >= 3
    for at in found.values():
        slider = page.locator("[data-moves]").nth(at)
        before = slider.get_attribute("aria-valuetext")
        up, down = ("ArrowRight", "ArrowLeft"), ("PageUp", "PageDown")
        is_high = int(slider.input_value()) > 200  # nearer its upper end: down first
        for key, back in (pair[::-1] if is_high else pair for pair in (up, down)):
            slider.press(key)
            moved = slider.get_attribute("aria-valuetext")
            assert moved != before, key
            slider.press(back)
            assert slider.get_attribute("aria-valuetext") != moved, back
            before = slider.get_attribute("aria-valuetext")
    assert not visit.wrong


STRICT = {"rules": {"label-content-name-mismatch": {"enabled": True}, "target-size": {"enabled": True}}}


@pytest.mark.parametrize("look", ["light", "dark"])
@pytest.mark.parametrize("size", [WIDE, PHONE])
@pytest.mark.parametrize("name", ["fits", "serve", "tab=rules&rules_part=B", "tab=plan&model=llama-3.1-8b"])
def test_numbers_and_buttons_are_large_enough_and_called_as_they_are_labelled(staying, name, size, look):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe comes with axe-playwright-python")
    visit = staying(viewport=size, color_scheme=look)
    visit.go_on(name)
    page = visit.rest()
    parts = ("timeline", "accelerators", "rules", "plan", "bar", "frontier")
    shown = [part for part in parts if page.locator(f"[data-part={part}] > *").count()]
    assert shown
    for part in shown:
        found = axe.Axe().run(page, context=f"[data-part={part}]", options=STRICT).response["violations"]
        assert [(each["id"], [node["target"] for node in each["nodes"]][:3]) for each in found] == []


def test_an_accelerator_is_called_by_its_name_first(visiting):
    visit = visiting()
    visit.open("serve", "options")
    page = visit.rest()
    names = page.locator("[data-part=accelerators] .take")
    assert names.count() > 3
    for each in names.all():
        assert each.get_attribute("aria-label").startswith(each.inner_text())
