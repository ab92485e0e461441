"""The question is a sentence whose slots open the inputs behind them; the answer has views, of which one is drawn."""

import pytest
from page_visits import closed, field, turn

expect = pytest.importorskip("playwright.sync_api", reason="the page is tested with Playwright (extra test)").expect
TRAINED = "tab=train&model=llama-3.1-70b&on=8x8xH100-SXM-80GB&tokens=1T&plan_deadline=30d"
SERVED = "tab=serve&model=llama-3.1-70b&on=8xH100-SXM-80GB&concurrency=64&ttft=2s"
VIEWS = ["memory", "time", "cost", "options", "sure"]
LOOKS = [("light", 1440), ("dark", 1440), ("zh", 1440), ("light", 390)]
# Every view in every look, each of the two questions in every view and in every look.
PAIRS = [
    ((SERVED, TRAINED)[(row + column) % 2], look, width, view)
    for row, (look, width) in enumerate(LOOKS)
    for column, view in enumerate(VIEWS)
]
PARTS = "() => [...document.querySelectorAll('#panel [data-part]')].filter((each) => each.childElementCount).map((each) => each.dataset.part)"


def seen(visiting, look="light", width=1440, height=900):
    return visiting(
        viewport={"width": width, "height": height},
        color_scheme="dark" if look == "dark" else "light",
        locale="zh-CN" if look == "zh" else "en-GB",
    )


def findings(page):
    """What axe finds, with two rules that it leaves out by itself."""
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe comes with axe-playwright-python")
    more = {"rules": {name: {"enabled": True} for name in ("label-content-name-mismatch", "target-size")}}
    found = axe.Axe().run(page, options=more).response["violations"]
    return [(each["id"], [node["target"] for node in each["nodes"]][:3]) for each in found]


def test_the_sentence_says_what_is_asked_and_which_of_it_nobody_said(visiting):
    page = visiting().open(SERVED)
    said = " ".join(page.locator("#sentence").inner_text().split())
    assert said == "Serve Llama-3.1-70B (bf16) to 64 users of 1,024 in / 1,024 out on 8 × H100 within TTFT 2 s"
    kinds = page.eval_on_selector_all(
        "#sentence .slot",
        "all => all.map((each) => [each.dataset.slot, getComputedStyle(each).borderBottomStyle])",
    )
    assert dict(kinds) == {
        "model": "solid",
        "weights": "dashed",
        "users": "solid",
        "lengths": "dashed",
        "machine": "solid",
        "targets": "solid",
    }
    field(page, "input_tokens").fill("8192")
    expect(page.locator("[data-slot=lengths]")).to_have_text("8,192 in / 1,024 out")
    expect(page.locator("[data-slot=lengths]")).to_have_css("border-bottom-style", "solid")


@pytest.mark.parametrize(
    ("fragment", "sentence"),
    [
        (
            SERVED,
            "在 8 × H100 上部署 Llama-3.1-70B（bf16），服务 64 个用户，每个请求输入 1,024 / 输出 1,024 token，要求 TTFT ≤ 2 s",
        ),
        (
            TRAINED,
            "用 8 × 8 × H100 训练 Llama-3.1-70B（bf16-mixed），数据 1T token，序列长度 4,096，批大小 64，期限 30 天",
        ),
    ],
)
def test_a_chinese_sentence_has_the_order_of_a_chinese_one(visiting, fragment, sentence):
    page = visiting().open(f"{fragment}&lang=zh")
    assert page.locator("#sentence").inner_text().replace("\u00a0", " ").replace("\n", "") == sentence


def test_slots_are_walked_opened_and_left_by_keyboard(visiting):
    visit = visiting()
    page = visit.open(TRAINED)
    slots = page.eval_on_selector_all("#sentence .slot", "all => all.map((each) => each.dataset.slot)")
    page.locator("#theme").focus()
    for slot in slots:
        page.keyboard.press("Tab")
        expect(page.locator(f"[data-slot={slot}]")).to_be_focused()
    page.locator("[data-slot=length]").focus()
    page.keyboard.press("Enter")
    expect(page.locator("[data-slot=length]")).to_have_attribute("aria-expanded", "true")
    expect(page.locator("#in-sequence_length")).to_be_focused()
    page.keyboard.type("8192")
    page.keyboard.press("Enter")
    expect(page.locator(".pop")).to_have_count(0)
    expect(page.locator("[data-slot=length]")).to_be_focused()
    expect(page.locator("[data-slot=length]")).to_have_text("8,192")
    page.keyboard.press("Enter")
    page.keyboard.press("Escape")
    expect(page.locator(".pop")).to_have_count(0)
    expect(page.locator("[data-slot=length]")).to_be_focused()
    page.locator("[data-slot=batch]").focus()
    page.keyboard.press("Enter")
    expect(page.locator("#in-global_batch_size")).to_be_focused()
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    expect(page.locator(".pop")).to_have_count(0)
    expect(page.locator("[data-slot=machine]")).to_be_focused()
    page.keyboard.press("Enter")
    expect(page.locator("#nodes")).to_be_focused()
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    expect(page.locator("#machine")).to_be_focused()
    page.keyboard.press("ArrowDown")
    page.keyboard.press("ArrowDown")
    page.keyboard.press("Enter")
    visit.settle()
    expect(page.locator("[data-slot=machine]")).to_be_focused()
    expect(page.locator("[data-slot=machine]")).to_have_text("8\u00a0×\u00a08\u00a0×\u00a0H200")


