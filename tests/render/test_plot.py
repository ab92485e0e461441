"""Pictures of an answer: what they show, the page, and what is said where one cannot be written."""

import json
import re
import sys
from functools import cache
from itertools import pairwise

import pytest

import tonnage
from tonnage.cli import main
from tonnage.estimate.money.ownership import months_and_lines
from tonnage.kernel.errors import InvalidInput
from tonnage.render.plot import image, write_plot
from tonnage.render.plot.layout import column
from tonnage.render.plot.panel import GIB, scale, shade
from tonnage.render.plot.panels import panels

COMPARED = {"electricity_usd_per_kwh": 0.1, "network_share": 0.1, "staff_usd_per_month": 10_000.0}
PIPELINE = {
    "runtime": "megatron",
    "tensor_parallel_size": 4,
    "pipeline_parallel_size": 4,
    "virtual_pipeline_size": 2,
    "global_batch_size": 64,
}
TRAIN = ["train", "llama-3.1-8b", "--on", "8xH100-SXM-80GB", "--recompute", "full"]


@cache
def piped():
    return tonnage.train(
        "llama-3.1-70b", on="4x8xH100-SXM-80GB", **PIPELINE, tokens="100B", grid="France", as_is=True, **COMPARED
    )


@cache
def alone():
    return tonnage.train("llama-3.1-8b", on="8xH100-SXM-80GB", recompute="full", global_batch_size=16)


def of(answer):
    return {panel.name: panel for panel in panels(answer)[1]}


def test_a_run_with_a_pipeline_and_a_comparison_has_every_picture():
    assert list(of(piped())) == ["numbers", "ranks", "phases", "pipeline", "work", "ownership"]
    assert list(of(alone())) == ["numbers", "ranks", "phases", "pipeline", "work"]


def test_what_is_not_known_is_not_drawn():
    """No source gives the bf16 peak of an Ascend 950PR."""
    answer = tonnage.train("llama-3.2-1b", on="ascend-950pr")
    assert answer.step_time is None and list(of(answer)) == ["numbers", "ranks", "phases"]


@pytest.mark.parametrize("name", ["gpipe", "zbv"])
def test_a_pipeline_whose_order_is_not_known_is_said_and_not_drawn(name):
    options = {"pipeline_parallel_size": 4, "num_microbatches": 16, "pipeline_schedule": name}
    made = of(tonnage.train("llama-3.1-8b", on="8xH100-SXM-80GB", **options))
    assert "pipeline" not in made and f"the order of {name} is not drawn" in made["work"].says
    assert "not drawn" not in of(alone())["work"].says + of(piped())["work"].says


def test_layers_of_memory_add_up_to_each_rank_and_each_phase():
    answer, made = piped(), of(piped())
    for panel, terms in ((made["ranks"], answer.ranks), (made["phases"], answer.phases)):
        stacks = [trace["y"] for trace in panel.traces if trace["type"] == "bar"]
        assert [sum(column) * GIB for column in zip(*stacks, strict=True)] == pytest.approx(
            [term.value for term in terms]
        )
        assert panel.shapes[0]["y0"] == answer.usable_bytes / GIB


def test_the_error_band_stands_on_the_fullest_rank():
    answer = piped()
    band = next(trace for trace in of(answer)["ranks"].traces if trace["name"].startswith("error band"))
    assert band["x"] == ["stage 0"] and answer.ranks[0].value == max(rank.value for rank in answer.ranks)
    low, high = (band["y"][0] - band["error_y"]["arrayminus"][0], band["y"][0] + band["error_y"]["array"][0])
    assert [low * GIB, high * GIB] == pytest.approx(list(answer.band))


def test_a_pipeline_has_a_row_a_stage_and_says_what_it_leaves_out():
    panel = of(piped())["pipeline"]
    assert {name for trace in panel.traces for name in trace["y"]} == {f"stage {rank}" for rank in range(4)}
    assert "20 micro-batches in the middle are left out" in panel.says and "left out here" in panel.notes[0]["text"]
    assert {trace["name"] for trace in panel.traces} >= {"waiting (bubble)", "forward", "backward", "optimizer"}
    shown = {text for trace in panel.traces for text in trace.get("text", ())}
    assert {"1", "32"} <= shown and len(shown) < 32


