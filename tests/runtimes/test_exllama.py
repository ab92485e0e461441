"""ExLlamaV2 and ExLlamaV3: mean bits of EXL2 and EXL3, caches and buffers by their sources, what fits a card as the
README says, speeds that it publishes, and TabbyAPI's command.
"""

from types import SimpleNamespace

import pytest
from msgspec.structs import replace

import tonnage
from tonnage import read
from tonnage.catalogue import accelerator, models
from tonnage.estimate.serving.engine_checks import engine_of_format, loads, stored_format
from tonnage.estimate.serving.memory import serving_memory
from tonnage.estimate.serving.weights.storage import storage, stored_bytes
from tonnage.estimate.serving_time.rates import serving_rates
from tonnage.kernel.errors import InvalidInput, InvalidPlan
from tonnage.kernel.units import GIB
from tonnage.runtimes import serving_runtime
from tonnage.spec import ServingPlan

LAYERS_7B = 32 * (4 * 4096**2 + 3 * 4096 * 11008)  # matrices of Llama 2 7B's layers
HEAD_7B = 32000 * 4096
NORMS_7B = 65 * 4096 * 2
BITS_OF_HEAD = 0.15 * 8 + 0.85 * 6 + 4 / 128  # exllamav2/conversion/qparams.py: qparams_headoptions[6]
TOKEN_8B = 32 * 2 * 8 * 128  # numbers of a token's keys and values in Llama 3.1 8B


def answered(engine="exllamav2", weights="exl2-4.0", model="llama-3.1-8b", on="rtx-4090", **options):
    return tonnage.serve(
        model, on=on, engine=engine, weights=weights, **{"context": 8192, "concurrency": 1, **options}
    ).to_dict()


def memory_of(model, engine="exllamav2", weights="exl2-4.0", **plan):
    chosen = ServingPlan.of_fields(engine=engine, weights=weights, **{"context": 8192, **plan})
    return serving_memory(read(model), chosen, accelerator("rtx-4090"))


# ---- formats ----


@pytest.mark.parametrize("bits", [2.5, 3.0, 4.25, 6.0])
def test_exl2_counts_its_mean_of_layers_a_head_of_6_bits_and_a_table_of_16(bits):
    expected = (LAYERS_7B * bits + HEAD_7B * BITS_OF_HEAD) / 8 + HEAD_7B * 2 + NORMS_7B
    assert stored_bytes(read("llama-2-7b-hf"), f"exl2-{bits}") == pytest.approx(expected, rel=1e-6)


def test_a_head_of_6_bits_takes_about_6_3_as_the_documentation_says():
    """exllamav2, doc/convert.md: -hb."""
    model = read("llama-2-7b-hf")
    sizes = [stored_bytes(model, f"exl2-4.0-h{bits}") for bits in (6, 8)]
    assert (sizes[1] - sizes[0]) * 8 / HEAD_7B == pytest.approx(8 - 6.3, abs=0.01)
    assert pytest.approx(6.3, abs=0.05) == BITS_OF_HEAD


def test_exl3_has_its_bits_and_a_factor_for_each_input_and_output():
    """exllamav3/modules/quant/exl3.py: trellis of 16 * K 16-bit words a tile of 256, suh and svh."""
    ends = 32 * (4 * (4096 + 4096) + 3 * (4096 + 11008)) + 4096 + 32000
    expected = LAYERS_7B * 3.5 / 8 + HEAD_7B * 6 / 8 + ends * 2 + HEAD_7B * 2 + NORMS_7B
    assert stored_bytes(read("llama-2-7b-hf"), "exl3-3.5") == pytest.approx(expected, rel=1e-6)


@pytest.mark.parametrize("spelled", ["exl2-4.25", "EXL2_4.25bpw", "exl2-4.25-h6", "exl2-4.25bpw-h6"])
def test_bits_may_be_spelled_as_the_hub_does(spelled):
    assert storage(read("llama-2-7b-hf"), spelled).name == "exl2-4.25"


