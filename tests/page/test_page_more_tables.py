"""What else would fit, what it costs, where the time goes: the sections below the answer, in a browser."""

import json
import re
from itertools import combinations

import pytest
from page_visits import field

from conftest import asked

expect = pytest.importorskip("playwright.sync_api", reason="the page is tested with Playwright (extra test)").expect
expect.set_options(timeout=40_000)  # a search on a busy machine
GIB = 2**30
PIPELINE = (
    "tab=train&model=llama-3.1-70b&on=8x8xH100-SXM-80GB&tensor_parallel_size=8&pipeline_parallel_size=4&virtual_pipeline_size=2"
    "&sequence_length=8192&global_batch_size=128&runtime=megatron&tokens=100B"
)
PLAN = {
    "model": "llama-3.1-70b",
    "on": "8x8xH100-SXM-80GB",
    "tensor_parallel_size": 8,
    "pipeline_parallel_size": 4,
    "virtual_pipeline_size": 2,
    "sequence_length": 8192,
    "global_batch_size": 128,
    "runtime": "megatron",
    "tokens": "100B",
}


def gib(size):
    return f"{size / GIB:.1f}"


def figure(text):
    """Seconds of "11.6 s", "425 ms", "1.5 h"."""
    value, unit = re.fullmatch(r"([\d,.]+) (\S+)", text).groups()
    return float(value.replace(",", "")) * {"s": 1, "ms": 1e-3, "µs": 1e-6, "min": 60, "h": 3600, "days": 86400}[unit]


# ---- matrix ----


def test_a_cell_of_the_matrix_has_the_figure_of_its_own_answer_and_applies_it(visiting):
    page = visiting().open("fits", "options")
    document = asked(
        "train", {"model": "llama-3.1-8b", "on": "8xH100-SXM-80GB", "recompute": "full", "sequence_length": 8192}
    )
    expect(page.locator(".cell.here")).to_have_count(1)
    cell = page.get_by_role("button", name=re.compile(r"^bf16-mixed, full recomputation, 8k"))
    expect(cell).to_contain_text(gib(document["verdict"]["needed_bytes"]))
    cell.click()
    expect(page.locator("#v-line")).to_contain_text(gib(document["verdict"]["needed_bytes"]))
    expect(page.locator(".cell.here")).to_have_attribute(
        "aria-label", re.compile("^bf16-mixed, full recomputation, 8k.*you are here")
    )
    assert "recompute=full" in page.url and "sequence_length=8192" in page.url


def test_the_matrix_waits_behind_the_answer_and_its_old_cells_are_dimmed(visiting):
    page = visiting().open("fits", "options")
    expect(page.locator(".cell")).not_to_have_count(0)
    held, holding = [], [True]
    page.route("**/v1/compare", lambda route: held.append(route) if holding else route.continue_())
    field(page, "micro_batch_size").fill("2")
    wanted = asked("train", {"model": "llama-3.1-8b", "on": "8xH100-SXM-80GB", "micro_batch_size": 2})["verdict"]
    expect(page.locator("#v-line")).to_contain_text(gib(wanted["needed_bytes"]))  # the answer does not wait
    expect(page.locator("[data-part=matrix] .old .cell")).not_to_have_count(0)
    holding.clear()
    for route in held:
        route.continue_()
    expect(page.locator("[data-part=matrix] .old")).to_have_count(0)
    expect(page.locator(".cell.here")).to_contain_text(gib(wanted["needed_bytes"]))


def test_quantisation_by_context_of_a_served_model_applies_too(visiting):
    page = visiting().open("serve", "options")
    cell = page.get_by_role("button", name=re.compile(r"^awq-4bit-128g, KV fp8, 18k"))
    text = cell.inner_text()
    cell.click()
    expect(page.locator(".cell.here")).to_have_text(text)
    assert "weights=awq" in page.url and "kv_cache=fp8" in page.url and "context=18432" in page.url


# ---- accelerators ----


