"""Every sentence that Python makes has its Chinese: the catalogues have what the code says, and real answers come
out in Han characters.
"""

import re

import pytest

import extract_messages
import write_locale
from every_row import every_row
from tonnage.kernel.encoding import builtins
from tonnage.kernel.errors import TonnageError
from tonnage.kernel.message import Message
from tonnage.kernel.reach import Reach
from tonnage.kernel.term import Term
from tonnage.language import speaking, worded
from tonnage.verbs.ask import ask

HAN = re.compile("[\u4e00-\u9fff]")
PROSE = re.compile(r"(?<![\w/.`'\"<-])[a-z]{2,} [a-z]{2,} [a-z]{2,}(?![\w/>-])")
PLACES = re.compile(r"\{\d*\}")
NOWHERE = Reach(files=None, hubs=False, machine=False)
CATALOGUES = {
    domain: write_locale.read(extract_messages.CATALOGUES / f"{domain}.po") for domain in ("messages", "help")
}
# Where a part of a sentence names its source, that part is as the source has it.
CITED = re.compile(
    r"[\w)]/[\w.-]+|https?:|sec\. |public (repositories|logs)|\.sh: |\b[A-Z]\w+\d{4}\b|Metal's|max "
    r"(context|expert-layers) "
)

QUESTIONS = [
    ("train", {"model": "llama-3.1-8b", "on": "8xh100"}),
    ("train", {"model": "llama-3.1-70b", "on": "8xh100"}),
    (
        "train",
        {
            "model": "mixtral-8x7b",
            "on": "4x8xh100",
            "runtime": "megatron",
            "tensor_parallel_size": 2,
            "pipeline_parallel_size": 4,
        },
    ),
    ("train", {"model": "llama-3.1-8b", "on": "rtx-4090", "method": "qlora"}),
    (
        "train",
        {
            "model": "llama-3.1-8b",
            "on": "8xa100-sxm-80gb",
            "runtime": "deepspeed",
            "zero_stage": 3,
            "offload_optimizer": "cpu",
        },
    ),
    ("train", {"model": "qwen3-8b", "on": "h100", "runtime": "unsloth", "method": "qlora"}),
    ("train", {"model": "llama-3.1-8b", "on": "8xmi300x", "tokens": "15T"}),
    ("train", {"model": "llama-3.1-405b", "on": "h100"}),
    ("train", {"model": "qwen3-8b", "on": "8xh100", "objective": "grpo", "method": "lora"}),
    ("train", {"model": "llama-2-7b", "on": "8xh100", "runtime": "nanotron", "tensor_parallel_size": 2}),
    ("train", {"model": "llama-3.1-8b", "on": "8xv100-sxm-32gb", "float8": "tensorwise"}),
    ("serve", {"model": "llama-3.1-70b", "on": "8xh100"}),
    ("serve", {"model": "llama-3.1-70b", "on": "h100"}),
    ("serve", {"model": "qwen3-32b", "on": "rtx-4090", "weights": "awq", "context": "4k"}),
    ("serve", {"model": "deepseek-v3", "on": "8xh200", "concurrency": 64, "ttft": "500ms", "tpot": "30ms"}),
    ("serve", {"model": "llama-3.1-8b", "on": "h100", "request_rate": 500}),
    ("serve", {"model": "llama-3.1-8b", "on": "rtx-4090", "engine": "llama.cpp", "weights": "q4_k_m"}),
    ("serve", {"model": "llama-3.1-8b", "on": "apple-m1-16gb"}),
    ("serve", {"model": "qwen3-30b-a3b", "on": "h100", "engine": "sglang", "draft_tokens": 3}),
    ("serve", {"model": "gemma-3-27b", "on": "h100", "lora_adapters": 4, "lora_rank": 16}),
    ("serve", {"model": "bert-base", "on": "h100"}),
    ("serve", {"model": "qwen3-8b", "on": "l4", "frontier": True}),
    ("plan", {"model": "llama-3.1-8b", "on": "8xh100"}),
    ("plan", {"model": "llama-3.1-8b", "serve": True, "on": "h100,l4", "concurrency": 16}),
    ("plan", {"model": "llama-3.1-405b", "on": "4xh100"}),
    ("plan", {"model": "llama-3.1-8b", "serve": True, "on": "l4", "concurrency": 64, "ttft": "1ms"}),
    ("max", {"what": "context", "model": "llama-3.1-8b", "on": "h100"}),
    ("max", {"what": "rank", "model": "llama-3.1-8b", "on": "rtx-4090"}),
    ("max", {"what": "context", "model": "llama-3.1-405b", "on": "h100"}),
    ("compare", {"model": "llama-3.1-8b", "on": "h100,l4,rtx-4090"}),
    ("rules", {}),
    ("explain", {"name": "checkpoint"}),
    ("explain", {"name": "adam_rule"}),
    ("models", {"model": "deepseek-v3"}),
    ("prices", {"name": "h100-sxm-80gb"}),
]
TRAINED = {"model": "llama-3.1-8b", "on": "8xh100"}
SERVED = {"model": "llama-3.1-8b", "on": "h100"}
WRONG = [
    ("train", {"model": "llama-3.1-8x", "on": "8xh100"}),
    ("train", {"model": "llama-3.1-8b", "on": "8xh1000"}),
    ("train", {"model": "llama-3.1-8b"}),
    ("train", {"on": "8xh100"}),
    ("train", {**TRAINED, "tensor_parallel_size": 3}),
    ("train", {**TRAINED, "recompute": "all"}),
    ("train", {**TRAINED, "optimizer": "adamm"}),
    ("train", {**TRAINED, "global_batch_size": 7}),
    ("train", {**TRAINED, "colour": 1}),
    ("train", {**TRAINED, "sequence_length": "abc"}),
    ("train", {**TRAINED, "sequence_length": "1M", "attention": "none"}),
    ("train", {**TRAINED, "pipeline_parallel_size": 3}),
    ("train", {**TRAINED, "expert_parallel_size": 2}),
    ("train", {**TRAINED, "runtime": "ddp", "tensor_parallel_size": 2}),
    ("train", {**TRAINED, "micro_batch_size": 0}),
    ("train", {**TRAINED, "lora_rank": 8}),
    ("train", {**TRAINED, "deadline": "30d"}),
    ("train", {**TRAINED, "tokens": "1T", "epochs": 2}),
    ("train", {**TRAINED, "reserve": "1000GiB"}),
    ("train", {**TRAINED, "power_share": 2}),
    ("train", {**TRAINED, "zero_stage": 5}),
    ("train", {**TRAINED, "on": "0xh100"}),
    ("train", {"model": {"model_type": "llama", "hidden_size": -1}, "on": "h100"}),
    ("train", {"model": {"architectures": ["Foo"]}, "on": "h100"}),
    ("train", {"model": "/etc/passwd", "on": "h100"}),
    ("serve", {**SERVED, "weights": "int3"}),
    ("serve", {**SERVED, "weights": "4bit"}),
    ("serve", {**SERVED, "kv_cache": "fp3"}),
    ("serve", {**SERVED, "concurrency": 2, "request_rate": 3}),
    ("serve", {**SERVED, "on": "3xh100", "tensor_parallel_size": 2}),
    ("serve", {**SERVED, "on": "mi300x", "engine": "tensorrt-llm"}),
    ("serve", {**SERVED, "gpu_memory_utilization": 2}),
    ("serve", {**SERVED, "num_gpu_blocks_override": 100}),
    ("serve", {**SERVED, "percentile": "p98"}),
    ("max", {"what": "contxt", **SERVED}),
    ("max", {"what": "context", "on": "h100"}),
    ("max", {"what": "expert-layers", **SERVED}),
    ("plan", {**TRAINED, "goal": "best"}),
    ("plan", {"inventory": {"nodes": []}}),
    ("compare", {"model": "llama-3.1-8b", "on": "h100", "sort": "speeed"}),
    ("rules", {"names": ["Z9"]}),
    ("explain", {"name": "checkpont"}),
    ("prices", {"name": "foo"}),
    ("accelerators", {"name": "foo"}),
    ("trian", {}),
]  # fmt: skip
SHOWN = frozenset(
    {
        "why",
        "note",
        "notes",
        "warnings",
        "title",
        "assumes",
        "meaning",
        "procedure",
        "reason",
        "constraint",
        "limit",
        "leaves_out",
        "printed",
        "erratum",
        "binds",
        "binding",
        "beats",
        "beats_next",
        "unit",
    }
)


