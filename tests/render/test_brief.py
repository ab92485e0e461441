"""The short text: as recorded, at most 24 lines, no line too wide, nothing cut, plain ASCII in English, parts that add
up, and nothing that a colour alone says.
"""

import json
import os
import re
import shlex
from itertools import pairwise

import pytest

import golden
import short_texts
from tonnage.cli import face
from tonnage.cli.common.colour import coloured
from tonnage.kernel.units import money, significant
from tonnage.language import speaking
from tonnage.language.columns import width as columns
from tonnage.render.brief.answer import answer_page
from tonnage.render.brief.bar import PARTS
from tonnage.render.brief.layout import MAX_LINES, Column, Page, plain, terminal_width
from tonnage.render.brief.numbers import GIB, many, parts_in_gib, seconds, with_band
from tonnage.render.brief.verdict import verdict_line
from tonnage.verbs import serve, train

ESCAPE = re.compile(r"\x1b\[[0-9;]*m")
LETTERS = "".join(part.letter for part in PARTS)
WIDTHS = (60, 72, 80, 100, 120)
# Real questions of every kind of answer, each asked at every width in both languages.
SAMPLE = (
    "train llama-3.1-8b --on 8xH100",
    "train llama-3.1-70b --on H100",
    "train qwen3-8b --on rtx-4090 --method lora",
    "train llama-3.1-8b --on Apple-M3-Max-64GB",
    "train llama-3.1-8b --on 8xH100 --tokens 15B --deadline 1d --recompute full",
    "train deepseek-v3 --on 64x8xH100 --runtime megatron --tp 8 --pp 8 --ep 8",
    "train llama-3.1-8b --on 8xH100 --objective dpo",
    "serve llama-3.1-8b --on 8xH100",
    "serve llama-3.1-70b --on rtx-4090",
    "serve deepseek-r1 --on 16xH100",
    "serve llama-3.1-8b --on H100 --request-rate 30 --input 1000 --output 500 --tpot 1ms",
    "serve llama-3.1-8b --on H100 --request-rate 500 --input 1000 --output 500",
    "serve qwen3-32b --on Apple-M3-Max-64GB",
    "serve bert-large-uncased --on h100",
    "serve t5-large --on 8xh100",
    "serve llama-3.1-8b --on TPU-v5e",
    "max users llama-3.1-70b --on 8xh100 --context 8k --ttft 2s",
    "max micro-batch llama-3.1-8b --on 8xh100",
    "max model --on 4090",
    "max context llama-3.1-70b --on rtx-4090",
    "max context gpt2 --on rtx-4090",
    "plan llama-3.2-1b --on 8xh100 --runtime fsdp2 --top 2",
    "plan llama-3.1-405b --train --on rtx-4090 --runtime ddp",
    "plan llama-3.1-8b --serve --on l4 --users 8 --top 2",
    "plan llama-3.1-70b --serve --on 1xrtx-4090 --max-accelerators 2",
    "compare llama-3.1-8b --on h100,8xrtx-4090 --weights own,fp8 --context 8k,32k",
    "compare llama-3.1-8b --train --on 8xh100,2xh100",
    "compare llama-3.1-405b --on rtx-4090",
    "compare llama-3.1-8b,qwen3-32b,llama-3.1-70b --on h100,h200,l40s,a100 --weights bf16,fp8",
)


