"""Options as other tools spell them: accepted where they mean exactly the same, else answered with ours."""

import json
import re
from importlib import import_module

import pytest

from every_row import every_row
from tonnage.cli import VERBS, main
from tonnage.cli.common.parser import Parser
from tonnage.kernel.message import Message
from tonnage.spelling import tools

MACHINE = {"train": ["llama-3.1-8b", "--on", "8xh100"], "serve": ["llama-3.1-8b", "--on", "8xh100"]}
ROWS = [(tool, flag) for tool in tools() for flag in (*tool.same, *tool.differs)]
WORDS = [
    (tool, f"{flag} {value}".rstrip(), words)
    for tool in tools()
    for table in ({flag: {"": words} for flag, words in tool.reads.items()}, tool.values)
    for flag, by_value in table.items()
    for value, words in by_value.items()
]
NOTE = "note: read "
REFUSED = [(tool, flag) for tool, flag in ROWS if flag in tool.differs and flag not in {*tool.alone, *tool.of_engine}]


@pytest.fixture
def run(capsys):
    def call(*arguments):
        status = main(list(arguments))
        printed = capsys.readouterr()
        return status, printed.out, printed.err

    return call


def _options(verb):
    parser = Parser(prog=f"tonnage {verb}")
    import_module(f"tonnage.cli.{verb}").add_arguments(parser)
    return parser._option_string_actions


def _named(sentence):
    return re.findall(r"(?<![\w.-])--[a-z][a-z-]*", sentence)


@pytest.mark.parametrize("tool", tools(), ids=lambda tool: tool.name)
def test_the_table_names_only_options_that_exist_and_hides_none(tool):
    options = _options(tool.verb)
    for flag, target in tool.same.items():
        assert target in options and flag not in options, flag
    for words in (*tool.reads.values(), *(word for row in tool.values.values() for word in row.values())):
        assert [name for name in _named(words) if name not in options] == [], words
    for flag in (*tool.reads, *tool.values, *tool.alone, *tool.ignored, *tool.of_engine, *tool.model, *tool.fields):
        assert flag not in options, flag
    assert {*tool.alone.values(), *tool.of_engine.values()} <= options.keys()
    assert {*tool.thousands} <= {*tool.same}
    for flag, sentence in tool.differs.items():
        assert flag not in options, f"{flag} is an option of tonnage {tool.verb} now: its row can go"
        theirs = {*tool.same, *tool.differs, *tool.of_engine}
        assert [name for name in _named(sentence) if name not in options and name not in theirs] == [], flag
        assert sentence.endswith(".")
        assert _named(sentence) or "has no option here" in sentence or "first word" in sentence, flag


def test_an_option_means_one_thing_wherever_it_is_accepted():
    targets = {}
    for tool in tools():
        for flag, target in tool.same.items():
            assert targets.setdefault((tool.verb, flag), target) == target
            assert not any(flag in other.differs for other in tools() if other.verb == tool.verb)


def test_names_that_a_sentence_recommends_exist():
    from tonnage.estimate.options.plans import ATTENTION, RECOMPUTE
    from tonnage.numerics.precisions import TRAINING_RECIPES
    from tonnage.runtimes import training_runtimes

    choices = {
        "--precision": TRAINING_RECIPES,
        "--runtime": training_runtimes(),
        "--recompute": RECOMPUTE,
        "--attention": ATTENTION,
    }
    tried = 0
    for sentence in (
        *(Message(tool.differs.get(flag, ""), value="4") for tool, flag in ROWS),
        *(row[2] for row in WORDS),
    ):
        for option, value in re.findall(r"(--[a-z-]+) ([a-z0-9-]+)", sentence):
            if option in choices and value not in ("is", "names", "says"):
                assert value in choices[option], sentence
                tried += 1
    assert tried > 15


@pytest.mark.parametrize(("tool", "flag"), [(tool, flag) for tool, flag in ROWS if flag in tool.same], ids=str)
def test_an_accepted_option_gives_the_same_answer_as_ours(run, tool, flag):
    value = {
        "--kv-cache": "fp8",
        "--sequence-length": "8k",
        "--head-dim": "64",
        "--expert-parallel-size": "1",
        "--optimizer": "adamw_bnb_8bit",
    }.get(tool.same[flag], "8")
    base = [tool.verb, *MACHINE[tool.verb], "--json"]
    if tool.same[flag] == "--virtual-pipeline-size":
        base += ["--pp", "4"]
    if tool.same[flag] == "--epochs":
        base += ["--dataset-tokens", "1B"]
    typed = flag.replace("-", "_").replace("__", "--", 1) if flag.startswith("--") else flag
    status, out, err = run(*base, typed, value)
    note = f"{NOTE}{typed} as {tool.same[flag]}\n"
    assert err.endswith(note) or "error: " in err
    printed = [out, err.removesuffix(note)]
    if status == 64:  # an error names the option as it was typed
        printed = [text.replace(flag, tool.same[flag]) for text in printed]
    assert (status, *printed) == run(*base, f"{tool.same[flag]}={value}")
    assert (status, out) == run(*base, f"{flag}={value}")[:2]