@pytest.mark.parametrize(
    ("weights", "says"),
    [
        ("exl2-9", r"2 to 8 bits. Got 'exl2-9'. Nearest: exl2-8\.0"),
        ("exl2-1.5", r"Nearest: exl2-2\.0"),
        ("exl3-0.5", r"Nearest: exl3-1\.0"),
        ("exl2-4.0-h7", "cannot have 7 bits. Got 'exl2-4.0-h7'. Nearest: exl2-4-h6"),
        ("exl2-four", r"does not say a mean number of bits. Write exl2-4\.0"),
        ("exl2", r"Say one: exl2-4\.0"),
    ],
)
def test_bits_that_no_file_has_are_refused_with_the_nearest_that_one_has(weights, says):
    with pytest.raises(InvalidInput, match=says):
        answered(weights=weights)


@pytest.mark.parametrize(
    ("config", "like"),
    [
        ({"quant_method": "exl2", "version": "0.1.8", "bits": 4.25, "head_bits": 6}, "exl2-4.25"),
        ({"quant_method": "exl2", "bits": 6.0, "head_bits": 8}, "exl2-6.0-h8"),
        ({"quant_method": "exl3", "bits": 3.0}, "exl3-3.0"),
    ],
)
def test_a_config_with_quant_method_exl2_or_exl3_is_read_as_such(config, like):
    """exllamav2/conversion/compile.py writes these fields into config.json."""
    own = {**models.model_file("llama-2-7b-hf").config, "quantization_config": config}
    model = tonnage.read(own)
    assert stored_bytes(model) == stored_bytes(read("llama-2-7b-hf"), like)
    answer = tonnage.serve(model, on="rtx-4090", context=4096).to_dict()
    assert answer["question"]["engine"]["value"] == f"exllamav{config['quant_method'][-1]}"


