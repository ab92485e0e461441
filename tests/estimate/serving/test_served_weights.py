"""What each word of --weights means: a precision of the matrices, a GGUF file, or the checkpoint as it is."""

import pytest
from msgspec.structs import replace

from every_row import every_row
from tonnage import read
from tonnage.architectures import TensorGroup, TensorSummary
from tonnage.catalogue import cluster
from tonnage.estimate.answer.answers import serve
from tonnage.estimate.serving.options import ServingOptions
from tonnage.estimate.serving.weights.request import AMBIGUOUS, asked_for
from tonnage.estimate.serving.weights.storage import block_bytes, op_bytes, storage, stored_bytes
from tonnage.kernel.errors import InvalidInput, TonnageError, UnknownName
from tonnage.numerics.precisions import precision

H100 = cluster("H100-SXM-80GB")
AWQ = {"quant_method": "awq", "bits": 4, "group_size": 64, "zero_point": True, "version": "gemm"}
FP8 = {"quant_method": "fp8", "weight_block_size": [128, 128], "activation_scheme": "dynamic"}


def loose(model, word, part):
    """Stored bits of each weight of embedding or head."""
    stored = storage(model, word)
    ops = model.decoder.before + model.decoder.after
    found = [(w, size) for op in ops for w, size in op_bytes(stored, op) if w.part == part and w.columns > 1]
    return 8 * sum(size for _, size in found) / sum(w.num_parameters for w, _ in found)


def part_bits(model, word, part, layer=-1):
    """Stored bits of each weight of the matrices of a part of one layer."""
    stored = storage(model, word)
    block = model.decoder.blocks[model.decoder.layers[layer]]
    found = [w for w in block.weights() if w.part == part and w.linear]
    places = stored.blocks[block]
    return 8 * sum(stored.bytes_of(w, places[-1]) for w in found) / sum(w.num_parameters for w in found)


@pytest.mark.parametrize(
    ("word", "name", "table", "head"),
    [
        ("Q8_0", "q8_0", 8.5, 8.5),
        ("q4_k_m", "q4_k_m", 4.5, 6.5625),
        ("Q4_K", "q4_k_m", 4.5, 6.5625),
        ("MOSTLY_Q4_K_M", "q4_k_m", 4.5, 6.5625),
        ("q4-k-m", "q4_k_m", 4.5, 6.5625),
        ("Q4_K_L", "q4_k_l", 8.5, 8.5),
        ("IQ4_XS", "iq4_xs", 4.25, 6.5625),
        ("mxfp4_moe", "mxfp4_moe", 8.5, 8.5),
    ],
)
def test_a_gguf_word_means_the_file_with_its_table_and_head_quantised_too(word, name, table, head):
    model = read("llama-3.1-8b")
    assert storage(model, word).name == name
    assert (loose(model, word, "embedding"), loose(model, word, "head")) == (table, head)


@pytest.mark.parametrize("word", ["fp8", "int8", "int4", "awq", "gptq", "nf4", "nvfp4", "mxfp4", "fp8-block", "w4a16"])
def test_any_other_quantised_word_means_the_matrices_of_the_layers_alone(word):
    model = read("llama-3.1-8b")
    assert loose(model, word, "embedding") == loose(model, word, "head") == 16
    expected = precision(word).bits_per_weight
    assert part_bits(model, word, "mlp") == pytest.approx(expected, abs=0.02)


@pytest.mark.parametrize("word", ["bf16", "fp16", "fp32", "F16", "float32"])
def test_floats_of_16_bits_and_more_mean_all_weights(word):
    model = read("mixtral-8x7b")
    assert stored_bytes(model, word) == model.num_parameters(True) * (4 if "32" in word else 2)


@pytest.mark.parametrize(
    "word", ["4bit", "8bit", "gguf", "4-bit", "q4", "W8", "16bit", "bnb", "quantized", "modelopt", "GGUF"]
)
def test_a_word_that_fits_several_sizes_is_refused_with_its_choices(word):
    with pytest.raises(
        InvalidInput, match=f"weights: '{word}' can mean several formats of different sizes. Say one: .*"
    ):
        asked_for(word)


@every_row("word", AMBIGUOUS, at_least=35)
def test_each_of_those_choices_is_a_word_that_means_one(word):
    for choice in AMBIGUOUS[word].split(", "):
        assert asked_for(choice)
        assert choice.lower() not in AMBIGUOUS


def test_types_of_intermediate_products_and_unknown_words_are_refused():
    with pytest.raises(InvalidInput, match="q8_1 holds intermediate products only; no file is called so"):
        asked_for("q8_1")
    with pytest.raises(UnknownName, match=r"Did you mean .*q4_k_m"):
        asked_for("q4_k_mm")
    with pytest.raises(TonnageError):
        asked_for("")


@pytest.mark.parametrize("word", ["int4", "awq", "w4a16", "INT4", "awq-4bit-64g"])
def test_a_word_that_fits_the_checkpoint_converts_nothing(word):
    model = replace(read("llama-3.1-8b"), quantization=AWQ)
    assert storage(model, word).name == "awq-4bit-64g"
    assert stored_bytes(model, word) == stored_bytes(model)