def test_a_row_of_the_accelerators_takes_over_its_machine(visiting):
    page = visiting().open("serve", "options")
    row = page.locator(".takes tr", has_text="H200-SXM-141GB")
    count = row.locator("td").nth(1).inner_text()
    row.get_by_role("button", name=re.compile("apply")).click()
    expect(page.locator(".takes tr[aria-current=true]")).to_contain_text("H200-SXM-141GB")
    assert "H200-SXM-141GB" in page.url
    expect(page.locator("#cluster-words")).to_contain_text(f"{count} H200-SXM-141GB")


def _compared(page, verb):
    """What the table of accelerators asks."""
    asked_for = []
    page.on("request", lambda request: request.url.endswith("/v1/compare") and asked_for.append(request.post_data_json))
    return lambda: [
        each
        for each in asked_for
        if "H200-SXM-141GB" in str(each["on"]) and bool(each.get("train")) == (verb == "train")
    ]


def test_every_accelerator_is_asked_for_the_batch_of_the_answer_and_a_row_takes_it_along(visiting):
    """Otherwise a step on four is of half as many tokens as one on eight, and stands beside it as the faster one."""
    visit = visiting()
    compared = _compared(visit.page, "train")
    page = visit.open("tab=train&model=llama-3.1-8b&on=8xH100-SXM-80GB", "options")
    section = page.locator("[data-part=accelerators]")
    expect(section).to_contain_text("all with a global batch of 8")
    expect(section.locator(".takes tr", has_text="H200-SXM-141GB")).to_be_visible()
    assert {each["global_batch_size"] for each in compared()} == {8}
    (cell,) = [each for each in asked("compare", compared()[-1])["cells"] if each["accelerator"] == "H200-SXM-141GB"]
    row = section.locator(".takes tr", has_text="H200-SXM-141GB")
    step = row.locator("td").nth(2).inner_text()
    assert (
        cell["global_batch_size"] == 8
        and step.split()[0] in f"{cell['step_seconds']:.3g} {cell['step_seconds'] * 1000:.4g}"
    )
    row.get_by_role("button", name=re.compile("apply")).click()
    expect(page.locator(".takes tr[aria-current=true]")).to_contain_text("H200-SXM-141GB")
    assert "global_batch_size=8" in page.url
    visit.settle()
    expect(page.locator("[data-part=facts]")).to_contain_text(step)


def test_a_batch_that_nobody_gave_does_not_keep_larger_machines_out(staying):
    page = staying().go_on("tab=train&model=llama-3.1-8b&on=RTX-4090", "options")
    section = page.locator("[data-part=accelerators]")
    expect(section).to_contain_text("all with a global batch of 64")
    expect(section.locator(".takes tr", has_text="H100-SXM-80GB").locator("td").nth(1)).to_have_text("4")


def test_what_is_paid_beside_what_is_used_stands_in_the_row(staying):
    page = staying().go_on("tab=serve&model=llama-3.1-8b&on=MI355X&context=8192", "options")
    row = page.locator(".takes tr", has_text="MI355X")
    expect(row.locator("td").nth(1)).to_have_text("1 (8 paid)")


def test_prices_are_those_of_the_library_and_old_ones_say_their_age(visiting):
    page = visiting().open()
    document = asked("prices", {})
    aged = []

    def old(route):
        for row in document["prices"]:
            if row["accelerator"] == "H100-SXM-80GB":
                row["stale"] = True
        aged.append(route)
        route.fulfill(json=document)

    page.route("**/v1/prices", old)
    page.goto(page.url.split("#")[0] + "#tab=serve&model=llama-3.1-8b&on=H100-SXM-80GB&view=options")
    page.reload()
    row = page.locator(".takes tr", has_text="H100-SXM-80GB")
    expect(row.locator(".stale")).to_contain_text(re.compile(r"▲ \d{4}-\d\d-\d\d"))
    expect(row.locator(".stale")).to_contain_text("older than 90 days")
    price = float(row.locator("td").nth(3).inner_text())
    assert price in {
        round(each["usd_per_accelerator_hour"] or 0, 2)
        for each in document["prices"]
        if each["accelerator"] == "H100-SXM-80GB"
    }
    assert aged


