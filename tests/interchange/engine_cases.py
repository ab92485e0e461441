"""What tests of engines' formats share: files with the question that each asks, round trips, and odd values."""

from pathlib import Path

from hypothesis import strategies as st
from msgspec import Struct

from tonnage.interchange.check import answered, understood
from tonnage.interchange.export import export
from tonnage.interchange.formats import formats
from tonnage.interchange.reading import Asker
from tonnage.interchange.source import command_source, file_source, text_source
from tonnage.kernel.errors import TonnageError

FILES = Path(__file__).parent / "files"
ENGINES = {"vllm", "sglang", "tensorrt-llm", "llama-cpp", "mlx", "ollama", "dynamo"}
STATUSES = {"used", "assumed", "ignored", "not understood"}


class Golden(Struct, kw_only=True):
    """What a file asks: its question, the keys that are assumed, and those not understood. `on`: said beside it."""

    on: str
    question: dict
    assumed: str = ""
    unclear: str = ""
    version: str = ""


def read_file(tool, name, **asked):
    return understood(file_source(str(FILES / tool / name)), Asker(**asked))


def read_command(words, **asked):
    source = command_source([words], None)
    return understood(source, Asker(**{"on": "h100", "tool": next(iter(signs_of(source)), ""), **asked}))


def read_text(text, name, **asked):
    return understood(text_source(text, name), Asker(**{"on": "h100", **asked}))


def keys(found, status):
    return {key.key for key in found.document.keys if key.status == status}


def check_golden(tool, name, golden):
    """The file is of the tool, asks exactly this question, and nothing of it is left out."""
    source = file_source(str(FILES / tool / name))
    assert max(signs_of(source).items(), key=lambda sign: sign[1])[0] == tool
    found = understood(source, Asker(on=golden.on, tool=tool))
    assert dict(found.question) == golden.question
    assert keys(found, "assumed") == set(golden.assumed.split())
    assert keys(found, "not understood") == set(golden.unclear.split("|") if golden.unclear else ())
    assert found.document.is_sure == (not golden.unclear)
    assert found.verb == "serve"
    if golden.version:
        assert found.document.version == golden.version


def signs_of(source):
    """Signs of the engines' formats; what carries a command, such as Docker, has others."""
    return {
        form.name: form.recognises(source) for form in formats() if form.name in ENGINES and form.recognises(source)
    }


def round_trip(tool, question):
    """The question that is read of what was written asks for the same plan: the same memory, the same speed."""
    written = export(tool, "serve", question)
    found = read_text(written.text, f"tonnage{written.ending}", on="")
    assert found.document.is_sure, keys(found, "not understood")
    quick = {"as_is": True, "advice": False}
    asked = question | engine_of(tool)
    first = answered_of(asked, {"advice": False})
    if first.chosen is not None:
        first = answered_of({**asked, **first.chosen.change}, quick)
    again = answered(found, quick)
    assert again.memory.value == first.memory.value
    assert figures(again) == figures(first)
    return written.text, found


def figures(answer):
    """How many requests fit, how fast they are answered, and the command that starts them."""
    serving = answer.serving
    terms = (serving.ttft_seconds, serving.tpot_seconds)
    return (str(serving.launch), *(term.value for term in terms if term))


def engine_of(tool):
    own = next(form for form in formats() if form.name == tool).sets.get("serve", "")
    return {"engine": own} if own else {}


def answered_of(question, more):
    from tonnage.question.read import read
    from tonnage.verbs.serve import answer

    return answer(read("serve", {**question, **more}).given)


ODD = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-5, 10**20),
    st.floats(allow_nan=True, allow_infinity=True),
    st.text(max_size=8),
    st.sampled_from(["auto", "1", "2", "8k", "-1", "{}", '{"a": 1}', "[]", "fp8", "none", "0.5", "true"]),
    st.lists(st.one_of(st.integers(), st.text(max_size=3), st.none()), max_size=3),
    st.dictionaries(st.text(max_size=3), st.one_of(st.integers(), st.text(max_size=3)), max_size=2),
)


