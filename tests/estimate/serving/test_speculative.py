"""Speculative decoding by method: heads as large as published, acceptance from publications, what engines have."""

import json

import pytest

import tonnage
from every_row import every_row
from tonnage.catalogue.acceptance import method, methods
from tonnage.catalogue.toml_files import find
from tonnage.estimate.serving.draft_heads import Widths, head, of_widths
from tonnage.estimate.serving.speculative import CHAIN_SHARE, acceptance, known_methods, share
from tonnage.formulas.passes import tokens_per_pass
from tonnage.kernel.errors import InvalidPlan, MissingDatum, NotApplicable, UnknownName
from tonnage.models import read
from tonnage.runtimes import serving_runtime, serving_runtimes

LLAMA, ON = "llama-3.1-8b", "h100"
UNPUBLISHED = ("dflash", "suffix")  # the catalogue has no acceptance of them
SAID = {"input_tokens": 1024, "output_tokens": 512, "concurrency": 4}


def ask(model=LLAMA, on=ON, **options):
    return tonnage.serve(model, on=on, **{**SAID, **options})


def part(answer, name):
    return sum(term.value for _, term in answer.memory.walk() if term.name == name)


def weights(answer):
    return next(child.value for child in answer.memory.children if child.name == "weights")


# SafeAILab/EAGLE, README.md: EAGLE Weights. Its 0.56 of Vicuna-33B is less than a layer and a matrix of these widths.
EAGLE = [
    ("llama-7b", "0.24"),
    ("llama-13b", "0.37"),
    ("llama-2-70b-hf", "0.99"),
    ("meta-llama-3-8b", "0.25"),
    ("meta-llama-3-70b", "0.99"),
]


@every_row(("model", "billions"), EAGLE, at_least=5)
def test_a_head_of_eagle_is_as_large_as_published(model, billions):
    assert f"{head(read(model), 'eagle', 3).num_parameters() / 1e9:.2f}" == billions


def test_heads_of_eagle_3_are_as_large_as_published():
    """A head for Qwen3-4B of 202,700,416 numbers in its safetensors (its config has heads of 80), and the file of
    yuhuili/EAGLE3-Vicuna1.3-13B, 1.28 GB in fp16.
    """
    qwen = Widths(hidden_size=2560, heads=32, kv_heads=8, head_dim=80, intermediate_size=9728, vocab_size=151_936)
    assert of_widths(qwen, "eagle3", 3).num_parameters() == 202_700_416
    assert f"{2 * head(read('llama-13b'), 'eagle3', 3).num_parameters() / 1e9:.2f}" == "1.28"


def test_a_medusa_head_is_a_matrix_and_an_output_head_for_each_token():
    model = read("llama-7b")
    of_one = 4096 * 4096 + 4096 + 4096 * 32000
    assert head(model, "medusa", 3).num_parameters() == 3 * of_one


def test_a_drafter_of_blocks_is_as_large_as_its_config_says():
    """z-lab/Qwen3.6-27B-DFlash, config.json: five layers, five hidden states of the model."""
    w = Widths(hidden_size=5120, heads=32, kv_heads=8, head_dim=128, intermediate_size=17408, vocab_size=248_320)
    layer = 2 * 5120 * 4096 + 2 * 5120 * 1024 + 3 * 5120 * 17408 + 2 * 5120 + 2 * 128
    assert of_widths(w, "dflash", 15).num_parameters() == 5 * 5120 * 5120 + 5 * layer + 2 * 5120


def test_a_head_of_p_eagle_is_about_as_large_as_published():
    """amazon/gpt-oss-120b-p-eagle: 1.7 billion parameters, of which the table and the output head have 1.16; how wide
    its feed-forward layers are its page does not say.
    """
    assert head(read("gpt-oss-120b"), "p-eagle", 5).num_parameters() == pytest.approx(1.7e9, rel=0.1)


def test_a_drafter_of_one_pass_costs_little_for_more_tokens():
    def growth(name):
        few, many = (
            ask(speculative=name, draft_tokens=tokens, acceptance=0.0, concurrency=1).serving.tpot_seconds.value
            for tokens in (2, 8)
        )
        return many - few

    assert growth("dflash") < 0.2 * growth("eagle3")
    assert growth("p-eagle") < 0.2 * growth("eagle3")