@every_row(("tool", "flag"), REFUSED, ids=str, at_least=70)
def test_a_refused_option_is_answered_with_its_own_row(run, tool, flag):
    for spelled in (flag, f"{flag}=4"):
        status, out, err = run(tool.verb, *MACHINE[tool.verb], spelled)
        assert status == 64 and not out
        assert tool.name in err and Message(tool.differs[flag], value="4") in err and f"error: {flag} " in err


@pytest.mark.parametrize(
    ("verb", "typed", "said"),
    [
        ("train", "--per_device_train_batch_size 4", None),
        ("train", "--tensor-model-parallel-size 8", None),
        ("train", "--seq-length 8192", None),
        ("train", "--gradient_accumulation_steps 8", None),
        ("train", "--zero_stage 3", None),
        ("train", "--micro_batch_size=2", None),
        ("train", "--no_sequence_parallel", None),
        ("serve", "--kv_cache_dtype fp8", None),
        ("serve", "-tp 4", None),
        ("serve", "--max_num_seqs 256", None),
        ("serve", "--gpu_memory_utilization 0.9", None),
        ("train", "--bf16", "note: read --bf16 as --precision bf16-mixed"),
        ("train", "--bf16 True --fp16 False", "note: read --bf16 as --precision bf16-mixed"),
        ("train", "--use-flash-attn", "note: read --use-flash-attn as --attention flash"),
        ("train", "--gradient_checkpointing", "note: read --gradient_checkpointing as --recompute full"),
        ("train", "--gradient-checkpointing=true", "note: read --gradient-checkpointing as --recompute full"),
        ("train", "--lora", "note: read --lora as --method lora"),
        (
            "train",
            "--qlora --per-device-train-batch-size 2",
            "note: read --qlora as --method qlora, --per-device-train",
        ),
        ("train", "--attn_implementation flash_attention_2", "note: read --attn_implementation flash_attention_2 as"),
        ("train", "--attn-implementation flex", "flash_attention_2 is flash"),
        ("train", "--mixed-precision bf16", "note: read --mixed-precision bf16 as --precision bf16-mixed"),
        ("train", "--num-layers-per-virtual-pipeline-stage 2", "--virtual-pipeline-size"),
        ("train", "batch_size=4", "--micro-batch-size"),
        ("train", "gradient_accumulation_steps=8", "--num-microbatches"),
        ("train", "--nproc_per_node 8", "--on"),
        ("serve", "--max-model-len 32768", "note: read --max-model-len as --context"),
        ("serve", "--max-model-len 8k", "note: read --max-model-len 8k as --context 8000"),
        ("serve", "--max-model-len 8K", "note: read --max-model-len as --context"),
        ("serve", "--context-length 8192 --tp-size 1", "note: read --context-length as --context, --tp-size as"),
        ("serve", "--mem-fraction-static 0.8", "note: read --mem-fraction-static as --gpu-memory-utilization"),
        ("serve", "--mem-fraction-static 0.8 --engine vllm", "--gpu-memory-utilization"),
        ("serve", "--ctx-size 32768", "note: read --ctx-size as --context"),
        ("serve", "--ctx-size 32768 --users 4", "write the quotient"),
        (
            "serve",
            "--port 8000 --trust-remote-code",
            "note: left out --port, --trust-remote-code: no part of what is",
        ),
        (
            "serve",
            '--speculative-config={"num_speculative_tokens":3,"model":"llama-3.2-1b"}',
            "note: read --speculative-config as --draft-tokens 3 --draft-model llama-3.2-1b",
        ),
        (
            "serve",
            '--speculative-config {"method":"ngram"}',
            "note: read --speculative-config as --speculative ngram",
        ),
        ("train", "--lora-alpha 32", "note: left out --lora-alpha: no part of what is estimated"),
        (
            "train",
            "--learning_rate 1e-4 --use-liger-kernel false",
            "note: left out --learning_rate, --use-liger-kernel",
        ),
        ("train", "--mikro_batch_sise 2", "Did you mean --micro-batch-size?"),
        ("train", "--gpus 8", "Did you mean --on?"),
        ("serve", "--seq 8k", "Did you mean --context or --input-tokens?"),
        ("serve", "--dp 2", "-dp is an option of vLLM"),
        ("serve", "--num-gpus=8", "Did you mean --on?"),
        ("serve", "--model-name x", "Did you mean MODEL?"),
        ("train", "foo=3", "unrecognized"),
        ("train", "--model-name-or-path gpt2", "unrecognized arguments: gpt2"),
        ("train", "-x 3", "unrecognized"),
    ],
)
def test_what_users_of_other_tools_type(run, verb, typed, said):
    status, _, err = run(verb, *MACHINE[verb], *typed.split())
    if said is None:
        assert status in (0, 2, 3) and (not err or err.startswith(NOTE))
    elif said.startswith("note: "):
        assert status in (0, 2, 3) and said in err
    else:
        assert status == 64 and said in err


