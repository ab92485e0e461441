"""The command line: the documents, the statuses, and the errors."""

import json
import os
import re
import subprocess
import sys

import pytest

import tonnage
from schema_forms import validate
from tonnage.cli import VERBS, main
from tonnage.cli.explain import load_formulas
from tonnage.kernel.formula import FORMULAS
from tonnage.kernel.glossary import WORDS
from tonnage.kernel.registry import letters_of
from tonnage.rules import RULES
from tonnage.rules import load as load_rules

TRAIN = ["train", "llama-3.1-8b", "--on", "8xH100-SXM-80GB"]
SERVE = ["serve", "llama-3.1-8b", "--on", "H100-SXM-80GB", "--context", "8k"]


@pytest.fixture
def run(capsys):
    def call(*arguments):
        status = main(list(arguments))
        printed = capsys.readouterr()
        return status, printed.out, printed.err

    return call


@pytest.mark.parametrize(
    "arguments",
    [
        TRAIN,
        SERVE,
        [*TRAIN, "--recompute", "full", "--seq", "8k"],
        ["train", "deepseek-v3", "--on", "32x8xH800-SXM-80GB"],
        ["train", "t5-small", "--on", "rtx-4090"],
        ["train", "bert-base-uncased", "--on", "rtx-4090"],
        ["serve", "mamba-2.8b", "--on", "rtx-4090", "--context", "4k"],
        ["serve", "qwen2.5-vl-7b-instruct", "--on", "a100", "--context", "32k"],
        ["rules"],
        ["rules", "A6"],
        ["rules", "--model", "qwen3-32b"],
        ["validate", "validation/params.yaml"],
    ],
    ids=" ".join,
)
def test_json_is_one_document_of_the_schema(run, arguments):
    status, out, err = run(*arguments, "--json")
    assert status in (0, 3) and not err
    validate(json.loads(out))


def test_the_answer_names_every_input_and_where_it_came_from(run):
    document = json.loads(run(*TRAIN, "--tp", "2", "--json")[1])
    question = document["question"]
    assert question["tensor_parallel_size"] == {"value": 2, "from": "given"}
    assert question["micro_batch_size"]["from"] == "default"
    assert question["data_parallel_size"] == {"value": 4, "from": "cluster", "why": "uses all accelerators"}
    assert all("from" in entry for entry in question.values())


def test_the_function_and_the_command_give_the_same_document(run):
    printed = json.loads(run(*TRAIN, "--json")[1])
    assert printed == json.loads(json.dumps(tonnage.train("llama-3.1-8b", on="8xH100-SXM-80GB").to_dict()))
    served = json.loads(run(*SERVE, "--json")[1])
    assert served == json.loads(json.dumps(tonnage.serve("llama-3.1-8b", on="H100-SXM-80GB", context=8192).to_dict()))


def test_the_first_line_is_the_verdict_and_the_status_says_it_too(run):
    status, out, _ = run(*TRAIN)
    assert status == 0 and re.match(
        r"fits: [\d.]+ of 79\.1 GiB on the fullest GPU \(\d+ %\)\nllama-3\.1-8b on 8xH100-SXM-80GB ", out
    )
    status, out, _ = run(*TRAIN, "--seq", "64k", "--as-is")
    assert status == 3 and out.startswith("does not fit: ")
    assert "\nadd " in out and "\ntry      tonnage train " in out


def test_formulas_are_shown_with_the_numbers_put_in(run):
    out = run(*SERVE, "--formulas")[1]
    assert "1024 * 2" in out or "2048 * 2" in out
    assert "Pope2023" in out


@pytest.mark.parametrize(
    ("machine", "used", "said"),
    [
        ("H100-SXM-80GB", "runtime", None),
        ("H800-SXM-80GB", "driver", "no source says how much memory the runtime of H800-SXM-80GB gives programs"),
        ("H100-SXM-96GB", "nominal", "no source says what the driver of H100-SXM-96GB reports or its runtime gives"),
        ("Apple-M4-Max-128GB", "nominal", None),  # what macOS keeps of it has a source
    ],
)
def test_the_answer_says_which_figure_of_the_memory_was_used(run, machine, used, said):
    document = json.loads(run("serve", "llama-3.1-8b", "--on", machine, "--context", "8k", "--json")[1])
    entry = document["question"]["usable_memory"]
    assert (entry["value"], entry["from"]) == (used, "catalogue")
    notes = [note for note in document["warnings"] if note.startswith("no source says") and "memory" in note]
    assert [note.startswith(said) for note in notes] == ([True] if said else [])
    assert "usable_memory" in run("serve", "llama-3.1-8b", "--on", machine, "--context", "8k", "-v")[1]


