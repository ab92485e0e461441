"""Every verb, asked with --lang zh, leaves no English prose but names, commands, formulas and sources; and English
is as it was.
"""

import re
import shlex

import pytest

from tonnage.cli import SERVERS, VERBS, main
from tonnage.cli.common import print as print_module
from tonnage.cli.common.parser import split_language
from tonnage.kernel.errors import InvalidInput
from tonnage.language import speaking
from tonnage.language.columns import width, wrapped

HAN = re.compile(r"[\u4e00-\u9fff]")
# Two plain words in a row are English prose; code, paths and options are not.
PROSE = re.compile(r"(?<![\w/.`'\"-])[a-z]{2,} [a-z]{2,}(?![\w/-])")
FREE = re.compile(
    r"`[^`]*`"  # code
    r"|(?:tonnage [a-z]|vllm serve |usage: |用法：).*"  # commands, and the usage of one
    r"|(?:\[[^\]]*\]|\[.*\])$"  # where a number comes from, behind its formula
    r"|来源[：:].*|的来源：.*|公开数字：.*"
    r"|\b[A-Z]\w+(?:19|20)\d\d\w*[,:].*"  # a citation
    # a program, an option with its value
    r"|linear_relu\.py:program, [a-z ]+|recompute selective|narayanan hardware|kaplan recomputed"
    r"|<config directory>"
    r"|no model is called 'hymba-1\.5b'.*"  # why a file of rows skips one, as the file says it
    r"|CUDA out of memory\..*"  # PyTorch's own words
    r"|^ +(?:usable_memory|price|power_share|pue|storage_bandwidth) .*"  # inputs whose reason is a source
    r"|^(?:price|power_share|pue) .*"
    r"|^\s*WHAT  .*"  # names of quantities
)
# Rows of the catalogue: names of offers and machines, notes of their makers.
DATA = re.compile(
    r"^(?:\S+ +[\d.,]+ (?:USD|CNY)|参数量  \S+  |注(?:（[^）]+）)?：[^：]+：|  [\w.]+ 的理由："
    r"|  \S.* \d[\d.]* (?:GiB|TB/s) .*;"
    r"|费用  )"  # whose price it is
)
COMMANDS = """
train llama-3.1-8b --on 8xH100-SXM-80GB --sequence-length 16k
train llama-3.1-8b --on 8xH100-SXM-80GB --recompute full --formulas --tokens 1T
train llama-3.1-8b --on 4090 --offload-optimizer cpu
serve qwen3-32b --on rtx-4090 --weights Q4_K_M --context 8k
serve llama-3.1-70b --on 8xH100-SXM-80GB --weights fp8 --users 64 --input 2000 --output 400 --ttft 1s --tpot 25ms
serve llama-3.1-8b --on 8xH100-SXM-80GB --frontier --points 3
serve llama-3.1-8b --on h100 --users 8 --simulate --num-requests 30
plan llama-3.1-8b --on 8xH100-SXM-80GB --top 2
plan llama-3.1-70b --serve --on h200 --users 64 --ttft 1s --tpot 40ms
plan --inventory docs/examples/pool.yaml
compare llama-3.1-70b --on h100,rtx-4090 --weights own,fp8 --context 8k,32k --users 16
compare llama-3.1-8b --on h100,rtx-4090 --context 8k,32k --rows
compare --train llama-3.1-8b --on 8xh100,8xa100 --sequence-length 8k,16k
max context llama-3.1-8b --on rtx-4090 --kv-cache fp8
max users llama-3.1-8b --on h100 --context 8k --tpot 20ms
max micro-batch llama-3.1-8b --on 8xh100 --sequence-length 8k
check "vllm serve gpt2 --made-up-key 1" --on h100
check "vllm serve gpt2 --made-up-key 1" --on h100 --verbose
check "vllm serve gpt2 --made-up-key 1" --on h100 --format markdown
reconcile tests/interchange/logs/torchtitan.log train llama-3.1-8b --on 8xh100 --seq 8k
calibrate show
trace e5
trace e5 --capacity 100MB
rules
rules A6 B1b
rules B --model mixtral-8x7b
explain kv_cache_bytes
explain checkpoint
explain recompute
models llama-3.1-8b
models
accelerators h100
accelerators dgx-h100
prices h100 --kind on-demand
prices --api gpt-oss-120b --input 2000 --output 400
validate validation/params.yaml
train nosuch --on h100
train llama-3.1-8b --on h100 --nonsense 3
train llama-3.1-8b
train llama-3.1-8b --on h100 --micro-batch-size -3
""".strip().splitlines()
NEED_MORE = {
    "sweep",
    "measure",
    "diagnose",
    "export",
}  # a dataset, a GPU, a log, what another tool reads: their lines are read by test_said alone
HELP = [
    *(f"{verb} --help-all" for verb in VERBS),
    "-h",
    "plan --serve --help-all",
    "plan --inventory x --help-all",
    "max context --help-all",
    "compare --train --help-all",
    "prices --api --help-all",
    "prices refresh --help-all",
]


