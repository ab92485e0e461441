"""An assistant, with the client of the official package, lists and calls every tool; what it gets is the document of
--json, or a part of it.
"""

import json
import os
import re
import socket
import subprocess
import sys
import time
from pathlib import Path

import anyio
import pytest

import tonnage
from tonnage.cli import main
from tonnage.cli.mcp import skill
from tonnage.documents.document import builtins, encode
from tonnage.interchange.json_questions import CHECK
from tonnage.interchange.log_questions import DIAGNOSE, RECONCILE
from tonnage.kernel.reach import Reach
from tonnage.mcp_server.tools import BY_NAME, CHOICES, OPTIONS, TOOLS, fields, input_schema, listed, options_of_verb
from tonnage.verbs.ask import ask, words_of

pytest.importorskip("mcp.server.mcpserver", reason="needs tonnage[mcp]")
from mcp import StdioServerParameters, types
from mcp.client import Client
from mcp.client.stdio import stdio_client

from tonnage.mcp_server.server import Settings, answer, tools

QUESTIONS = {
    "train": {"model": "llama-3.1-8b", "on": "8xh100", "sequence_length": "8k", "recompute": "full"},
    "serve": {"model": "qwen3-32b", "on": "rtx-4090", "weights": "awq", "context": 4096},
    "plan": {"model": "llama-3.2-1b", "on": "8xh100", "runtime": "fsdp2", "top": 2},
    "max": {"what": "context", "model": "llama-3.1-8b", "on": "rtx-4090"},
    "compare": {"model": "llama-3.1-8b", "on": ["h100", "8xrtx-4090"], "context": ["8k", "32k"]},
    "explain": {"name": "kv_cache_bytes"},
}
SMALL = {
    "model_type": "llama",
    "hidden_size": 64,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "vocab_size": 100,
    "intermediate_size": 128,
}
SOURCES = str(Path(tonnage.__file__).parents[1])
NO_FILES = Settings(Reach(files=None, hubs=False))


def _environment(language="en"):
    return {**os.environ, "PYTHONPATH": SOURCES, "HF_HUB_OFFLINE": "1", "TONNAGE_LANG": language}


def _with_client(act, *options, transport=None, language="en"):
    """What `act` gives, with a client of a server that was started with these options."""

    async def run():
        started = StdioServerParameters(
            command=sys.executable, args=["-m", "tonnage", "mcp", *options], env=_environment(language)
        )
        async with Client(transport or stdio_client(started)) as client:
            return await act(client)

    return anyio.run(run)


def _words(verb):
    return words_of(verb, QUESTIONS[verb])


def _printed(verb, question, capsys):
    main([*words_of(verb, question), "--json"])
    return json.loads(capsys.readouterr().out)


@pytest.fixture(scope="module")
def told():
    """The tools as the client is told of them, and what it gets from each: the short and the whole answer, over
    stdio.
    """

    async def act(client):
        found = {}
        for verb, question in QUESTIONS.items():
            whole = {**question, "detail": "full"}
            found[verb] = (await client.call_tool(verb, question), await client.call_tool(verb, whole))
        return (await client.list_tools()).tools, found, client.instructions

    return _with_client(act)


def test_a_client_of_the_official_package_lists_every_tool(told):
    named, _, instructions = told
    assert (
        [tool.name for tool in named]
        == [*(tool.verb for tool in TOOLS), CHECK, DIAGNOSE, RECONCILE, OPTIONS]
        == [*QUESTIONS, CHECK, DIAGNOSE, RECONCILE, OPTIONS]
    )
    assert all(tool.annotations.read_only_hint and tool.output_schema["required"] == ["schema"] for tool in named)
    assert "refused, not guessed" in instructions


@pytest.mark.parametrize("verb", QUESTIONS)
def test_a_client_calls_it_and_gets_the_document_of_json(told, verb, capsys):
    short, whole = told[1][verb]
    assert not short.is_error and not whole.is_error
    printed = _printed(verb, QUESTIONS[verb], capsys)
    assert whole.structured_content == printed
    main([*_words(verb), "--json", "summary"] if verb != "explain" else [*_words(verb), "--json"])
    assert short.structured_content == json.loads(capsys.readouterr().out)


