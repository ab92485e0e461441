"""What an engine's launch command is made of, for the functions `launch` in the engines' files.

What those functions write is copied to a shell; notes, which stand there as comments, are texts for people.
"""

from collections.abc import Mapping

from msgspec import Struct

from tonnage.architectures import Model
from tonnage.kernel.message import Message
from tonnage.kernel.units import GIB
from tonnage.spec import Cluster, ServingPlan

Words = list[str]
HUB = "MODEL"  # stands in a command where the model has no name that a loader knows
FIRST = "FIRST-NODE"  # the address of the node of rank 0
RANK = "NODE-RANK"  # from 0
HERE = "THIS-NODE"  # the address of the node on which a command runs
PREFILL, DECODE = "prefill", "decode"
KV_WORDS: Mapping[str, str] = {"fp8-e4m3": "fp8_e4m3", "fp8-e5m2": "fp8_e5m2", "nvfp4": "nvfp4", "mxfp8": "mxfp8"}


class Spread(Struct, frozen=True, kw_only=True):
    """`nodes` of one server and the `copies` of the model that it runs, each on ranks of its own; `servers` that the
    plan needs.
    """

    nodes: int
    copies: int
    servers: int

    @property
    def each(self) -> str:
        """What to do with the command of one server."""
        many = (
            Message("The plan is {servers} such servers, each on accelerators of its own.", servers=self.servers)
            if self.servers > 1
            else ""
        )
        if self.nodes == 1:
            return many
        return (
            Message(
                "Run it on each of the {nodes} nodes of a server, with {rank} from 0 to {nodes2}. {many}",
                nodes=self.nodes,
                rank=RANK,
                nodes2=self.nodes - 1,
                many=many,
            )
            if many
            else Message(
                "Run it on each of the {nodes} nodes, with {rank} from 0 to {nodes2}.",
                nodes=self.nodes,
                rank=RANK,
                nodes2=self.nodes - 1,
            )
        )


class Roles(Struct, frozen=True, kw_only=True):
    """Servers that compute prompts alone and servers that decode alone, and what carries caches between them."""

    prefill: int
    decode: int
    transfer: str

    def addresses(self, role: str, port: int) -> list[str]:
        """host:port of each server of a role, the hosts as names to be replaced."""
        number = self.prefill if role == PREFILL else self.decode
        return [f"{role.upper()}-{each}:{port}" for each in range(1, number + 1)]


class Start(Struct, frozen=True, kw_only=True):
    """What is started: `name` of the checkpoint, `file` if it is a GGUF file, `words` with which its weights are
    loaded, where it runs;
    `place`: as a loader finds the model, `draft`: the one that drafts; `engine`: its version. `notes`: what the
    writer has to tell besides. `role`: prefill or decode of disaggregated serving, "" where a server does both;
    `transfer`: what carries the caches between them.
    """

    model: Model
    plan: ServingPlan
    cluster: Cluster
    engine: str
    name: str
    place: str
    file: str
    draft: str
    words: Words
    spread: Spread
    notes: Words
    role: str = ""
    transfer: str = ""

    @property
    def shares_experts_widely(self) -> bool:
        """Whether a server of one role has ranks with requests of their own that exchange tokens for the experts of a
        layer (wide expert parallelism). Servers that do both are started with the engine's default.
        """
        plan = self.plan
        return bool(self.role) and plan.expert_parallel_size > 1 and plan.attention_data_parallel_size > 1

    def note_dispatch(self) -> None:
        """Memory that no term counts."""
        self.notes.append(
            Message("The buffers of {library} on each GPU are not in the memory above.", library=self.dispatches_by)
        )

    @property
    def dispatches_by(self) -> str:
        """The library of the kernels that dispatch tokens to experts and combine their outputs on these accelerators;
        "" where none is known. DeepEP, README.md: Ampere (SM80) within a node, Hopper (SM90) and later with RDMA.
        ROCm/mori, README.md: MI300X and later.
        """
        chip = self.cluster.accelerator
        if chip.vendor == "NVIDIA" and "fp8" in chip.dense_flops and chip.scale_up is not None:
            return "deepep"
        return "mori" if chip.vendor == "AMD" and "fp8" in chip.dense_flops else ""

    @property
    def predicts(self) -> bool:
        """Whether the model's own layers draft."""
        method = self.plan.drafting.speculative
        return any(branch.kind == "draft" for branch in self.model.branches) and method in ("", "mtp")

    @property
    def head(self) -> str:
        """The method of the head that drafts; "" where none does."""
        method = self.plan.drafting.speculative
        return method if method in ("eagle3", "eagle", "medusa", "p-eagle", "dflash") else ""

    def note_nodes(self) -> None:
        """For engines without options for nodes."""
        spread, engine = self.spread, self.plan.engine
        if spread.nodes > 1:
            self.notes.append(
                Message(
                    "The plan takes {nodes} nodes; the command is one node's, and {engine} has no options for more.",
                    nodes=spread.nodes,
                    engine=engine,
                )
            )
        if spread.servers > 1:
            self.notes.append(
                Message("The plan is {servers} such servers, each on accelerators of its own.", servers=spread.servers)
            )


def sizes(tensor: str, pipeline: str, plan: ServingPlan) -> Words:
    words = [f"{tensor} {plan.tensor_parallel_size}"] if plan.tensor_parallel_size > 1 else []
    return words + ([f"{pipeline} {plan.pipeline_parallel_size}"] if plan.pipeline_parallel_size > 1 else [])


def settings(plan: ServingPlan, flags: Mapping[str, str], kinds: Mapping[str, str]) -> Words:
    """Settings that the plan says; types of the cache that are the engine's default are not."""
    words: Words = []
    for field, flag in flags.items():
        value = plan.field(field)
        if field == "kv_cache":
            value = kinds.get(value or "")
        if value is not None:
            words.append(f"{flag} {value:g}" if isinstance(value, float) else f"{flag} {value}")
    return words


def offload(plan: ServingPlan) -> Words:
    return [f"--cpu-offload-gb {plan.host.weights_on_host_bytes / GIB:g}"] if plan.host.weights_on_host_bytes else []


def switch(value: bool | None, on: str, off: str) -> Words:
    return [] if value is None else [on if value else off]
