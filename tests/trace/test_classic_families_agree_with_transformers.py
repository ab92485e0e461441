"""Older decoders, encoders and encoder-decoders against the classes of transformers, built on the meta device."""

import pytest
import torch
import transformers

from architectures import classic_configs, encoder_configs
from architectures.classic_configs import Case
from every_row import every_row
from oracles.transformers_count import count, known
from tonnage.architectures import Config, build
from tonnage.architectures.phi import phi4_text

REAL = {
    name: case
    for group in (classic_configs, encoder_configs)
    for cases in group.FAMILIES.values()
    for name, case in cases.items()
}
UNTIED_BY_CHECKPOINT = [
    name
    for name in encoder_configs.T5
    if REAL[name].fields.get("tie_word_embeddings") is False
    and REAL[name].fields["architectures"][0].endswith("ForConditionalGeneration")
]
NOT_IN_THE_CLASS = [*UNTIED_BY_CHECKPOINT, "nomic-ai/nomic-embed-text-v2-moe"]


def has_class(case: Case) -> bool:
    return "architectures" in case.fields and known(case.fields)


@pytest.mark.parametrize(
    "name", [name for name, case in REAL.items() if has_class(case) and name not in NOT_IN_THE_CLASS]
)
def test_a_released_model_has_as_many_parameters_as_its_class(name: str):
    assert count(REAL[name].fields) == REAL[name].parameters


@pytest.mark.parametrize("name", UNTIED_BY_CHECKPOINT)
def test_a_later_t5_has_one_head_more_than_its_class_ties(name: str):
    fields, parameters, _ = REAL[name]
    assert parameters - count(fields) == fields["vocab_size"] * fields["d_model"]


def test_the_released_deberta_v3_names_no_class_and_is_the_bare_model():
    for name in ("microsoft/deberta-v3-base", "microsoft/deberta-v3-large"):
        assert count(REAL[name].fields | {"architectures": ["DebertaV2Model"]}) == REAL[name].parameters


def llama(fields: dict, **changes: object) -> dict:
    return fields | {"architectures": ["LlamaForCausalLM"], "model_type": "llama"} | changes


def qwen2(fields: dict, **changes: object) -> dict:
    same = {
        "architectures": ["Qwen2ForCausalLM"],
        "model_type": "qwen2",
        "use_sliding_window": False,
        "tie_word_embeddings": False,
    }
    return fields | same | {"num_key_value_heads": fields["num_attention_heads"]} | changes


def glm_as_qwen2(fields: dict) -> dict:
    return qwen2(
        fields,
        vocab_size=fields["padded_vocab_size"],
        intermediate_size=fields["ffn_hidden_size"],
        num_hidden_layers=fields["num_layers"],
        num_key_value_heads=fields["multi_query_group_num"],
    )


