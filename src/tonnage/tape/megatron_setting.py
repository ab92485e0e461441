"""Settings that decide how Megatron-core runs a layer: command-line options, and facts that changed between
releases.
"""

from typing import Literal

from tonnage.tape._setting import Setting

Release = tuple[int, int]
ContextParallel = Literal["", "a2a", "p2p", "allgather"]
# cp_comm_type; all-gather keeps as much as its own output besides what the projection keeps, as all-to-all does
Recipe = Literal["", "delayed", "tensorwise", "blockwise", "mxfp8"]
CrossEntropy = Literal["te", "native", "unfused"]

# Bytes of a number as an fp8 recipe stores it: scales for 32, or for 128, numbers (Transformer Engine,
# pytorch/tensor/*).
STORED: dict[str, float] = {"delayed": 1, "tensorwise": 1, "mxfp8": 1 + 1 / 32, "blockwise": 1 + 4 / 128}

# The first release of Megatron-core or of Transformer Engine with a behaviour, among those that were read:
# core 0.14, 0.15.3, 0.16.0, 0.17.0, 0.18.0; Transformer Engine 2.2, 2.5, 2.7, 2.8, 2.9, 2.10, 2.11, 2.20.
SINCE: dict[str, tuple[Literal["core", "engine"], Release]] = {
    "shared experts run before the router": ("core", (0, 15)),  # transformer/moe/moe_layer.py, custom_forward
    "experts' outputs are combined apart from their unpermutation": ("core", (0, 16)),  # moe_layer.py, postprocess
    "recomputed outputs share their storage": ("core", (0, 17)),  # tensor_parallel/random.py, _get_share_storage
    "router multiplies in Transformer Engine": (
        "core",
        (0, 17),
    ),  # transformer/moe/moe_utils.py with engine 2.10 or newer
    "attention keeps its output before the all-to-all": (
        "engine",
        (2, 8),
    ),  # attention/dot_product_attention/context_parallel.py
    "dummy weight gradients persist": ("engine", (2, 4)),  # module/base.py, get_dummy_wgrad; 2.3 was not read
    "dummy weight gradients of grouped linears persist": ("engine", (2, 10)),  # module/grouped_linear.py
    "the workspace of matrix products has 1024 bytes more": (
        "engine",
        (2, 8),
    ),  # module/base.py, get_cublas_workspace_size_bytes
    "the router lost its workspace": (
        "engine",
        (2, 10),
    ),  # get_workspace is gone: core before 0.17 multiplies with torch
}


class MegatronSetting(Setting, frozen=True, kw_only=True):
    """`core`, `engine`: releases of Megatron-core and of Transformer Engine. Names follow Megatron's options.

    `tensor_parallel`: more than one such rank; `sequence_parallel`: with them. `recompute_modules` hold where
    `recompute` is "selective".
    `fp8_input_store`: activation_func_fp8_input_store. `expert_parallel`, `expert_tensor_parallel`: more than one such
    rank;
    `local_experts`: more than one expert a rank. `router_pre_softmax`, `router_groups`, `aux_loss`, `router_fp32`: the
    router's options; `score`: "" as the model has it. `capacity`: tokens beyond an expert's capacity are dropped, and
    each expert's input is padded to it.
    """

    core: Release = (0, 18)
    engine: Release = (2, 11)
    sequence_parallel: bool = False
    tensor_parallel: bool = False
    context_parallel: ContextParallel = ""
    context_parallel_size: int = 1
    recompute_modules: tuple[str, ...] = ("core_attn",)
    gradient_accumulation_fusion: bool = True
    rope_fusion: bool = True
    fp8: Recipe = ""
    fp8_input_store: bool = False
    cross_entropy: CrossEntropy = "unfused"
    expert_parallel: bool = True
    local_experts: bool = True
    expert_tensor_parallel: bool = False
    score: Literal["", "softmax", "sigmoid"] = ""
    router_pre_softmax: bool = False
    router_groups: bool = False
    router_fp32: bool = False
    aux_loss: bool = True
    capacity: bool = False
    permute_fusion: bool = True
    shared_expert_overlap: bool = False

    def has(self, fact: str) -> bool:
        """Whether these releases have this behaviour."""
        which, first = SINCE[fact]
        return (self.core if which == "core" else self.engine) >= first

    def recomputes(self, module: str) -> bool:
        """Whether selective recomputation runs this module again."""
        return self.recompute == "selective" and module in self.recompute_modules