def test_a_press_outside_closes_a_popover_and_keeps_what_was_typed(visiting):
    visit = visiting()
    page = visit.open(TRAINED)
    field(page, "sequence_length").fill("2048")
    page.locator("#v-line").click()
    expect(page.locator(".pop")).to_have_count(0)
    expect(page.locator("[data-slot=length]")).to_have_text("2,048")


def test_the_skip_link_leads_to_the_answer_and_keeps_the_question(visiting):
    page = visiting().open(SERVED)
    address = page.url
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(page.locator("#main")).to_be_focused()
    assert page.url == address


def test_all_settings_stand_in_a_drawer_while_the_rest_stands_still(visiting):
    visit = visiting()
    page = visit.open(TRAINED)
    opener = page.locator("#all-settings")
    opener.focus()
    page.keyboard.press("Enter")
    finder = page.get_by_label("Find an option")
    expect(finder).to_be_focused()
    assert page.locator("main").evaluate("each => each.inert") and page.locator(".top").evaluate("each => each.inert")
    finder.fill("zero")
    shown = page.locator("#settings .row")
    expect(shown.first).to_be_visible()
    assert all("zero" in each.lower() for each in shown.all_inner_texts())
    page.locator("#in-zero_stage").fill("2")
    visit.settle()
    expect(page.locator("#settings header small")).to_contain_text("1 of ")
    page.keyboard.press("Escape")
    expect(page.locator("#settings")).to_have_count(0)
    expect(opener).to_be_focused()
    expect(opener.locator(".count")).to_have_text("1")
    assert not page.locator("main").evaluate("each => each.inert")
    assert "zero_stage=2" in page.url


def test_a_setting_that_is_wrong_marks_the_button_behind_which_it_stands(visiting):
    page = visiting().open("tab=train&model=llama-3.1-8b&on=8xH100-SXM-80GB&tensor_parallel_size=6")
    page.locator("#all-settings.wrong").click()
    expect(page.locator("#in-tensor_parallel_size")).to_be_focused()
    expect(page.locator("#in-tensor_parallel_size-err")).to_contain_text("Got 6")


def test_views_are_walked_by_arrows_stand_in_the_address_and_only_one_is_drawn(visiting):
    visit = visiting()
    page = visit.open(SERVED)
    assert "view=" not in page.url
    assert page.evaluate(PARTS) == ["bars", "breakdown"]
    assert not [url for url in visit.asked if "/v1/compare" in url]
    page.locator("#view-memory").focus()
    for key, view in (
        ("ArrowRight", "time"),
        ("End", "sure"),
        ("ArrowRight", "memory"),
        ("ArrowLeft", "sure"),
        ("Home", "memory"),
        ("ArrowRight", "time"),
    ):
        page.keyboard.press(key)
        expect(page.locator(f"#view-{view}")).to_be_focused()
        expect(page.locator(f"#view-{view}")).to_have_attribute("aria-selected", "true")
        expect(page.locator("#panel")).to_have_attribute("aria-labelledby", f"view-{view}")
    assert page.url.endswith("view=time")
    assert page.evaluate(PARTS) == ["timeline"]
    assert not [url for url in visit.asked if "/v1/compare" in url]
    turn(page, "options")
    expect(page.locator("table.matrix")).to_be_visible()
    assert [url for url in visit.asked if "/v1/compare" in url]
    other = visiting().open(page.url.partition("#")[2])
    expect(other.locator("#view-options")).to_have_attribute("aria-selected", "true")
    expect(other.locator("table.matrix")).to_be_visible()