@pytest.mark.parametrize(
    ("word", "name"), [("gptq", "gptq-4bit-128g"), ("int8", "int8"), ("awq-4bit-32g", "awq-4bit-32g"), ("nf4", "nf4")]
)
def test_a_word_that_does_not_fit_converts(word, name):
    assert storage(replace(read("llama-3.1-8b"), quantization=AWQ), word).name == name


def test_a_quantised_checkpoint_can_be_widened_and_a_fitting_word_keeps_it():
    model = replace(read("deepseek-v3"), quantization=FP8)
    assert stored_bytes(model, "bf16") == 2 * model.num_parameters(True)
    assert stored_bytes(model, "fp8") == stored_bytes(model) < 0.52 * stored_bytes(model, "bf16")


def test_a_mixture_is_what_most_of_it_is_in():
    """gpt-oss: experts in mxfp4, attention in 16 bits."""
    model = read("gpt-oss-20b")
    assert stored_bytes(model, "mxfp4") == stored_bytes(model) == 13_761_264_768


def test_experts_are_quantised_and_their_router_is_not():
    model = read("mixtral-8x7b")
    assert part_bits(model, "int4", "experts") == 4.125 and part_bits(model, "int4", "router") == 16
    # a GGUF file: w2 of the last layers, and Mixtral's keys and values, take more bits; the router is fp32
    assert 4.5 < part_bits(model, "Q4_K_M", "experts") < 6 and part_bits(model, "Q4_K_M", "router") == 32


def test_a_vision_tower_stays_in_16_bits():
    model = read("qwen2.5-vl-7b-instruct")
    tower = model.num_parameters() - sum(w.num_parameters * n for w, n in model.decoder.weighted())
    for word in ("int4", "fp8", "Q4_K_M", "Q8_0"):
        assert stored_bytes(model, word) - stored_bytes(model, word, towers=False) == 2 * tower


def test_a_tied_table_is_stored_once_and_in_the_type_of_the_head():
    model = read("gemma-2b")
    assert model.tied
    assert loose(model, "Q4_K_M", "embedding") == 6.5625 and loose(model, "int4", "embedding") == 16
    layers = stored_bytes(model, "int4") - 2 * model.num_embedding_parameters()
    assert layers < 0.27 * 2 * (model.num_parameters() - model.num_embedding_parameters())


def test_layers_without_values_are_not_counted_by_the_rules_for_values():
    """LFM2 has attention in 6 of its 16 layers: more bits go to the first and last eighth of those six."""
    model = read("lfm2-1.2b")
    stored = storage(model, "Q4_K_M")
    kinds = [model.decoder.blocks[index] for index in model.decoder.layers]
    values = []
    for layer, block in enumerate(kinds):
        for weight in block.weights():
            if weight.name == "self_attn.v_proj.weight":
                place = stored.blocks[block][[k for k, b in enumerate(kinds) if b is block].index(layer)]
                values.append(8 * stored.bytes_of(weight, place) / weight.num_parameters)
    assert values == [4.5, 4.5, 6.5625, 4.5, 4.5, 6.5625]


def test_a_file_of_gguf_is_its_headers_and_asking_for_its_own_type_keeps_them():
    group = TensorGroup(part="mlp", dtype="Q4_K", role="weight", tensors=1, elements=100, parameters=100, bytes=60)
    summary = TensorSummary(format="gguf", files=1, groups=(group,))
    model = replace(read("llama-3.1-8b"), quantization={"quant_method": "gguf", "file_type": "Q4_K_M"}, tensors=summary)
    for word in (None, "Q4_K_M", "q4_k"):
        assert stored_bytes(model, word) == pytest.approx(0.6 * model.num_parameters())
    assert storage(model, "Q8_0").name == "q8_0"
    assert storage(replace(model, tensors=None), None).source == "the file's own type"


def test_16_bits_that_no_config_names_are_marked_as_assumed():
    model = replace(read("llama-3.1-8b"), dtype=None, tensors=None)
    entry = serve(model, H100).question["weights"]
    assert entry.origin == "default" and entry.value == "bf16" and "assumed" in entry.why
    named = serve(read("llama-3.1-8b"), H100).question["weights"]
    assert named.origin == "model" and named.why == "the checkpoint's dtype"
    given = serve(model, H100, ServingOptions(weights="fp8")).question["weights"]
    assert given.origin == "given" and not given.why


def test_the_mean_over_layers_is_what_the_layers_take_together():
    model = read("llama-3.1-8b")
    stored = storage(model, "Q4_K_M")
    (block,) = model.decoder.blocks
    mean = sum(size for _, size in block_bytes(model, stored, block).values())
    each = [sum(stored.bytes_of(w, place) for w in block.weights()) for place in stored.blocks[block]]
    assert 32 * mean == pytest.approx(sum(each)) and min(each) < mean < max(each)
