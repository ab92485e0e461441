"""tonnage max as it is typed and read."""

import json

import pytest

import tonnage
from tonnage.cli import main


@pytest.fixture
def run(capsys):
    def call(words):
        status = main(["max", *words.split(), *(["-v"] if words and "--json" not in words else [])])
        printed = capsys.readouterr()
        return status, printed.out, printed.err

    return call


@pytest.mark.parametrize(
    ("words", "status", "begins", "says"),
    [
        (
            "context llama-3.1-8b --on rtx-4090",
            0,
            "the longest context of llama-3.1-8b on RTX-4090 for 1 request",
            "\n\nbound by memory: ",
        ),
        (
            "context gpt2 --on rtx-4090",
            0,
            "1,024 tokens: the longest context of gpt2 on RTX-4090 for 1 request",
            "bound by the model, not memory: gpt2 was made for 1,024 tokens",
        ),
        (
            "context llama-3.1-70b --on rtx-4090",
            3,
            "does not fit: llama-3.1-70b on RTX-4090 needs",
            "what would let it, each searched again:",
        ),
        (
            "users llama-3.1-8b --on 8xh100 --context 500",
            0,
            "1,024 users: the most users of llama-3.1-8b on 8xH100-SXM-80GB, 500 tokens each",
            "--max-num-seqs 6885",
        ),
        (
            "users llama-3.1-8b --on h100 --input 500 --output 100 --ttft 1ms",
            3,
            "not served: ",
            "bound by the service level: TTFT would exceed --ttft 1ms",
        ),
        (
            "input llama-3.1-8b --on h100 --context 8k --output 100",
            0,
            "8,092 tokens: the longest input of llama-3.1-8b on H100-SXM-80GB",
            "bound by another option",
        ),
        (
            "layers llama-3.1-70b --on rtx-4090 --weights q4_k_m --context 8k",
            0,
            "42 layers: the most layers of llama-3.1-70b on RTX-4090 on the accelerator",
            "say it with --layers-on-accelerator 42",
        ),
        (
            "expert-layers mixtral-8x7b --on rtx-4090 --weights q4_k_m --context 8k",
            0,
            "the most layers of mixtral-8x7b-v0.1 on RTX-4090 whose experts the accelerator holds",
            "--expert-layers-on-host",
        ),
        (
            "adapters llama-3.1-8b --on rtx-4090 --context 8k",
            0,
            "adapters: the most LoRA adapters of llama-3.1-8b on RTX-4090, rank 16",
            "--lora-adapters",
        ),
        (
            "sequence llama-3.1-8b --on 8xh100",
            0,
            "the longest sequence of llama-3.1-8b on 8xH100-SXM-80GB, micro-batch 1",
            "tight up to",
        ),
        (
            "micro-batch llama-3.1-8b --on 8xh100 --recompute full",
            0,
            "the largest micro-batch of llama-3.1-8b on 8xH100-SXM-80GB, sequences of 4,096 tokens",
            "a step then takes",
        ),
        (
            "lora-rank gpt2 --on rtx-4090",
            0,
            "rank 768: the largest LoRA rank of gpt2 on RTX-4090",
            "say it with --method lora --lora-rank 768",
        ),
        (
            "layers gpt2 --train --on rtx-4090",
            0,
            "12 layers: the most layers of gpt2 on RTX-4090 that can be trained",
            "--method freeze",
        ),
        (
            "--on rtx-4090 --kv-cache fp8 ctx llama-3.1-8b",
            0,
            "the longest context of llama-3.1-8b on RTX-4090 for 1 request",
            "kv_cache",
        ),
    ],
)
def test_the_first_line_is_the_answer_and_then_what_binds(run, words, status, begins, says):
    got, out, err = run(words)
    assert (got, err) == (status, "")
    assert begins in out.splitlines()[0] and says in out, out[:600]
    assert json.loads(run(f"{words} --json")[1])["value"] is not None or status