def test_the_reason_of_the_usable_memory_has_its_source(run):
    why = json.loads(run(*TRAIN, "--json")[1])["question"]["usable_memory"]["why"]
    assert why.startswith("the total that the runtime gives programs; ") and "total_memory%3D81089MB" in why


def test_what_the_system_keeps_has_its_own_source(run):
    document = json.loads(run("serve", "llama-3.1-8b", "--on", "Apple-M4-Max-128GB", "--context", "8k", "--json")[1])
    why = document["question"]["usable_memory"]["why"]
    assert why.startswith("the memory as sold, less what the system keeps; ") and "recommendedMaxWorkingSetSize" in why


def test_an_accelerator_is_shown_with_what_programs_get_of_it(run):
    out = run("accelerators", "rtx-4090")[1]
    assert "as programs get it       23.51 GiB" in out and "24081MiB" in out
    memory = json.loads(run("accelerators", "rtx-4090", "--json")[1])["memory"]
    assert memory["runtime_bytes"] == 24074 * 2**20 < memory["reported_bytes"]


def test_a_reserve_is_kept_free(run):
    before = json.loads(run(*SERVE, "--json")[1])["verdict"]["usable_bytes"]
    after = json.loads(run(*SERVE, "--reserve", "10GiB", "--json")[1])["verdict"]["usable_bytes"]
    assert before - after == 10 * 2**30


def test_dimensions_make_a_model_without_a_name(run):
    sizes = [
        "--hidden-size",
        "4096",
        "--num-layers",
        "32",
        "--num-attention-heads",
        "32",
        "--num-key-value-heads",
        "8",
        "--intermediate-size",
        "14336",
        "--vocab-size",
        "128256",
    ]
    document = json.loads(run("train", *sizes, "--on", "h100", "--json")[1])
    assert document["question"]["parameters"]["value"] == 8_030_261_248


def test_dimensions_change_a_named_model(run):
    document = json.loads(run(*TRAIN, "--num-layers", "12", "--json")[1])
    assert document["question"]["parameters"]["value"] == 1_050_673_152 + 4096 + 12 * 218_112_000


@pytest.mark.parametrize("verb", VERBS)
def test_help_lists_every_option_with_its_default(run, verb):
    status, out, _ = run(verb, "--help-all")
    assert status == 0 and "--json" in out
    if verb in ("train", "serve"):
        assert "(default: " in out and "[tokens]" in out


def test_no_arguments_say_what_to_try_first(run):
    status, out, _ = run()
    assert status == 0
    assert "tonnage train llama-3.1-8b --on 8xH100-SXM-80GB" in out
    assert all(verb in out for verb in VERBS)


