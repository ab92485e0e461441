"""Reports: one file that needs nothing but itself, whose first page decides, and whose figures are those of the
document.
"""

import ast
import json
import re
import shlex
from pathlib import Path

import pytest
from jinja2 import nodes
from report_answers import ASKED, Page, answer

import tonnage
from tonnage.cli import main
from tonnage.kernel.encoding import builtins
from tonnage.kernel.errors import InvalidInput
from tonnage.kernel.units import human
from tonnage.language import speaking
from tonnage.language.catalogues import texts
from tonnage.render.palette import term_label
from tonnage.render.report import html_of, markdown_of, report_of
from tonnage.render.report.page import anchor, environment
from tonnage.verbs.ask import ask

TRAIN = ["train", "llama-3.1-8b", "--on", "8xH100-SXM-80GB"]
KINDS = pytest.mark.parametrize("kind", ASKED)
EVIL = "<img src=x onerror=alert(1)>\"'&|`[x](javascript:1)"


def page_of(kind: str) -> str:
    return html_of(answer(kind).to_dict(), command=answer(kind).command, date="2026-11-22")


def terms(value, path=""):
    """TERMs of a document by the paths of the appendix; below what is nothing there are none."""
    if isinstance(value, dict) and "combine" in value:
        yield path, value
        for at, child in enumerate(value["children"] if value["value"] else ()):
            yield from terms(child, f"{path}/{at}")
    elif isinstance(value, dict | list):
        for name, each in value.items() if isinstance(value, dict) else enumerate(value):
            yield from terms(each, f"{path}/{name}" if path else str(name))


@KINDS
def test_a_report_asks_nothing_of_the_world_and_runs_no_script(kind):
    text = page_of(kind)
    page = Page(text)
    names = {tag for tag, _ in page.tags}
    assert not names & {"script", "link", "img", "iframe", "object", "embed", "form", "image", "use", "base"}
    for tag, found in page.tags:
        for name, value in found.items():
            assert not name.startswith("on"), (tag, name)
            if name in ("href", "src", "xlink:href", "action", "data"):
                assert value.startswith("#"), (tag, name, value)
    style = re.search(r"<style>(.*?)</style>", text, re.DOTALL)[1]
    assert "@import" not in style and "url(" not in style
    assert all(target.startswith("#") for target in re.findall(r"url\(([^)]*)\)", text))
    assert "default-src 'none'" in text


@KINDS
def test_links_within_a_report_lead_somewhere(kind):
    page = Page(page_of(kind))
    assert {found["href"][1:] for tag, found in page.tags if tag == "a"} <= set(page.texts)
    painted = {value[5:-1] for _, found in page.tags for value in found.values() if value and value.startswith("url(#")}
    assert painted <= set(page.texts)


def called(term):
    """What a report calls a figure: a part of memory by its label."""
    return (term_label(term["name"]) if term["unit"] == "bytes" else None) or term["name"]


@pytest.mark.parametrize("kind", ["train", "train in stages", "train too large", "serve", "max"])
def test_every_figure_of_the_document_is_shown_as_people_read_it_with_formula_and_source(kind):
    document, page = answer(kind).to_dict(), Page(page_of(kind))
    found = list(terms(document))
    assert len(found) > 50
    for path, term in found:
        shown = page.texts[anchor(path)]
        assert called(term) in shown and human(term["value"], term["unit"]) in shown, path
        assert term["text"] in shown if term["formula"] else True, path
        assert term["source"] in shown, path


@pytest.mark.parametrize("kind", ["plan train", "plan serve"])
def test_the_best_plan_of_a_report_is_opened_like_an_answer(kind):
    page = Page(page_of(kind))
    for path, term in terms(answer(kind).to_dict()["best"]):
        assert human(term["value"], term["unit"]) in page.texts[anchor(path)], path


@KINDS
def test_the_first_page_has_what_a_decision_needs(kind):
    made, text = report_of(answer(kind).to_dict(), command="tonnage ask", date="2026-11-22"), page_of(kind)
    brief = Page(text[text.index('<section class="brief">') : text.index("</section></section>") + 20]).text
    assert made.brief.question in brief and made.brief.question.endswith("?")
    assert made.brief.verdict in brief
    assert answer(kind).command in brief and "2026-11-22" in brief and f"tonnage {tonnage.__version__}" in brief
    assert len(made.brief.sections) >= 4
    for section in made.brief.sections:
        assert section.title in brief and section.blocks


