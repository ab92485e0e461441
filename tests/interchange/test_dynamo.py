"""`tonnage check` and `tonnage export` of NVIDIA Dynamo's commands and manifests."""

import pytest
from engine_cases import (
    FILES,
    ODD,
    Golden,
    check_golden,
    keys,
    odd_round_trips,
    odd_words,
    read_command,
    read_text,
    round_trip,
    signs_of,
    tried,
)
from hypothesis import given, settings
from hypothesis import strategies as st

from every_row import every_row
from tonnage.interchange.export import export
from tonnage.interchange.formats import format_of
from tonnage.interchange.parts.engines import dynamo_requests, dynamo_workers
from tonnage.interchange.source import command_source, text_source
from tonnage.kernel.errors import InvalidInput, TonnageError

VLLM = {"engine": "vllm"}
SHARE = "gpu-memory-utilization"
GOLDEN = {
    "agg.yaml": Golden(
        on="h100",
        question={**VLLM, "model": "Qwen/Qwen3-0.6B", "context": 8192, "tensor_parallel_size": 1, "on": "2xh100"},
        assumed=f"tensor-parallel-size {SHARE}",
        version="1.4.0",
    ),
    "disagg.yaml": Golden(
        on="h100",
        question={**VLLM, "model": "Qwen/Qwen3-8B", "tensor_parallel_size": 2, "prefill_replicas": 1, "on": "6xh100"},
        assumed=SHARE,
        version="1.4.0",
    ),
    "v1beta1.yaml": Golden(
        on="h200",
        question={
            "engine": "sglang",
            "model": "deepseek-ai/DeepSeek-V3",
            "attention_data_parallel_size": 16,
            "tensor_parallel_size": 1,
            "prefill_replicas": 1,
            "on": "32xh200",
        },
        assumed="mem-fraction-static",
        version="1.6.1",
    ),
    "workers.sh": Golden(
        on="h100",
        question={
            **VLLM,
            "model": "Qwen/Qwen3-8B",
            "enforce_eager": True,
            "tensor_parallel_size": 1,
            "prefill_replicas": 1,
            "on": "2xh100",
        },
        assumed=f"tensor-parallel-size {SHARE}",
    ),
    "run.sh": Golden(
        on="h100",
        question={**VLLM, "model": "Qwen/Qwen3-8B", "context": 8192, "tensor_parallel_size": 4, "on": "4xh100"},
        assumed=SHARE,
    ),
    "trtllm.sh": Golden(
        on="h100",
        question={
            "engine": "tensorrt-llm",
            "model": "Qwen/Qwen3-8B",
            "tensor_parallel_size": 2,
            "max_num_seqs": 64,
            "on": "2xh100",
        },
        assumed="kv_cache_config.free_gpu_memory_fraction",
        unclear="extra-engine-args",
    ),
}


@every_row(("name", "golden"), GOLDEN.items(), at_least=6)
def test_a_file_asks_exactly_its_question(name, golden):
    check_golden("dynamo", name, golden)


MANIFEST = (FILES / "dynamo" / "disagg.yaml").read_text()
SCALED = "spec.services.VllmDecodeWorker.autoscaling.enabled"
CHANGES = [
    # a text of the manifest, another in its place, keys that are not understood then
    ("replicas: 2", "replicas: 3", set()),
    (
        "--tensor-parallel-size 2 --disagg",
        "--tensor-parallel-size 2 --max-num-seqs 8 --disagg",
        {"prefill: max-num-seqs"},
    ),
    ('gpu: "2"', 'gpu: "4"', {"VllmDecodeWorker: gpu", "prefill: VllmPrefillWorker: gpu"}),
    (
        "envFromSecret: hf",
        "autoscaling: {enabled: true}\n      envFromSecret: hf",
        {SCALED},
    ),
    ("--disaggregation-mode, decode", "--enable-multimodal, --disaggregation-mode, decode", {"enable-multimodal"}),
    ("--disaggregation-mode, decode", "--frobnicate, '3', --disaggregation-mode, decode", {"frobnicate"}),
]


@every_row(("old", "new", "unclear"), CHANGES, at_least=6)
def test_a_change_of_a_manifest_counts(old, new, unclear):
    assert old in MANIFEST
    found = read_text(MANIFEST.replace(old, new), "a.yaml")
    assert keys(found, "not understood") == unclear


def test_replicas_and_nodes_are_counted():
    assert read_text(MANIFEST.replace("replicas: 2", "replicas: 5"), "a.yaml").question["on"] == "12xh100"


def test_a_prefill_worker_alone_is_half_of_a_plan():
    found = read_command("python -m dynamo.vllm --model Qwen/Qwen3-8B --disaggregation-mode prefill")
    assert keys(found, "not understood") == {"disaggregation-mode"}


ROLES = ["--disaggregation-mode agg", "--disaggregation-mode pd", ""]


@every_row("words", ROLES, at_least=3)
def test_a_worker_that_does_both_is_whole(words):
    found = read_command(f"python -m dynamo.vllm --model Qwen/Qwen3-8B {words}")
    assert "prefill_replicas" not in found.question
    assert found.document.is_sure


def test_defaults_are_said_to_be_those_of_the_engine():
    found = read_command("python -m dynamo.sglang --model-path Qwen/Qwen3-8B")
    assert {key.why for key in found.document.keys if key.status == "assumed"} == {"default of SGLang 0.5.23"}
    assert found.document.tool == "NVIDIA Dynamo"


WRONG = [
    ("dynamo run in=http out=mistralrs Qwen/Qwen3-8B", "Got out=mistralrs."),
    ("python -m dynamo.vllm --model a --tensor-parallel-size x", "tensor-parallel-size must be a number."),
    ("python -m dynamo.trtllm --model-path a --override-engine-args x{", ""),
]