@pytest.mark.parametrize(
    "line",
    [
        "serve --model llama-3.1-8b --on h100 -tp 1",
        "serve --model-path=llama-3.1-8b --on h100 --tp-size 1",
        "train --model_name_or_path llama-3.1-8b --on 8xh100",
        "train --base-model llama-3.1-8b --on 8xh100",
    ],
)
def test_a_model_that_is_given_by_an_option_stands_alone_here(run, line):
    status, out, err = run(*line.split())
    assert status in (0, 2, 3) and "llama-3.1-8b" in out.splitlines()[1]
    assert re.match(r"note: read --[a-z_-]+ llama-3.1-8b as llama-3.1-8b", err)


def test_the_table_is_not_read_for_options_of_our_own(monkeypatch, run):
    monkeypatch.setattr("tonnage.spelling.tools", lambda: pytest.fail("read"))
    assert run("train", *MACHINE["train"], "--micro_batch_size", "1", "--json")[0] == 0


@pytest.mark.parametrize("verb", VERBS)
def test_every_option_is_accepted_with_underscores(verb):
    parser = Parser(prog=f"tonnage {verb}")
    import_module(f"tonnage.cli.{verb}").add_arguments(parser)
    for flag, action in list(parser._option_string_actions.items()):
        if flag.startswith("--") and "help" not in flag:
            spelled = "--" + flag[2:].replace("-", "_")
            words = [spelled] if action.nargs == 0 else [spelled, next(iter(action.choices or ()), "1")]
            rows = {
                "validate": ["x"],
                "trace": ["x"],
                "check": ["x"],
                "diagnose": ["x"],
                "export": ["vllm", "serve"],
                "reconcile": ["x"],
            }.get(verb, [])
            assert parser.parse_args([*rows, *words]) == parser.parse_args([*rows, flag, *words[1:]])


def test_an_error_about_an_option_is_a_document_too(run):
    status, out, _ = run("train", *MACHINE["train"], "--num-processes", "8", "--json")
    assert status == 64 and "--on counts accelerators" in json.loads(out)["error"]["message"]


@every_row(("tool", "typed", "words"), WORDS, ids=str, at_least=30)
def test_a_switch_of_another_tool_gives_the_answer_of_our_words(run, tool, typed, words):
    base = [tool.verb, *MACHINE[tool.verb], "--json", "summary"]
    status, out, err = run(*base, *typed.split())
    if status == 64:  # an error names the option as it was typed
        out = re.sub(rf"{re.escape(typed.split()[0])}(?![\w-])", words.split()[0], out)
    assert (status, out) == run(*base, *words.split())[:2]
    assert f"{NOTE}{typed} as {words}\n" in err or status == 64


def test_words_for_an_option_name_none_that_there_is():
    from tonnage.cli import face
    from tonnage.spelling import SAID

    forms = [
        ("train",),
        ("serve",),
        ("plan", "--inventory=x"),
        ("max", "context"),
        ("explain",),
        ("rules",),
        ("models",),
    ]
    known = {action.dest: action for verb, *words in forms for action in face(verb, words)[1]._actions}
    assert {*SAID} <= {*known}
    for name, words in SAID.items():
        assert len({*words}) == len(words) and name not in words, name
        assert not {f"--{word.replace('_', '-')}" for word in words} & {*known[name].option_strings}, name


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ("--users banana", "--users must be a number such as 8, 256 or 2k. Got 'banana'."),
        ("--max_concurrency x", "--max-concurrency must be a number"),
        (
            "--enforce-eager=yes",
            "--enforce-eager takes no value: write --enforce-eager or --no-enforce-eager. Got 'yes'.",
        ),
        ("--offline=1", "--offline takes no value: write it alone, or leave it out. Got '1'."),
        ("--concurrency 2000 --users 2k", None),
        ("--concurrency 2 --concurrency 3", None),
        ("--concurrency 2 --users 3", None),
        ("--simulate --no-simulate", None),
    ],
)
def test_an_error_names_the_option_as_it_was_typed(run, typed, said):
    status, _, err = run("serve", *MACHINE["serve"], *typed.split())
    assert said in err if said else status in (0, 2, 3) and not err