def test_the_first_page_has_memory_with_its_band_time_money_and_the_price_with_its_date():
    document, text = answer("train").to_dict(), page_of("train")
    page = Page(text[text.index('<section class="brief">') : text.index("</section></section>") + 20])
    low, high = document["verdict"]["band"]
    for shown in (
        human(document["verdict"]["needed_bytes"], "bytes"),
        human(low, "bytes"),
        human(high, "bytes"),
        human(document["step_time"]["value"], "seconds"),
        human(document["cost"]["value"], "USD"),
        document["question"]["price"]["value"],
        document["question"]["price"]["why"][-11:-1],
    ):
        assert shown in page.text, shown
    assert re.search(r"\(20\d\d-\d\d-\d\d\)", document["question"]["price"]["why"])


@pytest.mark.parametrize(("kind", "key"), [("plan train", "beats"), ("plan serve", "beats_next")])
def test_the_next_plan_is_named_with_the_reason_why_it_lost(kind, key):
    plans = answer(kind).to_dict()["plans"]
    (section,) = [
        each
        for each in report_of(answer(kind).to_dict()).brief.sections
        if each.title == "The next one, and why it lost"
    ]
    second, why = section.blocks[0].rows
    assert plans[1]["on"] in second and plans[0][key] in why


def test_the_next_cell_of_a_comparison_is_worse_in_what_decides():
    made = answer("compare")
    cells = sorted(
        (cell for cell in made.rows() if cell["verdict"] == "fits"), key=lambda cell: cell["usd_per_million_tokens"]
    )
    brief = report_of(made.to_dict()).brief
    assert human(cells[0]["usd_per_million_tokens"], "USD") in brief.verdict
    line, lost = brief.sections[1].blocks[0].rows
    assert cells[1]["on"] in line and human(cells[1]["usd_per_million_tokens"], "USD") in lost
    assert re.search(r"\(20\d\d-\d\d-\d\d\)", str(brief.sections[-1].blocks)), (
        "prices have the day on which they were read"
    )


def table_of(document, title):
    (section,) = [each for each in report_of(document).sections if each.title == title]
    return section.blocks[0]


def column_of(table, name):
    return [row[table.header.index(name)] for row in table.rows]


def test_a_comparison_says_its_workload_and_engine_and_where_they_come_from():
    made = tonnage.compare("llama-3.1-8b", ["h100"], weights=[None, "q4_k_m"], context=[8192, 16384]).to_dict()
    (section,) = [each for each in report_of(made).brief.sections if each.title == "Workload and engine"]
    said = {name: (value, note) for name, value, note in section.blocks[0].rows}
    assert said["input_tokens"][0] == said["output_tokens"][0] == "1,024" and "InferenceMAX" in said["input_tokens"][1]
    assert said["engine"] == ("vllm, llama.cpp", "not the same in all: see all combinations")
    assert said["context"] == ("8,192, 16,384", "room that is held for each request")
    assert column_of(table_of(made, "All combinations"), "engine") == ["vllm", "vllm", "llama.cpp", "llama.cpp"]
    assert "input_tokens" in str(table_of(made, "Inputs").rows)


def test_cells_that_do_not_fit_have_no_speed_and_no_price_and_say_what_is_paid():
    made = tonnage.compare("llama-3.1-70b", ["rtx-4090", "2xmi355x"], count=1, context=[8192]).to_dict()
    table = table_of(made, "All combinations")
    assert column_of(table, "verdict") == ["does not fit", "fits"]
    for name in ("first token", "each later token", "tokens/s", "price of an hour", "price of a million tokens"):
        none, found = column_of(table, name)
        assert none == "-" and found not in ("", "-"), name
    assert column_of(table, "accelerators") == ["1", "2 (8 paid)"]
    assert "8 are paid for 2 that are used" in str(report_of(made).brief.sections[-1].blocks)


def test_a_comparison_of_workloads_recommends_something_for_each():
    made = tonnage.compare("llama-3.1-70b", ["h100", "8xa100"], concurrency=16, context=[8192, 32768, 131072]).to_dict()
    brief = report_of(made).brief
    table = brief.sections[0].blocks[0]
    assert column_of(table, "workload") == ["context 8192", "context 32768", "context 131072"]
    for row, load in zip(table.rows, made["workloads"], strict=True):
        if load["best"]:
            best = made["cells"][load["best"][made["key"]][0]]
            assert row[1] == best["on"] and row[-1] == human(best["usd_per_million_tokens"], "USD")
    assert "context 8192: " in brief.verdict and "USD a million tokens 0" not in brief.verdict