@pytest.mark.parametrize(
    ("arguments", "status", "message"),
    [
        (["trian", "x"], 64, "Did you mean 'train'"),
        (["train"], 64, "--on"),
        (["train", "--on", "h100"], 64, "dimensions"),
        (["train", "llama-3.1-8c", "--on", "h100"], 64, "Did you mean"),
        (["train", "llama-3.1-8b", "--on", "h1000"], 64, "Did you mean"),
        ([*TRAIN, "--tp", "3"], 64, "Nearest"),
        ([*TRAIN, "--pp", "64"], 64, "divide"),
        ([*TRAIN, "--mbs", "0"], 64, "--mbs must be from 1 to 1,099,511,627,776. Got 0"),
        ([*TRAIN, "--mbs", "-1"], 64, "--mbs must be from 1 to 1,099,511,627,776. Got '-1'"),
        ([*TRAIN, "--seq", "nan"], 64, "--seq must be"),
        ([*TRAIN, "--gbs", "7"], 64, "Nearest: 8"),
        ([*TRAIN, "--ep", "2"], 64, "no experts"),
        ([*TRAIN, "--optimizer", "adamm"], 64, "Did you mean"),
        ([*TRAIN, "--recompute", "some"], 64, "recompute"),
        ([*TRAIN, "--precision", "fp7"], 64, "fp"),
        ([*TRAIN, "--runtime", "megatronn"], 64, "Did you mean 'megatron'"),
        ([*TRAIN, "--zero", "1"], 64, "Runtimes that have it: megatron, deepspeed"),
        ([*TRAIN, "--zero", "9"], 64, "No runtime has it"),
        ([*TRAIN, "--attention", "falsh"], 64, "no attention kernel is called 'falsh'. Did you mean 'flash'?"),
        ([*TRAIN, "--recompute", "selectiv"], 64, "no recompute policy is called 'selectiv'. Did you mean 'selective'"),
        ([*TRAIN, "--recompute", "x"], 64, "Known: full, none, selective"),
        ([*TRAIN, "--mbs", "1e15"], 64, "from 1 to 1,099,511,627,776. Got 1,000,000,000,000,000"),
        ([*TRAIN, "--reserve", "80GiB"], 64, "must leave some of the 79."),
        ([*SERVE, "--reserve", "1000GB"], 64, "Got 931.32 GiB"),
        ([*TRAIN, "--seq", "1e31"], 64, "--seq must be from 1 to 1,099,511,627,776. Got '1e31'"),
        (["train", "llama-3.1-8b", "--on", "h100", "--tp", "2"], 64, "the cluster's 1 accelerator."),
        ([*SERVE, "--tp", "2"], 64, "the cluster's 1 accelerator."),
        ([*SERVE, "--context", "1e18"], 64, "context must be from 1 to 1,099,511,627,776"),
        (["train", "llama-3.1-8b", "--on", "./nothere.toml"], 64, "there is no file './nothere.toml'"),
        ([*TRAIN, "--runtime", "ddp", "--tp", "2"], 64, "has no --tp"),
        ([*TRAIN, "--micro", "2"], 64, "Did you mean --micro-batch-size?"),
        (["train", "llama-3.1-8b", "--on", "0xh100"], 64, "at least one"),
        ([*TRAIN, "--reserve", "lots"], 64, "--reserve"),
        ([*TRAIN, "--vpp", "7", "--pp", "2", "--runtime", "megatron"], 64, "--vpp x --pp must divide the 32 layers"),
        (["rules", "Z9"], 64, "Did you mean"),
        (["rules", "Z"], 64, "Known: A, B, C, D, E"),
        (["rules", "--like", "zzzz"], 64, "speaks of 'zzzz'"),
        (["rules", "--like", " "], 64, "needs words"),
        (["explain", "kv_cash_bytes"], 64, "kv_cache_bytes"),
        (["validate", "nowhere.yaml"], 64, "nowhere.yaml"),
        (["accelerators", "h1000"], 64, "Did you mean"),
        (["models", "lama"], 64, "Did you mean"),
        (["serve", "llama-3.1-8b", "--on", "h100", "--context", "0"], 64, "context"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_wrong_usage_names_the_value_and_the_nearest_choice(run, arguments, status, message):
    got, out, err = run(*arguments)
    assert got == status
    assert err.startswith("error: ") and message in err
    assert "Traceback" not in err and not out


def test_an_error_is_a_document_too(run):
    status, out, err = run("train", "nothing-like-this", "--on", "h100", "--json")
    document = json.loads(out)
    assert status == 64 and document["error"]["kind"] == "UnknownName" and document["error"]["message"] in err
    validate(document)


def test_what_is_not_known_has_its_own_status(run, tmp_path):
    (tmp_path / "config.json").write_text(json.dumps({"architectures": ["LlamaForCausalLN"], "hidden_size": 64}))
    status, _, err = run("train", str(tmp_path), "--on", "h100")
    assert status == 4 and "LlamaForCausalLM" in err and "CONTRIBUTING.md" in err


def test_a_formula_a_letter_and_a_source_are_explained(run):
    out = run("explain", "kv_cache_bytes")[1]
    assert "2 * L * k * dh * s * R * w" in out and "Pope" in out and "[bytes]" in out
    assert "num_key_value_heads" in run("explain", "k")[1]
    assert "num_key_value_heads" in run("explain", "num_key_value_heads")[1]
    assert "Reducing Activation Recomputation" in run("explain", "Korthikanti2022")[1]
    assert json.loads(run("explain", "--json")[1])["formulas"]


def test_a_word_of_the_answers_is_explained_with_what_makes_its_figure(run):
    out = run("explain", "checkpoint")[1]
    assert "with adapters not of the base" in out and "state_bytes, checkpoint_rule, D7" in out
    for name in json.loads(run("explain", "checkpoint", "--json")[1])["see"]:
        assert run("explain", name)[0] == 0


@pytest.mark.parametrize(
    ("typed", "formula"),
    [
        ("MFU", "flops_utilization"),
        ("mfu", "flops_utilization"),
        ("HFU", "flops_utilization"),
        ("TFLOPS per GPU", "flops_utilization"),
        ("bubble", "bubble_seconds"),
        ("pipeline bubble", "zbv_bubble_seconds"),
        ("Goodput", "goodput"),
        ("tokens per second", "tokens_per_second"),
    ],
)
def test_a_number_is_explained_by_the_name_that_answers_print(run, typed, formula):
    """MFU and HFU stand behind the time of a step, a bubble in the tree of it."""
    load_formulas()
    status, out, _ = run("explain", typed)
    assert status == 0 and FORMULAS[formula].text in out


@pytest.mark.parametrize(
    ("name", "says"),
    [
        ("power_share", "of the machines' rated power that is drawn (default: 0.82)"),
        ("--checkpoint-interval", "training between two checkpoints"),
        ("engine", "option --engine of serve"),
        ("runtime", "option --runtime of train"),
    ],
)
def test_an_option_is_explained_by_its_help(run, name, says):
    status, out, _ = run("explain", *(["--"] if name.startswith("-") else []), name)
    assert status == 0 and says in " ".join(out.split())


def test_every_name_that_train_prints_as_a_default_is_explained(run):
    question = json.loads(run("train", "llama-3.1-8b", "--on", "8xh100", "--tokens", "1B", "--json")[1])["question"]
    taken = [name for name, said in question.items() if said["from"] in ("default", "runtime", "measurements")]
    assert {"power_share", "recompute", "accelerator_mtbf"} <= {*taken}
    assert [name for name in taken if run("explain", name)[0] != 0] == []


@pytest.mark.parametrize(
    "name",
    [
        "TTFT",
        "tpot_seconds",
        "itl",
        "products",
        "kernels",
        "exchanges",
        "CUDA graphs",
        "usable_memory",
        "goodput_share",
        "frontier",
        "simulate",
    ],
)
def test_the_words_of_an_answer_of_serving_are_explained(run, name):
    status, out, _ = run("explain", name)
    assert status == 0 and "(word)" in out


def test_what_a_word_refers_to_is_there_and_no_two_words_are_written_alike():
    load_formulas()
    load_rules()
    written = [letters_of(each) for word in WORDS.values() for each in (word.name, *word.also)]
    assert len(set(written)) == len(written)
    assert not set(written) & {letters_of(name) for name in (*FORMULAS, *RULES)}
    for word in WORDS.values():
        assert all(name in FORMULAS or name in RULES for name in word.see)


def test_rules_are_chosen_by_name_by_part_and_by_what_they_speak_of(run):
    def names(*arguments):
        return [rule["name"] for rule in json.loads(run("rules", *arguments, "--json")[1])["rules"]]

    assert names("A") == names("a") == [f"A{i}" for i in range(1, 11)]
    assert (
        names("A1", "b2") == ["A1", "B2"] and names("B2", "B", "B2")[:2] == ["B2", "B1"] and len(names("B2", "B")) == 12
    )
    assert {"A2", "C5", "C6", "D8"} <= set(names("--like", "kv cache")) and len(names("--like", "kv cache")) < 10
    assert names("--like", "KV-cache", "A") == ["A2"]
    assert len(names()) == 49
    table = run("rules", "A")[1]
    assert table.startswith("10 rules of thumb") and "A10" in table and "B1 " not in table
    detail = run("rules", "A1", "B2")[1]
    assert (
        "A1 weights for inference" in detail
        and "B2 training compute" in detail
        and detail.count("exact, beside it:") == 2
    )


def test_a_rule_is_explained_as_the_rules_show_it(run):
    assert run("explain", "a6") == run("rules", "A6")
    assert run("explain", "A6", "--json") == run("rules", "A6", "--json")


def test_a_rule_on_a_model_says_whose_each_number_is(run):
    lines = run("rules", "B3", "--model", "mixtral-8x7b")[1].splitlines()
    assert any(line.split() == ["N", "12,879,925,248", "worked", "on", "mixtral-8x7b-v0.1"] for line in lines)
    assert any(line.split() == ["D", "300,000,000,000", "the", "document's", "own"] for line in lines)
    assert any("printed" in line and "(of its own example)" in line for line in lines)
    assert any("that a token passes through" in line for line in lines)
    table = run("rules", "B", "--model", "mixtral-8x7b")[1].splitlines()
    assert "model" in next(line for line in table if line.startswith("B3 "))
    assert " document " in next(line for line in table if line.startswith("B10 "))


def test_the_catalogues_are_listed_and_their_entries_shown(run):
    models = json.loads(run("models", "--json")[1])["models"]
    assert len(models) >= 120 and {"name", "parameters", "family"} <= set(models[0])
    experts = {each["name"]: each["experts"] for each in models}
    assert (experts["gemma-3-27b-pt"], experts["mixtral-8x7b-v0.1"], experts["deepseek-v3"]) == (0, 8, 256)
    both = json.loads(run("accelerators", "--json")[1])
    assert len(both["accelerators"]) >= 90 and len(both["nodes"]) >= 40
    assert "989.40 TFLOP/s" in run("accelerators", "h100")[1] or "989.50 TFLOP/s" in run("accelerators", "h100")[1]
    detail = json.loads(run("models", "mixtral-8x7b", "--json")[1])
    assert detail["parameters"]["value"] == 46_702_792_704 and detail["active_parameters"]["value"] < 13e9
    assert (
        detail["embedding_parameters"]["value"] + detail["non_embedding_parameters"]["value"]
        == detail["parameters"]["value"]
    )


def test_the_module_runs_as_a_program_and_survives_a_closed_pipe():
    done = subprocess.run([sys.executable, "-m", "tonnage", "--version"], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == f"tonnage {tonnage.__version__}"
    piped = f"{sys.executable} -m tonnage rules --json | head -c 10"
    done = subprocess.run(piped, shell=True, capture_output=True, text=True, check=True)
    assert "Traceback" not in done.stderr and "Exception" not in done.stderr


RANGES = [
    ("--micro-batch-size", "", "from 1 to 1,099,511,627,776"),
    ("--sequence-length", "", "from 1 to 1,099,511,627,776"),
    ("--lora-rank", "--method lora", "from 1 to 1,099,511,627,776"),
    ("--mtp-layers", "--runtime megatron", "from 0 to 1,099,511,627,776"),
    ("--data-loader-workers", "", "from 0 to 4,096"),
    ("--hidden-size", "", "a whole number from 1 to 17179869184"),
    ("--num-hidden-layers", "", "a whole number from 1 to 20000"),
    ("--vocab-size", "", "a whole number from 2 to 17179869184"),
    ("--max-position-embeddings", "", "a whole number from 1 to 17179869184"),
    ("--reduce-bucket-size", "--runtime deepspeed", "from 1 to 1,099,511,627,776"),
    ("--expert-capacity-factor", "--runtime megatron", "above 0 and below 1,000,000"),
    ("--engine-memory-share", "--objective grpo", "from 0 to below 1"),
    ("--optimizer-offload-fraction", "--runtime megatron --offload-optimizer cpu", "from 0 to 1"),
]


@pytest.mark.parametrize(("flag", "beside", "span"), RANGES, ids=lambda value: value)
@pytest.mark.parametrize("value", ["-1", "1e30", "1e31", "1e300"])
def test_an_option_has_one_range_whatever_is_wrong_with_its_value(run, flag, beside, span, value):
    status, _, err = run("train", "mixtral-8x7b", "--on", "8xh100", *beside.split(), f"{flag}={value}")
    assert status == 64 and f"{span}. Got" in err, err


def test_a_vocabulary_of_one_word_is_refused(run):
    assert run(*TRAIN, "--vocab-size", "1")[0] == 64 and run(*TRAIN, "--vocab-size", "2")[0] == 0


def test_the_same_question_has_the_same_answer_in_every_process():
    """Sets of Python are in another order in each."""
    asked = [
        "train",
        "deepseek-v3",
        "--on",
        "32x8xH800-SXM-80GB",
        "--runtime",
        "megatron",
        "--tensor-parallel-size",
        "2",
        "--json",
    ]
    one, two = (
        subprocess.run(
            [sys.executable, "-m", "tonnage", *asked],
            capture_output=True,
            text=True,
            check=False,
            env={**os.environ, "PYTHONHASHSEED": seed},
        ).stdout
        for seed in ("1", "2")
    )
    assert one == two and json.loads(one)["memory"]["value"] > 0
