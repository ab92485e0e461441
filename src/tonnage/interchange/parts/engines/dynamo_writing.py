"""The manifest of a Dynamo graph that starts a plan."""

import shlex

from tonnage.interchange.parts.engines.writing import check_experts
from tonnage.interchange.planned_run import PlannedRun
from tonnage.kernel.errors import InvalidInput
from tonnage.spec import ServingPlan

IMAGES = {"vllm": "nvcr.io/nvidia/ai-dynamo/vllm-runtime", "sglang": "nvcr.io/nvidia/ai-dynamo/sglang-runtime"}
TAG = "1.6.1"
# Options of the engines' commands that the operator says, or that replicas stand for, with their values.
OPERATOR = (
    "--nnodes",
    "--node-rank",
    "--master-addr",
    "--dist-init-addr",
    "--data-parallel-size-local",
    "--data-parallel-address",
    "--distributed-executor-backend",
    "--disaggregation-mode",
    "--host",
)


def manifest(w: PlannedRun) -> str:
    """A manifest of v1beta1, with workers of prefill beside those of decode where the plan parts them."""
    plan = w.serving
    if plan is None or w.answer.serving is None or plan.engine not in IMAGES:
        raise InvalidInput(
            "dynamo is written with {engines}: say {@engine}. Got {got}.",
            engines="vllm or sglang",
            got=plan.engine if plan is not None else w.verb,
        )
    if plan.engine == "vllm":
        check_experts(w)
    launch = str(w.answer.serving.launch).splitlines()
    arguments = _arguments(launch[0], plan)
    prefill = int(w.question.get("prefill_replicas") or 0)
    replicas = int(plan.data_parallel_size)
    if prefill >= replicas:
        raise InvalidInput(
            "{@prefill_replicas} must be less than the {replicas} replicas of the plan, one of which has to answer. "
            "Got {prefill}.",
            replicas=replicas,
            prefill=prefill,
        )
    parts: list[tuple[str, str, int, list[str]]] = [("Frontend", "frontend", 1, [])]
    if prefill:
        mode = "--disaggregation-mode"
        decoding = _arguments(launch[1], plan) if "  # decode" in launch[1] else arguments
        parts.append(("decode", "decode", replicas - prefill, [*decoding, mode, "decode"]))
        parts.append(("prefill", "prefill", prefill, [*arguments, mode, "prefill"]))
    else:
        parts.append(("worker", "worker", replicas, arguments))
    lines = ["apiVersion: nvidia.com/v1beta1", "kind: DynamoGraphDeployment", "metadata:", "  name: tonnage"]
    lines += ["spec:", "  components:"]
    for name, kind, count, words in parts:
        lines += _component(w, plan, name, kind, count, words)
    return "\n".join(lines) + "\n"


def _arguments(launch: str, plan: ServingPlan) -> list[str]:
    """The options of the engine's own command."""
    words = shlex.split(launch.partition("  # ")[0])
    while words and "=" in words[0] and not words[0].startswith("-"):
        words.pop(0)
    if plan.engine == "vllm":
        words = ["--model", *words[2:]]
    else:
        words = words[3:]
    left_out = set(OPERATOR)
    groups = int(plan.attention_data_parallel_size)
    arguments: list[str] = []
    while words:
        word = words.pop(0)
        copies = word in ("--data-parallel-size", "--dp-size") and groups == 1
        if word in left_out or copies:
            if words and not words[0].startswith("--"):
                words.pop(0)
        else:
            arguments.append(word)
    return arguments


def _component(w: PlannedRun, plan: ServingPlan, name: str, kind: str, count: int, words: list[str]) -> list[str]:
    engine = plan.engine
    ranks = int(plan.tensor_parallel_size * plan.pipeline_parallel_size * plan.attention_data_parallel_size)
    node = w.cluster.accelerators_per_host
    nodes = -(-ranks // node)
    lines = [f"  - name: {name}", f"    type: {kind}", f"    replicas: {count}"]
    if words and nodes > 1:
        lines += ["    multinode:", f"      nodeCount: {nodes}"]
    lines += ["    podTemplate:", "      spec:", "        containers:", "        - name: main"]
    lines += [f"          image: {IMAGES[engine]}:{TAG}"]
    if not words:
        return lines
    lines += ["          envFrom:", "          - secretRef:", "              name: hf-token-secret"]
    lines += ["          resources:", "            limits:", f'              nvidia.com/gpu: "{ranks // nodes}"']
    lines += ["          command:", "          - python3", "          - -m", f"          - dynamo.{engine}"]
    return [*lines, "          args:", *(f"          - {_quoted(word)}" for word in words)]


WORDS = ("true", "false", "null", "yes", "no", "on", "off", "y", "n")  # texts that YAML reads as something else


def _quoted(word: str) -> str:
    """A text of YAML that stays one."""
    from json import dumps

    plain = word.startswith("--") or (
        word[:1].isalpha() and all(letter.isalnum() or letter in "-_./" for letter in word)
    )
    return word if plain and word.lower() not in WORDS else dumps(word)
