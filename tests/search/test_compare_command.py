"""tonnage compare: lists in, one table out, in each of its forms."""

import csv
import io
import json
import re

import pytest

import tonnage
from tonnage.cli import main
from tonnage.render.compare import MAX_ROWS, comparison_lines
from tonnage.search.compare.pivot import pivot

MATRIX = [
    "compare",
    "llama-3.1-70b",
    "--on",
    "h100,rtx-4090,8xa100",
    "--weights",
    "own,fp8,awq",
    "--context",
    "8k,128k",
    "--users",
    "16",
]
TRAINING = [
    "compare",
    "llama-3.1-8b",
    "--train",
    "--on",
    "8xh100,8xmi300x",
    "--precision",
    "bf16-mixed,bf16",
    "--seq",
    "4k,64k",
]


def _said(words, capsys):
    printed = {"--json", "--markdown", "--csv", "-v"} & {*words}
    status = main([*words, *([] if printed else ["-v"])])
    found = capsys.readouterr()
    return status, found.out, found.err


def _rows(words, capsys):
    status, out, err = _said([*words, "--json"], capsys)
    assert not err
    return status, json.loads(out)


def test_the_table_has_machines_and_precisions_down_and_contexts_across(capsys):
    status, out, err = _said(MATRIX, capsys)
    assert (status, err) == (0, "")
    lines = out.splitlines()
    assert lines[0] == "11 of 18 fit: llama-3.1-70b on h100, rtx-4090, 8xa100; the best of each workload:"
    heads = next(number for number, line in enumerate(lines) if "context 8192" in line and "context 131072" in line)
    assert "context 131072" in lines[heads]
    assert lines[heads + 1].split()[:2] == ["on", "weights"]
    body = lines[heads + 3 : heads + 12]
    assert [line.split()[0] for line in body] == [on for on in ("h100", "rtx-4090", "8xa100") for _ in range(3)]
    assert len({len(line) for line in body if not line.rstrip().endswith("%")}) == 1  # columns stand below each other


def test_the_cells_of_the_table_are_those_of_serve(capsys):
    _, out, _ = _said(MATRIX, capsys)
    line = next(line for line in out.splitlines() if line.startswith("8xa100") and " fp8 " in line)
    answer = tonnage.serve("llama-3.1-70b", "8xa100", weights="fp8", context=8192, concurrency=16).summary()
    serving = answer["serving"]
    assert f"{serving['tpot_seconds']['value'] * 1000:.2f} ms" in line
    assert f"{serving['cost_per_million_tokens']['value']:.2f}" in line
    assert f"{serving['concurrency']['value']:.0f}" in line.split()
    none = tonnage.serve("llama-3.1-70b", "8xa100", weights="fp8", context=131072, concurrency=16)
    assert f"no: {100 * none.needed_bytes / none.usable_bytes:.0f} %" in line


def test_the_best_is_said_of_each_workload_and_no_workload_is_better_than_another(capsys):
    """The short context is cheaper everywhere: that is no answer to who asked for the long one."""
    _, document = _rows(MATRIX, capsys)
    _, out, _ = _said(MATRIX, capsys)
    assert [each["values"] for each in document["workloads"]] == [{"context": "8192"}, {"context": "131072"}]
    for number, each in enumerate(document["workloads"], 1):
        cells = [document["cells"][at] for at in each["cells"]]
        assert len(cells) == 9 and len({cell["context"] for cell in cells}) == 1
        priced = [cell for cell in cells if cell["verdict"] == "fits"]
        (best,) = [document["cells"][at] for at in each["best"][document["key"]]]
        assert best["usd_per_million_tokens"] == min(cell["usd_per_million_tokens"] for cell in priced)
        line = out.splitlines()[number]
        assert line.startswith(f"  context {each['values']['context']}: {best['on']}, ")
        assert f" {best['usd_per_million_tokens']:.2f} USD/M" in line


def test_machines_alone_are_rivals_and_one_is_the_best(capsys):
    _, document = _rows(["compare", "llama-3.1-8b", "--on", "h100,rtx-4090", "--context", "8k"], capsys)
    _, out, _ = _said(["compare", "llama-3.1-8b", "--on", "h100,rtx-4090", "--context", "8k"], capsys)
    assert document["workloads"] == [] and "; best: " in out.splitlines()[0]


