"""The tabs that ask for themselves: plans, and rules of thumb with sliders."""

import re

import pytest

from conftest import asked

expect = pytest.importorskip("playwright.sync_api", reason="the page is tested with Playwright (extra test)").expect
expect.set_options(timeout=40_000)  # a search on a busy machine
GIB = 2**30
SMALL = "tab=plan&model=llama-3.1-8b&plan_on=8xH100-SXM-80GB&tokens=100B"
LONG = "tab=plan&model=llama-3.1-405b&plan_on=h100,h200,b200&tokens=15T&plan_deadline=90d"


def gib(size):
    return f"{size / GIB:.1f}"


# ---- plans ----


def test_the_best_plans_are_the_searchs_own_and_use_fills_the_other_tab(visiting):
    page = visiting().open(SMALL)
    best = asked("plan", {"model": "llama-3.1-8b", "train": True, "on": "8xH100-SXM-80GB", "tokens": "100B"})["plans"][
        0
    ]
    expect(page.locator(".plans tbody tr")).to_have_count(5)
    row = page.locator(".plans tbody tr").first
    expect(row).to_contain_text(gib(best["needed_bytes"]))
    expect(page.locator(".v-line.small")).to_contain_text("Enough: 8 accelerators (8xH100-SXM-80GB) train it in")
    row.get_by_role("button", name="Use plan 1").click()
    expect(page.locator("#tab-train")).to_have_attribute("aria-selected", "true")
    expect(page.locator("#v-line")).to_contain_text(gib(best["needed_bytes"]))
    for name, value in best["options"].items():
        assert f"{name}={value}" in page.url, name


def test_what_starts_adapters_is_a_command_for_adapters_and_of_another_kind_there_is_a_sentence(visiting):
    page = visiting().open("tune")
    command = page.get_by_role("region", name="Launch settings")
    expect(command).to_contain_text("trl sft")
    expect(command).to_contain_text("--load_in_4bit")
    page = visiting().open("tab=tune&model=llama-3.1-8b&on=8xH100-SXM-80GB&method=freeze")
    expect(page.locator("body")).to_contain_text(
        "nothing is written down here of how fsdp2 is started for method freeze."
    )
    expect(page.get_by_role("region", name="Launch settings")).to_have_count(0)


def test_a_search_shows_how_far_it_is_and_can_be_cancelled_and_begun_again(visiting):
    visit = visiting()
    page = visit.open(LONG)
    counts = page.locator("[data-counts]")
    expect(counts).to_contain_text(re.compile(r"(plans|machines): \d"))
    with page.expect_request(lambda request: request.method == "DELETE" and "/v1/jobs/" in request.url):
        page.get_by_role("button", name="Cancel").click()
    expect(page.locator(".searching")).to_contain_text("The search was cancelled.")
    with page.expect_request(lambda request: request.method == "POST" and request.url.endswith("/v1/jobs")):
        page.get_by_role("button", name="Search", exact=True).click()
    expect(page.locator(".searching progress")).to_be_visible()
    page.get_by_role("button", name="Cancel").click()
    expect(page.locator(".searching")).to_contain_text("The search was cancelled.")


def test_plans_to_serve_say_what_was_left_out_and_which_machines_no_other_beats(visiting):
    page = visiting().open("tab=plan&plan_for=serve&model=llama-3.1-8b&plan_on=h100,l4&concurrency=8&tpot=40ms")
    question = {
        "model": "llama-3.1-8b",
        "serve": True,
        "on": "h100,l4",
        "concurrency": 8,
        "tpot": "40ms",
        "pareto": True,
    }
    document = asked("plan", question)
    expect(page.locator(".plans tbody tr")).to_have_count(len(document["plans"]))
    page.get_by_text("What was left out, and why").click()
    gone = next(each for each in document["removed"] if each["plans"])
    expect(page.locator(".fold li").first).to_contain_text(f"{gone['plans']:,} plans: {gone['constraint']}")
    page.get_by_text("Machines that no other beats").click()
    expect(page.locator(".fold tbody tr")).to_have_count(len(document["pareto"]))
    page.get_by_role("button", name="Use plan 1").click()
    expect(page.locator("#tab-serve")).to_have_attribute("aria-selected", "true")
    expect(page.locator("#v-line")).to_contain_text(gib(document["plans"][0]["needed_bytes"]))