def test_training_runs_are_decided_by_the_price_of_their_tokens():
    made = tonnage.compare("llama-3.1-8b", ["8xh100", "8xa100"], train=True).to_dict()
    best = min(made["cells"], key=lambda cell: cell["usd_per_billion_tokens"])
    assert made["key"] == "usd_per_billion_tokens"
    assert best["on"] in report_of(made).title and human(best["usd_per_billion_tokens"], "USD") in report_of(made).title


@KINDS
def test_what_was_not_said_is_told_with_its_reason_and_all_inputs_are_listed(kind):
    document, page = answer(kind).to_dict(), Page(page_of(kind))
    asked = (document.get("best") or document)["question"] if "plans" in document else document["question"]
    for name in asked:
        assert name in page.text, name


@pytest.mark.parametrize(
    "kind", ["train", "serve", "plan train", "plan serve", "plan pool", "compare", "max", "frontier"]
)
def test_no_name_becomes_markup(kind):
    document = json.loads(json.dumps(answer(kind).to_dict()))

    def spoil(value):
        if isinstance(value, dict):
            return {
                name: EVIL
                if name in ("model", "name", "text", "why", "source") and isinstance(each, str)
                else spoil(each)
                for name, each in value.items()
            }
        return [spoil(each) for each in value] if isinstance(value, list) else value

    spoiled = spoil(document)
    for name in ("model", "on", "inventory"):
        if name in spoiled["question"]:
            spoiled["question"][name]["value"] = EVIL
    spoiled["warnings"] = [EVIL]
    page = Page(html_of(spoiled, command=f"tonnage {EVIL}"))
    assert not {"img", "a"} & {
        tag for tag, found in page.tags if tag == "img" or not (found.get("href") or "#").startswith("#")
    }
    assert EVIL in page.text, "it is shown as it is"
    outside = outside_of_code(markdown_of(spoiled, command=f"tonnage {EVIL}"))
    assert "<img" not in outside and "[x](" not in outside


def outside_of_code(text: str) -> str:
    """Markdown without its code and without what is escaped."""
    kept, fenced = [], False
    for line in text.split("\n"):
        fenced ^= line.startswith("```")
        kept += [] if fenced else [re.sub(r"`[^`]*`", "", re.sub(r"\\.", "", line))]
    return "\n".join(kept)


@KINDS
def test_markdown_has_tables_with_as_many_cells_in_every_row_and_closes_its_fences(kind):
    text = markdown_of(answer(kind).to_dict(), command=answer(kind).command)
    lines = text.split("\n")
    assert text.startswith("# ") and sum(line.startswith("```") for line in lines) % 2 == 0
    plain = re.sub(r"```.*?```", "", text, flags=re.DOTALL)
    for table in re.findall(r"(?:^\|.*\|\n?)+", plain, flags=re.M):
        widths = {len(re.split(r"(?<!\\)\|", row)) for row in table.strip().split("\n")}
        assert len(widths) == 1, table[:300]
    assert plain.count("<details>") == plain.count("</details>")


def test_markdown_says_what_html_says():
    document = answer("serve").to_dict()
    text = re.sub(r"\\(.)", r"\1", markdown_of(document, command=answer("serve").command))
    for _, term in terms(document):
        assert human(term["value"], term["unit"]) in text
    for section in report_of(document).sections:
        assert f"## {section.title}" in text


def test_bars_of_markdown_are_as_long_as_their_parts():
    text = markdown_of(answer("train").to_dict())
    bar = re.search(r"^every rank (\S+) ", text, flags=re.M)[1]
    verdict, memory = answer("train").to_dict()["verdict"], answer("train").memory
    scale = 60 / verdict["usable_bytes"]
    assert bar.index("|") == 60
    assert abs(bar.count("A") - memory.child("activations").value * scale) <= 1
    assert abs(len(bar.split("·")[0].rstrip("|")) - memory.value * scale) <= 1


def test_bars_of_html_end_at_their_value_with_the_usable_line_where_it_belongs():
    text = page_of("train")
    drawing = re.search(r'<svg viewBox="0 0 760 [^>]*>.*?</svg>', text, re.DOTALL)[0]
    boxes = [
        tuple(map(float, each))
        for each in re.findall(r'<rect x="([\d.]+)" y="\d+" width="([\d.]+)" height="18"', drawing)
    ]
    line = float(re.search(r'<path d="M([\d.]+) \d+V\d+" stroke="currentColor" stroke-width="1.6"', drawing)[1])
    verdict, left = answer("train").to_dict()["verdict"], boxes[0][0]
    share = (boxes[-1][0] + boxes[-1][1] + 1 - left) / (line - left)
    assert share == pytest.approx(verdict["needed_bytes"] / verdict["usable_bytes"], abs=0.01)