def _terms(part):
    if isinstance(part, dict):
        if "combine" in part:
            yield part["name"]
            if part.get("method"):
                yield part["method"]["procedure"]
        for value in part.values():
            yield from _terms(value)
    elif isinstance(part, list):
        for value in part:
            yield from _terms(value)


def _texts(part, name=""):
    if isinstance(part, dict):
        for key, value in part.items():
            yield from _texts(value, key)
    elif isinstance(part, list):
        for value in part:
            yield from _texts(value, name)
    elif isinstance(part, str) and name in SHOWN:
        yield part


def _plain(document):
    return builtins(document)


def _is_prose(text: str) -> bool:
    return " " in text.strip() and extract_messages.is_said(text) and not re.match(r"tonnage |--", text)


def _left(texts) -> list[tuple[str, str]]:
    """Those of the texts that have no Chinese, or have English words left in it."""
    with speaking("zh"):
        made = [(text, worded(text)) for text in sorted(set(texts))]
    return [
        (text, chinese)
        for text, chinese in made
        if _is_prose(text) and not CITED.search(text) and (not HAN.search(chinese) or PROSE.search(chinese))
    ]


def test_the_catalogues_have_what_the_code_says_and_nothing_else():
    assert extract_messages.differences() == [], "run scripts/extract_messages.py, translate, and make locale"


