"""What a stranger reads on the page: moves with their money, messages in the words of the inputs, figures that have
room and tell rows apart.
"""

import pytest
from page_visits import LARGE, asked

sync = pytest.importorskip("playwright.sync_api", reason="the page is tested with Playwright (extra test)")
expect = sync.expect
LAPTOP = {"width": 1280, "height": 900}
CHAT = "tab=serve&model=llama-3.1-8b&on=8xH100-SXM-80GB&concurrency=64"
QUESTION = {"model": "llama-3.1-8b", "on": "8xH100-SXM-80GB", "concurrency": "64"}


def change(part):
    """As the page writes it."""
    if abs(part) < 0.0005:
        return "0 %"
    return f"{'−' if part < 0 else '+'} {abs(part) * 100:,.{1 if abs(part) < 0.1 else 0}f} %"


def test_a_move_shows_the_time_of_the_cluster_and_the_money_and_what_a_user_waits_for(visiting):
    page = visiting().open(CHAT)
    moves = asked("serve", QUESTION)["advice"]
    rows = page.locator("ol.advice li")
    assert any(abs(move["time_change"] - move["usd_change"]) > 0.1 for move in moves)
    for row, move in zip(rows.all(), moves, strict=False):
        expect(row).to_contain_text(f"{change(move['time_change'])}cluster time a token")
        expect(row).to_contain_text(f"{change(move['usd_change'])}money a token")
        expect(row).to_contain_text(f"TPOT {move['tpot_seconds'] * 1000:.3g} ms")
    expect(page.locator('[data-part="advice"] header')).to_contain_text("not TPOT")
    expect(page.locator(".v-next", has_text="Next best move")).to_contain_text(
        f"{change(moves[0]['usd_change'])} money a token"
    )
    rows.first.locator("[data-card$='money']").click()
    expect(page.locator("#inspector")).to_contain_text("money then / money now - 1")


def test_moves_are_in_the_words_of_the_inputs_and_say_what_they_hold(visiting):
    page = visiting().open("tab=train&model=llama-3.1-8b&on=H100-SXM-80GB&runtime=transformers")
    first = page.locator("ol.advice li").first
    expect(first).to_contain_text("Cluster H100-SXM-80GB → 4xH100-SXM-80GB")
    expect(first).to_contain_text("Runtime transformers → fsdp2")
    expect(first).to_contain_text("model_code stays transformers")


def test_why_a_whole_context_does_not_fit_stands_below_the_verdict_with_what_does(visiting):
    visit = visiting()
    page = visit.open(CHAT)
    said = page.locator(".v-line + .why")
    expect(said).to_contain_text("The verdict holds 64 requests of a replica at the whole context of 131,072 tokens.")
    expect(page.locator("body")).not_to_contain_text("the verdict holds")  # once is enough
    said.get_by_role("button", name="Ask with a context of 2,048 tokens").click()
    visit.settle()
    expect(page.locator("#v-line")).to_contain_text("Fits")
    expect(page.locator("#in-context")).to_have_value("2048")
    expect(page.locator(".why")).to_have_count(0)


def test_the_price_of_a_served_token_says_that_prompts_count(visiting):
    page = visiting().open(CHAT)
    expect(page.locator(".facts div", has_text="cost / 1M tokens").last).to_contain_text("prompts and answers, at $")


@pytest.mark.parametrize(
    ("fragment", "field", "message"),
    [
        (
            "tab=train&model=llama-3.1-8b&on=8xH100-SXM-80GB&sequence_length=0",
            "Sequence length",
            "Sequence length must be from 1 to",
        ),
        (
            "tab=train&model=llama-3.1-8b&on=8xH100-SXM-80GB&tensor_parallel_size=3",
            "TP",
            "must divide the cluster's 8 accelerators",
        ),
        (
            "tab=train&model=llama-3.1-8b&on=8xH100-SXM-80GB&sequence_length=0&lang=zh",
            "序列长度",
            "序列长度必须在 1 到",
        ),
        ("tab=serve&model=llama-3.1-8b&on=8xH100-SXM-80GB&context=0", "Context", "Context must be from 1 to"),
    ],
)
def test_a_message_names_an_input_as_its_label_does(visiting, fragment, field, message):
    page = visiting().open(fragment)
    expect(page.locator("#v-line")).to_contain_text(field)
    expect(page.locator("#v-line")).not_to_contain_text("_")
    expect(page.locator(".v-sub").first).to_contain_text(message)
    expect(page.locator("#form .err:visible")).to_contain_text(message)


def test_a_wrong_wish_of_a_plan_is_marked_and_told_by_its_label(visiting):
    page = visiting().open("tab=plan&plan_for=train&model=qwen3-0.6b&on=RTX-4090&plan_deadline=soon&tokens=1B")
    expect(page.locator('[data-part="plan"] .err')).to_have_text(
        " Deadline must be a number such as 30d, 12h or 500ms. Got 'soon'."
    )
    expect(page.locator(".wish", has_text="Deadline").locator("input")).to_have_attribute("aria-invalid", "true")
    expect(page.locator(".wish", has_text="Training tokens").locator("input")).not_to_have_attribute(
        "aria-invalid", "true"
    )