def test_changes_that_have_no_room_beside_the_verdict_stand_among_the_options(visiting):
    visit = visiting()
    page = visit.open(TRAINED.replace("&tokens=1T&plan_deadline=30d", "&as_is=true"))  # which does not fit
    expect(page.locator(".decide [data-move]")).to_have_count(3)
    beside = set(page.locator(".decide [data-move]").evaluate_all("all => all.map((each) => each.dataset.move)"))
    page.locator("#more-moves").click()
    expect(page.locator("#view-options")).to_be_focused()
    rest = page.locator("[data-part=others] [data-move]")
    expect(rest).not_to_have_count(0)
    assert not beside & set(rest.evaluate_all("all => all.map((each) => each.dataset.move)"))


def test_what_was_applied_is_told_with_a_way_back(visiting):
    visit = visiting()
    page = visit.open("no")
    said = page.locator("#v-line").text_content()
    page.locator(".decide .btn.go").click()
    expect(page.locator("#say")).to_have_text("Fits")
    expect(page.locator("#toast-text")).to_have_text("Fits")
    page.locator("#toast-undo").click()
    expect(page.locator("#toast")).to_be_hidden()
    expect(page.locator("#v-line")).to_have_text(said)


def test_an_unknown_duration_opens_the_input_that_it_lacks(visiting):
    visit = visiting()
    page = visit.open("fits")
    page.get_by_role("button", name="Add tokens").click()
    expect(page.locator("#in-tokens")).to_be_focused()
    page.keyboard.type("15T")
    page.keyboard.press("Enter")
    visit.settle()
    expect(page.locator(".facts [data-card='run›seconds']")).to_be_visible()


@pytest.mark.parametrize("fragment", ["", TRAINED, "tab=serve&model=llama-3.1-70b&on=H100-SXM-80GB&concurrency=16"])
def test_verdict_bar_and_decision_stand_above_the_fold_of_a_small_laptop(visiting, fragment):
    page = seen(visiting, width=1280, height=720).open(fragment)
    expect(page.locator(".decide table, .decide .note").first).to_be_visible()
    for part in ("#v-line", ".onebar svg.chart", ".decide"):
        box = page.locator(part).first.bounding_box()
        assert box["y"] + box["height"] <= 720, part
    main = page.locator("#results").bounding_box()
    assert main["width"] <= 1280


@pytest.mark.parametrize("width", [1440, 1280, 390])
@pytest.mark.parametrize("fragment", [SERVED, TRAINED.replace("1T", "15T"), "tab=tune&model=llama-3.1-8b&on=RTX-4090"])
def test_the_value_of_a_tile_stands_on_one_line(staying, fragment, width):
    page = seen(staying, width=width).go_on(fragment)
    values = page.locator(".tile .val")
    expect(values).to_have_count(4)
    lines = values.evaluate_all(
        "all => all.map((each) => each.getBoundingClientRect().height / parseFloat(getComputedStyle(each).lineHeight))"
    )
    assert max(lines) < 1.6
    over = values.evaluate_all("all => all.map((each) => each.scrollWidth - each.clientWidth)")
    assert max(over) <= 1


def test_the_inspector_opens_on_the_first_number_and_leaves_no_empty_column(visiting):
    page = seen(visiting).open(SERVED)
    expect(page.locator("#inspector")).to_be_hidden()
    whole = page.locator("#results").bounding_box()["width"]
    page.locator("#v-line .n").first.click()
    box = page.locator("#inspector").bounding_box()
    assert (box["width"], box["x"]) == (372, 1440 - 372)
    main = page.locator("#results").bounding_box()
    assert main["x"] + main["width"] <= box["x"]
    page.keyboard.press("Escape")
    expect(page.locator("#inspector")).to_be_hidden()
    assert page.locator("#results").bounding_box()["width"] == whole


@pytest.mark.parametrize(("fragment", "look", "width", "view"), PAIRS)
def test_axe_finds_nothing_in_any_view(staying, fragment, look, width, view):
    visit = seen(staying, look, width)
    visit.go_on(fragment, view)
    page = visit.rest()
    assert findings(page) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width


@pytest.mark.parametrize(("look", "width"), LOOKS)
@pytest.mark.parametrize("slot", ["model", "precision", "machine", "targets", "settings"])
def test_axe_finds_nothing_in_a_popover_or_the_drawer(staying, slot, look, width):
    page = seen(staying, look, width).go_on(TRAINED)
    page.locator(f"[data-slot={slot}]").click()
    expect(page.locator(".pop, #settings")).to_be_visible()
    assert findings(page) == []
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    closed(page)
