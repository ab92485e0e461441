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


START_UP = """\
(EngineCore pid=7) INFO 10-01 gpu_model_runner.py:5121] Model loading took 14.99 GiB memory and 4.3 seconds
(EngineCore pid=7) INFO 10-01 gpu_worker.py:773] Available KV cache memory: 56.12 GiB
"""
OUT_OF_MEMORY = """\
INFO 01-20 10:00:05 worker.py:267] model weights take 14.99GiB; non_torch_memory takes 0.26GiB; PyTorch activation \
peak memory takes 0.94GiB; the rest of the memory reserved for KV Cache is -1.20GiB.
ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization`.
"""
ON_A_SMALL_CARD = "tab=serve&model=qwen3-14b&on=rtx-4090"


def test_a_log_of_a_run_that_ran_out_of_memory_opens_its_diagnosis_with_the_bytes_that_fixes_free(visiting):
    page = visiting().open(ON_A_SMALL_CARD)
    page.locator("#to-import").click()
    read(page, OUT_OF_MEMORY)
    found = page.locator("#import-found")
    expect(found.locator("h3").first).to_contain_text("out of memory while allocating the KV cache")
    expect(found.locator(".log-facts")).to_contain_text("KV cache allocation")
    expect(found.get_by_role("list", name="Lines of the log")).to_contain_text("No available memory")
    expect(found.get_by_role("list", name="Fixes")).to_contain_text("frees ")
    assert "qwen3-14b" in page.url


def test_figures_of_a_log_stand_beside_the_estimate_and_follow_the_question(visiting):
    visit = visiting()
    page = opened(visit)
    read(page, START_UP)
    table = page.get_by_role("group", name="Measured and estimated")
    expect(table.get_by_role("row", name="Weights")).to_contain_text("14.99 GiB14.99 GiB0 %")
    page.evaluate("location.hash += '&tensor_parallel_size=2'")
    visit.settle()
    expect(table.get_by_role("row", name="Weights")).to_contain_text("14.99 GiB7.512 GiB")


def test_a_log_that_is_dropped_is_read_and_one_that_is_binary_is_refused(visiting):
    page = opened(visiting())
    for name, text in (("serve.log", START_UP), ("snapshot.pickle", "\x80\x04\x95")):
        page.evaluate(
            """([name, text]) => {
              const data = new DataTransfer();
              data.items.add(new File([Uint8Array.from(text, (letter) => letter.charCodeAt(0))], name));
              document.dispatchEvent(new DragEvent("drop", {dataTransfer: data, bubbles: true, cancelable: true}));
            }""",
            [name, text],
        )
        if name == "serve.log":
            expect(page.locator("#import-found h3")).to_have_text("vLLM")
    expect(page.locator("#import-err")).to_contain_text("tonnage reconcile snapshot.pickle -- train")


def test_the_log_of_a_trainer_says_on_the_tab_of_a_server_which_verb_to_ask(visiting):
    page = opened(visiting())
    read(page, "step:  1  loss: 12.2  memory: 47.21GiB(59.58%)  tps: 5,776  tflops: 334.27  mfu: 33.80%\n12:00:00\n")
    expect(page.locator("#import-err")).to_contain_text("torchtitan measured no serve")