def test_a_price_that_nobody_publishes_is_unknown(staying):
    page = staying().go_on("tab=serve&model=llama-3.1-8b&on=RTX-5090", "options")
    row = page.locator(".takes tr", has_text="RTX-5090")
    expect(row.locator("td").nth(3)).to_have_text("unknown")


# ---- frontier ----


def test_the_frontier_is_walked_by_keyboard_and_a_mark_opens_its_card_and_applies(visiting):
    page = visiting().open("serve", "options")
    marks = page.locator("[data-part=frontier] g[role=button]")
    expect(marks).not_to_have_count(0)
    assert page.locator("[data-part=frontier] g[tabindex='0']").count() == 1
    page.locator("[data-part=frontier] g[tabindex='0']").focus()
    page.keyboard.press("Home")
    first = page.evaluate("document.activeElement.getAttribute('aria-label')")
    page.keyboard.press("ArrowRight")
    second = page.evaluate("document.activeElement.getAttribute('aria-label')")
    assert first != second
    page.keyboard.press("Enter")
    expect(page.locator("#inspector h2")).to_have_text("output tokens per second per user")
    size, users = re.match(r"TP (\d+), ([\d,]+) users", second).groups()
    page.locator(".chosen button").click()
    expect(page.locator(".names .strong")).to_contain_text(f"you are here: TP {size}, {users} users")


def test_the_frontier_shows_the_target_and_where_the_page_stands(visiting):
    page = visiting().open(
        "serve=&tab=serve&model=llama-3.1-70b&on=4xH100-SXM-80GB&weights=fp8&concurrency=16&tpot=40ms",
        "options",
    )
    expect(page.locator("[data-part=frontier]")).to_contain_text("target ≥ 25")
    expect(page.locator(".names .strong")).to_have_text("you are here: TP 4, 16 users")
    expect(page.locator(".standing")).to_have_attribute("aria-label", "you are here: TP 4, 16 users")


BOXES = """(query) => [...document.querySelectorAll(query)].map((each) => each.getBoundingClientRect())
  .map(({ left, right, top, bottom }) => [left, right, top, bottom])"""


def overlap(one, other, slack=0.5):
    """Whether two boxes [left, right, top, bottom] lie on each other."""
    return (
        min(one[1], other[1]) - max(one[0], other[0]) > slack and min(one[3], other[3]) - max(one[2], other[2]) > slack
    )


@pytest.mark.parametrize("width", [390, 1440])
@pytest.mark.parametrize("language", ["en", "zh"])
def test_no_words_of_the_frontier_lie_on_others_and_its_axes_have_four_to_eight_steps(visiting, width, language):
    visit = visiting(viewport={"width": width, "height": 1000}, locale="zh-CN" if language == "zh" else "en-GB")
    page = visit.open("serve", "options")
    visit.rest()
    page.locator("[data-part=frontier] svg.chart").first.scroll_into_view_if_needed()
    words = page.evaluate(BOXES, "[data-part=frontier] svg.chart text")
    marks = page.evaluate(BOXES, "[data-part=frontier] g[role=button] .mark")
    named = page.evaluate(BOXES, "[data-part=frontier] .names text")
    assert len(named) > 1
    assert [pair for pair in combinations(words, 2) if overlap(*pair)] == []
    assert [(word, mark) for word in named for mark in marks if overlap(word, mark, 1.5)] == []
    for anchor in ("middle", "end"):
        ticks = page.locator(f"[data-part=frontier] text.tick[text-anchor={anchor}]").all_inner_texts()
        assert 5 <= len(ticks) <= 9, ticks


