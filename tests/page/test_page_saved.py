"""Saved plans on the page: saved under a name, opened again with what they asked, seen through their history,
deleted.
"""

import json
import re
import urllib.request
from urllib.parse import quote

import pytest
from page_visits import Visit, field

from conftest import served

sync = pytest.importorskip("playwright.sync_api", reason="the page is tested with Playwright (extra test)")
expect = sync.expect
PHONE = {"width": 360, "height": 760}
QUESTION = {"model": "llama-3.1-8b", "on": "8xH100-SXM-80GB"}


def put(server, name, verb="train", version=0, **question):
    """A plan that is saved already."""
    body = {"name": name, "verb": verb, "question": question or QUESTION, **({"version": version} if version else {})}
    request = urllib.request.Request(
        f"{server}v1/saved", json.dumps(body).encode(), {"Content-Type": "application/json"}
    )
    with urllib.request.urlopen(request, timeout=60) as reply:
        return json.load(reply)["plan"]


def latest(server, name):
    with urllib.request.urlopen(f"{server}v1/saved/{quote(name)}", timeout=60) as reply:
        return json.load(reply)["plan"]


def panel(page):
    """Opened, with its list."""
    page.locator("#to-saved").click()
    expect(page.locator("#saved-list")).to_have_attribute("aria-busy", "false")
    return page.locator("#saved")


def item(page, name):
    return page.locator(".saved > li").filter(has=page.get_by_role("heading", name=name, exact=True))


def test_a_question_is_saved_found_after_a_reload_opened_and_deleted(visiting, server):
    visit = visiting()
    page = visit.open("tab=tune&model=llama-3.1-8b&on=RTX-4090&method=qlora&sequence_length=2048")
    panel(page)
    page.get_by_label("Name", exact=True).fill("一月 run")
    page.get_by_role("button", name="Save", exact=True).click()
    visit.hears("Saved as version 1")
    expect(item(page, "一月 run")).to_contain_text("Fine-tune · llama-3.1-8b · RTX-4090")
    assert latest(server, "一月 run")["question"] == {
        "model": "llama-3.1-8b",
        "on": "RTX-4090",
        "method": "qlora",
        "sequence_length": "2048",
    }
    before = page.locator("#v-line").inner_text()

    page = visit.open("empty")
    panel(page)
    page.get_by_role("button", name="Open 一月 run").click()
    expect(page.locator("#tab-tune")).to_have_attribute("aria-current", "page")
    expect(page.locator("#v-line")).to_have_text(before, use_inner_text=True)
    expect(field(page, "sequence_length")).to_have_value("2048")
    assert dict(part.split("=") for part in page.evaluate("location.hash.slice(1)").split("&")) == {
        "tab": "tune",
        "model": "llama-3.1-8b",
        "on": "RTX-4090",
        "method": "qlora",
        "sequence_length": "2048",
    }
    page.locator("#undo").click()
    expect(page.locator("#v-line")).to_contain_text("Name a model")

    panel(page)
    page.get_by_role("button", name="Delete 一月 run").click()
    expect(page.locator("#saved-spare")).to_be_focused()
    page.keyboard.press("Escape")
    expect(page.locator(".saved-sure")).to_have_count(0)
    expect(page.get_by_role("button", name="Delete 一月 run")).to_be_focused()
    page.get_by_role("button", name="Delete 一月 run").click()
    page.get_by_label("Delete all its versions too, for good").check()
    page.get_by_role("button", name="Yes, delete 一月 run").click()
    expect(item(page, "一月 run")).to_have_count(0)
    with pytest.raises(urllib.error.HTTPError, match="404"):
        urllib.request.urlopen(f"{server}v1/saved/{quote('一月 run')}/history", timeout=60)