def test_suffix_decoding_needs_no_weights_and_no_passes():
    suffix, ngram = (ask(speculative=name, draft_tokens=5, acceptance=0.5) for name in ("suffix", "ngram"))
    assert weights(suffix) == weights(ngram)
    assert suffix.serving.tpot_seconds.value == ngram.serving.tpot_seconds.value
    most = ask(speculative="suffix", acceptance=0.5)
    assert any("drafts at most 32 tokens" in note for note in most.warnings)
    assert not any("drafts at most" in note for note in suffix.warnings)


@every_row("name", UNPUBLISHED)
def test_a_method_without_published_acceptance_is_told_it_by_its_user(name):
    with pytest.raises(MissingDatum, match="acceptance"):
        ask(speculative=name)
    assert ask(speculative=name, acceptance=0.6).serving.tpot_seconds.value > 0


def test_every_published_fact_names_its_model_and_says_one_thing():
    assert set(methods()) == set(known_methods())
    for name in methods():
        facts = method(name).fact
        assert bool(facts) == (name not in UNPUBLISHED)
        for fact in facts:
            assert fact.source
            assert fact.as_of
            assert bool(fact.lengths) != bool(fact.positions), fact
            assert all(1 < length <= int(tokens) + 1 for tokens, length in fact.lengths.items()), fact
            assert list(fact.positions) == sorted(fact.positions, reverse=True), fact
            if find("models", fact.model) is not None:
                assert read(fact.model).family == fact.family, fact


def test_a_published_length_is_the_length_of_a_pass():
    for name in methods():
        for fact in method(name).fact:
            if fact.tree:
                continue
            for tokens, length in fact.lengths.items():
                number = int(tokens)
                assert tokens_per_pass.evaluate(n_draft=number, p_take=share(fact, number)) == pytest.approx(length)


def test_a_chain_is_accepted_for_less_than_a_tree():
    assert 0.6 < CHAIN_SHARE < 0.8
    for fact in (fact for fact in method("medusa").fact if fact.tree):
        for tokens, length in fact.lengths.items():
            number = int(tokens)
            assert tokens_per_pass.evaluate(n_draft=number, p_take=share(fact, number)) < length


def test_acceptance_is_the_models_own_else_its_familys_else_the_methods():
    own = acceptance(read(LLAMA), "eagle3", 3)
    family = acceptance(read("llama-3.1-70b"), "eagle3", 3)
    any_model = acceptance(read("gemma-2-9b"), "eagle3", 3)
    assert (own.level, family.level, any_model.level) == ("model", "family", "method")
    assert own.low < own.value < own.high
    assert any_model.high - any_model.low > own.high - own.low
    assert {fact.model for fact in own.facts} == {LLAMA}


def test_a_draft_model_that_nobody_measured_with_this_one_is_assumed():
    assert acceptance(read("gpt2-large"), "draft", 3, "distilgpt2").level == "model"
    assert acceptance(read("gpt2-large"), "draft", 3, "gpt2").level == "family"


def test_the_answer_says_where_acceptance_is_from():
    own = ask(speculative="eagle3").question["acceptance"]
    assert own.origin == "catalogue"
    assert "published for this model" in own.why
    other = ask("gemma-2-9b", speculative="eagle3")
    assert other.question["acceptance"].origin == "default"
    assert any("publications differ from" in each for each in other.warnings)
    said = ask(speculative="eagle3", acceptance=0.5)
    assert (said.question["acceptance"].value, said.question["acceptance"].origin) == (0.5, "given")


def test_a_method_with_one_publication_has_no_range_of_publications():
    texts = [str(each) for each in ask("llama-3.3-70b", "4xh100", speculative="p-eagle").warnings]
    assert any("there is one publication" in each for each in texts)
    assert not any("publications differ" in each for each in texts)