# A class of transformers with the same tensors, for the models that only remote code builds.
TWINS = {
    **{
        name: qwen2(case.fields, intermediate_size=case.fields["intermediate_size"] // 2)
        for name, case in classic_configs.QWEN1.items()
    },
    **{name: llama(case.fields) for name, case in classic_configs.BAICHUAN.items()},
    **{name: llama(case.fields, attention_bias=case.fields["bias"]) for name, case in classic_configs.INTERNLM.items()},
    **{
        name: glm_as_qwen2(case.fields)
        for name, case in classic_configs.CHATGLM.items()
        if "padded_vocab_size" in case.fields
    },
    "microsoft/Phi-3.5-MoE-instruct": REAL["microsoft/Phi-3.5-MoE-instruct"].fields
    | {"architectures": ["PhimoeForCausalLM"]},
    "mosaicml/mpt-7b": REAL["mosaicml/mpt-7b"].fields | {"architectures": ["MptForCausalLM"]},
    "mosaicml/mpt-30b": REAL["mosaicml/mpt-30b"].fields | {"architectures": ["MptForCausalLM"]},
    "Alibaba-NLP/gte-base-en-v1.5": REAL["Alibaba-NLP/gte-base-en-v1.5"].fields | {"architectures": ["GteModel"]},
    "Alibaba-NLP/gte-multilingual-base": REAL["Alibaba-NLP/gte-multilingual-base"].fields
    | {"architectures": ["GteModel"]},
    "Alibaba-NLP/gte-multilingual-reranker-base": REAL["Alibaba-NLP/gte-multilingual-reranker-base"].fields
    | {"architectures": ["GteForSequenceClassification"]},
}


@pytest.mark.parametrize("name", TWINS)
def test_a_model_of_remote_code_has_as_many_parameters_as_the_class_with_its_tensors(name: str):
    assert count(TWINS[name]) == REAL[name].parameters


FEW = {"num_hidden_layers": 2}
SWITCHES: list[tuple[str, dict]] = [
    ("GPT2LMHeadModel", {"n_layer": 2, "n_inner": 1000}),
    ("GPT2LMHeadModel", {"n_layer": 2, "tie_word_embeddings": False}),
    ("GPTNeoForCausalLM", {"num_layers": 2, "attention_types": [[["global", "local"], 1]], "intermediate_size": 100}),
    ("GPTJForCausalLM", {"n_layer": 2, "n_embd": 64, "rotary_dim": 4}),
    ("CodeGenForCausalLM", {"n_layer": 2, "n_embd": 64, "n_head": 4, "rotary_dim": 4}),
    ("GPTNeoXForCausalLM", {**FEW, "attention_bias": False, "tie_word_embeddings": True}),
    ("OPTForCausalLM", {**FEW, "enable_bias": False, "layer_norm_elementwise_affine": False}),
    ("OPTForCausalLM", {**FEW, "_remove_final_layer_norm": True}),
    ("FalconForCausalLM", {**FEW, "new_decoder_architecture": True, "num_ln_in_parallel_attn": 1, "num_kv_heads": 71}),
    ("FalconForCausalLM", {**FEW, "new_decoder_architecture": True, "parallel_attn": False}),
    ("FalconForCausalLM", {**FEW, "alibi": True, "bias": True, "multi_query": False, "parallel_attn": False}),
    ("FalconForCausalLM", {**FEW, "ffn_hidden_size": 100}),
    ("GPTBigCodeForCausalLM", {"n_layer": 2, "multi_query": False, "n_inner": 77}),
    ("Starcoder2ForCausalLM", {**FEW, "use_bias": False}),
    ("StableLmForCausalLM", {**FEW, "use_qkv_bias": True, "qk_layernorm": True, "num_key_value_heads": 8}),
    ("PersimmonForCausalLM", {**FEW, "qk_layernorm": False}),
    ("CohereForCausalLM", {**FEW, "use_qk_norm": True, "num_key_value_heads": 8, "attention_bias": True}),
    ("Cohere2MoeForCausalLM", {"num_hidden_layers": 5, "num_key_value_heads": 8, "num_shared_experts": 2}),
    (
        "Cohere2MoeForCausalLM",
        {
            "num_hidden_layers": 5,
            "first_k_dense_replace": 2,
            "prefix_dense_intermediate_size": 100,
            "rms_norm_eps": 1e-5,
        },
    ),
    ("PhiForCausalLM", {**FEW, "qk_layernorm": True, "num_key_value_heads": 8}),
    ("Phi3ForCausalLM", {**FEW, "num_key_value_heads": 8, "tie_word_embeddings": True}),
    ("PhimoeForCausalLM", {**FEW, "attention_bias": False, "lm_head_bias": False}),
    ("BartForConditionalGeneration", {"encoder_layers": 2, "decoder_layers": 3}),
    ("MBartForConditionalGeneration", {"encoder_layers": 2, "decoder_layers": 3}),
    ("T5ForConditionalGeneration", {"num_layers": 3, "num_decoder_layers": 4, "feed_forward_proj": "gated-gelu"}),
    ("UMT5ForConditionalGeneration", {"num_layers": 3, "num_decoder_layers": 4}),
    (
        "DebertaV2ForMaskedLM",
        {
            **FEW,
            "relative_attention": True,
            "pos_att_type": ["c2p", "p2c"],
            "conv_kernel_size": 3,
            "type_vocab_size": 2,
            "embedding_size": 128,
        },
    ),
    ("DebertaV2Model", {**FEW, "relative_attention": True, "pos_att_type": "c2p", "max_relative_positions": 100}),
    ("DebertaV2ForMaskedLM", {**FEW, "legacy": False}),
    (
        "ModernBertForMaskedLM",
        {
            **FEW,
            "attention_bias": True,
            "mlp_bias": True,
            "norm_bias": True,
            "classifier_bias": True,
            "decoder_bias": False,
        },
    ),
    (
        "AlbertModel",
        {
            "num_hidden_layers": 7,
            "num_hidden_groups": 3,
            "inner_group_num": 2,
            "hidden_size": 256,
            "num_attention_heads": 4,
            "intermediate_size": 512,
        },
    ),
    ("ElectraModel", {**FEW, "embedding_size": 256}),
]


def fields_of(name: str, options: dict) -> dict:
    return {**getattr(transformers, name).config_class(**options).to_dict(), "architectures": [name]}


@pytest.mark.parametrize(
    ("name", "options"), SWITCHES, ids=[f"{name} {' '.join(options)}" for name, options in SWITCHES]
)
def test_every_switch_of_a_config_counts_as_in_the_class(name: str, options: dict):
    fields = fields_of(name, options)
    assert build(fields, name).num_parameters() == count(fields)


TASKS = (
    "Model",
    "ForMaskedLM",
    "ForCausalLM",
    "LMHeadModel",
    "ForPreTraining",
    "ForNextSentencePrediction",
    "ForConditionalGeneration",
    "EncoderModel",
    "ForSequenceClassification",
    "ForTokenClassification",
    "ForQuestionAnswering",
    "ForMultipleChoice",
)
ENCODERS = (
    "Bert",
    "Roberta",
    "XLMRoberta",
    "Camembert",
    "Electra",
    "MPNet",
    "DistilBert",
    "Albert",
    "DebertaV2",
    "ModernBert",
    "NomicBert",
    "Gte",
    "JinaEmbeddingsV3",
    "T5",
    "MT5",
    "UMT5",
    "Bart",
    "MBart",
)
DECODERS = (
    "GPT2",
    "GPTNeo",
    "GPTNeoX",
    "GPTJ",
    "OPT",
    "Bloom",
    "Falcon",
    "Mpt",
    "GPTBigCode",
    "Starcoder2",
    "StableLm",
    "Persimmon",
    "Phi",
    "Phi3",
    "Phimoe",
    "Llama",
    "Mistral",
    "Qwen2",
    "Qwen3",
    "Mixtral",
)
HEADS = [name + task for name in (*ENCODERS, *DECODERS) for task in TASKS if hasattr(transformers, name + task)]
SMALLER = {
    "num_hidden_layers": 2,
    "n_layer": 2,
    "n_layers": 2,
    "num_layers": 2,
    "encoder_layers": 2,
    "decoder_layers": 2,
}


@every_row(
    "name",
    [name for name in HEADS if name not in ("CamembertForCausalLM", "BartForCausalLM", "MBartForCausalLM")],
    at_least=190,
)
def test_a_class_has_the_head_that_its_name_says(name: str):
    defaults = getattr(transformers, name).config_class().to_dict()
    options = {key: value for key, value in SMALLER.items() if key in defaults and "attention_layers" not in defaults}
    labels = {} if name.endswith("ForQuestionAnswering") else {"num_labels": 5}  # a start and an end
    fields = fields_of(name, options | labels)
    assert build(fields, name).num_parameters() == count(fields)


def test_the_text_part_of_phi_4_multimodal_is_that_of_its_class():
    fields = fields_of("Phi4MultimodalForCausalLM", FEW)
    config = transformers.Phi4MultimodalConfig(**FEW)
    config._attn_implementation = "eager"
    with torch.device("meta"):
        made = transformers.Phi4MultimodalForCausalLM(config)
    text = sum(weight.numel() for name, weight in made.named_parameters() if "embed_tokens_extend" not in name)
    assert phi4_text(Config(fields, "config.json")).num_parameters() == text


NAMED_AS_IN_THE_CLASS = [
    "GPT2LMHeadModel",
    "GPTNeoForCausalLM",
    "GPTJForCausalLM",
    "CodeGenForCausalLM",
    "GPTNeoXForCausalLM",
    "OPTForCausalLM",
    "XGLMForCausalLM",
    "BloomForCausalLM",
    "FalconForCausalLM",
    "MptForCausalLM",
    "GPTBigCodeForCausalLM",
    "Starcoder2ForCausalLM",
    "StableLmForCausalLM",
    "PersimmonForCausalLM",
    "CohereForCausalLM",
    "Cohere2ForCausalLM",
    "PhiForCausalLM",
    "Phi3ForCausalLM",
    "BertModel",
    "RobertaModel",
    "XLMRobertaModel",
    "ElectraModel",
    "MPNetModel",
    "DistilBertModel",
    "DebertaV2Model",
    "ModernBertModel",
    "JinaEmbeddingsV3Model",
    "T5ForConditionalGeneration",
    "UMT5ForConditionalGeneration",
    "MT5EncoderModel",
    "BartForConditionalGeneration",
    "MBartForConditionalGeneration",
]


def tensors_of_the_class(name: str, options: dict) -> set[str]:
    config = getattr(transformers, name).config_class(**options)
    config._attn_implementation = "eager"
    with torch.device("meta"):
        return {key for key, _ in getattr(transformers, name)(config).named_parameters()}


@pytest.mark.parametrize("name", NAMED_AS_IN_THE_CLASS)
def test_every_weight_has_the_name_of_a_tensor_of_the_class(name: str):
    defaults = getattr(transformers, name).config_class().to_dict()
    options = {key: value for key, value in SMALLER.items() if key in defaults and "attention_layers" not in defaults}
    tensors = tensors_of_the_class(name, options)
    made = build(fields_of(name, options), name)
    ours = {weight.name for weight, _ in made.weighted()}
    assert {
        weight for weight in ours if not any(tensor == weight or tensor.endswith(f".{weight}") for tensor in tensors)
    } == {
        weight
        for weight in ours
        if weight == "final_logits_bias"  # a buffer
    }
