"""What a stranger reads on the page: moves with their money, messages in the words of the inputs, figures that have
room and tell rows apart.
"""

import pytest
from page_visits import LARGE, asked, closed, field

sync = pytest.importorskip("playwright.sync_api", reason="the page is tested with Playwright (extra test)")
expect = sync.expect
LAPTOP = {"width": 1280, "height": 900}
CHAT = "tab=serve&model=llama-3.1-8b&on=8xH100-SXM-80GB&concurrency=64"
GIB = 2**30
QUESTION = {"model": "llama-3.1-8b", "on": "8xH100-SXM-80GB", "concurrency": "64"}


def change(part):
    """As the page writes it."""
    if abs(part) < 0.0005:
        return "0 %"
    return f"{'−' if part < 0 else '+'} {abs(part) * 100:,.{1 if abs(part) < 0.1 else 0}f} %"


def test_a_suggestion_shows_memory_before_and_after_speed_and_money(staying):
    page = staying().go_on(CHAT)
    answer = asked("serve", QUESTION)
    moves = answer["advice"]
    assert any(abs(move["usd_change"]) > 0.01 for move in moves)
    before = answer["verdict"]["needed_bytes"] / GIB
    for move in moves:
        row = page.locator(f".decision [data-move='{move['text']}']")
        expect(row).to_contain_text(f"{before:.1f} → {move['needed_bytes'] / GIB:.1f}")
        shown = f"{move['tpot_seconds'] * 1000:#.3g}".rstrip(".")  # three digits, a zero at the end too
        expect(row).to_contain_text(f"{shown} ms")
        expect(row).to_contain_text(change(1 / (1 + move["time_change"]) - 1))
        expect(row).to_contain_text(change(move["usd_change"]))
    page.locator(".decision [data-card$='money']").first.click()
    expect(page.locator("#inspector")).to_contain_text("money then / money now - 1")


def test_a_suggestion_is_in_plain_words_and_says_what_it_holds(staying):
    page = staying().go_on("tab=train&model=llama-3.1-8b&on=MI210&runtime=transformers&as_is=true")
    rows = page.locator(".decision [data-move]")
    machine = rows.filter(has_text="runtime fsdp2").first
    expect(machine).to_contain_text("on 8 × MI210")
    expect(machine).to_contain_text("model code of transformers stays")
    expect(rows.first).to_be_visible()
    for row in rows.all():
        expect(row.locator("th")).not_to_contain_text("_")


def test_a_change_is_recommended_only_where_it_keeps_the_targets_at_the_high_end_of_the_band(visiting):
    visit = visiting()
    page = visit.open("tab=serve&model=llama-3.1-70b&on=H100-SXM-80GB&concurrency=16")
    expect(page.locator(".decision .best")).to_contain_text("Recommended")
    expect(page.locator("main .btn.go")).to_have_count(1)
    field(page, "ttft").fill("1ms")
    visit.settle()
    expect(page.locator(".decision .best, main .btn.go")).to_have_count(0)


def test_the_price_of_a_served_token_says_that_prompts_count(staying):
    page = staying().go_on(CHAT)
    expect(page.locator(".facts .tile", has_text="cost / 1M tokens")).to_contain_text("input and output tokens, at $")


@pytest.mark.parametrize(
    ("fragment", "option", "label", "message"),
    [
        (
            "tab=train&model=llama-3.1-8b&on=8xH100-SXM-80GB&sequence_length=0",
            "sequence_length",
            "Sequence length",
            "Sequence length must be from 1 to",
        ),
        (
            "tab=train&model=llama-3.1-8b&on=8xH100-SXM-80GB&tensor_parallel_size=3",
            "tensor_parallel_size",
            "TP",
            "must divide the cluster's 8 accelerators",
        ),
        (
            "tab=train&model=llama-3.1-8b&on=8xH100-SXM-80GB&sequence_length=0&lang=zh",
            "sequence_length",
            "序列长度",
            "序列长度必须在 1 到",
        ),
        (
            "tab=serve&model=llama-3.1-8b&on=8xH100-SXM-80GB&context=0",
            "context",
            "Context",
            "Context must be from 1 to",
        ),
    ],
)
def test_a_message_names_an_input_as_its_label_does(visiting, fragment, option, label, message):
    page = visiting().open(fragment)
    expect(page.locator("#v-line")).to_contain_text(label)
    expect(page.locator("#v-line")).not_to_contain_text("_")
    expect(page.locator(".v-sub").first).to_contain_text(message)
    field(page, option)
    expect(page.locator(".err:visible")).to_contain_text(message)