def test_files_that_were_read_by_their_headers_are_the_engines_too():
    config = {"quant_method": "exl2", "bits": 4.0, "head_bits": 6}
    model = tonnage.read({**models.model_file("llama-2-7b-hf").config, "quantization_config": config})
    sizes = {"decoder": LAYERS_7B // 2, "head": HEAD_7B // 2, "embedding": HEAD_7B * 2}
    counts = {"decoder": LAYERS_7B, "head": HEAD_7B, "embedding": HEAD_7B}
    headers = SimpleNamespace(
        num_parameters=sum(counts.values()),
        total_bytes=sum(sizes.values()),
        bytes_by_part=sizes,
        parameters_by_part=counts,
        groups=(SimpleNamespace(dtype="I32", role="weight"),),
    )
    read_online = replace(model, tensors=headers)
    assert stored_format(read_online, None).startswith("exl2-")
    assert engine_of_format(read_online, None) == "exllamav2"
    assert not loads(serving_runtime("vllm"), stored_format(read_online, None))


@pytest.mark.parametrize("wrong", [{"bits": 12}, {"bits": "4"}, {}, {"bits": 4, "head_bits": 7}])
def test_a_config_whose_bits_no_file_can_have_is_refused(wrong):
    own = {
        **models.model_file("llama-2-7b-hf").config,
        "quantization_config": {"quant_method": "exl2", **wrong},
    }
    with pytest.raises(InvalidInput, match="quantization_config"):
        stored_bytes(tonnage.read(own))


@pytest.mark.parametrize(
    ("name", "weights", "engine"),
    [
        ("LoneStriker/Llama-2-70b-hf-2.4bpw-h6-exl2", "exl2-2.4", "exllamav2"),
        ("turboderp/Qwen3-8B-exl3:4.0bpw", "exl3-4", "exllamav3"),
    ],
)
def test_names_of_the_hub_say_their_bits_in_the_name_or_the_branch(name, weights, engine):
    question = tonnage.serve(name, on="rtx-4090", context=2048).to_dict()["question"]
    assert (question["weights"]["value"], question["engine"]["value"]) == (weights, engine)


# ---- memory ----


@pytest.mark.parametrize(("model", "bits", "card_gib"), [("llama-2-70b-hf", "2.55", 24), ("llama-2-13b-hf", "2.65", 8)])
def test_what_the_readme_says_fits_a_card_with_2048_tokens_fits(model, bits, card_gib):
    """turboderp/exllamav2 README.md: 70B at 2.55 bits on 24 GB, 13B at 2.65 within 8 GB."""
    needed = memory_of(model, weights=f"exl2-{bits}", context=2048).memory.value
    assert needed < card_gib * GIB
    if card_gib == 24:
        assert needed > 0.9 * card_gib * GIB


@pytest.mark.parametrize(("context", "held"), [(1, 256), (256, 256), (257, 512), (8192, 8192)])
def test_the_cache_is_whole_pages_of_256_tokens_of_every_layer(context, held):
    assert memory_of("llama-3.1-8b", context=context).memory.child("kv cache").value == held * TOKEN_8B * 2


@pytest.mark.parametrize(
    ("engine", "word", "bits"),
    [
        ("exllamav2", "fp8", 8),
        ("exllamav2", "q8", 8.5),
        ("exllamav2", "q6", 6.5),
        ("exllamav2", "q4", 4.5),
        ("exllamav3", "q2", 2.5),
        ("exllamav3", "q5", 5.5),
        ("exllamav3", "q8", 8.5),
    ],
)
def test_a_quantised_cache_has_a_scale_for_32_numbers_and_one_layer_beside_it_in_16_bits(engine, word, bits):
    """exllamav2/cache.py: shape_s, temp_tensors; exllamav3/cache/quant.py: qshape_s, get_kv."""
    document = answered(engine, "exl3-4.0" if engine == "exllamav3" else "exl2-4.0", kv_cache=word)
    parts = {each["name"]: each for each in document["memory"]["children"]}
    assert parts["kv cache"]["value"] == 8192 * TOKEN_8B * bits / 8
    unpacked = next(
        each for each in parts["activations"]["children"] if each["name"] == "one layer of the cache in 16 bits"
    )
    assert unpacked["value"] == 8192 * TOKEN_8B / 32 * 2


def test_reading_a_quantised_cache_moves_it_in_16_bits_too():
    slow, fast = (
        answered(kv_cache=kind, input_tokens=8000, output_tokens=100)["serving"]["tpot_seconds"]["value"]
        for kind in ("q4", "fp16")
    )
    assert slow > fast


def test_the_table_is_in_host_memory_and_the_head_alone_on_the_card():
    found = memory_of("llama-2-7b-hf", context=2048)
    expected = (LAYERS_7B * 4 + HEAD_7B * BITS_OF_HEAD) / 8 + NORMS_7B
    assert found.memory.child("weights").value == pytest.approx(expected, rel=1e-6)
    assert found.host.child("weights").value == HEAD_7B * 2
    assert [child.name for child in found.host.children if child.value] == ["weights"]


def test_a_tied_model_has_a_head_of_its_own_in_the_formats_bits():
    model = read("llama-3.2-1b")
    table = model.vocab_size * model.hidden_size
    whole = memory_of("llama-3.2-1b").memory.child("weights")
    narrow = memory_of("llama-3.2-1b", weights="exl2-4.0-h4").memory.child("weights")
    bits = 0.15 * 8 + 0.85 * 6 + 4 / 128 - (0.15 * 6 + 0.85 * 4 + 4 / 32)
    assert whole.value - narrow.value == pytest.approx(table * bits / 8, rel=1e-6)


@pytest.mark.parametrize(
    ("engine", "weights", "columns"), [("exllamav2", "exl2-4.0", 128256), ("exllamav3", "exl3-4.0", 32768)]
)
def test_the_largest_matrix_is_unpacked_to_16_bits_as_far_as_the_source_does(engine, weights, columns):
    """exllamav2/linear.py: temp_dq_size; exllamav3/modules/quant/exl3.py: MAX_RECONSTRUCT_SLICE_N."""
    activations = memory_of("llama-3.1-8b", engine, weights).memory.child("activations")
    head = next(term for _, term in activations.walk() if term.name == "head")
    assert head.child("largest matrix in 16 bits").value == columns * 4096 * 2


# ---- what is refused, and what starts it ----


def test_other_engines_refuse_these_formats_and_name_the_engine_that_loads_them():
    for engine in ("vllm", "llama.cpp", "sglang", "exllamav3"):
        with pytest.raises(InvalidPlan, match="only exllamav2 loads files in exl2-4"):
            answered(engine)
    with pytest.raises(InvalidPlan, match="loads bf16, fp16, gptq, exl2"):
        answered(weights="q4_k_m")
    assert answered(weights="gptq")["serving"]["launch"].startswith("python main.py")


def test_exllamav2_refuses_latent_attention_and_recurrent_states():
    with pytest.raises(InvalidPlan, match=r"no latent attention .* Nearest: exllamav3"):
        answered(model="deepseek-v2-lite", on="h200")


@pytest.mark.parametrize(
    ("spelled", "name"),
    [("exllama", "exllamav2"), ("exl2", "exllamav2"), ("ExLlamaV3", "exllamav3"), ("tabbyAPI", "exllamav3")],
)
def test_names_that_people_use_lead_to_an_engine(spelled, name):
    assert serving_runtime(spelled).name == name


def test_tabbyapi_is_told_lengths_cache_and_backend():
    one = tonnage.serve(
        "LoneStriker/Llama-2-70b-hf-2.4bpw-h6-exl2", on="rtx-4090", context=4096, kv_cache="q4"
    ).to_dict()["serving"]["launch"]
    assert one.splitlines()[0] == (
        "python main.py --model-name Llama-2-70b-hf-2.4bpw-h6-exl2 --backend exllamav2 --max-seq-len 4096 "
        "--cache-size 4096 --cache-mode Q4"
    )
    many = answered("exllamav3", "exl3-4.0", concurrency=40, kv_cache="q5", max_num_batched_tokens=512, context=1000)
    assert many["serving"]["launch"].splitlines()[0].partition(" --backend ")[2] == (
        "exllamav3 --max-seq-len 1000 --cache-size 40960 --cache-mode 5,5 --chunk-size 512 --max-batch-size 40"
    )


def test_an_fp8_cache_which_tabbyapi_lacks_is_started_by_the_console_chat():
    assert answered(kv_cache="fp8")["serving"]["launch"].splitlines()[0].endswith("-mode raw -l 8192 -c8")


# ---- times ----


@pytest.mark.parametrize(
    ("model", "weights", "card", "tokens"),
    [
        ("llama-2-7b-hf", "exl2-5.0", "rtx-4090", 179),
        ("llama-2-70b-hf", "exl2-2.5", "rtx-4090", 38),
        ("codellama-34b-hf", "exl2-4.0", "rtx-3090-ti", 44),
        ("llama-13b", "gptq", "rtx-3090-ti", 110),
    ],
)
def test_figures_of_the_readme_that_no_fit_has_read_are_met_within_a_sixth(model, weights, card, tokens):
    answer = answered(weights=weights, model=model, on=card, context=256, input_tokens=128, output_tokens=128)
    assert 1 / answer["serving"]["tpot_seconds"]["value"] == pytest.approx(tokens, rel=1 / 6)


def test_times_that_nobody_published_have_a_band_twice_over_and_say_so():
    bands = serving_rates().bands
    two, three = (answered(engine, weights) for engine, weights in (("exllamav2", "exl2-4"), ("exllamav3", "exl3-4")))
    for document, quantity, times in ((two, "tpot", 1), (two, "ttft", 2), (three, "tpot", 2), (three, "ttft", 2)):
        serving, band = document["serving"], bands[f"{quantity}_seconds"]
        value = serving[f"{quantity}_seconds"]["value"]
        assert serving[f"{quantity}_band"] == pytest.approx((value * band.low**times, value * band.high**times))
    assert any("give its TTFT: the efficiency" in each for each in two["warnings"])
    assert any("give its TTFT and TPOT" in each or "give its TTFT, TPOT" in each for each in three["warnings"])
