"""IA3 of peft: vectors that scale what layers give or take. Counts and kept tensors are those of peft's own code."""

import pytest

import tonnage
from tonnage.kernel.errors import InvalidPlan, MissingDatum, NotApplicable
from tonnage.runtimes.parts.peft import IA3
from tonnage.tape import CODES, Adapters, Held, Setting, Types, layer

# What peft scales in a layer: rows of keys or queries and values, columns of the last layer of the MLP.
COUNTS = {
    "llama-2-7b-hf": 32 * (4096 + 4096 + 11008),
    "llama-3.1-8b": 32 * (1024 + 1024 + 14336),
    "mistral-7b-v0.1": 32 * (1024 + 1024 + 14336),
    "qwen2.5-7b": 28 * (3584 + 512 + 18944),
    "gemma-2-9b": 42 * (16 * 256 + 8 * 256 + 14336),
}


def answer(model="llama-3.1-8b", on="H100-SXM-80GB", **said):
    return tonnage.train(model, on=on, method="ia3", sequence_length=1024, as_is=True, **said)


@pytest.mark.parametrize("model", COUNTS)
def test_as_many_numbers_train_as_peft_names(model):
    """In fp32 with their gradients and two moments (peft, autocast_adapter_dtype)."""
    made = answer(model)
    assert made.memory.child("optimizer").value == 8 * COUNTS[model]
    assert made.memory.child("weights").child("adapters").value == 4 * COUNTS[model]
    assert made.to_dict()["checkpoint"]["value"] == 12 * COUNTS[model]


TINY = {
    "llama": ("LlamaConfig", {"intermediate_size": 40}),
    "mistral": ("MistralConfig", {"intermediate_size": 40}),
    "qwen2": ("Qwen2Config", {"intermediate_size": 40}),
    "qwen3": ("Qwen3Config", {"intermediate_size": 40, "head_dim": 16}),
    "gemma2": ("Gemma2Config", {"intermediate_size": 40, "head_dim": 8}),
    "phi": ("PhiConfig", {"intermediate_size": 40}),
    "gpt_neox": ("GPTNeoXConfig", {"intermediate_size": 40}),
}


@pytest.mark.filterwarnings("ignore::FutureWarning")
@pytest.mark.parametrize("kind", TINY)
def test_peft_itself_trains_as_many(kind, tmp_path):
    peft, transformers = pytest.importorskip("peft"), pytest.importorskip("transformers")
    torch = pytest.importorskip("torch")
    name, sizes = TINY[kind]
    sizes = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 4, "vocab_size": 64, **sizes}
    if kind not in ("gpt_neox", "phi"):
        sizes["num_key_value_heads"] = 2
    config = getattr(transformers, name)(**sizes)
    with torch.device("meta"):
        model = transformers.AutoModelForCausalLM.from_config(config)
    theirs = peft.get_peft_model(model, peft.IA3Config(task_type="CAUSAL_LM"), low_cpu_mem_usage=True)
    config.architectures = [type(model).__name__]
    config.save_pretrained(tmp_path)
    trainable, _ = theirs.get_nb_trainable_parameters()
    made = tonnage.train(str(tmp_path), on="H100-SXM-80GB", method="ia3", sequence_length=64, as_is=True)
    assert made.memory.child("optimizer").value == 8 * trainable


def test_the_layers_are_those_of_pefts_tables():
    constants = pytest.importorskip("peft.utils.constants")
    for kind, (outputs, inputs) in IA3.items():
        assert [*outputs, inputs] == constants.TRANSFORMERS_MODELS_TO_IA3_TARGET_MODULES_MAPPING[kind]
        assert [inputs] == constants.TRANSFORMERS_MODELS_TO_IA3_FEEDFORWARD_MODULES_MAPPING[kind]


@pytest.mark.parametrize(("is_input", "kept"), [(False, 2 * 24), (True, 4 * 16)])
def test_what_a_scaled_layer_keeps_is_what_torch_saves(is_input, kept):
    """Of a token beside its weights: the narrow result, or the input in the type of the vector."""
    setting = Setting(
        code="eager",
        types=Types(2, 2),
        adapters=Adapters(rank=0, targets=("k",), scales=True, scaled_inputs=("k",) if is_input else ()),
    )
    code = CODES["eager"](setting)
    made = layer(code, lambda x: code.linear("a.k", x, [Held(16 * 24, "tensor")], 24), 16, 2)
    assert sum(each.bytes for each in made.kept if each.key.extent.unit == "token") == kept

    torch, ia3 = pytest.importorskip("torch"), pytest.importorskip("peft.tuners.ia3.layer")
    peft = pytest.importorskip("peft")
    base = torch.nn.Linear(16, 24, bias=False, dtype=torch.bfloat16).requires_grad_(False)
    scaled = ia3.Linear(base, "default", peft.IA3Config(), is_feedforward=is_input)
    scaled.ia3_l.float()  # as get_peft_model does (tuners_utils.py: cast_adapter_dtype)
    tokens, saved = 10, {}
    weights = {base.weight.data_ptr()}

    def pack(tensor):
        if tensor.data_ptr() not in weights and tensor.numel() >= tokens * 16:
            saved[tensor.data_ptr()] = tensor.numel() * tensor.element_size()
        return tensor

    x = torch.randn(tokens, 16, dtype=torch.bfloat16, requires_grad=True)
    with torch.autograd.graph.saved_tensors_hooks(pack, lambda tensor: tensor):
        scaled(x).sum()
    assert sum(saved.values()) == kept * tokens


def test_a_step_is_cheaper_than_that_of_lora_and_ranks_send_no_more_than_its_vectors():
    lora = tonnage.train("llama-3.1-8b", on="H100-SXM-80GB", method="lora", sequence_length=1024, as_is=True)
    assert answer().memory.value < lora.memory.value
    assert answer().step_time.value < lora.step_time.value
    many = answer(on="8xH100-SXM-80GB", runtime="ddp").to_dict()["traffic"]["value"]
    assert many < 10 * 4 * COUNTS["llama-3.1-8b"]


@pytest.mark.parametrize("runtime", ["ddp", "deepspeed", "fsdp2"])
def test_runtimes_on_which_peft_wraps_the_model_have_it(runtime):
    assert answer(on="8xH100-SXM-80GB", runtime=runtime).memory.value


@pytest.mark.parametrize(
    ("said", "error", "words"),
    [
        ({"runtime": "torchtune"}, InvalidPlan, "fsdp2, transformers, ddp, deepspeed"),
        ({"model": "mixtral-8x7b-v0.1", "on": "8xH100-SXM-80GB"}, MissingDatum, "of type mixtral"),
        ({"lora_rank": 8}, NotApplicable, "belongs to method lora"),
        ({"base_weights": "nf4"}, NotApplicable, "belongs to method lora"),
    ],
)
def test_what_is_not_known_of_it_is_refused(said, error, words):
    with pytest.raises(error, match=words):
        answer(**said)