def test_a_wrong_wish_of_a_plan_is_marked_and_told_by_its_label(visiting):
    page = visiting().open("tab=plan&plan_for=train&model=qwen3-0.6b&on=RTX-4090&plan_deadline=soon&tokens=1B")
    page.locator(".planform .btn.go").click()
    expect(page.locator('[data-part="plan"] .refusal')).to_have_text(
        " Deadline must be a time such as 30d, 2w or 12h, or the last day, such as 2027-01-31. Got 'soon'."
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
    field(page, "model").fill(text)
    visit.settle()
    expect(page.locator("#model-err")).to_have_text(english)
    closed(page).get_by_role("button", name="中文").click()
    visit.settle()
    expect(page.locator("#v-line + .v-sub")).to_have_text(chinese)
    for tab in ("plan", "rules"):
        page.locator(f"#tab-{tab}").click()
        visit.settle()
    page.locator("#tab-plan").click()
    expect(page.locator('[data-part="plan"] .refusal')).to_have_text(chinese)


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
    page.locator(".planform .btn.go").click()
    expect(table).to_be_visible()
    expect(page.locator(".v-line.small strong")).to_have_text("Cheapest:")
    expect(page.locator(".v-line.small")).to_contain_text("per 1M tokens")
    plans = asked(
        "plan", {"model": "qwen3-0.6b", "train": True, "on": "RTX-4090", "goal": "cheapest", "max_accelerators": "8"}
    )["plans"]
    settings = page.evaluate(
        "async (plans) => { const { settingsOf } = await import('/js/parts/plan_order.js'); return plans.map(settingsOf); }",
        plans,
    )
    plans = [plan for _, plan in sorted(zip(settings, plans, strict=True), key=lambda pair: pair[0])]
    prices = [plan["usd_per_million_tokens"] for plan in plans]
    shown = table.locator("tbody tr td:nth-last-child(2)").all_inner_texts()
    assert len(shown) == len(prices) > 1
    for one, other, first, second in zip(prices, prices[1:], shown, shown[1:], strict=False):
        assert (other <= one * 1.001) or first != second
    for label, text in (("Training tokens", "1B"), ("Deadline", "3000d")):
        box = page.locator(".wish", has_text=label).locator("input")
        box.fill(text)
        box.press("Enter")
        page.wait_for_selector(".wish[data-set] >> text=" + label)
        page.wait_for_selector("div.searching", state="detached")
    expect(page.locator(".v-line.small strong")).to_have_text("Enough:")


CUT = """() => [...document.querySelectorAll('.facts dt, .facts dd:not(.val), .facts .n, .sentence, .resolved, .bars .val, .decision th, .decision td, .scroll')]
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
def test_nothing_is_cut_off_on_a_laptop(staying, name, language):
    page = staying(viewport=LAPTOP, locale="zh-CN" if language == "zh" else "en-GB").go_on(name, view="options")
    expect(page.locator("table.matrix, [data-part=matrix] p.note:not(.waiting)").first).to_be_visible()
    expect(page.locator("table.takes")).to_be_visible()
    assert page.evaluate(CUT) == []
    labels = page.locator(".facts dt").all_inner_texts()
    assert len(set(labels)) == len(labels)


def test_a_huge_length_heads_its_column_in_short(staying):
    page = staying().go_on("tab=train&model=llama-3.1-8b&on=8xH100-SXM-80GB&sequence_length=1000000000000", "options")
    expect(page.locator("table.matrix thead")).to_contain_text("1T tokens")
    expect(page.locator("#v-line")).to_contain_text("7.002e9 GiB needed")


def test_a_rule_in_another_unit_says_what_each_side_counts(staying):
    page = staying().go_on("tab=rules&rules_part=A")
    rule = page.locator('[data-rule="A10"]')
    expect(rule.locator('[data-side="exact"]')).to_contain_text("4 accelerators")
    expect(rule.locator('[data-side="off"]')).to_contain_text("not comparable")
    expect(rule).to_contain_text("The rule counts bytes, the exact figure accelerators.")