@pytest.mark.parametrize(
    ("text", "english", "chinese"),
    [
        (
            '{"hidden_size": 12,, "a": 1}',
            "The pasted config is not valid JSON at line 1, column 20.",
            "粘贴的配置在第 1 行第 20 列不是有效的 JSON。",
        ),
        (
            '{"hidden_size": 12',
            "The pasted config ends before its last bracket is closed. Copy the whole file.",
            "粘贴的配置不完整：最后的括号没有闭合。请复制整个文件。",
        ),
    ],
)
def test_a_broken_config_is_told_in_the_pages_own_words(visiting, text, english, chinese):
    visit = visiting()
    page = visit.open("empty")
    page.locator("#model").fill(text)
    visit.settle()
    expect(page.locator("#model-err")).to_have_text(english)
    page.get_by_role("button", name="中文").click()
    visit.settle()
    expect(page.locator("#model-err")).to_have_text(chinese)
    for tab in ("plan", "rules"):
        page.locator(f"#tab-{tab}").click()
        visit.settle()
    page.locator("#tab-plan").click()
    expect(page.locator('[data-part="plan"] .err')).to_have_text(chinese)


def test_prices_in_a_column_have_as_many_digits_as_tell_them_apart(visiting):
    page = visiting().open("empty")
    written = (
        "async (values) => { const { usdApart } = await import('/js/numbers.js'); return "
        "values.map(usdApart(values)); }"
    )
    assert page.evaluate(written, [0.1066, 0.1071, 0.1088]) == ["$0.1066", "$0.1071", "$0.1088"]
    assert page.evaluate(written, [2.6, 2.6, 31.92]) == ["$2.60", "$2.60", "$31.92"]
    assert page.evaluate(written, [0.10661, 0.10662]) == ["$0.11", "$0.11"]  # no difference that an estimate can see
    assert page.evaluate(written, [71213.4, 71301]) == ["$71,210", "$71,300"]


def test_the_cheapest_plans_show_the_prices_that_order_them_and_claim_to_be_enough_only_for_a_limit(visiting):
    visit = visiting()
    page = visit.open(
        "tab=plan&plan_for=train&model=qwen3-0.6b&on=8xRTX-4090&plan_on=RTX-4090&plan_goal=cheapest&plan_most=8"
    )
    table = page.locator("table.plans")
    expect(table).to_be_visible()
    expect(page.locator(".v-line.small strong")).to_have_text("Cheapest:")
    expect(page.locator(".v-line.small")).to_contain_text("per 1M tokens")
    plans = asked(
        "plan", {"model": "qwen3-0.6b", "train": True, "on": "RTX-4090", "goal": "cheapest", "max_accelerators": "8"}
    )["plans"]
    prices = [plan["usd_per_million_tokens"] for plan in plans]
    shown = table.locator("tbody tr td.opt:nth-last-child(2)").all_inner_texts()
    assert len(shown) == len(prices) > 1
    for one, other, first, second in zip(prices, prices[1:], shown, shown[1:], strict=False):
        assert (other <= one * 1.001) or first != second
    for label, text in (("Training tokens", "1B"), ("Deadline", "3000d")):
        box = page.locator(".wish", has_text=label).locator("input")
        box.fill(text)
        box.press("Enter")
        page.wait_for_selector(".wish[data-set] >> text=" + label)
        page.wait_for_selector(".searching", state="detached")
    expect(page.locator(".v-line.small strong")).to_have_text("Enough:")


CUT = """() => [...document.querySelectorAll('.facts dt, .facts dd, .facts .n, .bars .val, .advice li > span, .scroll')]
  .filter((each) => each.offsetParent && each.scrollWidth > each.clientWidth + 4 && getComputedStyle(each).display !== 'inline')
  .map((each) => `${each.className || each.tagName}: ${each.textContent.slice(0, 60)}`)"""


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize(
    "name",
    [
        CHAT,
        "fits",
        f"tab=train&{LARGE}",
        "tab=train&model=llama-3.1-8b&on=8xH100-SXM-80GB&sequence_length=1000000000000",
    ],
)
def test_nothing_is_cut_off_on_a_laptop(visiting, name, language):
    page = visiting(viewport=LAPTOP).open(f"{name}&lang={language}" if "=" in name else name)
    expect(page.locator("table.matrix, [data-part=matrix] p.note:not(.waiting)").first).to_be_visible()
    expect(page.locator("table.takes")).to_be_visible()
    assert page.evaluate(CUT) == []
    labels = page.locator(".facts dt").all_inner_texts()
    assert len(set(labels)) == len(labels)


def test_a_huge_length_heads_its_column_in_short(visiting):
    page = visiting().open("tab=train&model=llama-3.1-8b&on=8xH100-SXM-80GB&sequence_length=1000000000000")
    expect(page.locator("table.matrix thead")).to_contain_text("1T tokens")
    expect(page.locator("#v-line")).to_contain_text("7.002e9 GiB needed")


def test_a_rule_in_another_unit_says_what_each_side_counts(visiting):
    page = visiting().open("tab=rules&rules_part=A")
    rule = page.locator('[data-rule="A10"]')
    expect(rule.locator('[data-side="exact"]')).to_contain_text("4accelerators")
    expect(rule.locator('[data-side="off"]')).to_contain_text("not comparable")
    expect(rule).to_contain_text("The rule counts bytes, the exact figure accelerators.")