@pytest.fixture(scope="module")
def told_where_chinese_is_spoken():
    """The same of a server that somebody started under a Chinese locale, and what is wrong with two questions."""

    async def act(client):
        found = {verb: await client.call_tool(verb, question) for verb, question in QUESTIONS.items()}
        wrong = [
            await client.call_tool("train", {"model": "llama-3.1-8c", "on": "8xh100"}),
            await client.call_tool("train", {"model": "llama-3.1-8b", "on": "8xh100", "tp": "x"}),
        ]
        return (await client.list_tools()).tools, found, wrong

    return _with_client(act, "--offline", language="zh")


@pytest.mark.parametrize("verb", QUESTIONS)
def test_an_assistant_is_told_the_same_in_english_where_chinese_is_spoken(told, told_where_chinese_is_spoken, verb):
    english, chinese = told[1][verb][0], told_where_chinese_is_spoken[1][verb]
    assert chinese.content == english.content and chinese.structured_content == english.structured_content


def test_tools_and_errors_are_english_where_chinese_is_spoken(told, told_where_chinese_is_spoken):
    chinese, _, wrong = told_where_chinese_is_spoken
    assert chinese[0].description == told[0][0].description  # of --offline the hints alone are others
    assert [each.input_schema for each in chinese] == [each.input_schema for each in told[0]]
    assert all(found.is_error and found.content[0].text.isascii() for found in wrong)


@pytest.mark.parametrize("detail", ["summary", "full"])
@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.verb)
def test_every_tool_takes_detail_and_says_so(tool, detail):
    assert input_schema(tool)["properties"]["detail"]["enum"] == ["summary", "full"]
    found = answer(tool.verb, {**QUESTIONS[tool.verb], "detail": detail}, NO_FILES)
    assert not found.is_error
    assert ("This is a summary of the document" in found.content[0].text) == (detail == "summary")


def test_a_check_takes_the_text_of_a_file_and_reads_no_other():
    found = answer(CHECK, {"text": "vllm serve gpt2 --made-up-key 1", "on": "h100"}, NO_FILES)
    assert not found.is_error
    assert found.content[0].text.startswith("not sure: made-up-key")
    assert found.structured_content["read"]["keys"][0]["key"] == "made-up-key"
    refused = answer(CHECK, {"text": "vllm serve gpt2", "onn": "h100"}, NO_FILES)
    assert refused.is_error and "onn" in refused.content[0].text


@pytest.mark.parametrize("verb", ["train", "serve", "plan", "max"])
def test_the_text_begins_with_the_line_that_the_verb_prints_first(told, verb, capsys):
    main([*words_of(verb, QUESTIONS[verb])])
    first, *rest = told[1][verb][0].content[0].text.splitlines()
    assert first == capsys.readouterr().out.splitlines()[0]
    assert rest[0].startswith(f"command: tonnage {verb} ") and 'Ask with "detail": "full"' in rest[1]


def _is_part(part, whole):
    if isinstance(whole, dict):
        return isinstance(part, dict) and all(
            name == "parts" or (name in whole and _is_part(each, whole[name])) for name, each in part.items()
        )
    if isinstance(whole, list):
        return isinstance(part, list) and len(part) <= len(whole) and all(map(_is_part, part, whole))
    return type(part) is type(whole) and part == whole


@pytest.mark.parametrize("verb", QUESTIONS)
def test_a_summary_is_a_part_of_the_document_and_short(told, verb):
    short, whole = (found.structured_content for found in told[1][verb])
    left_out = short.get("left_out", {})
    assert _is_part({name: each for name, each in short.items() if name != "left_out"}, whole)
    if "question" in whole:
        assert len(short["question"]) + left_out.get("question", 0) == len(whole["question"])
        assert len(short["warnings"]) + left_out.get("warnings", 0) == len(whole["warnings"])
    assert not _is_part({**short, "surprise": 1}, whole) and not _is_part({**short, "schema": "tonnage/0"}, whole)


