"""Notebooks: answers show themselves, and their figures are rows, data frames and pictures."""

import json
import re
import shutil
import sys
from pathlib import Path

import pytest
from report_answers import ASKED, Page, answer

import tonnage
from tonnage.kernel.errors import InvalidInput, TonnageError
from tonnage.kernel.units import human
from tonnage.render.palette import term_label

EXAMPLE = Path(__file__).parents[2] / "docs" / "examples" / "notebook.ipynb"
COLUMNS = ["path", "name", "value", "unit", "basis", "formula", "text", "source"]


@pytest.mark.parametrize("kind", ASKED)
def test_every_answer_shows_itself_in_a_notebook(kind):
    shown = answer(kind)._repr_html_()
    page = Page(shown)
    assert {tag for tag, _ in page.tags} <= {
        "div",
        "style",
        "svg",
        "defs",
        "pattern",
        "rect",
        "g",
        "path",
        "circle",
        "h1",
        "h2",
        "section",
        "table",
        "thead",
        "tbody",
        "tr",
        "th",
        "td",
        "p",
        "ul",
        "li",
        "pre",
        "figure",
        "text",
        "title",
        "span",
        "polyline",
    }
    style = re.sub(r"/\*.*?\*/", "", re.search(r"<style>(.*?)</style>", shown, re.DOTALL)[1])
    assert len(shown) < 60_000 and "url(" not in style
    selectors = re.findall(r"(?:^|[}{])\s*([^@{}]+)\{", style)
    assert all(part.strip().startswith(".tonnage") for each in selectors for part in each.split(",")), (
        "the notebook keeps its own look"
    )
    assert answer(kind)._repr_markdown_().startswith("**")


@pytest.fixture(scope="module")
def chromium():
    playwright = pytest.importorskip("playwright.sync_api", reason="themes are tested in a browser (extra test)")
    found = next(filter(None, map(shutil.which, ("chromium-headless-shell", "chromium", "google-chrome"))), None)
    if found is None:
        pytest.skip("no Chromium is installed")
    with playwright.sync_playwright() as running:
        browser = running.chromium.launch(executable_path=found, args=["--no-sandbox", "--disable-gpu"])
        yield browser
        browser.close()


@pytest.mark.parametrize(
    ("scheme", "theme", "ground"),
    [
        ("light", "", "light"),
        ("dark", "", "dark"),
        ("light", 'data-jp-theme-light="false"', "dark"),
        ("dark", 'data-jp-theme-light="true"', "light"),
        ("light", 'class="vscode-dark"', "dark"),
        ("dark", 'theme="light"', "light"),
    ],
)
def test_an_answer_has_the_ground_of_its_notebook_or_else_of_the_system(scheme, theme, ground, chromium):
    page = chromium.new_page(color_scheme=scheme)
    page.set_content(f"<body {theme}>{answer('train')._repr_html_()}</body>")

    def brightness(selector, name):
        colour = page.evaluate(f"getComputedStyle(document.querySelector('{selector}')).{name}")
        return sum(int(part) for part in re.findall(r"\d+", colour)[:3])

    is_light = brightness(".tonnage", "backgroundColor") > 600
    assert is_light == (ground == "light")
    for selector in (".tonnage", ".tonnage td"):
        assert brightness(selector, "color") < 200 if is_light else brightness(selector, "color") > 500
    page.close()


def test_without_jinja_a_notebook_shows_the_text(without_jinja):
    assert answer("train")._repr_html_() is None and answer("train")._repr_markdown_() is None


def test_a_notebook_shows_the_verdict_the_bar_and_the_breakdown():
    made = answer("train")
    page = Page(made._repr_html_())
    assert page.text.startswith("fits: 47.7 of 79.1 GiB on the fullest GPU (60 %) ")
    assert any(found.get("role") == "img" for _, found in page.tags)
    for part in made.memory.children:
        assert (term_label(part.name) or part.name) in page.text and human(part.value, part.unit) in page.text


