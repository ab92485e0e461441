"""The table of what else fits the same cluster: each cell is the answer to the question that its row and column say,
on the cluster that was asked for.
"""

import re
from urllib.parse import quote

import pytest

from conftest import asked

expect = pytest.importorskip("playwright.sync_api", reason="the page is tested with Playwright (extra test)").expect
expect.set_options(timeout=40_000)  # a search on a busy machine
TUNED = {"model": "llama-3.1-8b", "on": "RTX-4090", "sequence_length": "2048"}
GIVEN = {
    "serve": [
        {"model": "qwen3-32b", "on": "RTX-4090"},
        {"model": "qwen3-32b", "on": "8xRTX-4090", "max_num_seqs": "4", "context": "4k"},
        {"model": "llama-3.1-8b", "on": "h100:1g.10gb", "weights": "fp8", "kv_cache": "fp8", "concurrency": "3"},
        {"model": "llama-3.1-8b", "on": "1xH100-SXM-80GB", "input_tokens": "3000", "output_tokens": "100"},
        {"model": "llama-3.1-8b", "on": "p5.48xlarge", "tensor_parallel_size": "2", "reserve": "4GiB"},
    ],
    "train": [
        {"model": "llama-3.1-8b", "on": "H100-SXM-80GB"},
        {"model": "llama-3.1-8b", "on": "8xh100", "precision": "fp32", "micro_batch_size": "2", "recompute": "full"},
        {"model": "llama-3.1-8b", "on": "8xh100", "sequence_length": "3000", "runtime": "torchtune"},
    ],
    "tune": [
        {**TUNED, "method": "qlora"},
        {**TUNED, "method": "lora"},
        {**TUNED, "method": "dora", "base_weights": "nf4"},
        {**TUNED, "method": "freeze", "trainable_layers": "2"},
        {**TUNED, "method": "qlora", "runtime": "litgpt"},
        {**TUNED, "method": "lora", "runtime": "litgpt", "lora_rank": "64"},
        {"model": "llama-3.1-8b", "on": "2xRTX-4090", "method": "qlora"},
    ],
}


def gib(document):
    return f"{document['verdict']['needed_bytes'] / 2**30:,.1f}"


def fragment(tab, question):
    return "&".join([f"tab={tab}", *(f"{name}={quote(value, safe=':')}" for name, value in question.items())])


def chosen_for(verb, question):
    """What was chosen for the answer on the page: other cells are of it too."""
    return asked(verb, question).get("chosen", {}).get("change", {})


@pytest.mark.parametrize(("tab", "question"), [(tab, each) for tab, all_of in GIVEN.items() for each in all_of])
def test_where_the_page_stands_the_cell_is_the_headline(staying, tab, question):
    page = staying().go_on(fragment(tab, question), "options")
    document = asked("serve" if tab == "serve" else "train", question)
    here = page.locator("[data-part=matrix] .cell.here")
    expect(here).to_have_count(1)
    expect(here).to_have_text(gib(document))
    expect(page.locator("#v-line")).to_contain_text(gib(document))
    kind = {True: "fits", False: "no", None: "tight"}[document["verdict"]["fits"]]
    expect(here).to_have_class(f"cell {kind} here")


def test_every_cell_is_of_the_cluster_that_is_asked(visiting):
    question = {"model": "qwen3-32b", "on": "RTX-4090"}
    page = visiting().open(fragment("serve", question), "options")
    for name, change in {
        "awq-4bit-128g, KV bf16, 40k": {"weights": "awq"},
        "fp8-e4m3, KV fp8, 20k": {"weights": "fp8", "kv_cache": "fp8", "context": 20480},
    }.items():
        document = asked("serve", {**chosen_for("serve", question), **question, **change, "as_is": True})
        expect(page.get_by_role("button", name=re.compile(f"^{re.escape(name)}:"))).to_have_text(gib(document))


@pytest.mark.parametrize("runtime", ["transformers", "litgpt"])
@pytest.mark.parametrize("method", ["qlora", "lora"])
def test_each_row_of_a_base_is_what_it_says_and_its_cell_takes_that_over(visiting, method, runtime):
    visit = visiting()
    start = {**TUNED, "runtime": runtime, "method": method}
    rows = {
        "base not quantised": {"method": "lora"},
        "base in int8": {"base_weights": "int8"},
        "base in nf4-double": {"method": "qlora"},
    }
    for name, change in rows.items():
        page = visit.go_on(fragment("tune", start), "options")
        taken = {**chosen_for("train", start), **start, **change}
        document = asked("train", {**taken, "as_is": True})
        precision = document["question"]["precision"]["value"]
        said = (
            name if runtime == "transformers" else f"{name}, {precision}"
        )  # litgpt quantises no base under mixed precision
        cell = page.get_by_role("button", name=re.compile(f"^{re.escape(said)}, 2k:"))
        expect(cell).to_have_text(gib(document))
        cell.click()
        expect(page.locator("#v-line")).to_contain_text(gib(asked("train", taken)))
        expect(page.locator("[data-part=matrix] .cell.here")).to_have_attribute(
            "aria-label", re.compile(f"^{re.escape(said)}, 2k:")
        )
        visit.settle()


@pytest.mark.parametrize(
    ("question", "heads"),
    [
        ({"model": "qwen3-32b", "on": "8xRTX-4090"}, ["2.5k", "5k", "10k", "20k", "40k"]),
        ({"model": "qwen3-32b", "on": "8xRTX-4090", "context": "32000"}, ["16k", "32k", "64k", "128k"]),
        ({"model": "qwen3-32b", "on": "8xRTX-4090", "context": "1536"}, ["768", "1.5k", "3k", "6k", "12k"]),
    ],
)
def test_the_columns_count_their_tokens_in_one_kind_of_thousand(staying, question, heads):
    page = staying().go_on(fragment("serve", question), "options")
    expect(page.locator(".matrix thead th").nth(1)).to_have_text(f"{heads[0]} tokens")
    assert page.locator(".matrix thead th").all_inner_texts()[1 : 1 + len(heads)] == [
        f"{head} tokens" for head in heads
    ]