LONG = {
    "train": {"model": "kimi-k2-instruct", "on": "8xh100", "tokens": "1T", "deadline": "30d", "budget": 1_000_000},
    "serve": {"model": "qwen3-4b", "on": "4x8xh100", "request_rate": 3, "input_tokens": 800, "output_tokens": 50},
    "plan": {"model": "llama-3.2-1b", "on": "8xh100,8xa100", "top": 50},
    "max": {"what": "users", "model": "llama-3.1-70b", "on": "8xh100", "context": "8k"},
    "compare": {"model": "llama-3.1-8b", "on": ["h100", "a100", "l4", "l40s"], "context": ["4k", "8k", "16k", "32k"]},
    "explain": {},
}


@pytest.mark.parametrize("question", [QUESTIONS, LONG], ids=["usual", "long"])
@pytest.mark.parametrize("verb", QUESTIONS)
def test_an_answer_is_at_most_8_kb_with_its_text(verb, question):
    found = answer(verb, question[verb], NO_FILES)
    assert not found.is_error
    assert len(encode(found.structured_content)) + len(found.content[0].text.encode()) <= 8_000


def test_the_schema_of_a_tool_says_unit_and_default_of_the_option():
    known = input_schema(BY_NAME["train"])["properties"]
    assert (
        known["sequence_length"]["description"]
        == "tokens of a sequence; 32k is 32768 [tokens] (default: the model's context, at most 4096)"
    )
    assert known["model"]["type"] == ["string", "object"] and known["on"]["type"] == "string"
    assert input_schema(BY_NAME["compare"])["properties"]["count"]["type"] == ["string", "number", "array"]
    goal = input_schema(BY_NAME["plan"])["properties"]["goal"]["description"]
    assert "train: fastest, cheapest or fewest" in goal and "serve: cost, accelerators" in goal


@pytest.mark.parametrize("tool", TOOLS, ids=lambda tool: tool.verb)
def test_every_field_of_a_tool_is_named_by_the_tool_of_options(tool):
    found = answer(OPTIONS, {"verb": tool.verb}, NO_FILES)
    named = [name for names in found.structured_content["options"].values() for name in names]
    assert sorted(named) == sorted(fields(tool)) and len(encode(found.structured_content)) <= 8_000
    assert found.structured_content == builtins(options_of_verb(tool.verb))
    assert all(name in named or name in CHOICES[tool.verb] for name in {*CHOICES.get(tool.verb, ()), *tool.spelled})


@pytest.mark.parametrize("verb", ["trian", "", None, 5])
def test_the_options_of_what_is_no_verb_are_refused(verb):
    found = answer(OPTIONS, {"verb": verb}, NO_FILES)
    assert found.is_error and "verb is one of train, serve, plan" in found.content[0].text


OUT_OF_MEMORY = """\
INFO 01-20 10:00:05 worker.py:267] model weights take 14.99GiB; non_torch_memory takes 0.26GiB; PyTorch activation \
peak memory takes 0.94GiB; the rest of the memory reserved for KV Cache is 2.18GiB.
ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization`.
"""
LOGGED = {
    DIAGNOSE: {"text": OUT_OF_MEMORY},
    RECONCILE: {"text": OUT_OF_MEMORY, "verb": "serve"},
}


@pytest.mark.parametrize("verb", LOGGED)
def test_a_log_is_answered_from_its_text_in_at_most_8_kb(verb):
    found = answer(verb, {**LOGGED[verb], "model": "llama-3.1-8b", "on": "rtx-4090"}, NO_FILES)
    assert not found.is_error
    first = {DIAGNOSE: "out of memory while allocating the KV cache", RECONCILE: "4 figures compared"}[verb]
    assert found.content[0].text.startswith(first)
    assert len(encode(found.structured_content)) + len(found.content[0].text.encode()) <= 8_000
    refused = answer(verb, {**LOGGED[verb], "path": "/etc/passwd"}, NO_FILES)
    assert refused.is_error and "no field is called 'path'" in refused.content[0].text