def test_a_table_names_an_option_as_it_was_typed_too(run):
    assert "--users must be a number" in run("compare", "llama-3.1-8b", "--on", "h100,a100", "--users", "2,banana")[2]


def test_a_name_of_no_model_is_said_with_the_machine_that_is_missing(run):
    _, _, err = run("train", "llama-3.1-8c")
    said = [" ".join(line.split()) for line in err.splitlines()]
    assert any(line.startswith("llama-3.1-8c no such model llama-3.1-8b") for line in said)
    assert any(line.startswith("--on is needed h100") for line in said)
    assert run("train", "llama-3.1-8b")[2].startswith("error: --on is needed")


@pytest.mark.parametrize(
    ("typed", "said"),
    [
        ("serve gpt2 --on h100 --price-kind spott", "no --price-kind is called 'spott'"),
        ("serve gpt2 --on h100 --gpu-memory-utilization 92", "--gpu-memory-utilization must be above 0"),
        ("train llama-3.1-8b --on h100 --method lora --lora-rank 0", "--lora-rank must be from 1"),
        ("train gpt2 --on h100 --zero-stage 4", "--zero-stage must be one of"),
        ("serve gpt2 --on h100 --price-per-accelerator-hour=-1", "--price-per-accelerator-hour must be above 0"),
        ("serve gpt2 --on h100 --weights fp9", "--weights: no precision"),
        ("serve gpt2 --on 8xh1000", "--on: no accelerator or node is called 'h1000'"),
        ("serve gpt2 --on h100 --grid Narnia", "--grid: no source says"),
        ("serve gpt2 --on h100 --context 8,32 --users 1,2", "--context takes one value"),
        ("serve gpt2 --on h100 --users 1,2", "--users takes one value"),
        ("train --hidden-size 4096 --on h100", "the dimensions given lack --num-hidden-layers, which"),
        ("plan gpt2 --train --serve", "--train and --serve are two questions"),
        ("train gpt2 --on h100 --tokens 1T --epochs 3", "one of --tokens, --epochs and --max-steps says"),
        ("serve gpt9 --on h100", "no model is called 'gpt9'"),
    ],
)
def test_an_error_names_options_as_they_are_typed(run, typed, said):
    status, _, error = run(*typed.split())
    assert status in (4, 64) and error.startswith("error: ") and said in error


def test_a_field_of_a_file_keeps_its_name(run, tmp_path):
    (tmp_path / "config.json").write_text('{"model_type": "llama", "hidden_size": -1}')
    assert "config.json lacks num_attention_heads" in run("train", str(tmp_path / "config.json"), "--on", "h100")[2]


@pytest.mark.parametrize(
    ("words", "read_as"),
    [
        (["--lora", "16"], "--lora 16 as --method lora --lora-rank 16"),
        (["--lora=8"], "--lora 8 as --method lora --lora-rank 8"),
        (["--qlora", "64"], "--qlora 64 as --method qlora --lora-rank 64"),
    ],
)
def test_a_number_behind_lora_is_its_rank(words, read_as, capsys):
    main(["train", "llama-3.2-1b", "--on", "h100", *words, "--json", "summary"])
    printed = capsys.readouterr()
    assert f"read {read_as}" in printed.err
    assert json.loads(printed.out)["question"]["lora_rank"]["value"] == int(words[-1].rpartition("=")[2])


def test_a_value_behind_a_switch_is_said_to_be_too_much(capsys):
    assert main(["train", "llama-3.2-1b", "--on", "h100", "--packing", "yes"]) == 64
    assert "--packing takes no value." in capsys.readouterr().err


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("max users gpt2 --on h100 --users 8", "max users looks for --users: leave it out"),
        ("serve gpt2 --on h100 --users 8 --trace x.csv", "--trace says when requests come: leave out --users. Got 8"),
        ("serve gpt2 --on h100 --frontier --users 8", "leave out --users. Got 8"),
        ("serve gpt2 --on h100 --seed 4", "--seed is of a simulation: add --simulate"),
        ("serve gpt2 --on h100 --tp-size 3", "--tp-size must divide"),
        ("train gpt2 --on h100 --lora-r 3", "--lora-r belongs to method lora"),
        ("train gpt2 --on h100 --per-device-train-batch-size x", "--per-device-train-batch-size must be a number"),
        ("max context gpt2 --on h100 --max-model-len 8k", "max context looks for --max-model-len: leave it out"),
    ],
)
def test_an_error_names_an_option_as_it_was_typed_whichever_tool_has_it(run, line, says):
    status, _, err = run(*line.split())
    assert status == 64 and says in err