def _printed(command: str, capsys, *more: str) -> tuple[int, str]:
    status = main([*shlex.split(command), *more])
    said = capsys.readouterr()
    return status, said.out + said.err


@pytest.mark.parametrize("command", [*COMMANDS, *HELP])
def test_no_english_is_left_in_chinese(command, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "1000")
    _, said = _printed(command, capsys, "--lang", "zh")
    lines = said.split("\n\n", 1)[1] if "--help-all" in command else said  # without the usage of a verb
    left = [line for line in lines.splitlines() if not DATA.match(line) and PROSE.search(FREE.sub("", line))]
    assert left == []
    assert HAN.search(said)


def test_every_verb_is_asked():
    assert {command.split()[0] for command in COMMANDS} == set(VERBS) - NEED_MORE - SERVERS


@pytest.mark.parametrize("command", ["train llama-3.1-8b --on h100", "max context llama-3.1-8b --on h100", "rules A6"])
def test_the_language_changes_no_status_and_no_document(command, capsys):
    english, chinese = (_printed(command, capsys, "--json", "--lang", language) for language in ("en", "zh"))
    assert chinese == english


@pytest.mark.parametrize(
    ("words", "environment", "language"),
    [
        ([], {}, "en"),
        (["--lang", "zh", "rules"], {}, "zh"),
        (["rules", "--lang=zh"], {"TONNAGE_LANG": "en"}, "zh"),
        ([], {"TONNAGE_LANG": "zh", "LC_ALL": "C"}, "zh"),
        ([], {"LANG": "zh_CN.UTF-8"}, "zh"),
        ([], {"LC_ALL": "C.UTF-8", "LANG": "zh_CN.UTF-8"}, "en"),
        ([], {"LC_ALL": "", "LC_MESSAGES": "zh_TW.UTF-8", "LANG": "C"}, "zh"),
        ([], {"LANG": "de_DE.UTF-8"}, "en"),
        (["--", "--lang", "zh"], {}, "en"),
    ],
)
def test_the_option_goes_before_the_variable_and_that_before_the_locale(words, environment, language):
    said, rest = split_language(words, environment)
    assert said == language
    assert rest == [word for word in words if word not in ("--lang", "zh", "--lang=zh")] or "--" in rest


def test_the_option_needs_a_language():
    for words in (["rules", "--lang"], ["rules", "--lang="]):
        with pytest.raises(InvalidInput, match="en or zh"):
            split_language(words, {})


def test_an_unknown_language_is_wrong_usage(capsys):
    status, said = _printed("--lang xx rules", capsys)
    assert status == 64
    assert said == "error: no language is called 'xx'. Valid: en, zh.\n" or "zh" in said


def test_a_command_leaves_no_language_behind(capsys):
    _printed("rules A6", capsys, "--lang", "zh")
    assert "法则" not in _printed("rules A6", capsys)[1]