def test_the_range_of_publications_widens_the_band_of_tpot_alone():
    own = ask(speculative="eagle3")
    said = ask(speculative="eagle3", acceptance=own.question["acceptance"].value)

    def width(answer, name):
        low, high = getattr(answer.serving, name)
        return high / low

    assert width(own, "tpot_band") > 1.05 * width(said, "tpot_band")
    assert width(own, "ttft_band") == pytest.approx(width(said, "ttft_band"), rel=1e-3)


def test_a_head_takes_memory_and_n_grams_take_none():
    plain, looked_up = ask(), ask(speculative="ngram")
    assert weights(looked_up) == weights(plain)
    for name in ("eagle3", "eagle", "medusa"):
        answer = ask(speculative=name)
        count = head(read(LLAMA), name, answer.question["draft_tokens"].value).num_parameters()
        assert weights(answer) - weights(plain) == pytest.approx(2 * count, rel=1e-6), name
        assert part(answer, "draft head") == pytest.approx(2 * count, rel=1e-6), name


def test_drafting_by_n_grams_leaves_a_models_own_layers_out():
    plain = ask("deepseek-v3", "8xh200")
    own, looked_up = (ask("deepseek-v3", "8xh200", speculative=name) for name in ("mtp", "ngram"))
    assert weights(looked_up) == weights(plain) < weights(own)


def test_a_step_is_longer_with_each_drafted_token_but_for_medusa():
    def step(method, tokens):
        answer = ask(speculative=method, draft_tokens=tokens, acceptance=0.5)
        return answer.serving.tpot_seconds.value * tokens_per_pass.evaluate(n_draft=tokens, p_take=0.5)

    eagle, medusa = (step(name, 6) - step(name, 3) for name in ("eagle", "medusa"))
    assert eagle > 1.3 * medusa > 0


def test_eagle_of_llama_is_as_fast_as_measured():
    """vLLM, issue 20780: TPOT of Llama-3.1-8B with one user, 7.07 ms alone and 4.29 with EAGLE and three tokens."""
    load = {"input_tokens": 86, "output_tokens": 256, "concurrency": 1, "engine_version": "0.9.2"}
    plain, drafted = (ask(**load, **more).serving.tpot_seconds.value for more in ({}, {"speculative": "eagle"}))
    assert plain == pytest.approx(7.07e-3, rel=0.1)
    assert drafted == pytest.approx(4.29e-3, rel=0.15)


REFUSED = [
    ({"speculative": "lookahead"}, UnknownName, "eagle3"),
    ({"speculative": "mtp"}, InvalidPlan, "has no layers of multi-token prediction"),
    ({"speculative": "draft"}, InvalidPlan, "needs draft_model"),
    ({"speculative": "ngram", "draft_model": "llama-3.2-1b"}, InvalidPlan, "has no draft model"),
    ({"speculative": "medusa", "engine": "sglang"}, InvalidPlan, "does not draft with medusa"),
    ({"speculative": "eagle3", "engine": "ollama"}, NotApplicable, "is a setting of"),
    ({"acceptance": 0.7}, NotApplicable, "is of drafted tokens"),
    ({"speculative": "eagle3", "acceptance": 1.5}, InvalidPlan, "at least 0 and less than 1"),
    ({"speculative": "eagle3", "draft_tokens": 3, "prefill_replicas": 1, "on": "2xh100"}, InvalidPlan, "are not timed"),
]


@every_row(("options", "kind", "text"), REFUSED, at_least=9)
def test_what_cannot_draft_so_is_refused(options, kind, text):
    with pytest.raises(kind, match=text):
        ask(**{"tensor_parallel_size": 1, **options})


def test_a_model_that_generates_nothing_drafts_nothing():
    with pytest.raises((InvalidPlan, MissingDatum)):
        ask("bert-base-uncased", speculative="eagle3", input_tokens=128, output_tokens=1)


def command(**options):
    return str(ask(**options).serving.launch)