def test_texts_are_those_that_were_recorded(monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    different = [path.name for path, text in short_texts.texts() if not path.exists() or path.read_text() != text]
    assert different == [], "scripts/short_texts.py shows the difference, and records with --write"


@pytest.fixture(scope="module")
def shown():
    """(question, language, width) -> lines, each question answered once for each."""
    lines = {}
    with pytest.MonkeyPatch.context() as patch, golden.clean_place() as place, short_texts.answered_once():
        patch.setenv("COLUMNS", "80")
        for question in SAMPLE:
            for language, widths in (("en", WIDTHS), ("zh", WIDTHS[::2])):
                for width in widths:
                    lines[question, language, width] = short_texts.printed(
                        question, language, width, place
                    ).splitlines()
    return lines


def test_a_text_has_at_most_24_lines(shown):
    assert {where: len(lines) for where, lines in shown.items() if len(lines) > MAX_LINES} == {}


def test_no_line_is_wider_than_the_terminal(shown):
    wide = [(where, line) for where, lines in shown.items() for line in lines if columns(line) > where[2]]
    assert wide == []


def test_nothing_is_cut_and_no_mark_of_the_layout_is_left(shown):
    bad = [
        (where, line) for where, lines in shown.items() for line in lines if re.search(r"\.\.\.$|\u2003|\u00a0|`", line)
    ]
    assert [(where, line) for where, line in bad if not where[0].startswith("x")] == []
    assert [line for lines in shown.values() for line in lines if "{" in line] == []


def test_english_is_ascii(shown):
    assert [line for where, lines in shown.items() if where[1] == "en" for line in lines if not line.isascii()] == []


def test_a_number_stays_beside_its_unit(shown):
    ends = re.compile(r"(?<![\w.-])[\d,.]+$")
    units = re.compile(r"\s+(GiB|ms|s|USD|%|tokens/s|token/s)(?![\w-])")
    for lines in shown.values():
        for line, after in pairwise(lines):
            assert not (ends.search(line) and units.match(after)), (line, after)


def test_the_parts_of_memory_add_up(shown):
    checked = 0
    for where, lines in shown.items():
        if where[1] != "en":
            continue
        text = "\n".join(lines)
        figure = re.search(r"memory [^\n]*?\s{2}([\d,.]+) GiB|\n {9}([\d,.]+) GiB", text)
        legend = re.findall(
            rf"(?<![\w|])[{''.join(part.letter for part in PARTS)}] [a-zA-Z][\w .]*? ([\d,]+\.\d)", text
        )
        if figure and legend:
            total = float((figure[1] or figure[2]).replace(",", ""))
            assert round(sum(float(value.replace(",", "")) for value in legend), 1) == total, (where, text)
            checked += 1
    assert checked > 50


def test_every_command_that_is_shown_is_understood(shown):
    commands = set()
    for where, lines in shown.items():
        if where[1] == "en":
            text = re.sub(r" \\\n\s+", " ", "\n".join(lines))
            commands |= set(re.findall(r"^(?:try|next) +(tonnage .+)$", text, re.M))
    assert len(commands) > 20
    for command in commands:
        verb, *rest = shlex.split(command)[1:]
        _, parser = face(verb, rest)
        assert parser.parse_args(rest)


def test_what_a_terminal_shows_in_colour_has_the_characters_of_the_plain_text():
    answer = train.answer(_asked("train", "llama-3.1-8b --on 8xH100"))
    lines = answer_page(answer.without_trees(), answer.memory, answer.opened, 80).lines()
    shown = coloured(lines)
    assert ESCAPE.search(shown)
    assert ESCAPE.sub("", shown).splitlines() == [plain(line) for line in lines]


def test_each_part_of_the_bar_has_a_letter_of_its_own():
    letters = [part.letter for part in PARTS]
    assert len(set(letters)) == len(letters) == len({part.colour for part in PARTS})


def _asked(verb: str, rest: str):
    _, parser = face(verb, shlex.split(rest))
    return parser.parse_args(shlex.split(rest))


def _chosen_document():
    answer = train.answer(_asked("train", "llama-3.1-70b --on 8x8xH100 --recompute full"))
    document = answer.without_trees()
    document["question"]["recompute"] = {"value": "full", "from": "chosen", "why": "without it 137.5 GiB are needed"}
    document["chosen"] = {
        "change": {"recompute": "full"},
        "text": "--recompute full",
        "needed_bytes": 147626839582,
        "step_seconds": 4.125,
    }
    return document, answer


def test_what_was_chosen_stands_in_the_first_line_and_in_a_field():
    document, answer = _chosen_document()
    lines = answer_page(document, answer.memory, answer.opened, 100).text()
    assert lines[0].startswith("fits with --recompute full: 35.5 of 79.1 GiB on the fullest GPU (45 %)")
    text = "\n".join(lines)
    assert "chosen   --recompute full: without it 137.5 GiB, 58.4 too much; a step takes" in text
    assert "instead of" in text and "--recompute full" not in text.partition("assumed")[2].partition("better")[0]


def test_nothing_is_said_of_a_choice_that_was_not_made():
    document, answer = _chosen_document()
    del document["chosen"]
    lines = answer_page(document, answer.memory, answer.opened, 100).text()
    assert lines[0].startswith("fits: ") and not any(line.startswith("chosen") for line in lines)


def test_a_choice_is_said_in_chinese_too():
    document, answer = _chosen_document()
    with speaking("zh"):
        lines = answer_page(document, answer.memory, answer.opened, 80).text()
    assert lines[0].startswith("放得下（加 --recompute full）：") or "加 --recompute full" in lines[0]
    assert any(line.startswith("选定  --recompute full：不加需 137.5 GiB，超出 58.4") for line in lines)


def test_the_verdict_of_serving_names_the_load():
    answer = serve.answer(_asked("serve", "llama-3.1-70b --on 8xH100 --users 64 --context 2k"))
    assert verdict_line(answer.without_trees()) == (
        "fits: 33.8 of 79.1 GiB on each GPU (43 %) for 64 users of 2,048 tokens"
    )


def test_verbose_has_every_input_and_the_short_text_names_it(capsys):
    from tonnage.cli import main

    main(["train", "llama-3.1-8b", "--on", "8xH100"])
    short = capsys.readouterr().out
    main(["train", "llama-3.1-8b", "--on", "8xH100", "-v"])
    long = capsys.readouterr().out
    assert "-v all figures" in short and len(short.splitlines()) <= MAX_LINES
    assert long.splitlines()[0] == short.splitlines()[0]
    assert "pipeline_parallel_size" in long and len(long.splitlines()) > 2 * MAX_LINES


@pytest.mark.parametrize(("named", "width"), [("100", 100), ("200", 120), ("10", 40), ("no number", 80), ("", 80)])
def test_the_width_is_that_of_columns_within_limits(monkeypatch, named, width):
    monkeypatch.setenv("COLUMNS", named)
    assert terminal_width() == width


def test_json_says_nothing_new(capsys):
    from tonnage.cli import main

    main(["train", "llama-3.1-8b", "--on", "8xH100", "--json", "summary"])
    assert "chosen" not in json.loads(capsys.readouterr().out)


class TestNumbers:
    def test_three_digits_are_significant(self):
        assert [significant(value) for value in (0, 1.005, 99.95, 999.6, 63550.7, 0.00123)] == [
            "0", "1.00", "100", "1,000", "63,600", "0.00123",
        ]  # fmt: skip

    def test_a_band_has_the_unit_of_its_figure(self):
        assert with_band(0.377, (0.201, 1.16)) == "377 ms (201 to 1,160)"

    def test_units_of_time(self):
        shown = [seconds(value) for value in (2e-6, 0.002, 2, 700, 8000, 2e5)]
        assert shown == ["2.00 us", "2.00 ms", "2.00 s", "11.7 min", "2.22 h", "2.31 d"]

    def test_money_has_cents(self):
        assert [money(value) for value in (0, 0.0004, 0.05, 0.5, 5, 500)] == [
            "0.00",
            "0.00040",
            "0.050",
            "0.50",
            "5.00",
            "500",
        ]

    def test_many_tokens(self):
        assert [many(value) for value in (999, 366033, 1.5e6, 2e9)] == ["999", "366,033", "1.50 M", "2.00 B"]

    @pytest.mark.parametrize("parts", [[1.04] * 7, [0.05] * 3, [3.3, 3.3, 3.34], [79.1]])
    def test_parts_add_up(self, parts):
        total = sum(parts)
        shown = parts_in_gib([part * GIB for part in parts], total * GIB)
        assert round(sum(map(float, shown)), 1) == round(total, 1)


class TestLayout:
    def test_text_wraps_under_its_field(self):
        page = Page(60)
        page.field("cost", "1.01 USD per million tokens; " * 4)
        assert {line[:9] for line in page.text()} == {"cost     ", " " * 9}
        assert max(map(len, page.text())) <= 60

    def test_a_command_breaks_before_an_option(self):
        page = Page(60)
        page.command("try", "tonnage serve llama-3.1-70b --on 8xH100 --users 64 --ttft 300ms --tpot 20ms")
        first, second = page.text()
        assert first.endswith(" \\") and second.startswith(" " * 11 + "--")

    def test_the_block_with_the_highest_order_goes_first(self):
        page = Page(80)
        page.field("cost", "stays")
        page.field("note", "goes second", drop=1)
        page.field("next", "goes first", drop=2)
        assert [line.split()[0] for line in page.text(2)] == ["cost", "note"]
        assert [line.split()[0] for line in page.text(1)] == ["cost"]

    def test_a_table_leaves_out_the_column_that_matters_least(self):
        page = Page(60)
        header = [Column("what", "l"), Column("least", keep=1), Column("most", keep=9)]
        page.table(header, [["x" * 30, "1" * 20, "2" * 20]])
        assert "least" not in page.text()[0] and "most" in page.text()[0]

    def test_han_takes_two_cells_and_closing_signs_begin_no_line(self):
        with speaking("zh"):
            page = Page(40)
            page.field("note", "显存占用最高的卡，" * 8)
            lines = page.text()
        assert all(columns(line) <= 40 for line in lines)
        assert not any(line.strip().startswith("，") for line in lines)


@pytest.mark.parametrize("no_colour", [{"NO_COLOR": "1"}, {"TERM": "dumb"}])
def test_a_terminal_without_colours_gets_the_plain_text(monkeypatch, capsys, no_colour):
    from tonnage.cli.common.print import print_page

    monkeypatch.setattr("sys.stdout.isatty", lambda: True, raising=False)
    for name, value in ({"TERM": "xterm"} | no_colour).items():
        monkeypatch.setenv(name, value)
    print_page([[("fits", "good"), (": yes", "")]])
    assert capsys.readouterr().out == "fits: yes\n"
    assert os.environ.get("NO_COLOR") == no_colour.get("NO_COLOR")


@pytest.mark.parametrize(
    ("words", "machine"),
    [
        ("--rollout-accelerators 4", "on 8xH100-SXM-80GB (12 GPUs: 8 train, 4 generate): full"),
        ("", "on 8xH100-SXM-80GB (8 GPUs): full"),
    ],
)
def test_the_header_says_how_many_train_and_how_many_generate(capsys, words, machine):
    asked = f"train qwen3-0.6b --on 8xH100-SXM-80GB --objective grpo --sequence-length 1024 --no-advice {words}"
    from tonnage.cli import main

    main(asked.split())
    assert machine in " ".join(capsys.readouterr().out.split())


def test_the_header_names_torchtitan_only_where_its_code_runs(capsys):
    from tonnage.cli import main

    main(["train", "llama-3.2-1b", "--on", "8xh100", "--runtime", "fsdp2"])
    assert "fsdp2 (torchtitan)" in capsys.readouterr().out
    main(["train", "llama-3.2-1b", "--on", "8xh100", "--runtime", "fsdp2", "--model-code", "transformers"])
    assert "torchtitan" not in capsys.readouterr().out.split("memory")[0]