def test_columns_line_up_where_characters_are_wide(capsys):
    """The rule under the header is as wide as its columns, and numbers end in one column."""
    _, said = _printed("compare llama-3.1-8b --on h100,rtx-4090 --context 8k,32k --rows -v", capsys, "--lang", "zh")
    lines = said.splitlines()
    rule = next(number for number, line in enumerate(lines) if line.startswith("--"))
    ends = [at for at, sign in enumerate(lines[rule]) if sign == "-" and lines[rule][at + 1 : at + 2] in (" ", "")]
    for line in lines[rule + 1 : rule + 5]:
        for end in ends[:-1]:
            cut = _column(line, end + 1)
            assert cut == " ", f"column {end + 1} of {line!r}"


def _column(line: str, at: int) -> str:
    """What stands in a column of the terminal."""
    seen = 0
    for sign in line:
        if seen == at:
            return sign
        seen += width(sign)
    return " "


def test_lines_of_help_are_no_wider_than_the_terminal(capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    _, said = _printed("train --help-all", capsys, "--lang", "zh")
    options = said[said.index("-h, --help") : said.rindex("\n\n")]
    assert max(width(line) for line in options.splitlines() if HAN.search(line)) <= 80


def test_lines_begin_with_no_full_stop():
    text = "放得下的最大上下文、用户数、层数，在答案处和刚超过处都经过核对。" * 3
    for columns in range(8, 40):
        lines = wrapped(text, columns)
        assert "".join(lines) == text
        assert not [line for line in lines if line[0] in "，。、"]
        assert max(map(width, lines)) <= columns + 2  # a full stop may hang over


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize(
    ("command", "colour"),
    [
        ("train llama-3.1-8b --on 8xH100-SXM-80GB --recompute full", "32"),
        ("train llama-3.1-8b --on 8xH100-SXM-80GB --sequence-length 16k --as-is", "31"),
        ("serve llama-3.1-8b --on h100 --context 4k --users 4 --ttft 1ms", "31"),
        ("train llama-3.1-8b --on 8xH100-SXM-80GB --sequence-length 8k --recompute none --loss full", "33"),
    ],
)
def test_the_colour_of_a_verdict_is_that_of_its_meaning(language, command, colour, capsys, monkeypatch):
    """Green, red, yellow: whatever the words are."""
    monkeypatch.setattr(print_module.sys.stdout, "isatty", lambda: True, raising=False)
    with speaking("en"):
        main([*shlex.split(command), "--lang", language])
    assert f"\x1b[1;{colour}m" in capsys.readouterr().out


@pytest.mark.parametrize(
    "command", ["compare --train llama-3.1-8b --on h100,a100", "compare llama-3.1-8b --on h100,rtx-4090 --rows"]
)
def test_the_legend_of_a_markdown_table_explains_the_headings_that_it_has(command, capsys):
    _, said = _printed(command, capsys, "--markdown", "--lang", "zh")
    header = next(line for line in said.splitlines() if line.startswith("| ")).strip("| ").split(" | ")
    legend = next(line for line in said.splitlines() if "**粗体**：" in line).removeprefix("- ")
    explained = [each.split("：")[0] for each in legend.split("；")]
    assert {"需要", "x"} < set(header) & set(explained)
    assert set(header) - set(explained) == {"机器", "结论"}


def test_a_price_that_holds_everywhere_says_so_in_chinese(capsys, tmp_path):
    for command in ("compare llama-3.1-8b --on rtx-4090 --context 8k", "serve llama-3.1-8b --on rtx-4090 --context 8k"):
        _, said = _printed(command, capsys, "-v", "--lang", "zh", "--markdown", str(tmp_path / "made.md"))
        report = (tmp_path / "made.md").read_text(encoding="utf-8").partition("词汇表")[0]
        assert "1 GPU，全部" in said
        assert "| OpenRelay 1 GPU，全部" in report or "RTX-4090：OpenRelay 1 GPU，全部" in report


def test_a_recording_says_in_its_first_line_in_chinese_how_it_was_made(capsys):
    _, said = _printed("trace e5", capsys, "--lang", "zh")
    assert "，与实测一致：" in said.splitlines()[0]
