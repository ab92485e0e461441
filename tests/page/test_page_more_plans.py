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


def searched(page):
    """The page, after its search: nothing begins by itself."""
    page.locator(".planform .btn.go").click()
    expect(page.locator("main .old, div.searching")).to_have_count(0)
    return page


def test_the_best_plans_are_the_searchs_own_and_use_fills_the_other_tab(visiting):
    page = searched(visiting().open(SMALL))
    plans = asked("plan", {"model": "llama-3.1-8b", "train": True, "on": "8xH100-SXM-80GB", "tokens": "100B"})["plans"]
    expect(page.locator(".plans tbody tr")).to_have_count(5)
    shown = page.locator(".plans tbody tr").all_inner_texts()
    for plan in plans:
        assert [row for row in shown if gib(plan["needed_bytes"]) in row]
    expect(page.locator(".v-line.small")).to_contain_text("Enough: 8 accelerators (8xH100-SXM-80GB) train it in")
    best = min(plans, key=lambda plan: (len(settings(plan)), plans.index(plan)))
    row = page.locator(".plans tbody tr").first
    expect(row).to_contain_text(gib(best["needed_bytes"]))
    row.get_by_role("button", name="Use plan 1").click()
    expect(page.locator("#tab-train")).to_have_attribute("aria-current", "page")
    expect(page.locator("#v-line")).to_contain_text(gib(best["needed_bytes"]))
    for name, value in best["options"].items():
        assert f"{name}={value}" in page.url, name


def settings(plan):
    """What a plan of this question sets beside what it is asked of and what follows from its sizes."""
    follow = "sequence_length global_batch_size num_microbatches micro_batch_size data_parallel_size runtime zero_stage"
    return [
        name for name, value in plan["options"].items() if name not in follow.split() and value not in (1, "none", None)
    ]


def test_plans_within_the_error_of_the_first_are_tied_with_it_and_the_one_with_the_fewest_settings_is_first(visiting):
    page = searched(visiting().open(SMALL))
    document = asked("plan", {"model": "llama-3.1-8b", "train": True, "on": "8xH100-SXM-80GB", "tokens": "100B"})
    high = document["best"]["run"]["step_time_band"][1]
    within = [plan for plan in document["plans"] if plan["step_seconds"] <= high]
    assert len(within) > 1 and len({len(settings(plan)) for plan in within}) > 1
    expect(page.locator(".plans .tied")).to_have_count(len(within) - 1)
    expect(page.locator(".plans tbody tr").first.locator(".tied")).to_have_count(0)
    error = 100 * (high / document["best"]["step_time"]["value"] - 1)
    expect(page.locator("[data-part=plan]")).to_contain_text(f"to +{error:.0f} %")
    expect(page.locator(".planfoot")).to_contain_text(f"Parallel sizes: TP\u00a0{_size(within)}")


def _size(plans):
    return min(plans, key=lambda plan: (len(settings(plan)), plans.index(plan)))["options"].get(
        "tensor_parallel_size", 1
    )


def test_the_foot_has_every_parallel_size_the_command_and_the_settings_of_the_first_plan(visiting):
    page = searched(visiting().open(SMALL))
    plans = asked("plan", {"model": "llama-3.1-8b", "train": True, "on": "8xH100-SXM-80GB", "tokens": "100B"})["plans"]
    best = min(plans, key=lambda plan: (len(settings(plan)), plans.index(plan)))
    sizes = {
        name: best["options"].get(f"{name}_parallel_size", 1)
        for name in ("tensor", "pipeline", "context", "expert", "data")
    }
    said = " · ".join(
        f"{letters}\u00a0{size}" for letters, size in zip(("TP", "PP", "CP", "EP", "DP"), sizes.values(), strict=True)
    )
    foot = page.get_by_role("region", name="Launch settings of plan 1")
    expect(foot).to_contain_text(f"Parallel sizes: {said}")
    command = page.get_by_role("region", name="Command line of plan 1", exact=True).inner_text()
    assert " ".join(command.replace("\\", "").split()) == best["text"]
    launch = page.get_by_role("region", name="Settings", exact=True).inner_text()
    assert " ".join(launch.replace("\\", "").split()) == " ".join(best["launch"])


