"""Feed-forward layers: plain, gated, and mixtures of experts."""

from typing import Any

from tonnage.kernel.message import Message
from tonnage.ops._base import Kernels, Op, Saved, SavedSplit, Weight, matrix
from tonnage.tape import TENSOR, TOKEN, Code, Extent, Tensor

EXPERT = Extent("token", "expert")
INDEX = 8  # bytes of an index


class MLP(Op, frozen=True, eq=False, kw_only=True):
    """`hidden_size` -> `intermediate_size` -> `hidden_size`; `gated`: act(gate) * up in between."""

    name: str = "mlp"
    hidden_size: int
    intermediate_size: int
    gated: bool = True
    bias: bool = False
    out_bias: bool | None = None
    names: tuple[str, str, str] = ("gate_proj", "up_proj", "down_proj")
    keeps_input: bool = True  # False: the parallel attention reads the same tensor and keeps it

    def weights(self) -> tuple[Weight, ...]:
        gate, up, down = (f"{self.name}.{name}" if self.name else name for name in self.names)
        cut: dict[str, Any] = {"split": "tensor", "part": "mlp"}
        weights: tuple[Weight, ...] = (
            matrix(gate, self.hidden_size, self.intermediate_size, bias=self.bias, **cut) if self.gated else ()
        )
        weights += matrix(up, self.hidden_size, self.intermediate_size, bias=self.bias, **cut)
        out_bias = self.bias if self.out_bias is None else self.out_bias
        return weights + matrix(
            down, self.intermediate_size, self.hidden_size, bias=out_bias, bias_split="replicated", **cut
        )

    def saved(self, kernels: Kernels) -> tuple[Saved, ...]:
        tensors = inner_saved("mlp", self.intermediate_size, self.gated, "tensor", kernels)
        if self.keeps_input:
            tensors = (Saved("mlp input", self.hidden_size), *tensors)
        if kernels.dropout:
            tensors += (Saved("mlp dropout mask", self.hidden_size, bytes_per_element=1),)
        return tensors

    def forward(self, code: Code, x: Tensor) -> Tensor:
        gate, up, down = (f"{self.name}.{name}" if self.name else name for name in self.names)
        inner = self.intermediate_size
        if not self.gated:
            x = code.activation(code.linear(up, x, self.held(up), inner, TENSOR))
        elif gate == up:
            one, other = code.parts(code.linear(up, x, self.held(up), 2 * inner, TENSOR), [inner, inner])
            x = code.mul(other, code.activation(one))
        else:
            x = code.mul(
                code.activation(code.linear(gate, x, self.held(gate), inner, TENSOR)),
                code.linear(up, x, self.held(up), inner, TENSOR),
            )
        if code.style.drops_inner:
            x = code.dropped(x)
        return code.dropped(code.linear(down, x, self.held(down), self.hidden_size))


