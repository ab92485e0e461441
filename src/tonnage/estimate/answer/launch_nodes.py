"""Where a launch command runs: on each node of several, and as how many servers."""

from msgspec import Struct

from tonnage.architectures import Model
from tonnage.estimate.plan.checks import expert_counts
from tonnage.runtimes import serving_runtime
from tonnage.spec import Cluster, ServingPlan

FIRST = "FIRST-NODE"  # the address of the node of rank 0
RANK = "NODE-RANK"  # from 0
PORT = 20000
WITHOUT_NODES = 11  # of 0.x: vLLM spread over nodes by Ray alone


class Spread(Struct, frozen=True, kw_only=True):
    """`nodes` of one server and the `copies` of the model that it runs, each on ranks of its own; `servers` that the plan needs."""

    nodes: int
    copies: int
    servers: int

    @property
    def each(self) -> str:
        """What to do with the command of one server."""
        many = f"The plan is {self.servers} such servers, each on accelerators of its own." if self.servers > 1 else ""
        if self.nodes == 1:
            return many
        return f"Run it on each of the {self.nodes} nodes{' of a server' if many else ''}, with {RANK} from 0 to {self.nodes - 1}. {many}".strip()


def spread(model: Model, plan: ServingPlan, cluster: Cluster) -> Spread:
    """vLLM's data-parallel ranks are of one server on all nodes. SGLang's are of one node, where they share no attention; the rest know none.

    vLLM, docs/serving/data_parallel_deployment.md: data-parallel ranks of a mixture share its experts and wait for each other, so that replicas that
    are whole are servers of their own.
    """
    ranks = int(plan.tensor_parallel_size * plan.pipeline_parallel_size * plan.attention_data_parallel_size)
    copies, node = int(plan.data_parallel_size), cluster.accelerators_per_host
    if plan.engine == "vllm" and not expert_counts(model):
        return Spread(nodes=min(cluster.num_hosts, -(-ranks * copies // node)), copies=copies, servers=1)
    nodes = max(-(-ranks // node), 1)
    own = max(node // ranks, 1) if plan.engine == "sglang" and plan.attention_data_parallel_size == 1 else 1
    own = own if copies % own == 0 else 1
    return Spread(nodes=nodes, copies=min(own, copies), servers=copies // min(own, copies))


def vllm_nodes(plan: ServingPlan, found: Spread, groups: int) -> tuple[list[str], list[str]]:
    """vllm/engine/arg_utils.py, create_engine_config: --nnodes, of which it infers the data-parallel rank; before, Ray had the nodes."""
    if found.nodes == 1:
        return [], [found.each] if found.each else []
    each = int(plan.tensor_parallel_size * plan.pipeline_parallel_size)
    here = max(groups * each // found.nodes // each, 1)
    words = [f"--data-parallel-size-local {here}"] if groups > 1 else []
    minor = int(serving_runtime("vllm", plan.engine_version).version.rpartition(".")[2])
    if minor <= WITHOUT_NODES:
        words += [f"--data-parallel-address {FIRST}", "--data-parallel-backend ray"] if groups > 1 else []
        return [*words, "--distributed-executor-backend ray"], [
            f"First `ray start` on each of the {found.nodes} nodes makes them one Ray cluster; the command is run on one."
        ]
    words += [f"--data-parallel-address {FIRST}"] if groups > 1 else []
    words += [f"--nnodes {found.nodes}", f"--node-rank {RANK}", f"--master-addr {FIRST}"]
    return words, [f"{found.each} All but the first also need --headless."]


def sglang_nodes(found: Spread) -> tuple[list[str], list[str]]:
    words = [f"--nnodes {found.nodes}", f"--node-rank {RANK}", f"--dist-init-addr {FIRST}:{PORT}"]
    return words if found.nodes > 1 else [], [found.each] if found.each else []


def mpi(found: Spread, cluster: Cluster) -> tuple[str, list[str], list[str]]:
    """TensorRT-LLM, docs/source/commands/trtllm-serve: what stands before the command, its options, notes."""
    many = f"The plan is {found.servers} such servers, each on accelerators of its own."
    notes = [many] if found.servers > 1 else []
    if found.nodes == 1:
        return "", [], notes
    node = cluster.accelerators_per_host
    start = (
        f"srun -N {found.nodes} --ntasks {found.nodes * node} --ntasks-per-node {node} --mpi=pmix trtllm-llmapi-launch "
    )
    return (
        start,
        [f"--gpus_per_node {node}"],
        ["Without Slurm, mpirun starts one process for each accelerator instead of srun.", *notes],
    )


def elsewhere(found: Spread, engine: str) -> list[str]:
    """Engines without options for nodes."""
    notes = [f"The plan takes {found.nodes} nodes; the command is one node's, and {engine} has no options for more."] if found.nodes > 1 else []  # fmt: skip
    return notes + (
        [f"The plan is {found.servers} such servers, each on accelerators of its own."] if found.servers > 1 else []
    )
