"""What the page says beside its numbers: why one is missing, whose a share is, of which moment a column; in Chinese
as in English.
"""

import re

import pytest

from conftest import asked

expect = pytest.importorskip("playwright.sync_api", reason="the page is tested with Playwright (extra test)").expect
PIPELINE = {
    "model": "llama-3.1-70b",
    "on": "8x8xH100-SXM-80GB",
    "tensor_parallel_size": 8,
    "pipeline_parallel_size": 4,
    "global_batch_size": 128,
    "sequence_length": 8192,
}


def fragment(tab, question):
    return "&".join([f"tab={tab}", *(f"{name}={value}" for name, value in question.items())])


def is_timed(move):
    return move["time_change"] is not None or move.get("tpot_seconds") is not None


@pytest.mark.parametrize("machine", ["MI300A", "A10", "Kunlun-P800", "RTX-4090"])
def test_the_recommended_change_is_one_whose_speed_is_known_or_says_that_it_is_not(staying, machine):
    question = {"model": "llama-3.1-8b", "on": machine, "as_is": True}
    answer = asked("train", question)
    assert answer["verdict"]["fits"] is False
    fitting = [move for move in answer["advice"] if move["fits"]]
    same = [move for move in fitting if move["changes"] in ("nothing", "machine")]
    page = staying().go_on(fragment("train", {**question, "as_is": "true"}))
    best = page.locator(".decision .best")
    label = best.get_by_role("button", name="Apply").get_attribute("aria-label")
    (move,) = [each for each in fitting if f"Apply: {each['text']}" == label]
    assert move in (same or fitting)
    assert is_timed(move) or not any(is_timed(each) for each in same)
    if not is_timed(move):
        expect(best.locator('td[data-head="Speed"]')).to_have_text("unknown")


def test_a_move_of_what_is_not_served_yet_says_what_it_then_takes_and_costs(staying):
    question = {"model": "qwen3-32b", "on": "RTX-4090", "as_is": True}
    page = staying().go_on(fragment("serve", {**question, "as_is": "true"}))
    move = next(move for move in asked("serve", question)["advice"] if move["fits"])
    row = page.locator(f".decision [data-move='{move['text']}']")
    expect(row).to_contain_text(f"{move['tpot_seconds'] * 1000:.1f} ms")
    expect(row).to_contain_text(f"${move['usd_per_million_tokens']:.2f}")


@pytest.mark.parametrize(
    ("question", "reason"),
    [
        ("tab=serve&model=qwen3-32b&on=RTX-4090", "its time is not known"),
        ("tab=train&model=llama-3.1-8b&on=BI-V100", "its time is not known"),
        ("tab=train&model=llama-3.1-8b&on=MI250X", "no price is known"),
        ("tab=train&model=llama-3.1-8b&on=RTX-5090", "its price needs a rate of exchange"),
        ("tab=train&model=llama-3.1-8b&on=RTX-4090", "at $0.29 a GPU-hour"),
    ],
)
def test_a_cost_that_is_not_known_says_what_it_lacks(staying, question, reason):
    page = staying().go_on(question)
    expect(page.locator("[data-part=facts] .tile", has_text="cost")).to_contain_text(reason)


def test_a_stage_s_column_says_of_which_moment_it_is_and_whose_the_share_is(visiting):
    document = asked("train", PIPELINE)
    (moment,) = [each["name"] for each in document["phases"] if each["value"] == document["memory"]["value"]]
    page = visiting().open(fragment("train", PIPELINE))
    part = page.locator("[data-part=breakdown]")
    expect(part.locator(".note")).to_contain_text(
        f"its own stage is fullest; what is not there at that moment is 0. Stage 0: {moment}."
    )
    expect(part.locator("th", has_text="Share of stage 0")).to_be_visible()
    page.goto(page.url + "&lang=zh")
    page.reload()
    expect(part.locator(".note")).to_contain_text("流水段 0：")
    assert not re.search(r"[a-z]{4}|\. |, ", part.locator(".note").inner_text())


def test_chinese_sentences_end_as_chinese_ones_do(visiting):
    page = visiting().open(fragment("train", PIPELINE) + "&lang=zh", "time")
    note = page.locator("[data-part=timeline] .note", has_text="1f1b")
    expect(note).to_contain_text("1f1b。")
    assert ". " not in note.inner_text() and "。 " not in note.inner_text()
    page.goto(page.url.replace("&pipeline_parallel_size=4", "").replace("view=time", "view=options"))
    cell = page.locator(".matrix th[scope=row]").first
    expect(cell).to_contain_text(re.compile("，(不重计算|选择性重计算|全部重计算)"))


def test_what_was_said_last_does_not_stay_in_the_other_language(visiting):
    page = visiting().open("fits")
    page.locator("#share").click()
    expect(page.locator("#say")).to_have_text("Copied")
    page.get_by_role("button", name="中文").click()
    expect(page.locator("html")).to_have_attribute("lang", "zh-Hans")
    expect(page.locator("#say")).not_to_contain_text("Copied")


def test_one_user_is_no_users_and_too_few_accelerators_are_said_to_be(staying):
    page = staying().go_on("tab=serve&model=llama-3.1-405b&on=8xH100-SXM-80GB&weights=fp8&concurrency=1", "options")
    section = page.locator("[data-part=accelerators]")
    expect(section).to_contain_text("all for one user alone")
    expect(page.locator(".standing")).to_have_attribute("aria-label", re.compile(r"TP 8, 1 user$"))
    few = section.locator("td .no").first
    expect(few).to_contain_text(re.compile(r"over \d+$"))
    expect(few).to_have_attribute("title", re.compile(r"^\d+ (are|is) not enough$"))


@pytest.mark.parametrize("size", [(360, 760), (390, 844), (701, 1024), (1280, 800)])
@pytest.mark.parametrize("language", ["en", "zh"])
def test_the_way_to_saved_plans_is_in_sight_at_every_size(visiting, size, language):
    page = visiting(viewport={"width": size[0], "height": size[1]}).open(
        f"fits&lang={language}".replace("fits", "tab=train&model=llama-3.1-8b")
    )
    button = page.locator("#to-saved")
    expect(button).to_be_in_viewport(ratio=1)
    assert page.evaluate("document.documentElement.scrollWidth") <= size[0]
    button.click()
    expect(button).to_have_attribute("aria-expanded", "true")
    expect(page.locator("#saved-form")).to_be_in_viewport()