def test_vllm_is_told_the_method_and_the_published_head():
    text = command(speculative="eagle3")
    settings = json.loads(text.partition("--speculative-config '")[2].partition("'")[0])
    assert settings == {
        "method": "eagle3",
        "model": "yuhuili/EAGLE3-LLaMA3.1-Instruct-8B",
        "num_speculative_tokens": 3,
    }
    assert '"method": "mtp"' in command(model="deepseek-v3", on="8xh200", speculative="mtp")
    assert '"method": "ngram"' in command(model="deepseek-v3", on="8xh200", speculative="ngram")
    parallel = command(model="gpt-oss-120b", speculative="p-eagle")
    assert '"method": "eagle3", "model": "amazon/gpt-oss-120b-p-eagle"' in parallel
    assert '"parallel_drafting": true' in parallel
    assert '"method": "dflash"' in command(speculative="dflash", acceptance=0.6)
    assert '{"method": "suffix", "num_speculative_tokens": 32}' in command(speculative="suffix", acceptance=0.6)
    assert '"model": "meta-llama/Llama-3.2-1B"' in command(speculative="draft", draft_model="llama-3.2-1b")


def test_a_head_that_is_named_is_the_one_that_is_started():
    text = command(speculative="eagle3", draft_model="RedHatAI/Llama-3.1-8B-Instruct-speculator.eagle3")
    assert "RedHatAI/Llama-3.1-8B-Instruct-speculator.eagle3" in text
    unknown = command(model="gemma-2-9b", speculative="eagle3")
    assert "DRAFT_MODEL stands for a checkpoint" in unknown


def test_other_engines_are_told_in_their_words():
    sglang = command(engine="sglang", speculative="eagle3")
    head_of = "--speculative-draft-model-path yuhuili/EAGLE3-LLaMA3.1-Instruct-8B"
    assert f"--speculative-algorithm EAGLE3 {head_of} --speculative-num-steps 3" in sglang
    assert "--speculative-num-draft-tokens 4" in sglang
    blocks = command(engine="sglang", speculative="dflash", acceptance=0.6)
    assert "--speculative-algorithm DFLASH" in blocks and "--speculative-dflash-block-size 16" in blocks
    assert "decoding_type: Eagle3, max_draft_len: 3" in command(engine="tensorrt-llm", speculative="eagle3")
    assert "--spec-type draft-eagle3" in command(engine="llama.cpp", speculative="eagle3")


def test_every_engine_that_drafts_says_how():
    for name in serving_runtimes():
        engine = serving_runtime(name)
        assert bool(engine.drafts) == ("speculative" in engine.settings) == ("draft_tokens" in engine.settings), name
        assert set(engine.drafts) <= set(known_methods()), name


def test_a_draft_model_as_large_as_the_model_is_warned_of():
    large, small = (
        tonnage.serve("llama-3.1-8b", on="h200", draft_model=name, draft_tokens=4, context=4096, advice=False).warnings
        for name in ("qwen3-32b", "llama-3.2-1b")
    )
    assert any("qwen3-32b passes a token through 32.7" in note for note in large)
    assert not any("passes a token through" in note for note in small)


def test_n_grams_of_an_unpublished_model_take_the_lowest_publication_and_may_gain_nothing():
    """Spec-Bench: 1.54 tokens a pass of Vicuna-33B, of 10 drafted, is the least of all."""
    answer, plain = ask("qwen3-8b", speculative="ngram"), ask("qwen3-8b")
    found = acceptance(read("qwen3-8b"), "ngram", 5)
    assert (found.level, found.value) == ("method", found.low)
    assert tokens_per_pass.evaluate(n_draft=10, p_take=found.value) == pytest.approx(1.54)
    assert answer.serving.tpot_seconds.value < plain.serving.tpot_seconds.value < answer.serving.tpot_band[1]
    assert any("the lowest of all published with ngram" in note for note in answer.warnings)


def test_n_grams_of_a_model_that_was_measured_keep_its_own_acceptance():
    assert acceptance(read("qwen3-32b"), "ngram", 3).level == "model"


def test_more_drafted_tokens_than_anybody_published_are_warned_of():
    many, few = (ask(speculative="ngram", draft_tokens=number).warnings for number in (40, 16))
    assert any("draft_tokens 40: published runs draft at most 10" in note for note in many)
    assert not any("published runs draft at most" in note for note in few)
