"""Nemotron-H, Nemotron Nano 2, and Nemotron 3 and 3.5 Nano, Super and Ultra: each layer is one mixer behind one norm.

Structure: transformers 5.23, models/nemotron_h/modular_nemotron_h.py: layers of Mamba 2, attention, squared-relu
feed-forward or a mixture of such experts, which in Super and Ultra work in a latent width. Names are those of the
checkpoints ("backbone.").

Multi-token prediction is in the checkpoints as mtp.layers and not in transformers' class
(_keys_to_ignore_on_load_unexpected); its parts: vllm-project/vllm vllm/model_executor/models/nemotron_h_mtp.py. It
shares the embedding and the head. The 123,611,012,096 parameters that the Hub counts for Nemotron 3 Super are the main
model (120,668,707,840) and this branch (2,942,325,248), less the 41 x 512 correction biases of the routers, which are
fp32 while all else is bf16.

The recurrent state is fp32 unless mamba_ssm_cache_dtype says otherwise: vLLM's models/config.py,
NemotronHForCausalLMConfig.
"""

from tonnage.architectures._config import Config, is_one_of
from tonnage.architectures._layers import by_kind, moe
from tonnage.architectures._model import Block, Branch, Model
from tonnage.architectures._parts import attention, decoder, mlp, model, norm, num_layers
from tonnage.architectures._registry import architecture
from tonnage.architectures._state_space import state_bytes
from tonnage.kernel.errors import InvalidInput, shown
from tonnage.kernel.message import Message, listed
from tonnage.ops import Linear, Mamba2, MoE, Op

LETTERS = {"M": "mamba", "*": "attention", "-": "mlp", "E": "moe"}
KINDS = {
    "mamba": "mamba",
    "linear_attention": "mamba",
    "attention": "attention",
    "full_attention": "attention",
    "mlp": "mlp",
    "moe": "moe",
}
DEFAULTS = {
    "num_key_value_heads": 8, "head_dim": 128, "intermediate_size": 21504, "ssm_state_size": 128,
    "mamba_num_heads": 128, "mamba_head_dim": 64, "n_groups": 8, "conv_kernel": 4,
    "n_routed_experts": 8, "moe_intermediate_size": 7688, "moe_shared_expert_intermediate_size": 7688,
    "num_experts_per_tok": 2, "tie_word_embeddings": False, "mamba_ssm_cache_dtype": "float32",
}  # fmt: skip
NAMES = ("embeddings", "", "norm_f")


@architecture("NemotronHForCausalLM", model_types=("nemotron_h",))
def nemotron_h(c: Config) -> Model:
    c = c.with_defaults(DEFAULTS)
    blocks, layers = by_kind(main_kinds(c), lambda kind: Block(Message("{kind} layer", kind=kind), layer(c, kind)))
    tied = c.flag("tie_word_embeddings")
    branches = [decoder(c, blocks, layers, tied=tied, names=NAMES), *draft(c)]
    return model(c, "nemotron_h", *branches, tied=tied)


def layer(c: Config, kind: str) -> tuple[Op, ...]:
    mixers = {"mamba": mamba, "attention": attends, "mlp": feed_forward, "moe": mixture}
    return norm("norm", c.size("hidden_size")), mixers[kind](c)


def mamba(c: Config) -> Mamba2:
    return Mamba2(
        hidden_size=c.size("hidden_size"),
        heads=c.size("mamba_num_heads"),
        head_dim=c.size("mamba_head_dim"),
        state_size=c.size("ssm_state_size"),
        groups=c.size("n_groups", "mamba_n_groups"),
        conv_kernel=c.size("conv_kernel", "mamba_d_conv"),
        bias=c.flag("use_bias", default=False),
        conv_bias=c.flag("use_conv_bias", "mamba_conv_bias", default=True),
        state_bytes=state_bytes(c),
    )


def attends(c: Config) -> Op:
    width = c.size("attention_head_dim", default=None) or c.size("head_dim")
    window = c.size("sliding_window", default=None)
    return attention(c, name="mixer", head_dim=width, bias=c.flag("attention_bias", default=False), window=window)


def feed_forward(c: Config) -> Op:
    return mlp(c, name="mixer", gated=False, bias=c.flag("mlp_bias", default=False))


def mixture(c: Config) -> MoE:
    if c.flag("mlp_bias", default=False):
        raise InvalidInput(
            "{where}: mlp_bias with experts is a model that nobody has released. Set it to false.", where=c.where
        )
    shared, latent = c.size("moe_shared_expert_intermediate_size"), c.size("moe_latent_size", default=None)
    return moe(c, name="mixer", gated=False, correction_bias=True, shared_size=shared, latent_size=latent)


def draft(c: Config) -> list[Branch]:
    """Multi-token prediction: the first layer of a step joins hidden state and embedding, the last has an extra
    norm.
    """
    count = c.depth("num_nextn_predict_layers", default=0, smallest=0)
    if not count:
        return []
    h, kinds = c.size("hidden_size"), draft_kinds(c)
    blocks = []
    for i, kind in enumerate(kinds):
        ops = layer(c, kind)
        if i == 0:
            ops = (norm("enorm", h), norm("hnorm", h), Linear(name="eh_proj", in_features=2 * h, out_features=h), *ops)
        if i == len(kinds) - 1:
            ops += (norm("final_layernorm", h),)
        blocks.append(Block(Message("multi-token prediction, {kind}", kind=kind), ops))
    order = tuple(range(len(blocks))) * count
    return [Branch(name="multi-token prediction", kind="draft", hidden_size=h, blocks=tuple(blocks), layers=order)]


def main_kinds(c: Config) -> list[str]:
    """The kind of each layer: layers_block_type, or the letters of hybrid_override_pattern."""
    kinds = named_kinds(c, ("layers_block_type", "layer_types"), "hybrid_override_pattern")
    if kinds is None:
        raise InvalidInput(
            "{where} lacks hybrid_override_pattern or layers_block_type, which decides its size.", where=c.where
        )
    if "num_hidden_layers" in c and len(kinds) != num_layers(c):
        raise InvalidInput(
            "{where}: {@num_hidden_layers} is {num_layers}, but the pattern has {count} layers.",
            where=c.where,
            num_layers=num_layers(c),
            count=len(kinds),
        )
    return kinds


def draft_kinds(c: Config) -> list[str]:
    return named_kinds(c, ("mtp_layers_block_type",), "mtp_hybrid_override_pattern") or ["attention", "moe"]


def named_kinds(c: Config, names: tuple[str, ...], letters: str) -> list[str] | None:
    listed_kinds = c.items(*names, default=None)
    known, field = KINDS, names[0]
    if listed_kinds is None:
        pattern = c.text(letters, default=None)
        if pattern is None:
            return None
        listed_kinds, known, field = list(pattern), LETTERS, letters
    for kind in listed_kinds:
        if not is_one_of(kind, known):
            raise InvalidInput(
                "{where}: {field} may hold {known}. Got {kind}.",
                where=c.where,
                field=field,
                known=listed(known),
                kind=shown(kind),
            )
    return [known[kind] for kind in listed_kinds]