@every_row(("words", "text"), WRONG, at_least=3)
def test_a_wrong_value_is_refused_with_its_key(words, text):
    with pytest.raises(InvalidInput) as error:
        read_command(words)
    assert text in str(error.value)


def test_a_manifest_without_workers_is_refused():
    with pytest.raises(InvalidInput, match="has no worker of"):
        read_text("kind: DynamoGraphDeployment\nspec:\n  services: {}\n", "a.yaml")
    with pytest.raises(InvalidInput, match="replicas must be a whole number"):
        read_text(MANIFEST.replace("replicas: 2", "replicas: many"), "a.yaml")


def test_arguments_of_tensorrt_llm_are_read_from_json():
    found = read_command(
        "python -m dynamo.trtllm --model Qwen/Qwen3-8B "
        '--override-engine-args \'{"kv_cache_config": {"free_gpu_memory_fraction": 0.5, "dtype": "fp8"}}\''
    )
    assert (found.question["gpu_memory_utilization"], found.question["kv_cache"]) == (0.5, "fp8")


def test_it_is_recognised_and_taken_for_no_engine():
    for words in ("python3 -m dynamo.vllm --model a", "dynamo run out=vllm a", "python -m dynamo.trtllm --model a"):
        assert set(signs_of(command_source([words], None))) == {"dynamo"}
    assert set(signs_of(text_source(MANIFEST, "a.yaml"))) == {"dynamo"}
    assert not signs_of(command_source(["python -m dynamo.frontend"], None))


QUESTIONS = [
    {"model": "llama-3.1-8b", "on": "4xh100"},
    {
        "model": "llama-3.1-8b",
        "on": "8xh100",
        "tensor_parallel_size": 2,
        "prefill_replicas": 1,
        "concurrency": 64,
        "context": 8192,
        "kv_cache": "fp8",
    },
    {
        "model": "deepseek-v3",
        "on": "2x8xh200",
        "tensor_parallel_size": 1,
        "attention_data_parallel_size": 16,
        "expert_parallel_size": 16,
        "context": 32768,
        "engine": "sglang",
    },
    {"model": "qwen3-30b-a3b", "on": "8xh100", "tensor_parallel_size": 2, "weights": "fp8", "context": 16384},
    {"model": "qwen3-32b", "on": "8xh100", "tensor_parallel_size": 4, "engine": "sglang", "prefill_replicas": 1},
]


@every_row("question", QUESTIONS, at_least=5)
def test_what_is_written_asks_for_the_same_again(question):
    round_trip("dynamo", question)


def test_other_engines_are_not_written():
    with pytest.raises(InvalidInput, match="dynamo is written with vllm or sglang"):
        export("dynamo", "serve", {"model": "llama-3.1-8b", "on": "h100", "engine": "tensorrt-llm"})


test_any_words_are_understood_or_refused = odd_words("python -m dynamo.vllm", format_of("dynamo").known())
test_any_words_of_tensorrt_llm_are_understood_or_refused = odd_words(
    "python -m dynamo.trtllm", {*dynamo_workers.TABLE.known, "tensor-parallel-size", "override-engine-args"}
)

PARTS = st.dictionaries(
    st.sampled_from(
        [
            "type",
            "componentType",
            "subComponentType",
            "replicas",
            "resources",
            "multinode",
            "extraPodSpec",
            "podTemplate",
        ]
    ),
    st.one_of(
        ODD,
        st.just({"limits": {"gpu": "x"}}),
        st.just({"mainContainer": {"command": ["python", "-m", "dynamo.vllm"], "args": ["--model", "a"]}}),
        st.just({"spec": {"containers": [{"args": "python -m dynamo.sglang --model-path a"}]}}),
        st.just({"nodeCount": "2"}),
    ),
)


@settings(max_examples=150)
@given(
    st.one_of(ODD, st.dictionaries(st.text(max_size=3), PARTS, max_size=3)), st.one_of(ODD, st.lists(PARTS, max_size=3))
)
def test_any_manifest_is_understood_or_refused(services, components):
    import json

    tree = {"kind": "DynamoGraphDeployment", "spec": {"services": services, "components": components}}
    try:
        text = json.dumps(tree, allow_nan=False)
    except ValueError:
        return
    tried(lambda: read_text(text, "a.json", model="qwen3-8b"))


REQUEST = """kind: DynamoGraphDeploymentRequest
spec:
  model: Qwen/Qwen3-32B
  backend: trtllm
  hardware: {gpuSku: h200_sxm, totalGpus: 64, numGpusPerNode: 8}
  workload: {requestRate: 5.0}
"""


def test_a_request_for_a_search_names_the_command_that_searches_here():
    with pytest.raises(TonnageError, match="names no workers") as refused:
        read_text(REQUEST, "a.yaml")
    assert (
        "tonnage serve Qwen/Qwen3-32B --on 8xh200-sxm --engine tensorrt-llm --input-tokens 4000 --output-tokens 1000 "
        "--request-rate 5 --ttft 2000ms --tpot 30ms"
    ) in str(refused.value)


@given(st.dictionaries(st.sampled_from(["model", "backend", "hardware", "workload", "sla"]), ODD))
def test_any_request_is_refused_cleanly(spec):
    assert dynamo_requests.command({"spec": spec}).startswith("tonnage serve ")


test_any_question_is_written_and_read_again = odd_round_trips("dynamo")


def test_a_plan_without_a_replica_that_answers_is_not_written():
    with pytest.raises(TonnageError, match="prefill_replicas"):
        export("dynamo", "serve", {"model": "llama-3.1-8b", "on": "h100", "prefill_replicas": 1})
