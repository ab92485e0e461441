"""What the page says is what the library answers, and what it is asked can be changed, shared and undone."""

import json
import re

import pytest
from page_visits import asked, closed, field

sync = pytest.importorskip("playwright.sync_api", reason="the page is tested with Playwright (extra test)")
expect = sync.expect
GIB = 2**30
CONFIG = {
    "architectures": ["LlamaForCausalLM"],
    "model_type": "llama",
    "hidden_size": 1024,
    "intermediate_size": 2816,
    "num_attention_heads": 16,
    "num_hidden_layers": 12,
    "num_key_value_heads": 8,
    "vocab_size": 32000,
    "max_position_embeddings": 4096,
    "torch_dtype": "bfloat16",
}


def verdict(page):
    return page.locator("#v-line")


def test_a_model_that_fits_is_said_to_fit_with_the_librarys_figures(visiting):
    page = visiting().open("fits")
    answer = asked("train", {"model": "llama-3.1-8b", "on": "8xH100-SXM-80GB"})
    need, usable = answer["verdict"]["needed_bytes"] / GIB, answer["verdict"]["usable_bytes"] / GIB
    expect(verdict(page)).to_have_text(
        f"Fits: {need:.1f} of {usable:.1f} GiB usable per GPU, {usable - need:.1f} GiB to spare"
    )
    mfu = page.locator(".facts [data-card='run›mfu']")
    expect(mfu).to_have_text(f"{answer['run']['mfu']['value'] * 100:.1f} %")


def test_the_breakdown_has_every_component_and_its_sum(visiting):
    page = visiting().open("fits")
    answer = asked("train", {"model": "llama-3.1-8b", "on": "8xH100-SXM-80GB"})
    for part in answer["memory"]["children"]:
        row = page.locator(f'tr[data-part-name="{part["name"]}"]')
        expect(row.locator("td .n").first).to_have_text(f"{part['value'] / GIB:.2f}")
    expect(page.locator("tr.sum td .n").first).to_have_text(f"{answer['memory']['value'] / GIB:.2f}")


def test_rows_of_the_breakdown_open_down_to_a_formula(visiting):
    page = visiting().open("fits")
    page.get_by_role("button", name="Parts of weights").click()
    deep = page.locator("tr.deep").first
    expect(deep).to_contain_text("sharded weights")
    deep.locator(".n").click()
    expect(page.locator("#inspector h2")).to_have_text("sharded weights")


@pytest.mark.parametrize(
    ("name", "kind", "word"), [("fits", "fits", "Fits:"), ("tight", "tight", "Tight:"), ("no", "no", "Does not fit:")]
)
def test_a_verdict_has_a_shape_and_a_word(visiting, name, kind, word):
    page = visiting().open(name)
    expect(verdict(page).locator(f"svg.{kind} use")).to_have_attribute("href", f"#i-{kind}")
    expect(verdict(page).locator("strong")).to_have_text(word)


def test_the_answer_is_drawn_while_its_moves_are_still_worked_out(visiting):
    visit = visiting()
    page = visit.open("no")
    held = []
    page.route(
        "**/v1/train*",
        lambda route: route.continue_() if "advice" in route.request.post_data_json else held.append(route),
    )
    field(page, "sequence_length").fill("8000")
    expect(page.locator('[data-part="advice"]')).to_have_attribute("aria-busy", "true")
    question = {
        "model": "llama-3.1-70b",
        "on": "8x8xH100-SXM-80GB",
        "tensor_parallel_size": 8,
        "pipeline_parallel_size": 4,
        "global_batch_size": 128,
        "sequence_length": 8000,
        "tokens": "100B",
        "micro_batch_size": 2,
        "as_is": True,
    }
    answer = asked("train", question)
    expect(verdict(page)).to_contain_text(f"{answer['verdict']['needed_bytes'] / GIB:.1f} GiB")
    expect(page.locator('[data-part="advice"]')).to_have_attribute("aria-busy", "true")
    page.wait_for_timeout(0)
    held[-1].continue_()
    visit.settle()
    expect(page.locator(".decision [data-move]")).not_to_have_count(0)
    expect(page.locator(".repro pre").first).not_to_contain_text("advice")


def test_advice_makes_it_fit_is_announced_and_can_be_undone(visiting):
    visit = visiting()
    page = visit.open("no")
    expect(verdict(page)).to_contain_text("Does not fit")
    expect(page.locator("main .btn.go")).to_have_count(1)
    page.locator(".decision .best .btn.go").click()
    expect(verdict(page)).to_contain_text("Fits")
    expect(page.locator("#say")).to_have_text("Fits")
    field(page, "recompute")
    expect(page.locator('[data-row="recompute"]')).to_have_attribute("data-set", "")
    closed(page).locator("#undo").click()
    expect(verdict(page)).to_contain_text("Does not fit")
    expect(field(page, "recompute")).to_have_value("")