def test_targets_are_met_by_the_estimate_or_at_the_high_end(visiting):
    question = {
        "model": "llama-3.1-8b",
        "serve": True,
        "on": "h100",
        "concurrency": 64,
        "ttft": "200ms",
        "tpot": "50ms",
    }
    question |= {"input_tokens": 1024, "output_tokens": 1024}
    document = asked("plan", question)
    best = document["best"]["serving"]
    factors = {name: best[f"{name}_band"][1] / best[f"{name}_seconds"]["value"] for name in ("ttft", "tpot")}
    high = [
        plan
        for plan in document["plans"]
        if plan["ttft_seconds"] * factors["ttft"] <= 0.2 and plan["tpot_seconds"] * factors["tpot"] <= 0.05
    ]
    assert 0 < len(high) < len(document["plans"])
    fragment = "&".join(f"{name}={value}" for name, value in question.items() if name not in ("serve", "on"))
    page = searched(visiting().open(f"tab=plan&plan_for=serve&plan_on=h100&{fragment}"))
    expect(page.locator(".plans tbody tr")).to_have_count(len(document["plans"]))
    page.get_by_label("at the high end of the error band").check(force=True)
    expect(page.locator(".plans tbody tr")).to_have_count(len(high))
    left = len(document["plans"]) - len(high)
    expect(page.locator("[data-part=plan]")).to_contain_text(f"{left} plans meet the targets by the estimate alone.")


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
    page.locator(".planform .btn.go").click()
    counts = page.locator("[data-counts]")
    expect(counts).to_contain_text(re.compile(r"(plans|machines): \d"))
    expect(page.locator(".how-far")).to_contain_text(re.compile(r"\d %"))
    with page.expect_request(lambda request: request.method == "DELETE" and "/v1/jobs/" in request.url):
        page.get_by_role("button", name="Cancel").click()
    expect(page.locator("[data-part=plan]")).to_contain_text("The search was cancelled.")
    with page.expect_request(lambda request: request.method == "POST" and request.url.endswith("/v1/jobs")):
        page.get_by_role("button", name="Search", exact=True).click()
    expect(page.locator(".searching progress")).to_be_visible()
    page.get_by_role("button", name="Cancel").click()
    expect(page.locator("[data-part=plan]")).to_contain_text("The search was cancelled.")


def test_plans_to_serve_say_what_was_left_out_and_which_machines_no_other_beats(visiting):
    page = searched(
        visiting().open("tab=plan&plan_for=serve&model=llama-3.1-8b&plan_on=h100,l4&concurrency=8&tpot=40ms")
    )
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
    for gone in document["removed"]:
        row = page.locator(".ruledout dl > div").filter(has_text=gone["constraint"])
        expect(row).to_have_count(1 if gone["plans"] else 0)
        if gone["plans"]:
            expect(row).to_contain_text(f"{gone['plans']:,}")
    page.get_by_text("Machines that no other beats").click()
    expect(page.locator(".fold tbody tr")).to_have_count(len(document["pareto"]))
    page.get_by_role("button", name="Use plan 1").click()
    expect(page.locator("#tab-serve")).to_have_attribute("aria-current", "page")
    plans = document["plans"]
    level = [
        plan
        for plan in plans
        if plan["usd_per_hour"] == plans[0]["usd_per_hour"] and plan["accelerators"] == plans[0]["accelerators"]
    ]
    expect(page.locator("#v-line")).to_contain_text(
        re.compile("|".join(re.escape(gib(plan["needed_bytes"])) for plan in level))
    )


def test_what_cannot_be_planned_is_said_in_the_command_lines_words(visiting):
    page = visiting().open("tab=plan&model=llama-3.1-8b&plan_on=h1000")
    page.locator(".planform .btn.go").click()
    expect(page.locator("[data-part=plan] .refusal")).to_contain_text("h1000")