def test_what_an_assistant_is_told_of_all_tools_is_at_most_12_kb():
    told = [tool.model_dump(by_alias=True, exclude_none=True) for tool in tools(NO_FILES.within)]
    assert len(encode(builtins({"tools": told}))) <= 12_000 and len(encode(listed())) <= 12_000


@pytest.mark.parametrize(
    ("name", "question", "said"),
    [
        (
            "train",
            {"model": "llama-3.1-8c", "on": "8xh100"},
            "error: no model is called 'llama-3.1-8c'. Did you mean 'llama-3.1-8b'",
        ),
        ("train", {"model": "llama-3.1-8b"}, "error: on is needed"),
        ("train", {"model": "llama-3.1-8b", "on": "8xh100", "sequence_lenght": "8k"}, "Did you mean 'sequence_length'"),
        ("train", {"model": "llama-3.1-8b", "on": "8xh100", "json": True}, "says how an answer is shown"),
        ("max", {"what": "contxt", "on": "h100"}, "Did you mean 'context'"),
        (
            "serve",
            {"model": "llama-3.1-8b", "on": "8xh100", "detail": "short"},
            "error: detail is summary or full. Got 'short'.",
        ),
        ("trian", {}, "error: no tool is called 'trian'. Did you mean 'train'?"),
        (OPTIONS, {"verb": "train", "name": "tp"}, "options takes verb alone. Got 'name'."),
        ("train", {"model": "nobody/nothing-7b", "on": "h100"}, "model hubs are not asked here"),
        ("train", {"model": "/etc/passwd", "on": "h100"}, "files of the machine that answers are not read"),
        ("plan", {"inventory": "docs/examples/pool.yaml"}, "files of the machine that answers are not read"),
        (
            "serve",
            {"model": "llama-3.1-8b", "on": "h100", "trace": "/etc/passwd"},
            "files of the machine that answers are not read",
        ),
        (
            "train",
            {"model": "llama-3.1-8b", "on": "/etc/machine.toml"},
            "files of the machine that answers are not read",
        ),
        ("train", {"model": {"a": [{}]}, "on": "h100"}, "error: "),
        ("train", {"model": 5, "on": "h100"}, "error: "),
        ("explain", {"name": "kv_cache_bites"}, "Did you mean 'kv_cache_bytes'"),
        (
            "explain",
            {"what": "kv_cache_bytes"},
            "error: a question to explain has no field 'what'. Did you mean 'name'?",
        ),
        ("max", {"model": "llama-3.1-8b", "on": "h100"}, "error: what is needed"),
        (
            "serve",
            {"model": "llama-3.1-8b", "on": "h100", "enforce_eager": "yes"},
            "error: enforce_eager is true or false. Got 'yes'.",
        ),
        ("explain", {"depth": "full"}, "Known: name."),
    ],
)
def test_what_is_wrong_with_a_question_is_an_error_of_the_tool_in_the_words_of_the_command_line(name, question, said):
    found = answer(name, question, NO_FILES)
    assert found.is_error and said in found.content[0].text
    assert found.structured_content["error"]["message"] == found.content[0].text.splitlines()[0].removeprefix("error: ")
    assert "InternalError" not in found.structured_content["error"]["kind"]


def test_a_crash_says_that_it_is_one_and_no_more(monkeypatch, caplog):
    monkeypatch.setattr("tonnage.mcp_server.server.asked", lambda *_: 1 / 0)
    found = answer("train", QUESTIONS["train"], NO_FILES)
    assert found.is_error and "which is a bug" in found.content[0].text and "division" not in found.content[0].text
    assert "ZeroDivisionError" in caplog.text


def test_a_folder_that_is_opened_is_read_and_no_other(tmp_path):
    (tmp_path / "mine.json").write_text(json.dumps(SMALL))

    async def act(client):
        question = {"on": "h100", "sequence_length": 128}
        return [
            await client.call_tool("train", {"model": name, **question})
            for name in ("mine.json", "../mine.json", "/etc/passwd")
        ]

    mine, outside, system = _with_client(act, "--models", str(tmp_path), "--text", "--offline")
    assert not mine.is_error and mine.structured_content["verdict"]["fits"]
    assert json.loads(mine.content[1].text) == mine.structured_content  # --text
    assert outside.is_error and system.is_error and "outside the folder of models" in system.content[0].text