def test_the_function_and_the_command_give_the_same_document(run):
    printed = json.loads(run("context llama-3.1-8b --on rtx-4090 --kv-cache fp8 --json")[1])
    assert printed == json.loads(
        json.dumps(tonnage.maximum("context", "llama-3.1-8b", on="rtx-4090", kv_cache="fp8").to_dict())
    )
    assert (
        run("context llama-3.1-8b --on rtx-4090 --kv-cache fp8")[1]
        == tonnage.maximum("context", "llama-3.1-8b", on="rtx-4090", kv_cache="fp8").text(verbose=True) + "\n"
    )


def test_what_it_says_to_say_is_what_it_found(run, capsys):
    """The flags that an answer prints give serve and train the same bytes."""
    for words in (
        "context llama-3.1-8b --on rtx-4090",
        "sequence llama-3.1-8b --on 8xh100",
        "layers llama-3.1-70b --on rtx-4090 --weights q4_k_m --context 8k",
        "lora-rank gpt2 --on h100",
    ):
        document = json.loads(run(f"{words} --json")[1])
        main([document["verb"], *words.split()[1:], *document["text"].split(), "--json"])
        verdict = json.loads(capsys.readouterr().out)["verdict"]
        assert verdict["fits"] and verdict["needed_bytes"] == document["at"]["needed_bytes"]
        assert document["memory"]["value"] <= verdict["needed_bytes"] < document["memory"]["value"] + 1


def test_what_was_looked_for_says_that_it_was(run):
    question = json.loads(run("sequence llama-3.1-8b --on 8xh100 --json")[1])["question"]
    assert question["sequence_length"]["from"] == "search" and question["micro_batch_size"]["from"] == "default"
    question = json.loads(run("model --on rtx-4090 --json")[1])["question"]
    assert question["context"] == {
        "value": 8192,
        "from": "default",
        "why": "models that were made for fewer tokens are left out",
    }


@pytest.mark.parametrize(
    ("words", "status", "message"),
    [
        ("", 64, "WHAT is needed, the first word: context, input, users"),
        ("kontext llama-3.1-8b --on h100", 64, "no maximum is called 'kontext'. Did you mean 'context'?"),
        ("context llama-3.1-8b", 64, "--on is needed"),
        ("context llama-3.1-8b --on h100 --context 8k", 64, "max context looks for --context: leave it out"),
        ("seq llama-3.1-8b --on h100 --seq 8k", 64, "max sequence looks for --seq: leave it out"),
        ("users llama-3.1-8b --on h100 --train", 64, "leave out --train"),
        ("users llama-3.1-8b --on h100 --recompute full", 64, "--recompute is an option of train, not of max"),
        (
            "context llama-3.1-8b --on h100 --max-model-len 8k",
            64,
            "max context looks for --max-model-len: leave it out",
        ),
        ("sequence llama-3.1-8b --on h100 --num-processes 8", 64, "--on counts accelerators"),
        ("context llama-3.1-8b two --on h100", 64, "unrecognized arguments: two"),
        ("users mamba-2.8b --on rtx-4090", 4, "names no context"),
        ("users llama-3.1-8b --on h100 --context 1", 64, "context must hold a token"),
        ("users llama-3.1-8b --on h100 --rate 3", 64, "leave out --rate"),
    ],
)
def test_wrong_usage_names_what_to_change(run, words, status, message):
    got, out, err = run(words)
    assert got == status and not out and err.startswith("error: ") and message in err, err


def test_help_without_a_quantity_lists_them_and_with_one_its_options(run):
    status, out, _ = run("--help")
    assert status == 0 and all(name in out for name in ("context", "micro-batch", "expert-layers", "lora-rank"))
    assert "--kv-cache" in run("users --help")[1] and "--recompute" in run("sequence --help")[1]


def test_other_tools_options_are_read_as_those_of_the_verb(run):
    ours = run("micro-batch llama-3.1-8b --on 8xh100 --recompute full --sequence-length 2k --json")
    theirs = run("micro-batch llama-3.1-8b --on 8xh100 --gradient-checkpointing --seq_length 2048 --json")
    assert ours[0] == 0 and theirs[:2] == ours[:2]
    assert theirs[2] == "note: read --gradient-checkpointing as --recompute full, --seq_length as --sequence-length\n"