def test_what_is_too_much_is_hatched_beyond_the_usable_line():
    hatched = re.compile(r"url\(#[^)]*-over\)")
    assert hatched.search(page_of("train too large")) and not hatched.search(page_of("train"))


def test_stages_that_are_alike_share_a_bar():
    document = answer("train in stages").to_dict()
    assert len(document["ranks"]) == 4
    for rank in document["ranks"][1:]:
        rank["children"] = document["ranks"][1]["children"]
    names = [bar.name for bar in report_of(document).sections[0].blocks[0].bars]
    assert names == ["stage 0", "stages 1 to 3"]


# ---- the command that asks again ----


@pytest.mark.parametrize(
    "kind",
    ["train", "train in stages", "serve", "plan train", "plan serve", "compare", "compare training", "max", "frontier"],
)
def test_the_command_of_a_report_asks_the_same(kind, capsys):
    words = shlex.split(answer(kind).command)
    main([*words[1:], "--json"])
    said = json.loads(capsys.readouterr().out)
    assert said == json.loads(json.dumps(answer(kind).to_dict()))


def test_a_call_with_a_mapping_has_no_command():
    import yaml

    pool = yaml.safe_load((Path(__file__).parents[2] / "docs/examples/pool.yaml").read_text())
    assert tonnage.place(pool).command == ""


def test_the_command_line_of_a_report_is_what_was_typed_without_how_it_is_shown(tmp_path, capsys):
    assert (
        main(
            [
                *TRAIN,
                "--recompute=full",
                "--json",
                "--html",
                str(tmp_path / "a.html"),
                "--markdown",
                str(tmp_path / "a.md"),
                "--lang=en",
            ]
        )
        == 0
    )
    capsys.readouterr()
    for name in ("a.html", "a.md"):
        assert "tonnage train llama-3.1-8b --on 8xH100-SXM-80GB --recompute=full" in (tmp_path / name).read_text()
        assert "--lang" not in (tmp_path / name).read_text()


# ---- files ----


def test_the_answer_is_printed_and_the_report_written_beside_it(tmp_path, capsys):
    assert main([*TRAIN, "--html", str(tmp_path / "a.html")]) == 0
    printed = capsys.readouterr()
    assert printed.out.startswith("fits: ") and not printed.err
    assert (tmp_path / "a.html").read_text().startswith("<!DOCTYPE html>")


def test_markdown_without_a_file_is_printed_instead_of_the_text(capsys):
    assert main(["train", "--markdown", *TRAIN[1:]]) == 0, "the word behind it is MODEL, and no file"
    assert capsys.readouterr().out.startswith("# ✅ fits: ")


