"""Files that write Megatron's arguments as fields: its own YAML, and what others make of TransformerConfig."""

from collections.abc import Mapping
from typing import Any

from tonnage.interchange.parts.megatron.effects import KNOWN, OPPOSITES
from tonnage.interchange.parts.megatron.run import OLDER
from tonnage.interchange.parts.megatron.values import needs
from tonnage.interchange.parts.words import names
from tonnage.interchange.reading import FALSE, TRUE, Reading, flattened
from tonnage.interchange.source import Source

SECTIONS = ("language_model", "model_parallel")
# Fields of TransformerConfig and ModelParallelConfig whose argument has another name.
FIELDS = {
    "num-moe-experts": "num-experts",
    "layernorm-epsilon": "norm-epsilon",
    "layernorm-zero-centered-gamma": "apply-layernorm-1p",
    "fp8": "fp8-format",
    "fp4": "fp4-format",
    "fp8-param": "fp8-param-gather",
    "fp4-param": "fp4-param-gather",
    "gated-linear-unit": "swiglu",
    "virtual-pipeline-model-parallel-size": "num-virtual-stages-per-pipeline-rank",
    "num-layers-in-first-pipeline-stage": "decoder-first-pipeline-num-layers",
    "num-layers-in-last-pipeline-stage": "decoder-last-pipeline-num-layers",
    "microbatch-group-size-per-vp-stage": "microbatch-group-size-per-virtual-pipeline-stage",
    "overlap-p2p-comm-warmup-flush": "overlap-p2p-communication-warmup-flush",
    "nccl-ub": "use-nccl-ub",
    "cuda-graph-scope": "cuda-graph-modules",
    "seq-len": "seq-length",
    "sequence-length": "seq-length",
    "barrier-with-l1-time": "no-barrier-with-level-1-timing",
}
# Fields that the arguments set by themselves, and callables.
INTERNAL = names(
    """
    cpu-offloading
    init-method output-layer-init-method timers pipeline-dtype grad-scale-func enable-autocast autocast-dtype
    finalize-model-grads-func no-sync-func grad-sync-func param-sync-func variable-seq-lengths batch-p2p-comm
    batch-p2p-sync deallocate-pipeline-outputs -cpu-offloading-context cpu-offloading-weights cpu-offloading-activations
    num-microbatches-with-partial-activation-checkpoints async-tensor-model-parallel-allreduce tp-comm-atomic-ag
    tp-comm-atomic-rs pipeline-model-parallel-split-rank memory-efficient-layer-norm bias-activation-fusion
    retriever-seq-length standalone-embedding-stage params-dtype moe-token-dropping activation-func
    """
)


def is_file(tree: Mapping[str, Any]) -> bool:
    """Whether a tree is Megatron's own YAML."""
    return all(isinstance(tree.get(section), Mapping) for section in SECTIONS)


def tree_values(source: Source) -> dict[str, Any]:
    return flattened(source.tree)


def by_argument(r: Reading, prefixes: tuple[str, ...] = ("language_model.", "model_parallel.", "")) -> None:
    """Read fields by the names of arguments: tensor_model_parallel_size is tensor-model-parallel-size, and
    add_bias_linear is the opposite of disable-bias-linear.
    """
    for key in list(r.values):
        prefix = next((prefix for prefix in prefixes if key.startswith(prefix)), None)
        name = key.removeprefix(prefix or "").replace("_", "-").lower() if prefix is not None else ""
        if not name or "." in name:
            continue
        target = FIELDS.get(name, name)
        if target in OPPOSITES:
            target = _opposite(r, key, OPPOSITES[target])
        if target in r.values and target != key:
            r.ignore([key], why="another key says it too, and counts")
        elif target in KNOWN or target in INTERNAL or target in OLDER:
            r.rename({key: target})


def read_fields(r: Reading) -> None:
    """Fields that are no arguments."""
    needs(r, "cpu-offloading", (), "activations of whole layers on the host are not estimated")
    r.ignore(INTERNAL)


def _opposite(r: Reading, key: str, target: str) -> str:
    """The argument that negates a field, with the negated value."""
    value = r.values.get(key)
    plain = str(value).lower()
    if value is not None and plain in (*TRUE, *FALSE):
        r.values[key] = plain in FALSE
    return target
