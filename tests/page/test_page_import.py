"""Another tool's file on the page: pasted, dropped, read as the question; and an answer written as one."""

import pytest

sync = pytest.importorskip("playwright.sync_api", reason="the page is tested with Playwright (extra test)")
expect = sync.expect
COMMAND = "vllm serve qwen3-32b --tensor-parallel-size 2 --max-model-len 8192 --made-up-key 3"
ASKED = "tab=serve&model=llama-3.1-8b&on=2xH100-SXM-80GB"


def opened(visit):
    page = visit.open(ASKED)
    page.locator("#to-import").click()
    return page


def read(page, text):
    page.locator("#import-text").fill(text)
    page.locator("#import-send").click()


def test_a_pasted_command_becomes_the_question_and_its_keys_are_listed(visiting):
    page = opened(visiting())
    read(page, COMMAND)
    keys = page.get_by_role("list", name="Keys")
    expect(keys).to_contain_text("max-model-len = 8192 → context")
    expect(page.locator("#import-found .err")).to_contain_text("1 were not understood")
    expect(page.locator("#ask")).to_contain_text("Qwen3-32B")
    assert "context=8192" in page.url


def test_what_names_no_machine_takes_that_of_the_page(visiting):
    page = opened(visiting())
    read(page, "vllm serve qwen3-8b")
    expect(page.locator("#import-found h3")).to_contain_text("vLLM")
    assert "on=2xH100-SXM-80GB" in page.url


def test_a_text_of_no_tool_is_refused_and_the_question_stays(visiting):
    page = opened(visiting())
    read(page, "make all")
    expect(page.locator("#import-err")).to_contain_text("of no tool")
    assert "llama-3.1-8b" in page.url


def test_a_file_that_is_chosen_is_read_at_once(visiting):
    page = opened(visiting())
    page.locator("#import-file").set_input_files(
        files=[{"name": "run.sh", "mimeType": "text/x-sh", "buffer": COMMAND.encode()}]
    )
    expect(page.locator("#import-found h3")).to_contain_text("vLLM")


def test_an_answer_is_written_as_a_file_of_another_tool(visiting):
    page = visiting().open(ASKED)
    page.locator("#export-format").select_option("vllm")
    expect(page.get_by_role("region", name="vllm", exact=True)).to_contain_text("vllm serve")


def test_escape_closes_it_and_the_focus_goes_back(visiting):
    page = opened(visiting())
    page.keyboard.press("Escape")
    expect(page.locator("#import")).to_be_hidden()
    expect(page.locator("#to-import")).to_be_focused()