@pytest.mark.parametrize(
    "words",
    [
        ["serve", "qwen3-32b", "--on", "2xH100-SXM-80GB"],
        ["serve", "qwen3-32b", "--on", "2xH100-SXM-80GB", "--frontier", "--points", "3"],
        ["plan", "llama-3.1-8b", "--on", "8xH100-SXM-80GB"],
        ["plan", "--serve", "llama-3.1-8b", "--on", "H100-SXM-80GB", "--users", "8"],
        ["max", "context", "qwen3-32b", "--on", "2xH100-SXM-80GB"],
        ["compare", "llama-3.1-8b", "--on", "H100-SXM-80GB,L40S"],
        ["plan", "--inventory", "docs/examples/pool.yaml"],
    ],
    ids=lambda words: " ".join(words[:2]),
)
def test_every_verb_with_a_report_writes_both_forms(words, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(Path(__file__).parents[2])
    assert main([*words, "--html", str(tmp_path / "a.html"), f"--markdown={tmp_path / 'a.md'}"]) == 0
    assert capsys.readouterr().err == ""
    Page((tmp_path / "a.html").read_text())
    assert (tmp_path / "a.md").read_text().startswith("# ")


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["--html", "a.pdf"], "--html: a report in HTML is a file that ends in .html or .htm. Got 'a.pdf'."),
        (["--html", "none/a.html"], "--html: 'none/a.html' cannot be written: 'none' is no folder."),
        (
            ["--markdown=a.txt"],
            "--markdown: a report in Markdown is a file that ends in .md or .markdown. Got 'a.txt'.",
        ),
        (["--html", "a\0b.html"], "cannot be written"),
    ],
)
def test_a_wrong_path_is_bad_input_before_anything_is_computed(words, said, tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert main([*TRAIN, *words]) == 64
    printed = capsys.readouterr()
    assert not printed.out and said in printed.err
    assert list(tmp_path.iterdir()) == []


def test_a_folder_in_the_way_is_said(tmp_path):
    (tmp_path / "a.html").mkdir()
    with pytest.raises(InvalidInput, match=r"a.html' cannot be written: Is a directory\."):
        answer("train").to_html(tmp_path / "a.html")


@pytest.mark.parametrize("words", [["--html", "a.html"], ["--markdown=a.md"], ["--markdown"]])
def test_without_jinja_the_extra_is_named_before_anything_is_computed(
    words, tmp_path, capsys, monkeypatch, without_jinja
):
    monkeypatch.chdir(tmp_path)
    assert main([*TRAIN, *words]) == 64
    printed = capsys.readouterr()
    assert not printed.out and "reports need Jinja2: pip install 'tonnage[report]'" in printed.err
    assert list(tmp_path.iterdir()) == []
    with pytest.raises(InvalidInput, match="reports need Jinja2"):
        answer("train").to_html()


def test_without_jinja_a_comparison_is_still_printed_as_a_table_of_markdown(capsys, without_jinja):
    assert main(["compare", "llama-3.1-8b", "--on", "L40S", "--markdown"]) == 0
    assert capsys.readouterr().out.startswith("**1 of 1 fit: llama-3.1-8b on L40S")


def test_two_forms_that_print_are_not_printed_together(capsys):
    assert main([*TRAIN, "--json", "--markdown"]) == 64
    assert "--json and --markdown both print" in capsys.readouterr().err
    assert main(["compare", "llama-3.1-8b", "--on", "L40S", "--csv", "--markdown"]) == 64


def test_what_has_no_report_says_so(capsys):
    assert main(["serve", "--for-my-machine", "--on", "RTX-4090", "--html", "a.html"]) == 64
    assert "--for-my-machine has no report: leave out --html." in capsys.readouterr().err
    with pytest.raises(InvalidInput, match="reports are of answers of train, serve, plan, compare and max"):
        report_of({"schema": "tonnage/2", "rules": []})


# ---- Chinese ----


def said_in_reports() -> set[str]:
    folder = Path(tonnage.__file__).parent / "render" / "report"
    calls = [
        node
        for path in folder.glob("*.py")
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Call)
    ]
    templates = [environment("html").parse(path.read_text()) for path in folder.glob("templates/*.jinja")]
    return {
        call.args[0].value
        for call in calls
        if getattr(call.func, "id", "") == "say" and isinstance(call.args[0], ast.Constant)
    } | {
        call.args[0].value
        for template in templates
        for call in template.find_all(nodes.Call)
        if getattr(call.node, "name", "") == "say"
    }


def test_every_text_of_a_report_has_its_chinese_with_the_same_places():
    chinese, said = texts("zh"), said_in_reports()
    assert len(said) > 150
    assert sorted(text for text in said if text not in chinese) == []
    for text in said:
        assert sorted(re.findall(r"\{\w+\}", text)) == sorted(re.findall(r"\{\w+\}", chinese[text])), text


@KINDS
def test_a_chinese_report_says_so_and_has_the_same_figures(kind):
    with speaking("zh"):
        text, written = page_of(kind), markdown_of(answer(kind).to_dict())
    page = Page(text)
    assert '<html lang="zh-CN">' in text and "采用的默认假设" in page.text and "# 明细" in written
    english = set(re.findall(r"\d[\d,.]* (?:[GM]iB|m?s|USD)\b", Page(page_of(kind)).text))
    chinese = set(re.findall(r"\d[\d,.]* (?:[GM]iB|m?s|USD)(?![a-z])", page.text))
    assert english and len(english & chinese) / len(english) > 0.9


@pytest.mark.parametrize(
    ("language", "said"),
    [
        ("en", "There are none: nothing is written down here of how nanotron is started."),
        ("zh", "没有设置：这里没有记录 nanotron 如何启动。"),
    ],
)
def test_a_report_of_plans_says_why_it_has_no_settings_of_the_runtime(language, said):
    question = {"model": "llama-3.1-8b", "train": True, "on": "8xH100-SXM-80GB", "runtime": "nanotron", "top": 1}
    found = builtins(ask("plan", question).document)
    assert not found["plans"][0]["launch"]
    with speaking(language):
        assert said in html_of(found, command="tonnage plan", date="2026-11-22")


def test_a_chinese_report_says_limits_and_units_in_chinese():
    with speaking("zh"):
        text = tonnage.serve("llama-3.1-8b", on="H100-SXM-80GB", context=4096).to_html()
    assert "limit = 模型设计的长度" in text
    exact = set(re.findall(r"</b> [^<]* = [\d.e+-]+ ([^<]*?) <span", text))
    assert len(exact) > 5 and not {each for each in exact if re.search("[a-z]{4}", each.replace("token", ""))}
