"""Copies of the parameters in Megatron-core: weights, main gradients, and the optimizer's states, by their types.

Sources: Megatron-core, megatron/core/distributed/param_and_grad_buffer.py, megatron/core/optimizer/{distrib_optimizer,
optimizer_config}.py; Transformer Engine, transformer_engine/pytorch/optimizers/fused_adam.py.
"""

from typing import Literal

from msgspec import Struct

Type = Literal["fp32", "bf16", "fp16", "fp8"]
BYTES: dict[str, float] = {"fp32": 4, "bf16": 2, "fp16": 2, "fp8": 1}


class MegatronStates(Struct, frozen=True, kw_only=True):
    """Options by their names in Megatron; `instances`: num_distributed_optimizer_instances; `remainders`:
    store_param_remainders.
    """

    distributed: bool = True
    instances: int = 1
    grad_reduce_in_bf16: bool = False
    precision_aware: bool = False
    main_grads: Type = "fp32"
    main_params: Type = "fp32"
    exp_avg: Type = "fp32"
    exp_avg_sq: Type = "fp32"
    remainders: bool = True
    fp8_param_gather: float = 0  # bytes of a weight in fp8, with what it keeps beside; 0: weights are 16-bit
    offload_fraction: float = 0  # optimizer_offload_fraction, with optimizer_cpu_offload

    @property
    def weight_bytes(self) -> float:
        return self.fp8_param_gather or 2

    @property
    def gradient_bytes(self) -> float:
        """Whole on every rank: the distributed optimizer shards states alone."""
        narrow = self.grad_reduce_in_bf16 or (self.precision_aware and self.main_grads == "bf16")
        return 2 if narrow else 4

    @property
    def main_bytes(self) -> float:
        """The low halves of fp32 parameters, whose high halves are the weights, if remainders are stored."""
        if self.precision_aware and self.main_params == "fp32" and self.remainders and not self.fp8_param_gather:
            return 2
        return BYTES[self.main_params] if self.precision_aware else 4

    @property
    def moment_bytes(self) -> tuple[float, float]:
        return (BYTES[self.exp_avg], BYTES[self.exp_avg_sq]) if self.precision_aware else (4, 4)

    @property
    def sharded_bytes(self) -> float:
        """Bytes of each parameter of a rank's shard, on the accelerator."""
        return (self.main_bytes + sum(self.moment_bytes)) * (1 - self.offload_fraction)

    @property
    def host_bytes(self) -> float:
        """Bytes of each parameter of a rank's shard, pinned on the host: an fp32 copy, the gradient, the moments."""
        return (4 + self.gradient_bytes + 8) * self.offload_fraction

    @property
    def step_bytes(self) -> float:
        """Bytes of each parameter of a rank's shard, while the optimizer steps: fp32 copies of narrow gradients and
        states.
        """
        if not self.precision_aware:
            return 4 if self.gradient_bytes == 2 else 0
        widened = 4 if self.main_bytes == 2 and self.main_params != "fp32" else 0
        return widened + sum(4 for width in self.moment_bytes if width < 4)

    def shards(
        self, data: float, context: float = 1, tensor: float = 1, expert: float = 1, expert_tensor: float = 1
    ) -> tuple[float, float]:
        """Ranks that share the states of a dense parameter, and of an expert's."""
        if not self.distributed:
            return 1, 1
        dense = data * context
        return dense / self.instances, dense * tensor / (expert * expert_tensor) / self.instances