def test_what_a_file_holds_may_be_given_itself():
    assert not answer("train", {"model": SMALL, "on": "h100", "sequence_length": 128}, NO_FILES).is_error
    pool = {"nodes": [{"name": "a", "accelerator": "h100", "accelerators": 8}]}
    assert answer("plan", {"inventory": pool, "model": "llama-3.1-8b"}, NO_FILES).content[0].text


def _free_port():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        return taken.getsockname()[1]


def test_over_http_the_same_is_answered_on_this_machine_alone(capsys):
    import httpx

    port = _free_port()
    started = subprocess.Popen([sys.executable, "-m", "tonnage", "mcp", "--http", str(port)], env=_environment())
    try:
        where = f"http://127.0.0.1:{port}/mcp"
        for _ in range(300):
            with socket.socket() as probe:
                if probe.connect_ex(("127.0.0.1", port)) == 0:
                    break
            time.sleep(0.1)
        found = _with_client(lambda client: client.call_tool("explain", QUESTIONS["explain"]), transport=where)
        assert found.structured_content == _printed("explain", QUESTIONS["explain"], capsys)
        call = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
        for header in ({"Host": "evil.example"}, {"Origin": "https://evil.example"}):
            assert httpx.post(where, json=call, headers={"Accept": "application/json", **header}).status_code in (
                403,
                421,
            )
    finally:
        started.terminate()
        started.wait(10)


@pytest.mark.parametrize(
    "options",
    [["--http", "0"], ["--http", "70000"], ["--models", "nowhere"], ["--models", ".", "--files"], ["--text", "x"]],
    ids=" ".join,
)
def test_a_wrong_option_of_the_server_is_refused_before_it_serves(options, capsys):
    assert main(["mcp", *options]) == 64
    assert capsys.readouterr().err.startswith("error: ")


def test_without_the_extra_it_says_what_to_install(monkeypatch, capsys):
    monkeypatch.setitem(sys.modules, "mcp", None)
    assert main(["mcp"]) == 64
    assert "pip install tonnage[mcp]" in capsys.readouterr().err
    assert main(["mcp", "--skill"]) == 0  # which needs none of it


def _commands():
    blocks = re.findall(r"(?<=```console\n).*?(?=```)", skill(), flags=re.S)
    inline = re.findall(r"`(tonnage [^`]+)`", skill())
    lines = [line.removeprefix("$ ") for block in blocks for line in block.splitlines()]
    return [line for line in (*lines, *inline) if "VERB" not in line]


@pytest.mark.parametrize("command", _commands())
def test_every_command_of_the_skill_works(command):
    """Through a shell, as an assistant runs it; a verdict of another kind than "wrong usage" is an answer."""
    words = command.replace("tonnage", f"{sys.executable} -m tonnage", 1).replace("python3", sys.executable)
    done = subprocess.run(words, shell=True, capture_output=True, text=True, env=_environment(), check=False)
    assert done.returncode in (0, 2, 3) and done.stdout and not done.stderr


def test_the_skill_names_every_verb_that_it_says_and_begins_as_skills_do(capsys):
    assert main(["mcp", "--skill"]) == 0
    printed = capsys.readouterr().out
    assert printed == skill() and re.match(r"---\nname: tonnage\ndescription: \S.{60,1000}\n---\n", printed)
    assert {*BY_NAME} <= {*re.findall(r"`(\w+)`", printed)} | {"explain"}


def test_tools_say_no_more_than_the_protocol_takes():
    for tool in listed():
        types.Tool(**tool)
        assert re.fullmatch(r"[a-z]+", tool["name"]) and tool["input_schema"]["type"] == "object"


def test_the_reach_of_a_question_is_that_of_the_server():
    assert ask("train", QUESTIONS["train"], NO_FILES.within).document.verdict