def test_boxes_of_a_row_lie_beside_each_other_on_the_paper_too():
    panel = of(piped())["pipeline"]
    for rank in range(4):
        row = sorted(
            (base, base + length)
            for trace in panel.traces
            if trace["name"] != "waiting (bubble)"
            for name, base, length in zip(trace["y"], trace["base"], trace["x"], strict=True)
            if name == f"stage {rank}"
        )
        assert all(end <= start + 1e-9 for (_, end), (start, _) in pairwise(row))


def test_without_a_pipeline_one_row_has_every_pass():
    panel = of(alone())["pipeline"]
    names = [trace["name"] for trace in panel.traces]
    assert names[:4] == ["forward", "run again", "backward", "exposed communication"] and "optimizer" in names
    assert {name for trace in panel.traces for name in trace["y"]} == {"each rank"}


def test_bars_of_work_add_up_to_the_step():
    answer = alone()
    panel = of(answer)["work"]
    factor = {"s": 1, "ms": 1e3}[panel.x["title"]["text"].split()[0]]
    total = sum(sum(trace["x"]) for trace in panel.traces if trace["type"] == "bar")
    assert total / factor == pytest.approx(answer.step_time.value)


def test_the_lines_of_buying_and_renting_cross_at_the_month_of_break_even():
    own = piped().bill.ownership
    months, bought, rented, (month, paid) = months_and_lines(
        *(getattr(own, name) for name in ("purchase", "own_month", "rent_month", "break_even"))
    )
    assert own.break_even_month - 1 < month <= own.break_even_month and month < months[-1]
    assert paid == pytest.approx(own.purchase.value + month * own.own_month.value)
    assert bought[0] > rented[0] == 0 and bought[-1] < rented[-1]


def test_buying_that_never_pays_has_no_crossing():
    own = piped().bill.ownership
    *_, crossing = months_and_lines(own.purchase, own.rent_month, own.own_month, None)
    assert crossing is None


def test_the_numbers_name_the_run_and_its_bill():
    tiles = dict(of(piped())["numbers"].tiles)
    assert {
        "time of a step",
        "time of the run",
        "cost of the run",
        "energy of the run",
        "carbon of the run",
        "buying costs less from",
    } <= set(tiles)
    assert "cost of a step" in dict(of(alone())["numbers"].tiles)


def test_every_picture_is_said_in_words_and_as_a_table():
    for panel in (*of(piped()).values(), *of(alone()).values()):
        assert panel.says.endswith(".") and panel.title
        if panel.traces:
            assert panel.rows and all(len(row) == len(panel.header) for row in panel.rows)


def test_a_long_pipeline_shows_its_first_and_last_stages():
    answer = tonnage.train(
        "llama-3.1-405b",
        on="63x8xH100-SXM-80GB",
        runtime="megatron",
        tensor_parallel_size=8,
        pipeline_parallel_size=63,
        global_batch_size=512,
    )
    panel = of(answer)["pipeline"]
    assert (
        len({name for trace in panel.traces for name in trace["y"]}) == 32
        and "31 stages in the middle are left out" in panel.says
    )


def test_an_image_has_an_axis_and_a_legend_for_each_picture():
    figure = column("A & B", panels(piped())[1])
    drawn = {name for name in figure["layout"] if name.startswith("yaxis")}
    assert len(drawn) == 5 == len({trace["legend"] for trace in figure["data"]})
    assert {trace["yaxis"].replace("y", "yaxis") for trace in figure["data"]} == drawn
    spans = sorted(figure["layout"][name]["domain"] for name in drawn)
    assert all(high < low for (_, high), (low, _) in pairwise(spans))


@pytest.mark.parametrize(("seconds", "unit"), [(2e-5, "µs"), (0.2, "ms"), (9, "s"), (3000, "min"), (1e6, "h")])
def test_times_are_drawn_in_a_unit_that_is_easily_read(seconds, unit):
    factor, named = scale(seconds)
    assert named == unit and 1 <= seconds * factor < 1000


def test_paler_is_nearer_to_white():
    assert shade("#4c78a8", 0) == "#4c78a8" and shade("#4c78a8", 1) == "#ffffff"


# ---- files ----