def test_a_link_to_a_plan_shows_its_inputs_its_answer_and_the_open_card(visiting):
    visit = visiting()
    page = searched(visit.open(f"{SMALL}&plan_goal=cheapest&plan_budget=100M"))
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
    page = searched(visit.open(SMALL))
    first = page.locator(".v-line.small").inner_text()
    machines = page.locator('[data-slot="places"]')
    machines.click()
    page.locator("[data-option=plan_on]").fill("8xH200-SXM-141GB")
    page.keyboard.press("Escape")
    expect(machines).to_be_focused()
    expect(page.locator("[data-part=plan] .old .v-line.small")).to_have_text(first, use_inner_text=True)
    searched(page)
    expect(page.locator(".v-line.small")).to_contain_text("H200")
    page.locator("#undo").click()  # the search
    page.locator("#undo").click()  # the machine
    expect(machines).to_have_text("8xH100-SXM-80GB")
    expect(page.locator(".v-line.small")).to_have_text(first, use_inner_text=True)
    page.get_by_role("button", name="Use plan 1").click()
    expect(page.locator("#tab-train")).to_have_attribute("aria-current", "page")
    page.locator("#undo").click()
    expect(page.locator("#tab-plan")).to_have_attribute("aria-current", "page")
    expect(page.locator(".v-line.small")).to_have_text(first, use_inner_text=True)


def test_a_search_of_another_question_than_the_fields_ask_is_given_up(visiting):
    page = visiting().open(LONG)
    page.locator(".planform .btn.go").click()
    expect(page.locator(".searching progress")).to_be_visible()
    with page.expect_request(lambda request: request.method == "DELETE" and "/v1/jobs/" in request.url):
        page.locator("[name=plan_most]").fill("64")
        page.keyboard.press("Tab")
    expect(page.locator(".searching progress")).to_have_count(0)
    expect(page.locator(".planform .btn.go")).to_be_enabled()


def test_a_search_that_ends_takes_nothing_from_who_types(visiting):
    page = visiting().open("tab=plan&model=llama-3.1-8b&plan_on=8xH100-SXM-80GB&tokens=10B")
    page.route("**/v1/jobs", lambda route: (page.wait_for_timeout(100), route.continue_()))
    page.locator(".planform .btn.go").click()
    page.locator("[name=plan_deadline]").focus()
    page.keyboard.type("4")
    expect(page.locator(".v-line.small")).to_contain_text("train it in")
    expect(page.locator("[name=plan_deadline]")).to_be_focused()
    expect(page.locator("[name=plan_deadline]")).to_have_value("4")
    page.keyboard.type("0d")
    page.keyboard.press("Tab")
    expect(page.locator("[name=plan_deadline]")).to_have_value("40d")
    expect(page).to_have_url(re.compile("plan_deadline=40d"))


def test_the_form_of_a_plan_repeats_no_slot_of_its_sentence(visiting):
    page = visiting().open("tab=plan&model=llama-3.1-8b&plan_on=h100,h200")
    expect(page.locator('[data-slot="places"]')).to_have_text("h100, h200")
    expect(page.locator(".planform").locator("[name=plan_for], [name=plan_on]")).to_have_count(0)
    page.locator('[data-slot="purpose"]').click()
    page.get_by_role("button", name="Serve", exact=True).click()
    expect(page.locator(".planform [name=ttft]")).to_be_visible()
    expect(page.locator('[data-slot="purpose"]')).to_be_focused()


def test_a_machine_that_cannot_be_planned_opens_the_slot_that_names_it(visiting):
    page = visiting().open("tab=plan&model=llama-3.1-8b&plan_on=h1000")
    page.locator(".planform .btn.go").click()
    page.locator(".refusal").get_by_role("button", name="Machines").click()
    expect(page.locator("[data-option=plan_on]")).to_have_value("h1000")


def test_a_figure_that_a_newer_plan_does_not_know_leaves_no_card_of_the_older_one(visiting):
    page = searched(visiting().open(SMALL))
    page.locator("[data-part=plan] .v-line .n").last.click()
    expect(page.locator("#inspector h2")).to_have_text("cost of the run")
    page.locator(".planform [name=tokens]").fill("")
    page.keyboard.press("Tab")
    searched(page)
    expect(page.locator(".v-line.small")).to_contain_text("a step takes")
    expect(page.locator("#inspector h2")).not_to_have_text("cost of the run")


# ---- rules ----


def slider(page, name="sequence length"):
    return page.get_by_role("slider", name=name)


