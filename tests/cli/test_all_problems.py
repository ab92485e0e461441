"""A command with several mistakes is answered once, with all of them and a command that is right."""

import json

import pytest

from tonnage.cli import main

SEVERAL = "train lama-3.1-70b --on 8xH100X --recompute ful --lora"


@pytest.fixture
def run(capsys, monkeypatch):
    def call(line, columns=100):
        monkeypatch.setenv("COLUMNS", str(columns))
        status = main(line.split())
        printed = capsys.readouterr()
        return status, printed.out, printed.err

    return call


def test_every_input_has_its_problem_and_what_is_nearest(run):
    status, out, err = run(SEVERAL)
    lines = err.splitlines()
    assert status == 64 and not out
    assert lines[0] == "error: 3 inputs cannot be used; nothing was estimated"
    assert [line.split("  ")[0] for line in lines[3:6]] == ["lama-3.1-70b", "--on 8xH100X", "--recompute ful"]
    assert "llama-3.1-70b" in lines[3] and "8xH100-SXM-80GB" in lines[4] and "full, none, selective" in lines[5]
    assert "read as  --lora as --method lora" in lines


def test_the_corrected_command_is_answered(run):
    _, _, err = run(SEVERAL, 200)
    (corrected,) = [line.removeprefix("try").strip() for line in err.splitlines() if line.startswith("try ")]
    assert corrected == "tonnage train llama-3.1-70b --on 8xH100-SXM-80GB --recompute full --method lora"
    assert run(corrected.removeprefix("tonnage ") + " --json summary")[0] in (0, 2, 3)


def test_what_only_the_estimate_sees_is_said_with_the_rest(run):
    status, _, err = run(f"{SEVERAL} --zero 1")
    assert status == 64 and err.startswith("error: 4 inputs")
    assert "--zero must be one of those of runtime fsdp2" in " ".join(err.split())
    assert "\ntry" not in err  # a command that is still wrong is none to try


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ("serve qwen3-32 --on h1000", ["no such model", "no such accelerator"]),
        ("serve llama-3.1-8b --users x --context y", ["--users must be", "--context must be", "is needed"]),
        ("serve llama-3.1-8b --on h1000 --weights fp9", ["no such accelerator", "no such precision"]),
        ("serve llama-3.1-8b --on h100 --foo 3 --engine vlm", ["no such option", "no such name", "vllm"]),
        ("train llama-3.1-8b --on h100 --optimizer adamm --precision bf61", ["no such name", "no such recipe"]),
        ("train llama-3.1-8b more --on h1000", ["belongs to no option", "no such accelerator"]),
        ("plan lama-3.1-8b --on h1000,l4", ["no such model", "no such accelerator"]),
        ("max users lama-3.1-8b --on h1000", ["no such model", "no such accelerator"]),
        ("compare lama-3.1-8b --on h1000 --context 4k,x", ["no such model", "no such accelerator", "--context must"]),
        ("train lama-3.1-8b --on h100 --num-processes 8", ["no such model", "--on counts accelerators"]),
        ("train lama-3.1-8b --on h100 --micro-batch-size", ["no such model", "needs a value"]),
        ("serve lama-3.1-8b --on h100 --enforce-eager=yes", ["no such model", "takes no value"]),
    ],
)
def test_mistakes_of_every_kind_are_gathered(run, line, said):
    status, _, err = run(line)
    text = " ".join(err.split())
    assert status == 64
    assert err.startswith(f"error: {len(said) if 'vllm' not in said else 2} inputs cannot be used")
    assert [each for each in said if each not in text] == []


@pytest.mark.parametrize(
    "line",
    [
        "train llama-3.1-8b --on 8xh100 --optimizer adamw_bnb_8bit --recompute ful",
        "serve llama-3.1-8b --on h100 --weights Q4_K_M --engine llamacpp --users x",
        "compare llama-3.1-8b,qwen3-8b --on h100,l40s --context 4k,own --users x",
        "plan llama-3.1-8b --on h100,8xl40s --goal cheapest --precision bf16-mixed --deadline x",
    ],
)
def test_other_names_of_a_right_value_are_no_mistake(run, line):
    _, _, err = run(line)
    assert err.startswith("error: ") and "inputs cannot be used" not in err


def test_one_mistake_is_a_sentence_and_the_command_to_try_where_one_name_is_near(run):
    _, _, err = run("train llama-3.1-8b --on 8xh100 --recompute ful")
    assert err.splitlines() == [
        "error: no recompute policy is called 'ful'. Did you mean 'full'?",
        "try  tonnage train llama-3.1-8b --on 8xh100 --recompute full",
    ]


def test_json_has_all_of_them_as_data(run):
    status, out, _ = run(f"{SEVERAL} --json")
    document = json.loads(out)
    assert status == 64 and document["schema"] == "tonnage/2"
    assert document["error"]["kind"] == "UnknownName"
    assert [problem["input"] for problem in document["errors"]] == ["lama-3.1-70b", "--on 8xH100X", "--recompute ful"]
    assert document["errors"][2]["problem"] == "no such policy" and document["errors"][2]["nearest"][0] == "full"
    assert document["corrected"].startswith("tonnage train llama-3.1-70b --on 8xH100-SXM-80GB --recompute full")


@pytest.mark.parametrize("columns", [60, 80, 100])
def test_the_table_is_as_wide_as_the_terminal(run, columns):
    _, _, err = run(f"{SEVERAL} --zero 1", columns)
    assert max(map(len, err.splitlines())) <= columns


def test_in_chinese_every_word_but_what_is_typed_is_chinese(run):
    _, _, err = run(f"{SEVERAL} --lang zh", 80)
    assert err.splitlines()[0] == "错误：3 处输入无法使用，未做估算"
    assert "没有这个模型" in err and "没有这种加速卡" in err and "最接近" in err and "试试" in err


@pytest.mark.parametrize(
    ("typed", "meant"),
    [
        ("--prefix-cache 0.5", "--cached-tokens"),
        ("--speculative-decoding eagle3", "--speculative"),
        ("--disaggregated", "--prefill-replicas"),
        ("--num-users 30", "--concurrency"),
        ("--ttft-slo 1s", "--ttft"),
    ],
)
def test_a_word_of_the_field_leads_to_the_option_that_means_it(run, typed, meant):
    _, _, err = run(f"serve llama-3.1-8b --on h100 {typed}")
    assert f"Did you mean {meant}?" in err


@pytest.mark.parametrize("typed", ["--prefix-cache 0.5", "--disaggregated", "--simulation eagle3"])
def test_a_command_to_try_gives_an_option_only_a_value_that_it_takes(run, typed):
    _, _, err = run(f"serve llama-3.1-8b --on h100 {typed}")
    assert "Did you mean" in err and "\ntry" not in err