def test_what_some_answers_took_and_others_not_is_said_with_what_brings_it(capsys):
    _, out, _ = _said(
        ["compare", "llama-3.1-8b", "--on", "h100", "--weights", "own,q4_k_m", "--context", "8k,16k"], capsys
    )
    assert re.search(r"^  engine +vllm; llama.cpp \(weights q4_k_m\)$", out, re.MULTILINE)
    assert re.search(r"^  input_tokens +1,024$", out, re.MULTILINE)


def test_rows_of_what_does_not_fit_have_no_speed_and_no_price(capsys):
    _, out, _ = _said(["compare", "llama-3.1-70b", "--on", "rtx-4090,8xh100", "--count", "1,8", "--rows"], capsys)
    none = next(line for line in out.splitlines() if line.startswith("rtx-4090") and " no: " in line)
    assert none.split()[-4:] == ["-"] * 4 and "GiB" in none


def test_how_many_are_paid_stands_beside_those_that_are_used_though_nobody_left_the_number_open(capsys):
    _, out, _ = _said(["compare", "llama-3.1-70b", "--on", "2xmi355x,8xmi355x", "--context", "8k,16k"], capsys)
    line = next(line for line in out.splitlines() if line.startswith("2xmi355x"))
    assert line.split().count("2/8") == 2 and "2/8: two accelerators, of eight that are paid for" in out


def test_the_best_of_each_column_is_marked(capsys):
    _, document = _rows(MATRIX, capsys)
    cheapest = {}
    for cell in document["cells"]:
        if cell["verdict"] == "fits":
            cheapest.setdefault(cell["context"], []).append((cell["usd_per_million_tokens"], cell["on"]))
    _, out, _ = _said(MATRIX, capsys)
    marked = [line for line in out.splitlines() if re.match(r"(h100|rtx-4090|8xa100)", line) and "*" in line]
    assert sum(line.count("*") for line in marked) == len(cheapest) == 2


def test_a_narrow_terminal_gets_blocks_of_columns_with_their_labels():
    made = tonnage.compare(
        "llama-3.1-8b", ["h100", "rtx-4090"], weights=[None, "fp8"], context=[1024, 2048, 4096, 8192, 16384]
    )
    wide, narrow = comparison_lines(made, width=300), comparison_lines(made, width=80)
    table = [line for line in narrow if line.startswith(("h100", "rtx-4090", "on ", "-----"))]
    assert max(map(len, table)) <= 80
    assert (
        sum(line.startswith("h100      fp8") for line in narrow)
        > 1
        == sum(line.startswith("h100      fp8") for line in wide)
    )


def test_a_narrow_terminal_leaves_figures_of_rows_out_and_says_which():
    made = tonnage.compare("llama-3.1-8b", ["h100", "rtx-4090"], weights=[None, "fp8"])
    wide, narrow = comparison_lines(made, rows=True, width=300), comparison_lines(made, rows=True, width=70)
    assert not any("too wide" in line for line in wide)
    (said,) = [line for line in narrow if line.startswith("too wide for this terminal: ")]
    assert "tokens/s" in said and "USD/M" not in said


def test_one_axis_is_a_line_a_cell_and_rows_makes_it_so(capsys):
    for words in (["compare", "llama-3.1-8b", "--on", "h100,rtx-4090"], [*MATRIX, "--rows"]):
        _, out, _ = _said(words, capsys)
        assert sum("fits" in line or "no: " in line for line in out.splitlines()[1:]) >= 2
        assert any(line.split()[:1] == ["on"] and "verdict" in line for line in out.splitlines())


def test_long_tables_are_cut_and_say_so():
    made = tonnage.compare("llama-3.1-8b", "h100", context=list(range(1024, 1024 + 64 * 70, 64)))
    assert f"and {70 - MAX_ROWS} more rows: --csv, --json and --parquet have all" in made.text(verbose=True)


def test_training_has_steps_and_what_a_billion_tokens_cost(capsys):
    status, out, _ = _said(TRAINING, capsys)
    assert status == 0
    assert "sequence_length 65536" in out and "MFU" in out and "USD/B" in out
    _, document = _rows(TRAINING, capsys)
    assert [cell["sequence_length"] for cell in document["cells"]] == [4096, 65536] * 4