def side(page, rule, which):
    return page.locator(f"[data-rule={rule}] [data-side={which}]").get_by_role("button")


def test_a_slider_moves_the_rule_and_the_exact_figure_together(visiting):
    page = visiting().open("tab=rules")
    before = side(page, "A6", "exact").inner_text()
    slider(page).focus()
    page.keyboard.press("End")
    expect(slider(page)).to_have_attribute("aria-valuetext", "131,072")
    worked = asked("rules", {"names": ["A6"], "sequence_length": 131072})["rules"][0]
    expect(side(page, "A6", "rule")).to_have_text(f"{worked['value'] / 2**40:.1f} TiB")
    expect(side(page, "A6", "exact")).not_to_have_text(before)
    side(page, "A6", "exact").click()
    expect(page.locator("#inspector h2")).to_have_text(worked["exact"]["name"])
    expect(page.locator("#inspector .exact")).to_contain_text(f"{worked['exact']['value']:,.0f}")


@pytest.mark.parametrize("letter", list("ABCDE"))
def test_each_key_moves_every_slider_by_a_value(visiting, letter):
    page = visiting().open(f"tab=rules&rules_part={letter}")
    expect(page.locator("[data-rule]")).not_to_have_count(0)
    for each in page.get_by_role("slider").all():
        each.focus()
        page.keyboard.press("Home")
        for key in ("ArrowRight", "ArrowUp", "PageUp", "ArrowLeft", "PageDown", "End"):
            before = each.get_attribute("aria-valuetext")
            page.keyboard.press(key)
            expect(each).not_to_have_attribute("aria-valuetext", before)


def test_a_number_field_takes_any_value_and_moves_the_slider(visiting):
    page = visiting().open("tab=rules&rules_part=B")
    field = page.get_by_label("training tokens, as a number")
    field.fill("1234")
    field.press("Enter")
    worked = {rule["name"]: rule for rule in asked("rules", {"names": ["B"], "tokens": 1.234e12})["rules"]}
    expect(slider(page, "training tokens")).to_have_attribute("aria-valuetext", "1.23T")
    expect(side(page, "B2", "rule")).to_have_text(f"{worked['B2']['value'] / 1e21:,.0f} ZFLOP")
    field.fill("-3")
    field.press("Enter")
    expect(field).to_have_attribute("aria-invalid", "true")
    expect(page).to_have_url(re.compile("rules_tokens=1234000000000"))


def test_sliders_are_as_few_as_the_rules_of_a_document_follow(visiting):
    page = visiting().open("tab=rules")
    for letter in "ABCDE":
        page.locator(f".rulechoice input[value={letter}]").check(force=True)
        rules = asked("rules", {"names": [letter]})["rules"]
        expect(page.locator("[data-rule]")).to_have_count(len(rules))
        follows = {name for rule in rules for name in rule["follows"]}
        expect(page.get_by_role("slider")).to_have_count(len(follows))
        assert {each.get_attribute("data-moves") for each in page.get_by_role("slider").all()} == follows


def test_the_table_of_rules_is_at_most_two_screens(visiting):
    page = visiting().open("tab=rules")
    for letter in "ABCDE":
        page.locator(f".rulechoice input[value={letter}]").check(force=True)
        expect(page.locator("[data-rule]").first).to_have_attribute("data-rule", re.compile(f"^{letter}"))
        assert page.locator("[data-part=rules]").bounding_box()["height"] < 2 * 1000


def test_how_far_a_rule_is_off_is_said_and_drawn_to_its_side(visiting):
    page = visiting().open("tab=rules")
    for rule in asked("rules", {"names": ["A"]})["rules"]:
        cell = page.locator(f"[data-rule={rule['name']}] [data-side=off]")
        if rule["unit"] != rule["exact"]["unit"]:
            expect(cell).to_contain_text(f"The rule counts {rule['unit']}, the exact figure {rule['exact']['unit']}.")
            continue
        off = 100 * (rule["value"] / rule["exact"]["value"] - 1)
        expect(cell).to_contain_text("−" if off < 0 else "+")
        assert abs(float(re.sub(r"[^\d.]", "", cell.inner_text()))) == pytest.approx(abs(off), abs=0.5)
        bar = cell.locator("rect")
        left, width = float(bar.get_attribute("x")), float(bar.get_attribute("width"))
        assert (left + width == pytest.approx(48, abs=1)) if off < 0 else left == 48
        assert width == pytest.approx(max(min(abs(off), 100) / 100 * 48, 1), abs=0.01)