def test_what_cannot_be_planned_is_said_in_the_command_lines_words(visiting):
    page = visiting().open("tab=plan&model=llama-3.1-8b&plan_on=h1000")
    expect(page.locator("[data-part=plan] .err")).to_contain_text("h1000")


def test_a_link_to_a_plan_shows_its_inputs_its_answer_and_the_open_card(visiting):
    visit = visiting()
    page = visit.open(f"{SMALL}&plan_goal=cheapest&plan_budget=100M")
    page.locator("[data-part=plan] .v-line .n").last.click()
    told = page.locator("#inspector .big").inner_text()
    address = page.evaluate("location.href")
    page.goto("about:blank")
    page.goto(address)
    expect(page.locator("[name=plan_goal]")).to_have_value("cheapest")
    expect(page.locator("[name=plan_budget]")).to_have_value("100M")
    expect(page.locator("#inspector .big")).to_have_text(told)
    assert page.evaluate("location.href") == address


def test_undo_takes_back_an_input_of_the_plan_and_its_answer(visiting):
    visit = visiting()
    page = visit.open(SMALL)
    first = page.locator(".v-line.small").inner_text()
    page.locator("[name=plan_on]").fill("8xH200-SXM-141GB")
    page.keyboard.press("Tab")
    expect(page.locator("[name=plan_goal]")).to_be_focused()
    expect(page.locator(".v-line.small")).to_contain_text("H200")
    page.locator("#undo").click()
    expect(page.locator("[name=plan_on]")).to_have_value("8xH100-SXM-80GB")
    expect(page.locator(".v-line.small")).to_have_text(first, use_inner_text=True)
    page.get_by_role("button", name="Use plan 1").click()
    expect(page.locator("#tab-train")).to_have_attribute("aria-selected", "true")
    page.locator("#undo").click()
    expect(page.locator("#tab-plan")).to_have_attribute("aria-selected", "true")
    expect(page.locator(".v-line.small")).to_have_text(first, use_inner_text=True)


def test_a_cancelled_search_that_undo_brings_back_is_shown_as_it_goes_on(visiting):
    page = visiting().open(LONG)
    expect(page.locator(".searching progress")).to_be_visible()
    page.get_by_role("button", name="Cancel").click()
    page.locator("[name=plan_most]").fill("64")
    page.keyboard.press("Tab")
    expect(page.locator(".searching progress")).to_be_visible()
    page.locator("#undo").click()
    expect(page.locator("[name=plan_most]")).to_have_value("")
    expect(page.locator(".searching progress")).to_be_visible()
    page.get_by_role("button", name="Cancel").click()
    expect(page.locator(".searching")).to_contain_text("The search was cancelled.")


def test_a_search_that_ends_takes_nothing_from_who_types(visiting):
    page = visiting().open("tab=plan&model=llama-3.1-8b&plan_on=8xH100-SXM-80GB")
    page.route("**/v1/jobs", lambda route: (page.wait_for_timeout(100), route.continue_()))
    page.locator(".planform [name=tokens]").fill("10B")
    page.keyboard.press("Tab")
    page.keyboard.type("4")
    expect(page.locator("[name=plan_deadline]")).to_be_focused()
    expect(page.locator(".v-line.small")).to_contain_text("train it in")
    expect(page.locator("[name=plan_deadline]")).to_have_value("4")
    page.keyboard.type("0d")
    page.keyboard.press("Tab")
    expect(page.locator("[name=plan_deadline]")).to_have_value("40d")
    assert "plan_deadline=40d" in page.evaluate("location.hash")


def test_what_a_plan_is_for_is_chosen_by_arrow_keys_which_keep_the_focus(visiting):
    page = visiting().open("tab=plan&model=llama-3.1-8b&plan_on=H100-SXM-80GB")
    page.locator("[name=plan_for][value=train]").focus()
    for key, chosen in (("ArrowRight", "serve"), ("ArrowLeft", "train")):
        page.keyboard.press(key)
        expect(page.locator(f"[name=plan_for][value={chosen}]")).to_be_checked()
        expect(page.locator(f"[name=plan_for][value={chosen}]")).to_be_focused()


def test_a_figure_that_a_newer_plan_does_not_know_leaves_no_card_of_the_older_one(visiting):
    page = visiting().open(SMALL)
    page.locator("[data-part=plan] .v-line .n").last.click()
    expect(page.locator("#inspector h2")).to_have_text("cost of the run")
    page.locator(".planform [name=tokens]").fill("")
    page.keyboard.press("Tab")
    expect(page.locator(".v-line.small")).to_contain_text("a step takes")
    expect(page.locator("#inspector h2")).not_to_have_text("cost of the run")