# ---- rows ----


def test_rows_of_a_term_are_its_nodes_with_formula_and_source():
    memory = answer("train").memory
    rows, nodes = memory.to_rows(), [node for _, node in memory.walk()]
    assert [list(row) for row in rows] == [COLUMNS] * len(nodes)
    for row, node in zip(rows, nodes, strict=True):
        assert (row["name"], row["value"], row["unit"], row["basis"], row["text"], row["source"]) == (
            node.name,
            node.value,
            node.unit,
            node.basis,
            node.text,
            node.source,
        )
        assert row["formula"] == (node.formula.name if node.formula else None)
        assert row["path"] == memory.name or row["path"].endswith(f"/{node.name}")


def test_rows_of_an_answer_are_all_its_breakdowns_or_those_that_are_named():
    made = answer("train")
    rows = made.rows()
    assert {row["path"].split("/")[0] for row in rows} >= {
        "memory",
        "ranks",
        "phases",
        "step_time",
        "run",
        "cost",
        "energy",
        "storage",
    }
    assert made.rows("memory")[0]["value"] == made.memory.value
    assert [row for row in rows if row["path"].split("/")[0] in ("memory", "step_time")] == made.rows(
        "memory", "step_time"
    )
    assert any(row["path"] == "run/mfu" for row in rows) and any(row["path"] == "ranks/0" for row in rows)


def test_a_breakdown_that_is_not_there_is_told_which_are():
    with pytest.raises(InvalidInput, match=r"speed is no breakdown of this answer: it has memory, ranks, .*step_time"):
        answer("train").rows("speed")
    with pytest.raises(TonnageError, match=r"'plan'.*plans"):
        answer("plan serve").rows("plan")
    with pytest.raises(TonnageError, match=r"'verdicts'.*verdict"):
        answer("compare").to_pandas("verdicts")


@pytest.mark.parametrize("kind", ["train", "serve", "max"])
def test_frames_hold_the_rows(kind):
    polars = pytest.importorskip("polars")
    pytest.importorskip("pandas")
    made = answer(kind)
    names = tuple(dict.fromkeys(row["path"].split("/")[0] for row in made.rows()))
    rows = made.rows(*names)
    assert rows == made.rows()
    frame = made.to_polars(*names)
    assert frame.columns == COLUMNS and frame.schema["value"] == polars.Float64
    assert frame.to_dicts() == rows
    other = made.to_pandas(*names)
    assert list(other.columns) == COLUMNS and str(other["value"].dtype) == "float64"
    assert other["value"].tolist() == [row["value"] for row in rows] and other["formula"].tolist() == [
        row["formula"] for row in rows
    ]
    assert made.to_polars("memory").height == len(made.rows("memory"))


@pytest.mark.parametrize("kind", ["train", "serve"])
def test_a_frame_has_the_parts_of_memory_which_add_up(kind):
    polars = pytest.importorskip("polars")
    made = answer(kind)
    frame = made.frame(to="polars")
    assert frame.columns == ["part", "level", "bytes", "gib", "share", "basis", "formula", "text", "source"]
    assert frame.schema["bytes"] == polars.Int64 and frame.to_dicts() == made.parts()
    total, *parts = made.parts()
    assert (total["part"], total["level"], total["share"]) == (made.memory.name, 0, 1)
    first = [part for part in parts if part["level"] == 1]
    assert [part["part"] for part in first] == [child.name for child in made.memory.children if child.value]
    assert sum(part["bytes"] for part in first) == pytest.approx(made.needed_bytes, abs=len(first))
    assert all(part["gib"] * 2**30 == pytest.approx(part["bytes"], abs=1) for part in parts)