def test_a_shared_link_restores_the_inputs_and_the_answer(visiting):
    first = visiting()
    page = first.open("fits")
    field(page, "sequence_length").fill("16k")
    field(page, "tensor_parallel_size").fill("4")
    field(page, "recompute").select_option("full")
    first.settle()
    said = verdict(page).text_content()
    page.get_by_role("button", name="Copy link").click()
    link = page.evaluate("navigator.clipboard.readText()")
    second = visiting()
    other = second.open(re.sub(r"^[^#]*#", "", link))
    expect(verdict(other)).to_have_text(said)
    expect(field(other, "sequence_length")).to_have_value("16k")
    expect(field(other, "tensor_parallel_size")).to_have_value("4")
    expect(field(other, "recompute")).to_have_value("full")


@pytest.mark.parametrize(
    ("model", "kind"), [("gemma-3-27b-pt", "dense"), ("mixtral-8x7b-v0.1", "mixture of experts, 12.9B active")]
)
def test_a_model_is_a_mixture_where_it_has_experts_and_not_for_a_tower_beside_it(visiting, model, kind):
    page = visiting().open(f"tab=train&model={model}&on=8xH100-SXM-80GB")
    expect(page.locator(".resolved")).to_contain_text(kind)


def test_a_pasted_config_is_answered_and_travels_in_the_link(visiting):
    first = visiting()
    page = first.open("tab=train&on=H100-SXM-80GB")
    field(page, "model").fill(json.dumps(CONFIG, indent=1))
    answer = asked("train", {"model": CONFIG, "on": "H100-SXM-80GB"})
    expect(page.locator(".resolved")).to_contain_text(f"{answer['question']['parameters']['value']:,}")
    said = verdict(page).text_content()
    expect(page).to_have_url(re.compile("config="))
    link = page.evaluate("location.hash")
    assert "hidden_size" not in link
    other = visiting().open(link.removeprefix("#"))
    expect(verdict(other)).to_have_text(said)


def test_undo_takes_back_one_input_at_a_time(visiting):
    visit = visiting()
    page = visit.open("fits")
    before = verdict(page).text_content()
    field(page, "micro_batch_size").fill("2")
    visit.settle()
    field(page, "recompute").select_option("full")
    visit.settle()
    closed(page).keyboard.press("Control+z")
    expect(field(page, "recompute")).to_have_value("")
    expect(field(page, "micro_batch_size")).to_have_value("2")
    closed(page).keyboard.press("Control+z")
    expect(field(page, "micro_batch_size")).to_have_value("1")
    expect(verdict(page)).to_have_text(before)
    expect(page.locator("#undo")).to_be_disabled()


def test_an_input_that_is_wrong_says_so_below_itself_and_is_mended_by_a_button(visiting):
    page = visiting().open("fits")
    field(page, "tensor_parallel_size").fill("6")
    wrong = page.locator("#in-tensor_parallel_size-err")
    expect(wrong).to_contain_text("Got 6. Nearest: 4 or 8")
    expect(field(page, "tensor_parallel_size")).to_have_attribute("aria-invalid", "true")
    expect(page.locator(".v-next.bad")).to_contain_text("Showing the last valid answer")
    wrong.locator("[data-repair='4']").click()
    expect(wrong).to_be_hidden()
    expect(field(page, "tensor_parallel_size")).to_have_value("4")
    expect(page.locator(".v-next.bad")).to_have_count(0)


def test_a_misspelt_model_is_answered_with_names_to_press(visiting):
    page = visiting().open("wrong")
    expect(verdict(page)).to_have_text("One input needs attention: Model")
    expect(page.locator("[data-slot=model]")).to_contain_text("needs attention")
    page.locator(".mends [data-repair='llama-3.1-8b']").click()
    expect(verdict(page)).to_contain_text("Fits")


def test_the_empty_page_offers_examples_and_one_of_them_is_a_whole_question(visiting):
    visit = visiting()
    page = visit.open("empty")
    expect(verdict(page)).to_have_text("Name a model to begin")
    expect(page.locator(".starts .example")).to_have_count(5)
    page.locator("[data-example='tune']").click()
    visit.settle()
    expect(page.locator("#tab-tune")).to_have_attribute("aria-current", "page")
    expect(page.locator("[data-example='tune']")).to_have_attribute("aria-pressed", "true")
    page.locator("[data-example='serve']").first.click()
    visit.settle()
    expect(page.locator("#tab-serve")).to_have_attribute("aria-current", "page")
    expect(page.locator(".facts")).to_contain_text("TTFT")
    assert "method=" not in page.url
    field(page, "concurrency").fill("65")
    visit.settle()
    expect(page.locator(".starts")).to_have_count(0)