def tried(read):
    """What is read, or None where it is refused with a sentence. Anything else fails the test."""
    try:
        found = read()
    except TonnageError as error:
        assert str(error).strip()
        return None
    assert {key.status for key in found.document.keys} <= STATUSES
    return found


def odd_values(tool, name, base, known):
    """A test that any values of the tool's keys are understood, or refused with a sentence."""
    import json

    from hypothesis import given, settings

    @settings(max_examples=120)
    @given(st.dictionaries(st.sampled_from(sorted(known)), ODD, max_size=6))
    def test(options):
        try:
            text = json.dumps({**base, **options}, allow_nan=False)
        except ValueError:
            return
        tried(lambda: read_text(text, name, model="qwen3-8b", tool=tool))

    return test


def odd_words(program, known, dashes="--"):
    """A test that any words behind a program are understood, or refused with a sentence."""
    import shlex

    from hypothesis import given, settings

    words = st.one_of(
        st.sampled_from(sorted(f"{dashes}{name}" for name in known)),
        st.text(max_size=5),
        st.sampled_from(["1", "2", "0", "-1", "auto", "all", "true", "8k", "fp8", "q8_0", "{}", "x=1", "--", ";", "="]),
    )

    @settings(max_examples=120)
    @given(st.lists(words, max_size=8))
    def test(more):
        tried(lambda: read_command(shlex.join([*program.split(), *more]), model="qwen3-8b"))

    return test


MODELS = ("llama-3.1-8b", "qwen3-32b", "qwen3-30b-a3b", "gpt-oss-20b", "deepseek-v3", "gemma-3-27b-pt")
OPTIONS = {
    "context": [4096, 12345, 32768],
    "concurrency": [1, 7, 64],
    "tensor_parallel_size": [1, 2, 4],
    "pipeline_parallel_size": [1, 2],
    "expert_parallel_size": [2, 4],
    "attention_data_parallel_size": [2, 4],
    "kv_cache": ["fp8", "fp8_e5m2", "auto"],
    "weights": ["fp8", "bf16", "fp16", "awq", "fp8-block"],
    "max_num_seqs": [16, 300],
    "max_num_batched_tokens": [2048, 16384],
    "gpu_memory_utilization": [0.5, 0.87],
    "enforce_eager": [True, False],
    "weights_on_host": ["1GiB", "2.5GiB"],
    "lora_adapters": [1, 8],
    "lora_rank": [8, 64],
    "draft_tokens": [1, 4],
    "draft_model": ["llama-3.2-1b", "qwen3-0.6b"],
    "input_tokens": [100],
    "output_tokens": [50],
    "prefill_replicas": [1],
}
OF_GGUF = {
    "weights": ["q4_k_m", "q8_0", "bf16"],
    "kv_cache": ["q8_0", "fp16"],
    "layers_on_accelerator": [5, 20],
    "expert_layers_on_host": [3, 10],
}
HERE = [
    "context",
    "concurrency",
    "max_num_batched_tokens",
    "tensor_parallel_size",
    "lora_adapters",
    "lora_rank",
    "draft_tokens",
]


def questions(options, on):
    """Questions over the options, which may be impossible."""
    return st.fixed_dictionaries(
        {"model": st.sampled_from(MODELS), "on": st.sampled_from(on)},
        optional={name: st.sampled_from(values) for name, values in options.items()},
    )


def odd_round_trips(tool, options=OPTIONS, on=("h100", "8xh100", "2x8xh200")):
    """A test that what is written of any possible question asks for the same plan."""
    from hypothesis import given, settings

    @settings(max_examples=20)
    @given(questions(options, on))
    def test(question):
        try:
            export(tool, "serve", question)
        except TonnageError:
            return
        round_trip(tool, question)

    return test