def test_where_the_page_stands_covers_no_mark(visiting):
    page = visiting().open("serve", "options")
    page.locator(".standing").scroll_into_view_if_needed()
    ring = page.locator(".standing circle").bounding_box()
    order = page.evaluate(
        """() => [...document.querySelectorAll("[data-part=frontier] .standing, [data-part=frontier] g[role=button]")]
        .map((each) => each.className.baseVal)"""
    )
    assert order[0] == "standing" and order.count("standing") == 1
    assert page.evaluate("getComputedStyle(document.querySelector('.standing')).pointerEvents") == "none"
    hit = page.evaluate(
        "([x, y]) => document.elementFromPoint(x, y).closest('.standing') === null",
        [ring["x"] + ring["width"] / 2, ring["y"] + 1],
    )
    assert hit


# ---- where the time goes ----


@pytest.mark.parametrize("name", [PIPELINE, "serve", "fits"])
def test_the_parts_of_the_bar_add_up_to_the_whole(staying, name):
    page = staying().go_on(name, "time")
    whole = figure(page.locator("#h-timeline .n").inner_text())
    parts = [
        figure(text) for text in page.locator("[data-part=timeline] .legend").first.locator(".n").all_inner_texts()
    ]
    assert sum(parts) == pytest.approx(whole, rel=0.01)


def test_a_part_that_is_made_of_several_says_of_which(staying):
    page = staying().go_on(PIPELINE, "time")
    step = asked("train", PLAN)["step_time"]["children"][0]
    times, one = (child for child in step["children"])
    products = times["value"] * sum(
        each["value"]
        for way in one["children"]
        for each in way.get("children", [])
        if each["name"] == "matrix products"
    )
    shown = page.locator("[data-part=timeline] .legend span", has_text="matrix products").first
    assert figure(shown.locator(".n").inner_text()) == pytest.approx(products, rel=0.01)
    shown.locator(".n").click()
    expect(page.locator("#inspector h2")).to_have_text("matrix products")
    expect(page.locator("#inspector")).to_contain_text("in one micro-batch")


def test_the_pipeline_is_drawn_in_the_order_of_its_schedule(staying):
    page = staying().go_on(PIPELINE, "time")
    picture = page.get_by_role("img", name=re.compile("The pipeline's schedule: 4 stages"))
    expect(picture).to_be_visible()
    expect(page.locator("[data-part=timeline]")).to_contain_text(
        "interleaved-1f1b. 12 of 64 micro-batches drawn; 52 in the middle are left out"
    )
    for rank in range(4):
        expect(picture.get_by_text(f"stage {rank}", exact=True)).to_be_visible()


@pytest.mark.parametrize(
    ("schedule", "chunks"),
    [("1f1b", 1), ("gpipe", 1), ("interleaved-1f1b", 2), ("interleaved-zero-bubble", 2), ("zbv", 2), ("dualpipev", 2)],
)
def test_every_schedule_is_drawn_in_pythons_order(staying, schedule, chunks):
    from tonnage.estimate.plan.pipeline_orders import played
    from tonnage.verbs.ask import training

    question = {
        "model": "llama-3.1-70b",
        "on": "8x8xH100-SXM-80GB",
        "tensor_parallel_size": 8,
        "pipeline_parallel_size": 4,
        "virtual_pipeline_size": chunks,
        "sequence_length": 8192,
        "global_batch_size": 128,
        "pipeline_schedule": schedule,
        "recompute": "none",
    }
    made, _ = played(training(question)[0].pieces)
    page = staying().go_on("tab=train&" + "&".join(f"{name}={value}" for name, value in question.items()), "time")
    picture = page.get_by_role("img", name=re.compile("The pipeline's schedule: 4 stages"))
    expect(picture).to_be_visible()
    expect(page.locator("[data-part=timeline]")).to_contain_text(f"{schedule}. ")
    boxes = picture.locator("rect:has(title)").evaluate_all(
        "all => all.map(each => [Number(each.getAttribute('y')), Number(each.getAttribute('x')), each.textContent])"
    )
    rows = sorted({row for row, _, _ in boxes})
    assert len(rows) == 4
    for rank, row in enumerate(rows):
        drawn = [
            re.match(r"(.+?)(?:, micro-batch (\d+))?(?:, model chunk (\d+))?: ", told).groups()
            for y, _, told in sorted(boxes)
            if y == row
        ]
        played_out = sorted((box for box in made.boxes if box.stage == rank), key=lambda box: box.start)
        assert drawn == [told_of(box, chunks) for box in played_out]