def test_an_older_version_is_opened_from_the_history(visiting, server):
    put(server, "grows")
    put(server, "grows", version=1, **QUESTION, micro_batch_size=4)
    visit = visiting()
    page = visit.open("fits")
    panel(page)
    expect(item(page, "grows")).to_contain_text("version 2")
    page.get_by_role("button", name="History of grows").click()
    versions = page.get_by_role("list", name="History of grows").get_by_role("listitem")
    expect(versions).to_have_count(2)
    expect(versions.nth(0)).to_contain_text("micro_batch_size – → 4")
    expect(versions.nth(1)).to_contain_text("version 1")
    for number, expected in ((2, "4"), (1, "")):
        page.get_by_role("button", name=f"Open version {number} of grows").click()
        visit.hears(f"Opened grows, version {number}")
        visit.settle()
        assert ("micro_batch_size=4" in page.evaluate("location.hash")) == bool(expected)
    page.get_by_role("button", name="History of grows").click()
    expect(versions).to_have_count(0)


def test_saving_over_a_name_makes_a_version_and_somebody_elses_is_not_lost(visiting, server):
    put(server, "shared")
    visit = visiting()
    page = visit.open("fits")
    panel(page)
    page.get_by_label("Name", exact=True).fill("shared")
    put(server, "shared", version=1)
    page.get_by_role("button", name="Save as version 2").click()
    expect(page.locator("#saved-err")).to_contain_text("Somebody else has changed shared since")
    page.get_by_role("button", name="Save as version 3").click()
    visit.hears("Saved as version 3")
    expect(page.locator("#saved-err")).to_be_hidden()


@pytest.mark.parametrize(
    ("fragment", "where", "value"),
    [
        (
            "tab=plan&model=llama-3.1-8b&plan_for=serve&plan_on=H100-SXM-80GB,A100-SXM-80GB&concurrency=8&tpot=40ms&plan_aim=cost",
            ".wish [name=concurrency]",
            "8",
        ),
        ("tab=serve&model=llama-3.1-8b&on=1xH100-SXM-80GB&concurrency=16", "", "16"),
    ],
)
def test_what_is_opened_asks_what_was_saved(visiting, server, fragment, where, value):
    visit = visiting()
    page = visit.open(fragment)
    panel(page)
    name = f"again {value}"
    page.get_by_label("Name", exact=True).fill(name)
    page.keyboard.press("Enter")
    visit.hears("Saved as version 1")
    saved = latest(server, name)
    page = visit.open("fits")
    panel(page)
    page.get_by_role("button", name=f"Open {name}").click()
    visit.hears(f"Opened {name}, version 1")
    visit.settle()
    if where:
        expect(page.locator(where)).to_have_value(value)
    else:
        expect(page.locator("[data-slot=users]")).to_have_text(f"{value} users")
    page.get_by_role("button", name="Save as version 2").click()
    visit.hears("Saved as version 2")
    assert latest(server, name)["question"] == saved["question"]


def test_a_question_that_the_page_has_no_inputs_for_shows_its_command_line(visiting, server):
    put(server, "largest", verb="max", what="context", **QUESTION)
    page = visiting().open("fits")
    panel(page)
    page.get_by_role("button", name="Open largest").click()
    expect(item(page, "largest")).to_contain_text("tonnage max context llama-3.1-8b")
    expect(page.get_by_role("button", name="Open largest")).to_have_count(0)


def test_the_list_comes_in_pages_without_questions_and_a_plan_is_read_when_it_is_opened(visiting, server):
    for name in ("paged a", "paged b", "paged c"):
        put(server, name)
    page = visiting().open("empty")
    asked = []
    page.on("request", lambda request: asked.append(request.url) if "/v1/saved" in request.url else None)

    def two_at_a_time(route):
        route.continue_(url=route.request.url.replace("limit=100", "limit=2"))

    page.route("**/v1/saved?limit=100", two_at_a_time)
    page.route("**/v1/saved?limit=100&after=*", two_at_a_time)
    panel(page)
    names = page.locator(".saved > li h3")
    before = names.count()
    assert before == 2
    while (more := page.locator("#saved-list > button", has_text="More")).count():
        count = names.count()
        more.click()
        expect(names).not_to_have_count(count)
    assert names.all_inner_texts() == sorted(names.all_inner_texts()) and names.count() > before
    assert not [url for url in asked if "limit=" not in url], "no plan is read for the list"
    page.get_by_role("button", name="Open paged c").click()
    expect(page.locator("#v-line")).to_contain_text("Fits")
    assert next(url for url in asked if "limit=" not in url).endswith("/v1/saved/paged%20c?version=1")