@pytest.mark.parametrize("domain", CATALOGUES)
def test_a_translation_is_chinese_unless_all_of_it_is_names(domain):
    words = {each.id: each.string for each in CATALOGUES[domain] if each.id and not HAN.search(each.string)}
    names = re.compile(r"\w+")
    allowed = {"token"}  # the field's Chinese for "tokens"
    other = {text for text, same in words.items() if set(names.findall(same)) - set(names.findall(text)) - allowed}
    assert other == set()
    assert {text for text in words if PROSE.search(text)} - {"tonnage sweep {0} --out {1} {2}"} == set()


@pytest.mark.parametrize("domain", CATALOGUES)
def test_a_translation_has_each_place_as_often_as_its_text(domain):
    other = [
        each.id
        for each in CATALOGUES[domain]
        if each.id and sorted(PLACES.findall(each.id)) != sorted(PLACES.findall(each.string))
    ]
    assert other == []


@pytest.mark.parametrize("domain", CATALOGUES)
def test_punctuation_between_han_characters_is_full_width(domain):
    narrow = re.compile("[\u4e00-\u9fff] ?[,;:!?](?![\\w{}/])|[\u4e00-\u9fff]\\.(?!\\w)")
    assert {each.id: each.string for each in CATALOGUES[domain] if each.id and narrow.search(each.string)} == {}


@pytest.mark.parametrize(("verb", "question"), QUESTIONS, ids=str)
def test_an_answer_comes_out_in_chinese(verb, question):
    document = _plain(ask(verb, question, NOWHERE).document)
    texts = [*_terms(document), *_texts(document)]
    assert texts
    assert _left(texts) == []


@every_row(("verb", "question"), WRONG, ids=str, at_least=45)
def test_an_error_comes_out_in_chinese(verb, question):
    with pytest.raises(TonnageError) as caught:
        ask(verb, question, NOWHERE)
    with speaking("zh"):
        chinese = worded(str(caught.value))
    assert HAN.search(chinese)
    assert not PROSE.search(re.sub(r"'[^']*'", "", chinese)), chinese


def test_options_keep_their_names():
    with speaking("zh"):
        template = "{name} takes one value, and no list; a question to compare takes lists. Got {value}."
        assert worded(Message(template, name="optimizer", value=2)).startswith("optimizer ")
        assert worded("optimizer") == "优化器"


def test_a_terms_text_is_translated_name_by_name():
    def term(name):
        return Term(name, 1.0, "bytes", "leaf", "analytic")

    parts = [term("weights"), term("gradients"), term("optimizer")]
    with speaking("zh"):
        assert worded(Term.sum("all", *parts).text) == "权重 + 梯度 + 优化器"
        assert worded(Term.max("all", term("while loading"), term("while training")).text) == "max(加载时，训练时)"
        assert worded("n * tau / 3600") == "n * tau / 3600"


def test_a_text_that_carries_no_data_and_has_no_entry_stays_as_it_is():
    with speaking("zh"):
        for text in ("the quick brown fox of nowhere", "the run needs 3 GiB. It fits.", "fits; fits"):
            assert worded(text) == text


def test_extraction_writes_out_alternatives_and_leaves_out_what_developers_see():
    import ast

    code = (
        'def f(x, y):\n    """Docs are not said here."""\n    if x:\n        raise TypeError("for developers only")\n'
        '    raise InvalidInput(Message("{x} has no red colour." if y else "{x} has no colour.", x=x))\n'
    )
    reader = extract_messages.Reader()
    reader.visit(ast.parse(code))
    assert reader.said == ["{x} has no red colour.", "{x} has no colour."]


def test_an_f_string_is_no_text_that_can_be_translated():
    import ast

    reader = extract_messages.Reader()
    reader.visit(ast.parse('raise InvalidInput(f"{x} has no red colour. Got {y}.")'))
    assert reader.said == []
