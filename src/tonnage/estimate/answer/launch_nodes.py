"""Where a launch command runs: on each node of several, and as how many servers."""

from tonnage.architectures import Model
from tonnage.estimate.plan.checks import expert_counts
from tonnage.runtimes import Spread, serving_runtime
from tonnage.spec import Cluster, ServingPlan


def spread(model: Model, plan: ServingPlan, cluster: Cluster) -> Spread:
    """vLLM's data-parallel ranks are of one server on all nodes. SGLang's are of one node, where they share no
    attention; the rest know none.

    vLLM, docs/serving/data_parallel_deployment.md: data-parallel ranks of a mixture share its experts and wait for each
    other, so that replicas that are whole are servers of their own.
    """
    ranks = int(plan.tensor_parallel_size * plan.pipeline_parallel_size * plan.attention_data_parallel_size)
    copies, node = int(plan.data_parallel_size), cluster.accelerators_per_host
    shares = serving_runtime(plan.engine, plan.engine_version).copies_in_server
    if shares == "all-nodes" and not expert_counts(model):
        return Spread(nodes=min(cluster.num_hosts, -(-ranks * copies // node)), copies=copies, servers=1)
    nodes = max(-(-ranks // node), 1)
    own = max(node // ranks, 1) if shares == "one-node" and plan.attention_data_parallel_size == 1 else 1
    own = own if copies % own == 0 else 1
    return Spread(nodes=nodes, copies=min(own, copies), servers=copies // min(own, copies))