# ---- rules ----


def test_a_slider_moves_the_rule_and_the_exact_figure_together(visiting):
    page = visiting().open("tab=rules")
    rule = page.locator("[data-rule=A6]")
    expect(rule.locator("output")).to_have_count(3)
    before = rule.locator("output").all_inner_texts()
    slider = rule.get_by_label("A6: sequence length")
    slider.focus()
    page.keyboard.press("End")
    expect(slider).to_have_attribute("aria-valuetext", "131,072")
    worked = asked("rules", {"names": ["A6"], "sequence_length": 131072})["rules"][0]
    expect(rule.locator("output").nth(0)).to_contain_text(f"{worked['value'] / 2**40:.1f} TiB")
    expect(rule.locator("output").nth(1)).not_to_have_text(before[1])
    rule.locator("output").nth(1).get_by_role("button").click()
    expect(page.locator("#inspector h2")).to_have_text(worked["exact"]["name"])
    expect(page.locator("#inspector .exact")).to_contain_text(f"{worked['exact']['value']:,.0f}")


def test_sliders_that_were_moved_stand_in_the_link_and_come_back_with_it(visiting):
    visit = visiting()
    page = visit.open("tab=rules")
    slider = page.get_by_label("A6: sequence length")
    usual, text = slider.input_value(), slider.get_attribute("aria-valuetext")
    assert "rule_" not in page.url
    slider.focus()
    page.keyboard.press("End")
    expect(page).to_have_url(re.compile("rule_a6_sequence_length=131072$"))
    other = visiting().open(page.url.partition("#")[2])
    expect(other.get_by_label("A6: sequence length")).to_have_attribute("aria-valuetext", "131,072")
    worked = asked("rules", {"names": ["A6"], "sequence_length": 131072})["rules"][0]
    expect(other.locator("[data-rule=A6] output").first).to_contain_text(f"{worked['value'] / 2**40:.1f} TiB")
    slider.fill(usual)
    expect(slider).to_have_attribute("aria-valuetext", text)
    expect(page).not_to_have_url(re.compile("rule_"))
    assert not visit.wrong


def test_a_slider_is_put_back_by_undo_with_its_figures(visiting):
    page = visiting().open("tab=rules")
    rule, slider = page.locator("[data-rule=A6]"), page.get_by_label("A6: sequence length")
    figures, text = rule.locator("output").all_inner_texts(), slider.get_attribute("aria-valuetext")
    slider.focus()
    page.keyboard.press("End")
    expect(rule.locator("output").first).not_to_have_text(figures[0])
    page.locator("#undo").click()
    expect(slider).to_have_attribute("aria-valuetext", text)
    expect(rule.locator("output").first).to_have_text(figures[0])
    expect(page).not_to_have_url(re.compile("rule_"))


def test_a_slider_keeps_its_element_while_it_is_dragged(visiting):
    page = visiting().open("tab=rules")
    slider = page.get_by_label("A6: sequence length")
    slider.evaluate("slider => { slider.marked = true; }")
    slider.scroll_into_view_if_needed()
    box = slider.bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.mouse.down()
    for share in (0.6, 0.7, 0.8):
        before = slider.get_attribute("aria-valuetext")
        page.mouse.move(box["x"] + box["width"] * share, box["y"] + box["height"] / 2)
        expect(slider).not_to_have_attribute("aria-valuetext", before)
    page.mouse.up()
    assert slider.evaluate("slider => slider.marked")
    expect(page).to_have_url(re.compile("rule_a6_sequence_length="))


def test_a_place_in_a_link_that_no_slider_has_leaves_it_at_its_default(visiting):
    usual = visiting().open("tab=rules").get_by_label("A6: sequence length").get_attribute("aria-valuetext")
    for wrong in ("-5", "1e99", "much"):
        page = visiting().open(f"tab=rules&rule_a6_sequence_length={wrong}")
        expect(page.get_by_label("A6: sequence length")).to_have_attribute("aria-valuetext", usual)