def test_figures_that_follow_a_save_come_by_themselves(visiting, server):
    put(server, "follows")
    page = visiting().open("fits")

    def without_figures(route):
        answer = route.fetch()
        document = answer.json()
        for plan in document["plans"]:
            plan.update(status=None, answer=None, needed_bytes=None, usable_bytes=None, usd=None, usd_of=None)
        route.fulfill(response=answer, json=document)

    page.route("**/v1/saved?limit=100", without_figures)
    panel(page)
    expect(item(page, "follows")).to_contain_text("Its figures are being computed.")
    expect(item(page, "follows")).to_contain_text("GiB")


def test_a_saved_question_without_an_answer_says_why(visiting, server):
    put(server, "no answer")
    page = visiting().open("fits")
    reason = "tensor_parallel_size must divide 32. Got 7."

    def refused(route):
        answer = route.fetch()
        document = answer.json()
        for plan in document["plans"]:
            plan.update(status=64, answer=reason, needed_bytes=None, usable_bytes=None, usd=None, usd_of=None)
        route.fulfill(response=answer, json=document)

    page.route("**/v1/saved?limit=100", refused)
    panel(page)
    expect(item(page, "no answer")).to_contain_text("Got 7.")


def test_what_cannot_be_saved_is_said(visiting):
    visit = visiting()
    page = visit.open("empty")
    panel(page)
    page.get_by_label("Name", exact=True).fill("nothing")
    expect(page.locator("#saved-what")).to_contain_text("Name a model")
    expect(page.get_by_role("button", name="Save", exact=True)).to_be_disabled()
    page = visit.open("tab=rules&model=llama-3.1-8b")
    panel(page)
    expect(page.locator("#saved-what")).to_contain_text("Rules of thumb ask nothing")
    page = visit.open("fits")
    panel(page)
    page.get_by_label("Name", exact=True).fill("a/b")
    page.get_by_role("button", name="Save", exact=True).click()
    expect(page.locator("#saved-err")).to_contain_text("no / and no space")
    page.get_by_role("button", name="中文").click()
    page.get_by_role("button", name="保存", exact=True).click()
    expect(page.locator("#saved-err")).to_contain_text("“a/b”" if page.get_by_text("“a/b”").count() else "a/b")


def test_a_data_base_that_does_not_answer_is_said_and_tried_again(visiting, server):
    put(server, "there")
    page = visiting().open("fits")
    refusal = {
        "schema": "tonnage/1",
        "error": {"kind": "StoreError", "message": "the data base of saved plans does not answer (OperationalError)."},
    }
    page.route("**/v1/saved?*", lambda route: route.fulfill(status=503, json=refusal))
    panel(page)
    expect(page.locator("#saved-list .err")).to_contain_text("does not answer")
    page.unroute("**/v1/saved?*")
    page.get_by_role("button", name="Try again").click()
    expect(item(page, "there")).to_be_visible()


def test_while_the_list_is_on_its_way_that_is_said(visiting):
    page = visiting().open("fits")
    page.route("**/v1/saved?*", lambda route: None)
    page.locator("#to-saved").click()
    expect(page.locator("#saved-list")).to_have_text("Reading what is saved…")
    expect(page.locator("#saved-list")).to_have_attribute("aria-busy", "true")
    page.unroute("**/v1/saved?*")


def test_a_server_that_saves_nothing_says_so_and_offers_nothing(browser):
    with served("none") as address:
        visit = Visit(browser, address)
        page = visit.open("fits")
        page.locator("#to-saved").click()
        expect(page.locator("#saved-body")).to_contain_text("This server saves no plans")
        expect(page.locator("#saved-body input, #saved-body button")).to_have_count(0)
        page.get_by_role("button", name="中文").click()
        expect(page.locator("#saved-body")).to_contain_text("此服务器不保存方案")
        visit.context.close()
        assert visit.wrong == []