def test_the_page_needs_nothing_but_itself(tmp_path):
    pytest.importorskip("plotly")
    path = tmp_path / "step.html"
    piped().plot(path)
    text = path.read_text(encoding="utf-8")
    assert "default-src 'none'" in text and "prefers-color-scheme: dark" in text
    assert not re.search(
        r"<(?:script|link|img|iframe)[^>]*(?:src|href)=",
        text[: text.index("<script>")] + text[text.rindex("<script>") :],
    )
    figures = json.JSONDecoder().raw_decode(text[text.index("const FIGURES = ") + 16 :])[0]
    assert set(figures) == {"ranks", "phases", "pipeline", "work", "ownership"}
    assert all(f'id="{name}"' in text and figure["data"] for name, figure in figures.items())


def test_no_name_of_a_model_becomes_markup(tmp_path):
    pytest.importorskip("plotly")
    from tonnage.render.plot.page import page

    text = page("</script><script>alert(1)</script>", panels(alone())[1])
    assert "<script>alert" not in text and "&lt;script&gt;alert" in text


def test_the_command_prints_its_answer_and_writes_the_page(tmp_path, capsys):
    pytest.importorskip("plotly")
    path = tmp_path / "step.HTML"
    assert main([*TRAIN, "--plot", str(path)]) == 0
    printed = capsys.readouterr()
    assert printed.out.startswith("fits") and not printed.err and path.stat().st_size > 10**6


@pytest.mark.parametrize("given", ["step.pdf", "step", "", "html"])
def test_another_ending_is_told_the_three_that_there_are(given, capsys):
    assert main([*TRAIN, "--json", "--plot", given]) == 64
    printed = capsys.readouterr()
    assert "verdict" not in json.loads(printed.out)
    assert printed.err == f"error: --plot: a plot is a file that ends in .html, .png or .svg. Got {given!r}.\n"


def test_a_place_that_cannot_be_written_is_named(tmp_path, capsys):
    pytest.importorskip("plotly")
    assert main([*TRAIN, "--plot", str(tmp_path / "none" / "step.html")]) == 64
    printed = capsys.readouterr()
    assert not printed.out and "cannot be written" in printed.err and "is no folder" in printed.err
    pytest.importorskip("plotly")
    (tmp_path / "folder.html").mkdir()
    with pytest.raises(InvalidInput, match=r"folder.html' cannot be written: Is a directory\."):
        alone().plot(tmp_path / "folder.html")
    with pytest.raises(InvalidInput, match="cannot be written"):
        write_plot(alone(), "a\0b.html")


@pytest.mark.parametrize(("ending", "module"), [("html", "plotly.offline"), ("png", "plotly"), ("svg", "kaleido")])
def test_without_plotly_the_extra_is_named(tmp_path, capsys, monkeypatch, ending, module):
    monkeypatch.setitem(sys.modules, module, None)
    assert main([*TRAIN, "--plot", str(tmp_path / f"step.{ending}")]) == 64
    printed = capsys.readouterr()
    assert not printed.out, "it is said before the work"
    assert "pip install 'tonnage[plot]'" in printed.err
    said = "pictures that end in .png or .svg need kaleido" if module == "kaleido" else "plots need plotly"
    assert said in printed.err and (".html needs none" in printed.err) == (module == "kaleido")
    assert not list(tmp_path.iterdir())


def test_without_a_browser_the_error_says_what_to_install(tmp_path, monkeypatch):
    kaleido = pytest.importorskip("kaleido")

    def nothing(*_, **__):
        raise kaleido.errors.ChromeNotFoundError("none")

    monkeypatch.setattr(kaleido, "calc_fig_sync", nothing)
    with pytest.raises(InvalidInput, match=re.escape(image.NO_BROWSER)):
        alone().plot(tmp_path / "step.png")


def test_a_browser_that_fails_is_no_traceback(tmp_path, monkeypatch):
    kaleido = pytest.importorskip("kaleido")

    def fails(*_, **__):
        raise kaleido.errors.BrowserFailedError(("It closed.", "More."))

    monkeypatch.setattr(kaleido, "calc_fig_sync", fails)
    with pytest.raises(InvalidInput, match=r"SVG failed: It closed\. Write \.html"):
        alone().plot(tmp_path / "step.svg")


def test_an_answer_of_serving_draws_its_memory(tmp_path):
    made = of(tonnage.serve("llama-3.1-8b", on="H100-SXM-80GB", context=8192))
    assert list(made) == ["numbers", "ranks"]