def test_a_frame_is_of_the_library_that_the_program_imported(monkeypatch):
    pandas, polars = pytest.importorskip("pandas"), pytest.importorskip("polars")
    made = answer("compare")
    monkeypatch.delitem(sys.modules, "pandas")
    assert isinstance(made.frame(), polars.DataFrame)
    monkeypatch.setitem(sys.modules, "pandas", pandas)
    assert isinstance(made.frame(), pandas.DataFrame)
    monkeypatch.setitem(sys.modules, "pandas", None)
    assert isinstance(made.frame("on", "verdict"), polars.DataFrame)
    with pytest.raises(InvalidInput, match=r"to takes pandas or polars\. Got 'numpy'"):
        made.frame(to="numpy")


def test_without_pandas_and_polars_a_frame_says_what_to_install(monkeypatch):
    for name in ("pandas", "polars"):
        monkeypatch.setitem(sys.modules, name, None)
    for made in (answer("train"), answer("plan train"), answer("compare"), answer("frontier"), tonnage.options()):
        with pytest.raises(InvalidInput, match=r"data frames need pandas or polars: pip install 'tonnage\[notebook\]'"):
            made.frame()


@pytest.mark.parametrize("kind", ASKED)
def test_an_answer_is_one_short_line_to_look_at(kind):
    shown = repr(answer(kind))
    assert shown.startswith("<") and shown.endswith(">") and "\n" not in shown and len(shown) < 200


def test_models_clusters_and_figures_are_one_short_line_too():
    made = answer("train")
    assert repr(made.memory).startswith("<Term memory at the peak: ") and "GiB>" in repr(made.memory)
    assert len(repr(made.run)) < 3000
    assert repr(tonnage.cluster("2x8xh100")) == "<Cluster 2x8xH100-SXM-80GB: 16 accelerators of 79.10 GiB>"
    assert repr(tonnage.read("gpt2")) == ("<Model gpt2: GPT2LMHeadModel, 124,439,808 parameters, context 1,024 tokens>")


def test_the_best_plan_is_an_answer_as_train_and_serve_give_it():
    for kind in ("plan train", "plan serve"):
        best = answer(kind).best
        assert isinstance(best, tonnage.Answer) and best.fits and best.text().startswith("fits")
    plans = answer("plan train").plans
    assert all(isinstance(plan.answer, tonnage.Answer) for plan in plans)
    assert plans[0].answer.command == answer("plan train").to_dict()["plans"][0]["text"]
    assert isinstance(answer("max").answer, tonnage.Answer)


def test_lists_show_themselves_as_tables_with_their_text_escaped(monkeypatch):
    page = Page(tonnage.options("serve")._repr_html_())
    assert {tag for tag, _ in page.tags} == {"table", "thead", "tbody", "tr", "th", "td"}
    assert "the engine's own" in page.text and "<script" not in tonnage.options("serve")._repr_html_()


@pytest.mark.parametrize(
    ("kind", "column", "dtype"),
    [
        ("plan train", "needed_bytes", "Int64"),
        ("plan serve", "usd_per_hour", "float64"),
        ("plan pool", "shares", "boolean"),
        ("frontier", "concurrency", "Int64"),
    ],
)
def test_plans_and_frontiers_are_frames_of_their_entries(kind, column, dtype):
    pytest.importorskip("polars")
    pytest.importorskip("pandas")
    made = answer(kind)
    rows, frame = made.rows(), made.to_pandas()
    assert len(rows) == len(made.to_dict()[{"frontier": "points", "plan pool": "jobs"}.get(kind, "plans")]) > 1
    assert str(frame[column].dtype) == dtype and frame[column].tolist() == [row[column] for row in rows]
    assert made.to_polars()[column].to_list() == [row[column] for row in rows]


def test_options_of_plans_are_columns():
    rows = answer("plan train").rows()
    assert {"runtime", "micro_batch_size", "zero_stage"} <= set(rows[0])
    assert rows[0]["runtime"] == answer("plan train").to_dict()["plans"][0]["options"]["runtime"]