def test_sliders_that_were_moved_stand_in_the_link_and_come_back_with_it(visiting):
    visit = visiting()
    page = visit.open("tab=rules")
    usual, text = slider(page).input_value(), slider(page).get_attribute("aria-valuetext")
    assert "rules_" not in page.url
    slider(page).focus()
    page.keyboard.press("End")
    expect(page).to_have_url(re.compile("rules_sequence_length=131072$"))
    other = visiting().open(page.url.partition("#")[2])
    expect(slider(other)).to_have_attribute("aria-valuetext", "131,072")
    worked = asked("rules", {"names": ["A6"], "sequence_length": 131072})["rules"][0]
    expect(side(other, "A6", "rule")).to_have_text(f"{worked['value'] / 2**40:.1f} TiB")
    slider(page).fill(usual)
    expect(slider(page)).to_have_attribute("aria-valuetext", text)
    expect(page).not_to_have_url(re.compile("rules_"))
    assert not visit.wrong


def test_a_slider_is_put_back_by_undo_with_its_figures(visiting):
    page = visiting().open("tab=rules")
    before, text = side(page, "A6", "rule").inner_text(), slider(page).get_attribute("aria-valuetext")
    slider(page).focus()
    page.keyboard.press("End")
    expect(side(page, "A6", "rule")).not_to_have_text(before)
    page.locator("#undo").click()
    expect(slider(page)).to_have_attribute("aria-valuetext", text)
    expect(side(page, "A6", "rule")).to_have_text(before)
    expect(page).not_to_have_url(re.compile("rules_"))


def test_a_slider_keeps_its_element_and_the_focus_while_it_is_dragged(visiting):
    page = visiting().open("tab=rules")
    moving = slider(page)
    moving.evaluate("slider => { slider.marked = true; }")
    moving.scroll_into_view_if_needed()
    box = moving.bounding_box()
    page.mouse.move(box["x"] + box["width"] / 2, box["y"] + box["height"] / 2)
    page.mouse.down()
    for share in (0.6, 0.7, 0.8):
        before = moving.get_attribute("aria-valuetext")
        page.mouse.move(box["x"] + box["width"] * share, box["y"] + box["height"] / 2)
        expect(moving).not_to_have_attribute("aria-valuetext", before)
    page.mouse.up()
    assert moving.evaluate("slider => slider.marked && document.activeElement === slider")
    expect(page).to_have_url(re.compile("rules_sequence_length="))


def test_a_place_in_a_link_that_no_slider_has_leaves_it_at_its_default(visiting):
    usual = slider(visiting().open("tab=rules")).get_attribute("aria-valuetext")
    for wrong in ("-5", "1e99", "much"):
        page = visiting().open(f"tab=rules&rules_sequence_length={wrong}")
        expect(slider(page)).to_have_attribute("aria-valuetext", usual)


def test_a_row_opens_formula_source_print_and_erratum_of_its_rule(visiting):
    page = visiting().open("tab=rules")
    for rule in asked("rules", {"names": ["A"]})["rules"]:
        row = page.locator(f"[data-rule={rule['name']}]")
        expect(row).to_contain_text(rule["text"])
        expect(row.locator(".erratum")).to_have_count(1 if rule["erratum"] else 0)
        row.get_by_role("button", name=rule["title"]).click()
        card = page.locator("#inspector")
        expect(card).to_contain_text("rule of thumb")
        for said in (rule["text"], rule["printed"], rule["erratum"], rule["note"]):
            expect(card).to_contain_text(said or rule["title"])


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
    page.locator("[data-rule=A1] .n").first.click()
    expect(page.locator(".source").first).to_contain_text(source)
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
    expect(side(page, "A1", "rule")).to_contain_text(f"{worked['value'] / GIB:.2f}")


# ---- both, for everybody ----