@pytest.mark.parametrize(
    ("words", "axis", "values"),
    [
        (
            ["--lora-targets", "q_proj,v_proj;all-linear", "--method", "lora"],
            "lora_targets",
            ["q_proj,v_proj", "all-linear"],
        ),
        (["--compile", "--no-compile", "--runtime", "torchtune"], "compile", ["on", "off"]),
        (["--mbs", "1,2"], "micro_batch_size", ["1", "2"]),
        (["--reserve", "1GiB,2GiB"], "reserve_bytes", ["1073741824", "2147483648"]),
        (["--num-hidden-layers", "own,8"], "num_hidden_layers", ["own", "8"]),
        (["--on", "h100", "--count", "8,fewest"], "count", ["8", "fewest"]),
    ],
)
def test_every_option_may_be_a_list(words, axis, values, capsys):
    _, document = _rows(["compare", "llama-3.1-8b", "--train", "--on", "8xh100", "--seq", "2k", *words], capsys)
    assert {each["name"]: each["values"] for each in document["axes"]}[axis] == values
    assert len(document["cells"]) == len(values)
    assert axis == "count" or len({cell["needed_bytes"] for cell in document["cells"]}) + (axis == "reserve_bytes") > 1


def test_a_file_whose_name_has_a_comma_is_one_model(tmp_path, capsys):
    config = {
        "model_type": "llama",
        "hidden_size": 256,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "vocab_size": 1000,
        "intermediate_size": 512,
    }
    path = tmp_path / "mine, new.json"
    path.write_text(json.dumps(config))
    _, document = _rows(["compare", str(path), "--on", "h100", "--context", "1k"], capsys)
    assert len(document["cells"]) == 1


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (["compare", "llama-3.1-8b"], "--on is needed"),
        (["compare", "llama-3.1-8b", "--on", "h100,"], "empty value"),
        (["compare", "llama-3.1-8b", "--on", "h100", "--wieghts", "fp8"], "Did you mean --weights"),
        (["compare", "llama-3.1-8b", "--on", "h100", "--context", "8,192,012"], "numbers without any"),
        (["compare", "llama-3.1-8b", "--on", "h100", "--parquet", "8k"], "ends in .parquet"),
        (["compare", "llama-3.1-8b", "--on", "h100", "--count", "0"], "from 1, or fewest"),
        (["compare", "llama-3.1-8b", "--on", "h100", "--show", "tpott"], "Did you mean 'tpot'"),
        (["compare", "llama-3.1-8b", "--on", "h100", "--seq", "4k"], "--seq"),
        (["compare", "llama-3.1-8b", "--on", "h100", "--json", "--csv"], "not allowed with"),
        (["compare", "llama-3.1-8b", "--on", "h100", "--batch-size", "4"], "--batch-size"),
        (["compare", "llama-3.1-8b,nope", "--on", "h100"], "no model is called 'nope'"),
    ],
)
def test_wrong_usage_is_said_once_and_at_once(words, says, capsys):
    status, out, err = _said(words, capsys)
    assert (status, out.startswith("{") or not out) == (64, True)
    assert says in err and err.count("error:") == 1


def test_options_of_other_tools_are_those_of_the_verb_that_is_compared(capsys):
    assert (
        _rows(["compare", "llama-3.1-8b", "--on", "8xh100", "--tensor_parallel_size", "4,8", "--ctx", "4k"], capsys)[0]
        == 0
    )
    _, _, err = _said(["compare", "llama-3.1-8b", "--on", "8xh100", "--max-model-len", "4k,8k"], capsys)
    assert "--context" in err
    _, _, err = _said(
        ["compare", "llama-3.1-8b", "--train", "--on", "8xh100", "--per-device-train-batch-size", "4"], capsys
    )
    assert "micro" in err or not err


@pytest.mark.parametrize(
    "words", [MATRIX, TRAINING, [*MATRIX, "--rows"], ["compare", "llama-3.1-8b", "--on", "8xh100", "--tp", "8,16"]]
)
def test_markdown_is_a_table_that_github_reads(words, capsys):
    status, out, err = _said([*words, "--markdown"], capsys)
    assert (status, err) == (0, "")
    table = [line for line in out.splitlines() if line.startswith("|")]
    assert len({line.count("|") for line in table}) == 1 and len(table) >= 4
    assert set(table[1].replace("|", "").split()) == {"---"}
    assert out.startswith("**") and "\n\n|" in out


def test_csv_is_the_same_rows_as_json(capsys):
    _, document = _rows(MATRIX, capsys)
    _, out, _ = _said([*MATRIX, "--csv"], capsys)
    lines = list(csv.DictReader(io.StringIO(out)))
    assert [line["needed_bytes"] for line in lines] == [str(cell["needed_bytes"]) for cell in document["cells"]]
    assert [line["verdict"] for line in lines] == [cell["verdict"] for cell in document["cells"]]
    assert list(lines[0]) == [column["name"] for column in document["columns"]]