def test_a_comparison_is_the_same_in_polars_pandas_and_arrow(monkeypatch):
    pytest.importorskip("polars")
    pytest.importorskip("pandas")
    made = answer("compare")
    if "pyarrow" in sys.modules or __import__("importlib.util").util.find_spec("pyarrow"):
        assert made.to_polars().to_dicts() == made.to_arrow().to_pylist()
    assert made.to_polars().to_dicts() == made.rows()
    frame = made.to_pandas("on", "accelerators", "needed_bytes", "tpot_seconds")
    assert list(frame.columns) == ["on", "accelerators", "needed_bytes", "tpot_seconds"]
    assert [str(kind) for kind in frame.dtypes[1:]] == ["Int64", "Int64", "float64"]
    assert frame["needed_bytes"].tolist() == [row["needed_bytes"] for row in made.rows()]


def test_a_frame_of_a_comparison_needs_no_pyarrow(monkeypatch):
    pytest.importorskip("pandas")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert len(answer("compare").to_pandas()) == len(answer("compare").rows())


@pytest.mark.parametrize("name", ["polars", "pandas"])
def test_what_is_not_installed_is_said_with_what_to_install(name, monkeypatch):
    monkeypatch.setitem(sys.modules, name, None)
    for made in (answer("train"), answer("compare"), answer("train").memory, answer("frontier")):
        with pytest.raises(
            InvalidInput, match=rf"data frames of {name} need {name}: pip install 'tonnage\[notebook\]'\."
        ):
            getattr(made, f"to_{name}")()


# ---- pictures ----


@pytest.mark.parametrize(
    ("kind", "figures"),
    [("train", ["ranks", "phases", "pipeline", "work", "ownership"]), ("serve", ["ranks"]), ("frontier", ["frontier"])],
)
def test_figures_are_plotly_figures_with_the_numbers_of_the_answer(kind, figures):
    go = pytest.importorskip("plotly.graph_objects")
    made = answer(kind)
    for name in figures:
        figure = made.figure(name)
        assert isinstance(figure, go.Figure) and figure.data
    if kind != "frontier":
        total = sum(sum(trace.y) for trace in made.figure("ranks").data if trace.type == "bar")
        assert total * 2**30 == pytest.approx(sum(rank.value for rank in made.ranks))


def test_a_figure_that_is_not_there_is_told_which_are():
    pytest.importorskip("plotly")
    with pytest.raises(InvalidInput, match=r"this answer has no figure 'money'\. It has ranks, phases"):
        answer("train").figure("money")


def test_without_plotly_a_figure_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "plotly.graph_objects", None)
    with pytest.raises(InvalidInput, match=r"pip install 'tonnage\[plot\]'"):
        answer("train").figure()


# ---- the example ----


def test_the_example_notebook_runs_and_holds_no_output():
    for name in ("polars", "pandas", "plotly"):
        pytest.importorskip(name)
    notebook = json.loads(EXAMPLE.read_text())
    assert notebook["nbformat"] == 4
    names: dict = {}
    codes = [cell for cell in notebook["cells"] if cell["cell_type"] == "code"]
    assert len(codes) >= 5 and not any(cell["outputs"] for cell in codes)
    for cell in codes:
        source = "".join(cell["source"])
        *_, last = source.strip().split("\n")
        exec(source, names)
        assert eval(last, names) is not None, source
    assert names["answer"].fits and names["plans"].plans
    assert names["frame"]["value"].iloc[0] == names["answer"].memory.value


def test_rows_need_neither_frames_nor_pictures():
    assert tonnage.serve("llama-3.1-8b", on="H100-SXM-80GB").rows("memory")


def test_a_maximum_has_the_pictures_of_its_answer():
    pytest.importorskip("plotly")
    found = tonnage.maximum("context", "llama-3.1-8b", on="rtx-4090")
    assert found.figure("ranks").data
    with pytest.raises(InvalidInput, match="It has ranks"):
        found.figure("nothing")