def told_of(box, chunks):
    """Kind, micro-batch and chunk as the hover text of a box has them."""
    number = None if box.microbatch < 0 else str(box.microbatch + 1)
    return box.kind, number, str(box.chunk + 1) if number and chunks > 1 else None


# ---- reproduction, print ----


def test_the_command_line_on_the_page_asks_the_same(visiting):
    visit = visiting()
    page = visit.open(PIPELINE)
    # Settings come in an answer of their own, with which the part is drawn again: a click before may meet the old button.
    expect(page.locator(".repro pre").nth(1)).to_contain_text("--tensor-model-parallel-size 8")
    page.get_by_role("button", name="Copy: Command line").click()
    expect(page.locator("#say")).to_have_text("Copied")
    line = page.evaluate("navigator.clipboard.readText()").replace("\\\n", " ").split()
    assert line[:3] == ["tonnage", "train", "llama-3.1-70b"]
    from tonnage.cli import main

    assert main([*line[1:], "--json"]) == 0


def test_print_is_light_without_controls_and_all_that_is_folded_is_open(visiting):
    page = visiting(color_scheme="dark").open("fits")
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")
    page.emulate_media(media="print")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    expect(page.locator("html")).to_have_attribute("data-theme", "light")
    assert page.locator("details:not([open])").count() == 0
    for control in (".tools", "#tabs", ".inspector", ".repro .btn"):
        expect(page.locator(control).first).to_be_hidden()
    expect(page.locator("#v-line")).to_be_visible()
    page.evaluate("dispatchEvent(new Event('afterprint'))")
    expect(page.locator("html")).to_have_attribute("data-theme", "dark")


@pytest.mark.parametrize("view", ["memory", "options"])
@pytest.mark.parametrize("name", ["fits", "no", "serve"])
def test_an_answer_prints_on_one_page_with_the_decision_before_the_figures(visiting, name, view):
    visit = visiting(viewport={"width": 1280, "height": 900})
    page = visit.open(name, view)
    visit.rest()
    page.evaluate("addEventListener('afterprint', () => { window.printed = true; }, { once: true })")
    pages = page.pdf(format="A4").count(b"/Type /Page\n")
    assert pages == 1
    page.wait_for_function("() => window.printed")  # on a busy machine it comes later than the pages
    page.emulate_media(media="print")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    tops = [
        page.locator(each).bounding_box()["y"]
        for each in ("#sentence", "#v-line", '[data-part="advice"]', ".facts", ".repro")
    ]
    assert tops == sorted(tops)
    expect(page.locator("table.breakdown")).to_be_visible()


# ---- the picture's own document ----


def test_the_timeline_of_the_api_is_the_steps_own_boxes(server):
    import urllib.request

    from tonnage.estimate.plan.pipeline_boxes import pipeline_boxes
    from tonnage.verbs.ask import training

    request = urllib.request.Request(
        f"{server}v1/timeline", json.dumps(PLAN).encode(), {"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=60) as reply:
        document = json.load(reply)
    answer, _ = training(PLAN)
    drawn = pipeline_boxes(answer.pieces)
    assert document["step_seconds"] == answer.step_time.value
    assert (document["schedule"], document["stages"], document["chunks"]) == ("interleaved-1f1b", 4, 2)
    assert [each["start"] for each in document["boxes"]] == [box.start for box in drawn.boxes]
