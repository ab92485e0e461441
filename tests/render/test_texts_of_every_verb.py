"""Every verb prints every form of output for answers that fit, do not fit and are not known: no exception, no empty
or half-filled text.
"""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tonnage.cli import VERBS, face, main

ROOT = Path(__file__).parents[2]
POOL = str(ROOT / "docs" / "examples" / "pool.yaml")
# Verb -> questions, one for each kind of answer that it has. Verbs that serve, run programs or write folders have tests
# of their own.
QUESTIONS = {
    "train": {
        "fits": "llama-3.1-8b --on 8xH100-SXM-80GB",
        "does not fit": "llama-3.1-70b --on H100-SXM-80GB",
        "tight": "llama-3.1-8b --on 8xH100-SXM-80GB --recompute full --mbs 10",
        "time is not known": "llama-3.1-8b --on Apple-M5-Max-64GB",
        "a whole run": "llama-3.1-8b --on 8xH100-SXM-80GB --tokens 15B --deadline 30d",
        "owned machines": "llama-3.1-8b --on 8xH100-SXM-80GB --tokens 15B --machine-usd 250000 "
        "--electricity-usd-per-kwh 0.1 --network-share 0.1 --staff-usd-per-month 1000",
        "offloading": "llama-3.1-8b --on 4xA100-SXM-80GB --offload-optimizer cpu --runtime deepspeed",
        "adapters": "qwen3-8b --on rtx-4090 --method lora",
    },
    "serve": {
        "fits": "llama-3.1-8b --on 8xH100-SXM-80GB",
        "does not fit": "llama-3.1-70b --on rtx-4090",
        "late": "llama-3.1-8b --on H100-SXM-80GB --request-rate 30 --input 1000 --output 500 --tpot 1ms",
        "simulated": "llama-3.1-8b --on H100-SXM-80GB --users 8 --input 1000 --output 50 --simulate",
        "encoder and decoder": "t5-large --on 8xh100",
        "encoder": "bert-large-uncased --on h100",
        "no engine of data centres": "qwen3-32b --on Apple-M3-Max-64GB",
        "many configurations": "llama-3.1-8b --on 8xh100 --frontier --points 3",
        "many models": "--for-my-machine --on rtx-4060-ti --context 256k --weights q4_k_m",
    },
    "max": {
        "fits": "context llama-3.1-8b --on rtx-4090",
        "does not fit": "context llama-3.1-70b --on rtx-4090",
        "the model's own limit": "context gpt2 --on rtx-4090",
        "of training": "micro-batch llama-3.1-8b --on 8xh100",
    },
    "plan": {
        "fits": "llama-3.2-1b --on 8xh100 --runtime fsdp2 --top 2",
        "does not fit": "llama-3.1-405b --train --on rtx-4090 --runtime ddp",
        "of serving": "llama-3.1-8b --serve --on l4 --users 8 --pareto --top 2",
        "of serving, does not fit": "llama-3.1-70b --serve --on 1xrtx-4090 --max-accelerators 2",
        "a pool": f"--inventory {POOL} --leave a100",
    },
    "compare": {
        "fits": "llama-3.1-8b --on h100,8xrtx-4090 --weights own,fp8 --context 8k,32k",
        "of training": "llama-3.1-8b --train --on 8xh100,2xh100",
        "does not fit": "llama-3.1-405b --on rtx-4090",
    },
    "trace": {"runs": "e5", "runs out of memory": "e5 --capacity 100MiB"},
    "rules": {"all": "", "one": "A6", "of a model": "B --model mixtral-8x7b"},
    "explain": {
        "all": "",
        "a formula": "kv_cache_bytes",
        "a symbol": "k",
        "a source": "Pope2023",
        "a word": "checkpoint",
    },
    "models": {"all": "", "one": "deepseek-v3"},
    "accelerators": {"all": "", "one": "h100", "a node": "dgx-h100"},
    "prices": {"all": "", "one": "h100", "of APIs": "--api gpt-oss-120b --input 500 --output 200"},
    "validate": {"rows": str(ROOT / "validation" / "params.yaml")},
}
ELSEWHERE = {
    "sweep",
    "measure",
    "web",
    "mcp",
    "check",
    "export",
    "reconcile",
    "diagnose",  # the last four: tests/interchange
    "calibrate",
}
FORMS = (
    "", "--verbose", "--json", "--formulas", "--csv", "--no-advice", "--no-advice --verbose", "--no-advice --formulas",
    "--no-advice --json", "--markdown", "--no-advice --markdown", "--html x.html", "--no-advice --html x.html",
    "--markdown x.md",
)  # fmt: skip
FILES = {"--html": "x.html", "--markdown": "x.md"}
NO_REPORT = ("serve", "many models")
CASES = [(verb, kind) for verb, kinds in QUESTIONS.items() for kind in kinds]


def _options(verb, words):
    return face(verb, words)[1]._option_string_actions


def _forms(verb, kind, words):
    """The forms of output that the verb has."""
    known = _options(verb, words)
    for form in FORMS:
        flags = [word for word in form.split() if word.startswith("--")]
        reports = {"--markdown", "--html"} & set(flags)
        if all(flag in known for flag in flags) and not (reports and (verb, kind) == NO_REPORT):
            yield form.split()


