"""Quantised copies of the catalogue's models by their names, and what is said of names that need a network."""

import pytest

from every_row import every_row
from tonnage.cli import main
from tonnage.kernel.errors import MissingDatum, UnknownName, Unreachable
from tonnage.models import kind, read
from tonnage.models.derivatives import ESTIMATED_SPEECH, contents, looks_like

COPIES = [
    ("qwen3 32b awq", "qwen3-32b", "awq"),
    ("Qwen/Qwen3-32B-AWQ", "qwen3-32b", "awq"),
    ("hugging-quants/Meta-Llama-3.1-70B-Instruct-AWQ-INT4", "llama-3.1-70b", "awq"),
    ("Qwen/Qwen2.5-72B-Instruct-GPTQ-Int4", "qwen2.5-72b-instruct", "gptq"),
    ("Qwen/Qwen2.5-72B-Instruct-GPTQ-Int8", "qwen2.5-72b-instruct", "gptq"),
    ("TheBloke/Mistral-7B-Instruct-v0.2-GPTQ", "mistral-7b-instruct-v0.2", "gptq"),
    ("Qwen/Qwen3-32B-FP8", "qwen3-32b", "fp8"),
    ("RedHatAI/Meta-Llama-3.1-70B-Instruct-FP8-dynamic", "llama-3.1-70b", "fp8"),
    ("unsloth/Meta-Llama-3.1-8B-Instruct-bnb-4bit", "llama-3.1-8b", "bitsandbytes"),
    ("unsloth/Qwen3-14B-unsloth-bnb-4bit", "qwen3-14b", "bitsandbytes"),
    ("mlx-community/Qwen3-32B-4bit", "qwen3-32b", None),
    ("mlx-community/Qwen3-32B-4bit-DWQ", "qwen3-32b", None),
    ("Qwen/Qwen3-32B-GGUF", "qwen3-32b", "gguf"),
    ("unsloth/Qwen3-14B-GGUF:Q6_K", "qwen3-14b", "gguf"),
    ("https://huggingface.co/unsloth/Qwen3-14B-GGUF", "qwen3-14b", "gguf"),
    ("hf.co/unsloth/Qwen3-14B-GGUF:Q8_0", "qwen3-14b", "gguf"),
    ("llama 3.1 8b q4_k_m", "llama-3.1-8b", "gguf"),
    ("qwen3-8b-q8_0", "qwen3-8b", "gguf"),
]


@pytest.fixture(autouse=True)
def no_network(monkeypatch):
    monkeypatch.setattr("tonnage.models.hubs.web.get", lambda *_: pytest.fail("asked the network"))


@every_row(("name", "base", "method"), COPIES, at_least=18)
def test_a_quantised_copy_is_its_base_with_other_weights(name, base, method):
    copy, original = read(name), read(base)
    assert copy.num_parameters() == original.num_parameters()
    assert copy.num_layers == original.num_layers
    assert (copy.quantization or {}).get("quant_method") == method
    assert f"is read as {original.name}, its weights as" in str(copy.notes[-1])


@pytest.mark.parametrize(
    ("name", "least", "most"),
    [
        ("Qwen/Qwen3-32B-AWQ", 18.0, 19.5),  # GiB; the repository's files have 19.3 GB
        ("Qwen/Qwen3-32B-FP8", 30.5, 33.5),
        ("unsloth/Qwen3-32B-bnb-4bit", 17.5, 19.5),
        ("Qwen/Qwen3-32B-GGUF:Q4_K_M", 17.5, 19.0),
        ("Qwen/Qwen3-32B-GGUF:Q8_0", 31.5, 33.0),
        ("mlx-community/Qwen3-32B-4bit", 16.5, 18.5),
    ],
)
def test_the_weights_of_a_copy_are_as_large_as_its_name_says(name, least, most):
    import tonnage

    engine = {"engine": "llama.cpp"} if "GGUF" in name or "mlx" in name else {}
    answer = tonnage.serve(name, "h200", context=2048, advice=False, **engine)
    weights = next(child for child in answer.memory.children if child.name == "weights")
    assert least <= weights.value / 2**30 <= most


@pytest.mark.parametrize(
    "name", ["hf:Qwen/Qwen3-32B-AWQ", "someone/foo-AWQ", "Qwen/Qwen3-32B-AWQ@main", "foo awq", "-awq"]
)
def test_other_names_are_read_as_they_are(name):
    assert kind(name) in ("hub", "unknown")
    assert name.startswith("hf:") or contents(name) is None


def test_a_url_of_a_model_of_the_catalogue_needs_no_network():
    for url in ("https://huggingface.co/Qwen/Qwen3-32B", "hf.co/Qwen/Qwen3-32B/"):
        assert read(url).name == "qwen3-32b"
    with pytest.raises(UnknownName, match="looks like qwen3-32b"):  # of a revision the files are asked for
        read("https://huggingface.co/Qwen/Qwen3-32B/tree/x", offline=True)


@pytest.mark.parametrize(
    ("name", "base"),
    [
        ("NousResearch/Hermes-3-Llama-3.1-8B", "llama-3.1-8b"),
        ("someone/my-qwen2.5-7b-sft-v2", "qwen2.5-7b"),
        ("someone/foo", ""),
        ("someone/llama", ""),
        ("someone/18b-model", ""),
    ],
)
def test_a_name_that_holds_a_models_name_looks_like_it(name, base):
    assert looks_like(name) == base


def test_a_derivative_without_network_is_told_what_to_ask_with():
    with pytest.raises(
        UnknownName, match=r"looks like llama-3.1-8b: ask with llama-3.1-8b, or give its config.json"
    ) as error:
        read("someone/Tuned-Llama-3.1-8B", offline=True)
    assert "Errno" not in str(error.value) and error.value.exit_status == 64
    with pytest.raises(Unreachable):
        read("someone/foo", offline=True)


def test_a_kind_that_is_missing_is_said_of_an_id_that_cannot_be_read():
    with pytest.raises(UnknownName, match=r"is an embedding model that the catalogue does not have yet. Give its"):
        read("intfloat/e5-large-v2", offline=True)


@pytest.mark.parametrize(
    ("name", "how"),
    [
        ("nvidia/parakeet-tdt-0.6b-v3", "a FastConformer encoder with a CTC or transducer decoder"),
        ("canary-1b-v2", "a small attention decoder"),
        ("canary-qwen-2.5b", "before Qwen3 with adapters"),
        ("facebook/wav2vec2-base-960h", "an encoder over the waveform with CTC"),
        ("moonshine-base", "sounds of any length"),
        ("kyutai/stt-2.6b-en", "audio codes at 12.5 Hz"),
    ],
)
def test_speech_models_without_an_estimate_say_how_they_write_text_and_what_is_estimated(name, how):
    with pytest.raises(MissingDatum, match=how) as error:
        read(name, offline=True)
    for known in ESTIMATED_SPEECH:
        assert known in str(error.value)
        assert read(known, offline=True).branches


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("whisper-small-de", "is a speech model that the catalogue does not have yet"),
        ("e5-large", "is an embedding model that the catalogue does not have yet"),
        ("e5-large", "The catalogue has 'multilingual-e5-large'"),
        ("clip-vit-base-patch32", "is an image encoder"),
    ],
)
def test_kinds_of_models_that_are_missing_are_said_so(name, said, capsys):
    assert main(["serve", name, "--on", "h100"]) == 64
    assert said in capsys.readouterr().err