class MoE(Op, frozen=True, eq=False, kw_only=True):
    """A router that sends each token to `top_k` of `num_experts` feed-forward experts, beside experts that all tokens
    share.

    `shared_size` is the intermediate size of all shared experts together; `shared_gate` a learned scalar gate on them;
    `correction_bias` one number an expert that only the choice sees; `latent_size`: experts work in a smaller width,
    with projections in and out of it, and a norm before the way out if `latent_norm` names one. An empty `name` puts
    the weights beside those of the layer's other parts.
    """

    name: str = "mlp"
    hidden_size: int
    num_experts: int
    top_k: int
    intermediate_size: int
    gated: bool = True
    bias: bool = False
    router_name: str = "gate"
    router_bias: bool = False
    correction_bias: bool = False
    shared_size: int = 0
    shared_gated: bool | None = None
    shared_gate: bool = False
    shared_name: str = "shared_experts"
    shared_names: tuple[str, str, str] = ("gate_proj", "up_proj", "down_proj")
    shared_bias: bool = False
    latent_size: int | None = None
    extra_router: int = 0  # scales and others: numbers besides the router's matrix
    experts_name: str = "experts"
    expert_names: tuple[str, str, str] = ("gate_proj", "up_proj", "down_proj")
    correction_name: str = ""  # empty: e_score_correction_bias of the router
    latent_names: tuple[str, str] = ("fc1_latent_proj", "fc2_latent_proj")
    latent_norm: str = ""

    def _at(self, name: str) -> str:
        return f"{self.name}.{name}" if self.name else name

    def weights(self) -> tuple[Weight, ...]:
        h, router = self.hidden_size, self._at(self.router_name)
        weights: tuple[Weight, ...] = (Weight(f"{router}.weight", self.num_experts, h, part="router", linear=True),)
        if self.router_bias:
            weights += (Weight(f"{router}.bias", self.num_experts, part="router"),)
        if self.correction_bias:
            name = self._at(self.correction_name) if self.correction_name else f"{router}.e_score_correction_bias"
            weights += (Weight(name, self.num_experts, part="router"),)
        if self.extra_router:
            weights += (Weight(f"{router}.scale", self.extra_router, part="router"),)
        weights += self._experts() + self._latent()
        if self.shared_size:
            gated = self.gated if self.shared_gated is None else self.shared_gated
            shared = MLP(
                name=self._at(self.shared_name),
                hidden_size=h,
                intermediate_size=self.shared_size,
                gated=gated,
                names=self.shared_names,
                bias=self.shared_bias,
            )
            weights += shared.weights()
        if self.shared_gate:
            weights += (Weight(self._at("shared_expert_gate.weight"), 1, h, part="router"),)
        return weights

    def _experts(self) -> tuple[Weight, ...]:
        width, f = self.latent_size or self.hidden_size, self.intermediate_size
        gate, up, down = (f"{self._at(self.experts_name)}.{name}" for name in self.expert_names)
        per_expert: dict[str, Any] = {
            "copies": self.num_experts,
            "active": self.top_k,
            "split": "expert",
            "part": "experts",
            "bias": self.bias,
        }
        weights: tuple[Weight, ...] = matrix(gate, width, f, **per_expert) if self.gated else ()
        return weights + matrix(up, width, f, **per_expert) + matrix(down, f, width, **per_expert)

    def _latent(self) -> tuple[Weight, ...]:
        if not self.latent_size:
            return ()
        into, out = (self._at(name) for name in self.latent_names)
        weights = matrix(into, self.hidden_size, self.latent_size, part="mlp")
        weights += matrix(out, self.latent_size, self.hidden_size, part="mlp")
        if self.latent_norm:
            weights += (Weight(f"{self._at(self.latent_norm)}.weight", self.latent_size, part="norm"),)
        return weights

    def saved(self, kernels: Kernels) -> tuple[Saved, ...]:
        width, k = self.latent_size or self.hidden_size, self.top_k
        tensors: tuple[Saved, ...] = (
            Saved("mixture input", self.hidden_size),
            Saved("router scores in fp32", 2 * self.num_experts, bytes_per_element=4),
            Saved("tokens sent to experts", k * width, "expert"),
        )
        tensors += inner_saved("experts", k * self.intermediate_size, self.gated, "expert", kernels)
        tensors += (Saved("experts' outputs", k * width, "expert"),)
        if self.shared_size:
            gated = self.gated if self.shared_gated is None else self.shared_gated
            tensors += inner_saved("shared experts", self.shared_size, gated, "tensor", kernels)
        if kernels.dropout:
            tensors += (Saved("mixture dropout mask", self.hidden_size, bytes_per_element=1),)
        return tensors

    def forward(self, code: Code, x: Tensor) -> Tensor:
        if self.latent_size or self.extra_router:
            return super().forward(code, x)
        first = code.style.router.shared_first
        shared = self._shared(code, x) if self.shared_size and first else None
        out = self._routed(code, x)
        if self.shared_size:
            out = code.add(out, self._gated_share(code, x, shared or self._shared(code, x)))
        return code.dropped(out)

    def _routed(self, code: Code, x: Tensor) -> Tensor:
        with code.inside(self.name):
            if code.style.router.every_expert and not code.groups_experts:
                return self._through_all(code, x)
            return self.experts_out(code, x, self.scores(code, x))

    def experts_out(self, code: Code, x: Tensor, chosen: Tensor) -> Tensor:
        """Output of the routed experts: sort the tokens by expert, multiply in groups, restore the order."""
        k, h, width = self.top_k, self.hidden_size, x.width
        tokens = code.gathered(x, k * h, EXPERT, 2 * INDEX * k)
        chosen = code.gathered(chosen, k, EXPERT, 0)
        mixed = code.mul(self._experts_of(code, tokens, k), chosen)
        del tokens, chosen
        return code.to(code.summed(code.gathered(mixed, k * h, EXPERT, INDEX * k), h, TOKEN), width)

    def _through_all(self, code: Code, x: Tensor) -> Tensor:
        """Output of all experts: Llama 4 sends every token through each, times a score that is zero for those not
        chosen.
        """
        count, h = self.num_experts, self.hidden_size
        name = self._at(self.router_name)
        scores = code.gathered(
            code.linear(name, x, self.held(name), count, is_module=False), count, TOKEN, INDEX * self.top_k
        )
        scores = code.to(code.mapped("sigmoid", code.to(scores, 4), saves="output"), x.width)
        tokens = code.mul(code.copy(x, count * h, EXPERT), code.copy(scores, count, EXPERT))
        return code.summed(self._experts_of(code, tokens, count), h, TOKEN)

    def scores(self, code: Code, x: Tensor) -> Tensor:
        """Weights of the chosen experts' outputs."""
        style, k = code.style.router, self.top_k
        name = self._at(self.router_name)
        if style.wide:
            logits = code.wide_linear(name, x, self.held(name), self.num_experts)
        else:
            logits = code.linear(name, x, self.held(name), self.num_experts, is_module=False)
        scores = code.to(logits, 4)
        del logits
        if style.chosen_first:
            scores = code.gathered(scores, k, TOKEN, INDEX * k)
        scores = code.mapped(style.scores, scores, saves="output")
        if not style.chosen_first:
            scores = code.gathered(scores, k, TOKEN, INDEX * k)
        return scores if style.stays_wide else code.to(scores, code.types.compute)

    def _experts_of(self, code: Code, tokens: Tensor, copies: float) -> Tensor:
        """The experts' outputs for `copies` of each token."""
        gate, up, down = (f"{self._at(self.experts_name)}.{name}" for name in self.expert_names)
        inner = copies * self.intermediate_size
        code.worked.copies = copies
        out = self._products_of(code, tokens, up, gate, down, inner, copies)
        code.worked.copies = 1
        return out

    def _products_of(
        self, code: Code, tokens: Tensor, up: str, gate: str, down: str, inner: float, copies: float
    ) -> Tensor:
        if not self.gated:
            hidden = code.activation(code.linear(up, tokens, self.held(up), inner, EXPERT, is_module=False))
        else:
            held = self.held(up) if gate == up else [*self.held(gate), *self.held(up)]
            both = code.linear("gate_up_proj", tokens, held, 2 * inner, EXPERT, is_module=False)
            hidden = code.gate_and_up(both, inner)
            del both
        return code.linear(down, hidden, self.held(down), copies * self.hidden_size, EXPERT, is_module=False)

    def _shared(self, code: Code, x: Tensor) -> Tensor:
        gated = self.gated if self.shared_gated is None else self.shared_gated
        shared = MLP(
            name=self._at(self.shared_name),
            hidden_size=self.hidden_size,
            intermediate_size=self.shared_size,
            gated=gated,
            names=self.shared_names,
            bias=self.shared_bias,
        )
        return shared.forward(code, x)

    def _gated_share(self, code: Code, x: Tensor, out: Tensor) -> Tensor:
        if not self.shared_gate:
            return out
        name = self._at("shared_expert_gate")
        return code.mul(code.mapped("sigmoid", code.linear(name, x, self.held(name), 1), saves="output"), out)


def inner_saved(name: str, width: int, gated: bool, split: SavedSplit, kernels: Kernels) -> tuple[Saved, ...]:
    """Tensors kept between the two matrix products: the activation's inputs, and the input of the last product."""
    last = Saved(Message("{name} down input", name=name), width, split)
    if not gated:
        return Saved(Message("{name} activation input", name=name), width, split), last
    tensors: tuple[Saved, ...] = (
        Saved(Message("{name} gate", name=name), width, split),
        Saved(f"{name} up", width, split),
    )
    if not kernels.fused_activation:
        tensors += (Saved(Message("{name} activated gate", name=name), width, split),)
    return (*tensors, last)