def test_every_verb_and_every_output_option_is_tried_here():
    assert {*QUESTIONS, *ELSEWHERE} == set(VERBS)
    tried = {flag for form in FORMS for flag in form.split()} | {"--lang", "-v"}
    others = {"--plot", "--parquet"}  # tests/render/test_plot.py, tests/search/test_compare_files.py
    for verb, kinds in QUESTIONS.items():
        parser = face(verb, next(iter(kinds.values())).split())[1]
        groups = [group for group in parser._action_groups if group.title == "output"]
        assert {
            flag for group in groups for action in group._group_actions for flag in action.option_strings
        } <= tried | others


ANSWERS = {}


def _answer_once(verb, words, language, monkeypatch):
    """The command makes the answer of its question once, with suggestions and without, and prints it in every form."""
    module = face(verb, words)[0]
    if not hasattr(module, "answer"):
        return
    made = module.answer

    def answer(arguments, *more):
        question = verb, *words, language, getattr(arguments, "advice", None), *more
        if question not in ANSWERS:
            ANSWERS[question] = made(arguments, *more)
        return ANSWERS[question]

    monkeypatch.setattr(module, "answer", answer)


@pytest.mark.parametrize("language", ["en", "zh"])
@pytest.mark.parametrize(("verb", "kind"), CASES, ids=str)
def test_every_form_of_an_answer_is_printed_whole(verb, kind, language, capsys, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    words = QUESTIONS[verb][kind].split()
    _answer_once(verb, words, language, monkeypatch)
    statuses = set()
    for form in _forms(verb, kind, words):
        statuses.add(main([verb, *words, *form, "--lang", language]))
        printed = capsys.readouterr()
        assert not printed.err, form
        _is_whole(printed.out, form)
        for flag, name in FILES.items():
            if name in form:
                _is_whole((tmp_path / name).read_text(), [flag])
    assert len(statuses) == 1 and statuses <= {0, 2, 3, 4}, "how an answer is shown does not change its status"


def _is_whole(text, form):
    """Something is said; no place of a template is left open; no value of Python's stands there."""
    assert text.strip(), form
    if "--json" in form:
        assert json.loads(text)
        return
    if "--html" not in form:
        assert not re.search(r"\{[a-z_0-9]*\}", text), form
    assert not re.search(
        (
            r"(?<![\w.])(?:nan|-?inf)(?![\w.])|[:=(] ?None\b|\bNone "
            r"(?:B|KiB|MiB|GiB|s|ms|USD|tokens)\b|<[a-z_.]+ object at 0x"
        ),
        text,
    ), form


def test_only_the_answer_is_on_stdout(tmp_path):
    """A library that prints by itself (HiGHS its banner) would end JSON for its readers; C code writes past
    sys.stdout.
    """
    for question in (f"plan --inventory {POOL} --json", "train qwen3-0.6b --on h100 --json"):
        done = subprocess.run(
            [sys.executable, "-m", "tonnage", *question.split()],
            capture_output=True,
            check=False,
            cwd=tmp_path,
            env=os.environ,
        )
        assert json.loads(done.stdout)["schema"] == "tonnage/2" and not done.stderr


def test_the_docs_say_the_status_of_an_unmet_service_level_and_of_a_missed_deadline(capsys):
    page = (ROOT / "docs" / "commands" / "serve.md").read_text()
    assert "not met, the answer says which limit binds and the best there is, and the\nexit status is 3" in page
    assert "A missed deadline or budget of `tonnage train` is status 3 too" in page
    assert (
        main(["serve", "llama-3.1-8b", "--on", "H100-SXM-80GB", "--concurrency", "8", "--tpot", "1ms", "--no-advice"])
        == 3
    )
    assert (
        main(
            [
                "train",
                "llama-3.1-8b",
                "--on",
                "8xH100-SXM-80GB",
                "--global-batch-size",
                "512",
                "--tokens",
                "100B",
                "--deadline",
                "1d",
                "--no-advice",
            ]
        )
        == 3
    )
    capsys.readouterr()


TIMED = {
    "serve": ("fits", "late", "simulated", "many configurations", "many models"),
    "max": ("fits",),
    "plan": ("of serving",),
    "compare": ("fits",),
}


@pytest.mark.parametrize(("verb", "kind"), [(verb, kind) for verb, kinds in TIMED.items() for kind in kinds], ids=str)
@pytest.mark.parametrize("form", ["", "--markdown", "--html x.html"])
def test_a_time_to_the_first_token_says_how_long_the_prompts_are(verb, kind, form, capsys, tmp_path, monkeypatch):
    if form and (verb, kind) == NO_REPORT:
        pytest.skip("it has no report")
    monkeypatch.chdir(tmp_path)
    more = ["--show", "ttft"] if verb == "compare" and not form else []
    words = [*QUESTIONS[verb][kind].split(), *more]
    _answer_once(verb, words, "en", monkeypatch)
    main([verb, *words, *form.split(), "--lang", "en"])
    printed = capsys.readouterr().out
    text = (tmp_path / "x.html").read_text() if "--html" in form else printed
    if not re.search("TTFT", text):
        pytest.skip("this form has no TTFT")
    assert re.search(
        r"1,0(?:24|00)(?:-token prompts| tokens in)|--input-tokens 1024|input[_ ]tokens</th>|\| input tokens \|",
        text,
    )
    for line in printed.splitlines():
        if re.match(r"\W*TTFT +[\d|]", line):
            pytest.fail(line)
