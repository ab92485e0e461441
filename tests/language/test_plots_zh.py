"""Pictures under --lang zh: titles, axes, legends, tables and what a pointer is told are Chinese, and numbers are as
in English.
"""

import re

import pytest

import tonnage
from tonnage.cli.common import print
from tonnage.language import speaking
from tonnage.render.plot import image, note_of_plot, title_and_panels
from tonnage.render.timeline import timeline_svg

PIPED = {
    "runtime": "megatron",
    "tensor_parallel_size": 4,
    "pipeline_parallel_size": 4,
    "virtual_pipeline_size": 2,
    "global_batch_size": 64,
}
OWNED = {"tokens": "100B", "electricity_usd_per_kwh": 0.1, "network_share": 0.1, "staff_usd_per_month": 10_000.0}
ANSWERS = {
    "pipeline": lambda: tonnage.train("llama-3.1-70b", on="4x8xH100-SXM-80GB", **PIPED, **OWNED),
    "alone": lambda: tonnage.train("mixtral-8x7b", on="8xH100-SXM-80GB", recompute="full"),
    "not drawn": lambda: tonnage.train(
        "llama-3.1-8b", on="8xh100", pipeline_parallel_size=4, num_microbatches=16, pipeline_schedule="gpipe"
    ),
    "served": lambda: tonnage.serve("llama-3.1-8b", on="h100", concurrency=8, context=8192),
    "frontier": lambda: tonnage.frontier("llama-3.1-8b", on="h100"),
}
HAN = re.compile(r"[\u4e00-\u9fff]")
WORDS = re.compile(r"(?<![\w./-])[a-z]{3,}(?![\w/-])")
SHOWN = ("title", "text", "name", "ticktext", "customdata", "hovertemplate", "x", "y")
KEPT = {"llama", "customdata", "br", "extra", "gpipe", "full", "token"}  # names, and plotly's own


def _texts(part, under="title"):
    if isinstance(part, str):
        yield part
    elif isinstance(part, dict):
        for name, value in part.items():
            if name in SHOWN:
                yield from _texts(value, name)
    elif isinstance(part, list | tuple):
        for value in part:
            yield from _texts(value, under)


def _said(panel):
    drawn = (
        panel.traces,
        panel.x,
        panel.y,
        panel.notes,
        panel.header,
        panel.rows,
        panel.tiles,
        panel.says,
        panel.title,
    )
    return [text for part in drawn for text in _texts(part)]


@pytest.mark.parametrize("name", ANSWERS)
def test_a_picture_is_chinese_from_its_title_to_its_table(name):
    answer = ANSWERS[name]()
    with speaking("zh"):
        title, panels = title_and_panels(answer)
    texts = [title, *(text for panel in panels for text in _said(panel))]
    english = {text for text in texts if set(WORDS.findall(re.sub(r"</?\w+>|%\{[^}]*\}", " ", text))) - KEPT}
    assert english == set()
    assert all(HAN.search(panel.title) and HAN.search(panel.says) for panel in panels)


@pytest.mark.parametrize("name", ["pipeline", "served"])
def test_the_language_changes_no_number_of_a_picture(name):
    answer = ANSWERS[name]()
    (_, english) = title_and_panels(answer)
    with speaking("zh"):
        (_, chinese) = title_and_panels(answer)
    for one, other in zip(english, chinese, strict=True):
        numbers = [
            [value for trace in panel.traces for way in "xy" for value in trace[way] if not isinstance(value, str)]
            for panel in (one, other)
        ]
        assert numbers[0] == numbers[1]
        assert one.name == other.name
        assert [trace.get("marker") for trace in one.traces] == [trace.get("marker") for trace in other.traces]


def test_the_page_of_pictures_says_its_language(tmp_path):
    pytest.importorskip("plotly")
    for language, named in (("en", "en"), ("zh", "zh-Hans")):
        with speaking(language):
            ANSWERS["served"]().plot(tmp_path / "made.html")
        assert f'<html lang="{named}">' in (tmp_path / "made.html").read_text(encoding="utf-8")


def test_a_timeline_is_chinese():
    line = {"positions": [0, 5], "bytes_by_category": {"parameter": [10, 10], "temporary": [0, 5]}}
    marks = [{"name": "After forward", "position": 2}, {"name": "After loss", "position": 2}]
    with speaking("zh"):
        made = timeline_svg("linear", line, marks)
    assert all(word in made for word in (">参数<", ">临时<", "前向之后，"))


@pytest.mark.parametrize(
    ("language", "file", "fonts", "noted"),
    [
        ("zh", "a.png", b"", True),
        ("zh", "a.png", b"Noto\n", False),
        ("zh", "a.html", b"", False),
        ("en", "a.png", b"", False),
    ],
)
def test_a_png_without_a_font_for_its_letters_is_said_to_be_one(language, file, fonts, noted, monkeypatch, capsys):
    class Listed:
        stdout = fonts

    monkeypatch.setattr(image, "which", lambda _: "fc-list")
    monkeypatch.setattr(image.subprocess, "run", lambda *_, **__: Listed)
    monkeypatch.setattr("tonnage.render.plot.write_plot", lambda *_: None)
    answer = type("Answer", (), {"status": 0})
    with speaking(language):
        assert bool(note_of_plot(file)) is noted
        assert print.plotted(answer, file) == 0
    assert ("fonts-noto-cjk" in capsys.readouterr().err) is noted
