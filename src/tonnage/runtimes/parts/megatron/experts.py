"""A mixture of experts in Megatron-core: router, permutation, all-to-all, grouped products, and back.

Local names are those of MoELayer.forward.custom_forward: what they name when the tokens come back is the peak of many
runs.
Sources: Megatron-core,
megatron/core/transformer/moe/{moe_layer,router,moe_utils,token_dispatcher,experts,shared_experts}.py; Transformer
Engine, transformer_engine/pytorch/permutation.py.
"""

from collections.abc import Sequence

from tonnage.ops import MLP, MoE
from tonnage.tape import TENSOR, TOKEN, Exchange, Held, Tensor
from tonnage.tape.megatron import CUT_ROW, GATHERED, ROW, MegatronCode
from tonnage.tape.tape import Gradients

INDEX = 8  # bytes of an index


def rows_at_experts(
    op: MoE, tokens: float, *, capacity_factor: float | None = None, imbalance: float = 1, expert_tensor: int = 1
) -> float:
    """What one unit "row" of an extent counts: copies of tokens that arrive at the experts of a rank.

    `tokens`: of the rank's shard of the sequence. `capacity_factor`: every expert is given as many as it has room for
    (moe_utils.py, get_capacity), padded. `imbalance`: of the fullest rank over the mean.
    """
    if capacity_factor is not None:
        return -(-tokens * op.top_k * capacity_factor // op.num_experts) * op.num_experts * expert_tensor
    return tokens * op.top_k * imbalance * expert_tensor


def mixture(code: MegatronCode, op: MoE, x: Tensor) -> Tensor:
    """The layer, which can be run again as a whole."""
    with code.inside(op.name):
        if code.setting.recomputes("moe"):
            return code.checkpoint(lambda x: _forward(code, op, x), x)
        return _forward(code, op, x)


def _forward(code: MegatronCode, op: MoE, x: Tensor) -> Tensor:
    first = code.setting.has("shared experts run before the router")
    shared = _shared(code, op, x) if first and op.shared_size else None
    inner = _latent(code, op, x, 0)
    permuted, chosen = _permuted(code, inner, _routed(code, op, x))
    del inner
    # DeepEP and HybridEP take both in one call (fused_a2a.py: FusedDispatch, HybridEPDispatch)
    dispatched, chosen = _exchanged(code, permuted), _exchanged(code, chosen, along=True)
    if not first and op.shared_size:
        shared = _shared(code, op, x)
    del x
    output = _computed(code, op, dispatched, chosen)
    del chosen
    # combine(output) exchanges and unpermutes while the caller still names what it gave; from core 0.16 on only the
    # former
    if code.setting.has("experts' outputs are combined apart from their unpermutation"):
        combined = _exchanged(code, output)
        code.moment("combine")
        del output
        out = _unpermuted(code, combined, op)
    else:
        combined = _exchanged(code, output)
        out = _unpermuted(code, combined, op)
    code.moment("unpermute")
    out = _latent(code, op, out, 1)
    return out if shared is None else code.add(out, shared)


def _latent(code: MegatronCode, op: MoE, x: Tensor, which: int) -> Tensor:
    """Experts of a smaller width have products into it and out of it, on every tensor rank."""
    if not op.latent_size:
        return x
    name = op.latent_names[which]
    return code.linear(name, x, op.held(f"{op.name}.{name}"), op.hidden_size if which else op.latent_size)


def _routed(code: MegatronCode, op: MoE, x: Tensor) -> Tensor:
    """Scores in separate operations; what is kept of them follows from the router's options."""
    s, experts, k = code.setting, op.num_experts, op.top_k
    router = f"{op.name}.{op.router_name}" if op.name else op.router_name
    weights = [code.weight(*weight[:3]) for weight in op.held(router)]
    sigmoid = (s.score or ("sigmoid" if op.correction_bias else "softmax")) == "sigmoid"
    with code.inside("router"):
        scores = code.new(experts if sigmoid or s.router_pre_softmax else k, 4)  # in fp32
        saved = [scores, code.new(k, INDEX)]
        if s.router_groups:
            saved.append(code.new(experts, 1, name="mask of groups"))
        if s.capacity:
            saved.append(code.new(experts, 1, name="map of tokens that are not dropped"))
        if s.aux_loss:
            saved.append(
                code.new(experts, x.width if sigmoid and not s.router_fp32 else 4, name="scores of the auxiliary loss")
            )
        probs = code.new(experts, 4 if s.router_fp32 else x.width)  # the dispatcher names them until its next forward
        elements, width, extent = x.elements, x.width, x.extent

        def derivative(_: Gradients) -> Gradients:
            temporaries = [code.new(experts, 4), code.new(experts, 4)]
            gradients_out = [
                code.new(elements, width, extent),
                *(code.new(weight.elements, 2, weight.extent) for weight in weights),
            ]
            code.mark()
            del temporaries
            return gradients_out

        code.note("mm", [probs], [x, *weights], [x, *saved, probs], derivative)
        return probs


def _permuted(code: MegatronCode, x: Tensor, probs: Tensor) -> tuple[Tensor, Tensor]:
    """Copies of the tokens in order of experts, and what the router gave each: keeps where every token went."""
    with code.inside("permute"):
        row = CUT_ROW if code.setting.expert_tensor_parallel else ROW
        permuted, chosen = code.new(x.elements, x.width, row), code.new(1, x.width, row)
        places = code.new(2 * probs.elements + 1, 4) if code.setting.permute_fusion else code.new(1, INDEX, row)
        shapes = [(tensor.elements, tensor.width, tensor.extent) for tensor in (x, probs)]
        code.note("permute", [permuted, chosen], [x, probs], [places], lambda _: [code.new(*shape) for shape in shapes])
        return permuted, chosen


def _exchanged(code: MegatronCode, x: Tensor, along: bool = False) -> Tensor:
    """All-to-all over expert ranks; a single one sends nothing."""
    if not code.setting.expert_parallel:
        return x
    out = code.like(x)
    shape = x.elements, x.width, x.extent
    exchange = Exchange("expert parallel", "all_to_all", along=along)
    code.note("all_to_all", [out], [x], [], lambda _: [code.new(*shape)], exchange)
    return out


def _gathered(code: MegatronCode, x: Tensor, back: bool = False) -> Tensor:
    """Expert-tensor ranks gather the rows of one another, and scatter the sums of their outputs."""
    if not code.setting.expert_tensor_parallel:
        return x
    out = code.new(x.elements, x.width, CUT_ROW if back else ROW)
    shape = x.elements, x.width, x.extent
    code.note(
        "gather",
        [out],
        [x],
        [],
        lambda _: [code.new(*shape)],
        Exchange("expert tensor parallel", "reduce_scatter" if back else "all_gather"),
    )
    return out


def _sorted(code: MegatronCode, x: Tensor) -> Tensor:
    """Chunks of ranks become chunks of experts, and back. Padded to capacity, it is a transposition, whose gradient
    is a view.
    """
    s = code.setting
    if not s.local_experts or (s.capacity and not s.expert_parallel and not s.expert_tensor_parallel):
        return x
    out = code.like(x)
    code.note("sort", [out], [x], [], lambda g: [_view(g) if s.capacity else code.like(_given(g))])
    return out


def _given(gradients: Gradients) -> Tensor:
    gradient = gradients[0]
    assert gradient is not None
    return gradient


def _view(gradients: Gradients) -> Tensor:
    return _given(gradients).alias(is_view=True)


def _computed(code: MegatronCode, op: MoE, dispatched: Tensor, chosen: Tensor) -> Tensor:
    """Rows through the experts of this rank: the output is named in their order until that of ranks is made."""
    tokens, chosen = _sorted(code, _gathered(code, dispatched)), _sorted(code, _gathered(code, chosen))
    gate, up, down = (
        f"{op.name}.{op.experts_name}.{name}" if op.name else f"{op.experts_name}.{name}" for name in op.expert_names
    )
    held = [*op.held(gate), *op.held(up)] if op.gated else op.held(up)
    width = op.latent_size or op.hidden_size
    with code.inside("experts"):
        both = code.grouped("linear_fc1", tokens, held, op.intermediate_size * (2 if op.gated else 1), CUT_ROW)
        if code.setting.recomputes("moe_act"):
            acts = code.discarding(lambda both, chosen: [code.gated(both, op.intermediate_size, chosen)], both, chosen)
            del both
            expert_output = acts.drop(_second(code, acts.outputs, op.held(down), width))
        else:
            products = [code.gated(both, op.intermediate_size, chosen)]
            del both
            expert_output = _second(code, products, op.held(down), width)
        if op.bias:
            expert_output = _biased(code, expert_output, chosen)
    return _gathered(code, _sorted(code, expert_output), back=True)


def _second(code: MegatronCode, products: list[Tensor], held: Sequence[Held], width: float) -> Tensor:
    return code.grouped("linear_fc2", products.pop(), held, width, ROW)


def _biased(code: MegatronCode, x: Tensor, chosen: Tensor) -> Tensor:
    """The second product leaves its bias out, which is added times what the router gave each row: separate
    operations, in fp32 as the router's figures are (TEGroupedMLP._apply_bias).
    """
    elements, width, extent = x.elements, x.width, x.extent

    def wide() -> Tensor:
        return code.new(elements, 4, extent)

    def of_product(_: Gradients) -> Gradients:
        temporaries = [wide(), wide()]  # what becomes the sums of the bias and of each row
        biases = [code.new(1, 4, extent)]
        code.mark()
        del temporaries
        return biases

    with code.inside("bias"):
        scaled, added, joined, out = wide(), None, None, None
        code.note("mul", [scaled], [chosen], [chosen], of_product)
        added = wide()
        code.note("add", [added], [x, scaled], [], lambda g: [code.new(elements, width, extent), _given(g).alias()])
        joined = wide()
        code.note("cat", [joined], [added], [], lambda g: [_given(g).alias(is_view=True)])
        out = code.new(elements, width, extent)
        code.note("to", [out], [joined], [], lambda _: [wide()])
        return out


def _unpermuted(code: MegatronCode, x: Tensor, op: MoE) -> Tensor:
    """Sums of what the experts gave for each token; where the tokens went is kept already."""
    out = code.new(op.latent_size or op.hidden_size, x.width, TOKEN)
    shape = x.elements, x.width, x.extent
    code.note("unpermute", [out], [x], [], lambda _: [code.new(*shape)])
    return out


def _shared(code: MegatronCode, op: MoE, x: Tensor) -> Tensor:
    """The experts that every token passes: an MLP without a norm of its own."""
    run = _shared_forward
    if code.setting.recomputes("shared_experts"):
        return code.checkpoint(lambda x: run(code, op, x), x)
    return run(code, op, x)


def _shared_forward(code: MegatronCode, op: MoE, x: Tensor) -> Tensor:
    name = f"{op.name}.{op.shared_name}" if op.name else op.shared_name
    gated = op.gated if op.shared_gated is None else op.shared_gated
    shared = MLP(
        name=name,
        hidden_size=op.hidden_size,
        intermediate_size=op.shared_size,
        gated=gated,
        names=op.shared_names,
        bias=op.shared_bias,
    )
    gate, up, down = (f"{name}.{part}" for part in op.shared_names)
    held = [*shared.held(gate), *shared.held(up)] if gated else shared.held(up)
    with code.inside("shared_experts"):
        into = _overlapped(code, x)
        product = code.gated(
            code.linear("linear_fc1", into, held, op.shared_size * (2 if gated else 1), TENSOR), op.shared_size
        )
        out = code.linear("linear_fc2", product, shared.held(down), op.hidden_size)
        if not op.shared_gate:
            return out
        gated_by = code.linear(
            "gate", x, op.held(f"{op.name}.shared_expert_gate" if op.name else "shared_expert_gate"), 1
        )
        return code.mul(out, code.mapped("sigmoid", gated_by, saves="output"))


def _overlapped(code: MegatronCode, x: Tensor) -> Tensor:
    """With overlap the gathered input is made beforehand, and kept whole."""
    if not (code.setting.shared_expert_overlap and code.setting.sequence_parallel):
        return x
    out = code.new(x.elements, x.width, GATHERED)
    shape = x.elements, x.width, x.extent
    code.note("gather", [out], [x], [], lambda _: [code.new(*shape)], Exchange("tensor parallel", "all_gather"))
    return out