def test_inputs_stay_when_the_tab_changes(visiting):
    page = visiting().open("fits")
    field(page, "sequence_length").fill("8k")
    closed(page).locator("#tab-serve").click()
    expect(page.locator(".facts")).to_contain_text("TPOT")
    page.locator("#tab-train").click()
    expect(field(page, "sequence_length")).to_have_value("8k")


def test_a_tab_whose_options_take_long_says_so_and_has_them_when_they_come(visiting):
    page = visiting().open("fits")
    held = []

    def hold(route):  # Playwright asks a handler for its signature, and list.append has none
        held.append(route)

    page.route("**/v1/options/serve", hold)
    page.locator("#tab-serve").click()
    expect(verdict(page)).to_have_text("Computing")
    held[0].continue_()
    expect(page.locator(".facts")).to_contain_text("TTFT")
    expect(page.locator("#sentence [data-fields~=sequence_length]")).to_have_count(0)


def test_a_question_that_takes_long_says_so_and_can_be_cancelled(visiting):
    visit = visiting()
    page = visit.open("fits")
    before = verdict(page).text_content()
    larger = {"micro_batch_size": "4"}.items()
    page.route(
        "**/v1/train*", lambda route: None if larger <= route.request.post_data_json.items() else route.continue_()
    )  # no answer comes
    field(page, "micro_batch_size").fill("4")
    expect(verdict(page)).to_have_text("Computing")
    expect(page.locator("#results")).to_have_attribute("aria-busy", "true")
    page.get_by_role("button", name="Cancel").click()
    expect(verdict(page)).to_have_text(before)


def test_the_newest_question_wins(visiting):
    visit = visiting()
    page = visit.open("fits")
    held = []
    page.route("**/v1/train*", lambda route: held.append(route) if not held else route.continue_())
    field(page, "micro_batch_size").fill("2")
    page.wait_for_selector("body[data-asking]")
    field(page, "micro_batch_size").fill("4")
    answer = asked("train", {"model": "llama-3.1-8b", "on": "8xH100-SXM-80GB", "micro_batch_size": "4"})
    expect(verdict(page)).to_contain_text(f"{answer['verdict']['needed_bytes'] / GIB:.1f}")
    assert len(held) == 1


def test_every_option_of_the_verb_has_an_input_behind_a_slot_or_among_all_settings(visiting):
    from tonnage.web.schema.options_table import table

    page = visiting().open("fits")
    behind = page.eval_on_selector_all(
        "#sentence [data-fields]", "all => all.flatMap(each => each.dataset.fields.split(' '))"
    )
    page.locator("#all-settings").click()
    shown = set(page.eval_on_selector_all("#settings [name]", "all => all.map(each => each.name)")) | set(behind)
    assert {row.name for row in table("train")} - shown <= {
        "on",
        "offline",
        "method",
        "lora_rank",
        "lora_targets",
        "lora_dropout",
        "base_weights",
        "upcast_base",
        "trainable_layers",
    }
    page.get_by_label("Find an option").fill("price per")
    expect(page.locator('[data-row="price_per_accelerator_hour"]')).to_be_visible()
    expect(page.locator('[data-row="zero_stage"]')).to_be_hidden()
    field(page, "price_per_accelerator_hour").fill("2")
    expect(page.locator(".facts")).to_contain_text("at $2.00 a GPU-hour")


def test_no_request_leaves_the_machine(visiting):
    visit = visiting()
    for name in ("fits", "tune", "serve", "wrong"):
        visit.open(name)
        visit.settle()
    assert visit.asked
    assert [url for url in visit.asked if not url.startswith((visit.server, "about:", "data:", "blob:"))] == []


def test_a_run_that_fits_and_misses_its_deadline_is_not_said_to_fit_alone(visiting):
    page = visiting().open("model=llama-3.1-8b&on=8xH100-SXM-80GB&tokens=1T&deadline=14d")
    expect(verdict(page)).to_contain_text("Fits, but misses the deadline: ")


def test_what_lacks_is_said_to_lack_and_never_to_be_a_negative_rest(visiting):
    page = visiting().open("model=llama-3.1-8b&on=8xH100-SXM-80GB&sequence_length=16k&as_is=true")
    answer = asked("train", {"model": "llama-3.1-8b", "on": "8xH100-SXM-80GB", "sequence_length": "16k", "as_is": True})
    lacks = (answer["verdict"]["needed_bytes"] - answer["verdict"]["usable_bytes"]) / GIB
    rest = page.locator("table.breakdown tr.sub").last
    expect(rest).to_contain_text(f"short by {lacks:.2f}")
    expect(rest).not_to_contain_text("−")