def test_a_page_without_a_server_says_that_it_keeps_nothing(visiting):
    page = visiting().open("fits")
    page.evaluate("""async () => {
        const { sendBy } = await import(new URL("js/api.js", document.baseURI));
        const error = { kind: "NotInBrowser", message: "This needs `tonnage web`: a page without a server keeps nothing." };
        sendBy(async () => ({ ok: false, status: 404, header: () => null, json: async () => ({ error }) }));
    }""")
    page.locator("#to-saved").click()
    expect(page.locator("#saved-body")).to_have_text("This needs `tonnage web`: a page without a server keeps nothing.")
    expect(page.locator("#saved-body input, #saved-body button")).to_have_count(0)


def test_the_head_of_the_page_leads_to_the_panel(visiting):
    page = visiting().open("fits")
    page.get_by_role("button", name="Saved plans", exact=True).click()
    expect(page.locator("#saved-list")).to_have_attribute("aria-busy", "false")
    expect(page.locator("#h-saved")).to_be_focused()
    expect(page.locator("#saved-name")).to_be_in_viewport()


def test_by_keyboard_alone(visiting, server):
    visit = visiting()
    page = visit.open("fits")
    page.locator("#to-saved").focus()
    page.keyboard.press("Enter")
    expect(page.locator("#saved-list")).to_have_attribute("aria-busy", "false")
    page.keyboard.press("Tab")
    expect(page.locator("#saved-close")).to_be_focused()
    page.keyboard.press("Tab")
    expect(page.get_by_label("Name", exact=True)).to_be_focused()
    page.keyboard.type("keys", delay=20)
    page.keyboard.press("Enter")
    expect(item(page, "keys")).to_be_visible()
    expect(page.get_by_label("Name", exact=True)).to_be_focused()
    history = page.get_by_role("button", name="History of keys")
    history.focus()
    page.keyboard.press("Enter")
    expect(page.get_by_role("list", name="History of keys")).to_be_visible()
    expect(history).to_be_focused()
    expect(history).to_have_attribute("aria-expanded", "true")
    page.get_by_role("button", name="Delete keys").focus()
    page.keyboard.press("Enter")
    page.keyboard.press("Shift+Tab")
    page.keyboard.press("Space")
    expect(page.get_by_label("Delete all its versions too, for good")).to_be_checked()
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    page.keyboard.press("Enter")
    expect(item(page, "keys")).to_have_count(0)
    expect(page.get_by_label("Name", exact=True)).to_be_focused()


@pytest.mark.parametrize(("look", "size"), [("light", {"width": 1440, "height": 1000}), ("dark", PHONE), ("zh", PHONE)])
def test_axe_finds_nothing_in_the_panel_and_nothing_is_too_wide(visiting, server, look, size):
    axe = pytest.importorskip("axe_playwright_python.sync_playwright", reason="axe comes with axe-playwright-python")
    name = f"a long name of a plan that is looked at {look}"
    put(server, name)
    put(server, f"{name}, another", verb="max", what="context", **QUESTION)
    page = visiting(
        viewport=size, color_scheme="dark" if look == "dark" else "light", locale="zh-CN" if look == "zh" else "en-GB"
    ).open("fits")
    box = panel(page)
    item(page, name).get_by_role("button", name=re.compile("History|历史")).click()
    expect(page.locator(".saved-history li")).to_have_count(1)
    item(page, name).get_by_role("button", name=re.compile("^(Delete|删除)")).click()
    if look == "zh":
        words = " ".join(
            each.inner_text() for each in (page.locator("#saved-form"), item(page, name), box.locator("h2"))
        )
        assert not re.search(r"[a-z]{2,} [a-z]{2,}", re.sub(rf"{name}|llama\S*|tonnage", "", words)), words
    found = axe.Axe().run(page).response["violations"]
    assert [(each["id"], [node["target"] for node in each["nodes"]][:3]) for each in found] == []
    assert page.evaluate("document.documentElement.scrollWidth") <= size["width"]


def test_print_has_no_saved_plans(visiting):
    page = visiting().open("fits")
    panel(page)
    page.emulate_media(media="print")
    page.evaluate("dispatchEvent(new Event('beforeprint'))")
    expect(page.locator("#saved")).to_be_hidden()