def test_every_rule_stands_with_its_formula_print_and_erratum_and_follows_its_sliders(visiting):
    page = visiting().open("tab=rules")
    for letter in "ABCDE":
        page.locator(f".rulechoice input[value={letter}]").check(force=True)
        rules = asked("rules", {"names": [letter]})["rules"]
        expect(page.locator("[data-rule]")).to_have_count(len(rules))
        for rule in rules:
            box = page.locator(f"[data-rule={rule['name']}]")
            expect(box).to_contain_text(rule["text"])
            expect(box).to_contain_text(rule["printed"])
            expect(box.locator("input[type=range]")).to_have_count(len(rule["follows"]))
            expect(box.locator(".erratum")).to_have_count(1 if rule["erratum"] else 0)


@pytest.mark.parametrize(
    ("language", "source"),
    [
        ("en", "document “A: memory of a 6B model”, section on model weights"),
        ("zh", "文档“A：6B 模型的显存”，关于模型权重的一节"),
    ],
)
def test_a_source_document_is_named_by_what_it_is_about(visiting, language, source):
    page = visiting().open("tab=rules")
    if language == "zh":
        page.get_by_role("button", name="中文").click()
    expect(page.locator("[data-rule=A1]")).to_contain_text(source)
    for letter in "ABCDE":
        page.locator(f".rulechoice input[value={letter}]").check(force=True)
        expect(page.locator("[data-rule]").first).to_contain_text(letter)
        expect(page.locator("#answer, main").first).not_to_contain_text(re.compile("Document[A-E]"))
    page.locator("[data-rule=E1] .n").first.click()
    expect(page.locator(".source").first).not_to_contain_text(re.compile("Document[A-E]"))


def test_rules_are_worked_on_the_pages_model_too(visiting):
    page = visiting().open("tab=rules&model=llama-3.1-8b")
    page.locator(".rulechoice input[value=model]").check(force=True)
    worked = asked("rules", {"names": ["A1"], "model": "llama-3.1-8b"})["rules"][0]
    expect(page.locator("[data-rule=A1] output").first).to_contain_text(f"{worked['value'] / GIB:.2f}")


# ---- both, for everybody ----


@pytest.mark.parametrize(
    "name",
    [SMALL, "tab=plan&plan_for=serve&model=llama-3.1-8b&plan_on=h100,l4&concurrency=8", "tab=rules&model=llama-3.1-8b"],
)
@pytest.mark.parametrize("look", ["light", "dark"])
def test_axe_finds_nothing_on_plans_and_rules(visiting, name, look):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe comes with axe-playwright-python")
    page = visiting(color_scheme=look).open(name)
    expect(page.locator(".plans tbody tr, [data-rule]")).not_to_have_count(0)
    expect(page.locator("main .old, main .waiting, .searching")).to_have_count(0)
    found = axe.Axe().run(page).response["violations"]
    assert [(each["id"], [node["target"] for node in each["nodes"]][:3]) for each in found] == []


@pytest.mark.parametrize("name", [SMALL, "tab=rules&model=llama-3.1-8b"])
@pytest.mark.parametrize("width", [390, 768])
def test_plans_and_rules_need_no_sideways_scroll(visiting, name, width):
    page = visiting(viewport={"width": width, "height": 844}).open(name)
    expect(page.locator(".plans tbody tr, [data-rule]")).not_to_have_count(0)
    assert page.evaluate("document.documentElement.scrollWidth") <= width


# ---- nothing is searched that nobody asked for ----


def test_without_a_word_of_what_the_plan_is_for_nothing_is_searched_until_somebody_says_so(visiting):
    visit = visiting()
    page = visit.open("tab=plan&model=qwen3-0.6b&on=8xRTX-4090")
    expect(page.locator(".searching")).to_contain_text("Say what the plan is for, or search as it is.")
    assert not [url for url in visit.asked if url.endswith("/v1/jobs")]
    page.locator('.wish [name="plan_on"]').fill("8xRTX-4090")
    page.locator('.wish [name="plan_on"]').press("Enter")
    expect(page.locator(".plans tbody tr").first).to_be_visible()
    expect(page.locator(".repro")).to_contain_text("Parallel sizes of the best plan: TP\u00a01 · PP\u00a01")


def test_a_search_begins_by_its_button(visiting):
    page = visiting().open("tab=plan&model=qwen3-0.6b&on=8xRTX-4090")
    with page.expect_request(lambda request: request.method == "POST" and request.url.endswith("/v1/jobs")):
        page.get_by_role("button", name="Search", exact=True).click()
    page.get_by_role("button", name="Cancel").click()