def test_parquet_is_written_beside_what_is_printed(tmp_path, capsys):
    parquet = pytest.importorskip("pyarrow.parquet")
    path = tmp_path / "cells.parquet"
    status, out, _ = _said([*MATRIX, "--parquet", str(path)], capsys)
    assert status == 0 and "fit" in out
    assert parquet.read_table(path).num_rows == 18


def test_reasons_stand_below_the_table_by_their_number(capsys):
    _, out, _ = _said(["compare", "llama-3.1-8b", "--on", "8xh100,4xh100", "--tp", "4,8", "--context", "4k"], capsys)
    assert "cannot be [1]" in out
    (reason,) = [line for line in out.splitlines() if line.startswith("[1] ")]
    assert "Got 8. Nearest: 4" in reason


def test_what_does_not_answer_as_asked_is_marked_and_does_not_fit_as_a_status(capsys):
    words = ["compare", "llama-3.1-8b", "--on", "h100,8xh100", "--count", "1", "--context", "4k,8k", "--ttft", "1us"]
    status, out, _ = _said(words, capsys)
    assert status == 3
    assert out.startswith("none of 4 fits") and "not served: 4" in out
    assert "!: fits, but does not answer as asked" in " ".join(out.split())


def test_where_nothing_can_be_the_table_says_why_and_the_status_too(capsys):
    status, out, err = _said(["compare", "llama-3.1-8b", "--on", "8xh100", "--tp", "3,16"], capsys)
    assert status == 64
    assert out.startswith("none of 2 fits") and "[1] " in out and "[2] " in out
    assert err == "error: none of these can be: the reasons of the cells say why.\n"


def test_figures_that_are_asked_for_are_shown(capsys):
    _, out, _ = _said([*MATRIX, "--show", "needs,longest,price"], capsys)
    heads = next(line for line in out.splitlines() if line.startswith("on "))
    assert heads.split() == ["on", "weights", *["needs", "longest", "USD/h"] * 2]


def test_sorting_orders_the_lines_by_their_best_cell(capsys):
    _, out, _ = _said([*MATRIX, "--sort", "tpot"], capsys)
    _, document = _rows([*MATRIX, "--sort", "tpot"], capsys)
    first = document["cells"][0]
    line = next(line for line in out.splitlines() if re.match(r"(h100|rtx-4090|8xa100) ", line))
    assert f"{first['tpot_seconds'] * 1000:.2f} ms" in line
    times = [cell["tpot_seconds"] for cell in document["cells"] if cell["verdict"] == "fits"]
    assert times == sorted(times)


def test_the_table_across_has_every_cell_once():
    made = tonnage.compare(
        ["llama-3.1-8b", "qwen3-8b"], ["h100", "8xh100"], weights=[None, "fp8"], context=[4096, 8192, 16384]
    )
    table = pivot(made)
    assert sorted(number for line in table.lines for number in line.cells) == list(range(24))
    assert (table.down, table.across) == (("model", "on", "weights"), "context")
    for line in table.lines:
        assert [made.rows()[number]["context"] for number in line.cells] == [4096, 8192, 16384]
        assert {made.rows()[number]["model"] for number in line.cells} == {line.labels[0]}


def test_embedding_and_speech_models_are_compared_by_what_they_do_a_second(capsys):
    status, out = _rows(["compare", "bge-m3", "--on", "l4,t4"], capsys)
    l4, t4 = out["cells"]
    assert status == 0 and out["key"] == "usd_per_million_tokens"
    assert l4["items_per_second"] > t4["items_per_second"] > 0 and l4["tpot_seconds"] is None
    status, out = _rows(["compare", "whisper-large-v3", "--on", "l4,t4", "--engine", "faster-whisper"], capsys)
    assert status == 0 and out["key"] == "usd_per_audio_hour"
    for cell in out["cells"]:
        hours = cell["audio_seconds_per_second"]
        assert cell["usd_per_audio_hour"] == pytest.approx(cell["usd_per_hour"] / hours)
    _, table, _ = (main(["compare", "bge-m3", "--on", "l4,t4"]), *capsys.readouterr())
    assert "items/s" in table and "TPOT" not in table


def test_a_comparison_of_models_that_answer_has_no_columns_of_the_others(capsys):
    _, out = _rows(["compare", "qwen3-0.6b", "--on", "l4,t4"], capsys)
    assert not {"items_per_second", "usd_per_audio_hour"} & {column["name"] for column in out["columns"]}