@pytest.mark.parametrize(
    "name",
    [SMALL, "tab=plan&plan_for=serve&model=llama-3.1-8b&plan_on=h100,l4&concurrency=8", "tab=rules&model=llama-3.1-8b"],
)
@pytest.mark.parametrize("look", ["light", "dark"])
def test_axe_finds_nothing_on_plans_and_rules(visiting, name, look):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe comes with axe-playwright-python")
    page = visiting(color_scheme=look).open(name)
    if "tab=plan" in name:
        searched(page)
    expect(page.locator(".plans tbody tr, [data-rule]")).not_to_have_count(0)
    expect(page.locator("main .old, main .waiting")).to_have_count(0)
    found = axe.Axe().run(page).response["violations"]
    assert [(each["id"], [node["target"] for node in each["nodes"]][:3]) for each in found] == []


@pytest.mark.parametrize("name", [SMALL, "tab=rules&model=llama-3.1-8b"])
@pytest.mark.parametrize("width", [390, 768])
def test_plans_and_rules_need_no_sideways_scroll(visiting, name, width):
    page = visiting(viewport={"width": width, "height": 844}).open(name)
    if "tab=plan" in name:
        searched(page)
    expect(page.locator(".plans tbody tr, [data-rule]")).not_to_have_count(0)
    assert page.evaluate("document.documentElement.scrollWidth") <= width


# ---- nothing is searched that nobody asked for ----


@pytest.mark.parametrize(
    ("purpose", "filled"),
    [
        ("train", {"tokens": "1T", "plan_deadline": "30d"}),
        ("serve", {"concurrency": "64", "ttft": "2s", "tpot": "50ms", "input_tokens": "1024"}),
    ],
)
def test_the_fields_are_filled_in_and_nothing_is_searched_before_the_button(visiting, purpose, filled):
    visit = visiting()
    page = visit.open(f"tab=plan&plan_for={purpose}&model=qwen3-0.6b&on=8xRTX-4090")
    for name, value in filled.items():
        expect(page.locator(f'.wish [name="{name}"]')).to_have_value(value)
    expect(page.locator("[data-part=plan]")).to_contain_text("Nothing is searched until you say so.")
    assert not [url for url in visit.asked if url.endswith("/v1/jobs")]
    with page.expect_request(lambda request: request.method == "POST" and request.url.endswith("/v1/jobs")) as made:
        page.locator(".planform .btn.go").click()
    question = made.value.post_data_json["question"]
    assert question["on"] == "RTX-4090" and question[purpose] is True
    assert set(filled.values()) <= set(map(str, question.values()))


def test_a_search_begins_by_its_button_and_by_enter_in_a_field(visiting):
    page = visiting().open("tab=plan&model=qwen3-0.6b&on=8xRTX-4090")
    with page.expect_request(lambda request: request.method == "POST" and request.url.endswith("/v1/jobs")):
        page.get_by_role("button", name="Search", exact=True).click()
    page.get_by_role("button", name="Cancel").click()
    page.locator('.wish [name="tokens"]').fill("3B")
    with page.expect_request(lambda request: request.method == "POST" and request.url.endswith("/v1/jobs")) as made:
        page.locator('.wish [name="tokens"]').press("Enter")
    assert made.value.post_data_json["question"]["tokens"] == "3B"


def test_a_link_that_was_searched_is_searched_again_and_another_question_is_not(visiting):
    page = searched(visiting().open(SMALL))
    other = visiting()
    opened = other.open(page.url.partition("#")[2])
    expect(opened.locator(".plans tbody tr")).to_have_count(5)
    changed = visiting()
    opened = changed.open(page.url.partition("#")[2].replace("tokens=100B", "tokens=200B"))
    expect(opened.locator("[data-part=plan]")).to_contain_text("Nothing is searched until you say so.")
    assert not [url for url in changed.asked if url.endswith("/v1/jobs")]


def test_rows_of_plans_are_cards_on_a_phone(visiting):
    page = searched(visiting(viewport={"width": 390, "height": 844}).open(SMALL))
    row = page.locator(".plans tbody tr").first
    assert row.evaluate("row => getComputedStyle(row).display") == "grid"
    for cell in row.locator("td[data-head]").all():
        head = cell.get_attribute("data-head")
        assert head in cell.evaluate("cell => getComputedStyle(cell, '::before').content")
