"""Fixed amounts of vLLM on an H100, which runtimes/vllm.py uses, from the logs in validation/infer_memory.yaml, with
their errors.

What libraries and communicators hold outside of PyTorch: medians by tensor ranks. Captured graphs: a sum for the
process, each layer, and each layer with experts, by least squares of the relative error, whole models left out.

python scripts/vllm_overheads.py
"""

from collections.abc import Iterable, Sequence
from pathlib import Path
from statistics import mean, median

import numpy as np

from _rows_for_fits import rows_for_fits
from tonnage.kernel.errors import TonnageError
from tonnage.ops import MoE
from tonnage.validation import Row
from tonnage.validation.subjects import model_of

ROWS = Path(__file__).parents[1] / "validation" / "infer_memory.yaml"
Example = tuple[str, tuple[int, int], float]  # a model, its layers and those with experts, GiB


def main() -> None:
    found = outside_torch()
    for ranks, values in sorted(found.items()):
        errors = [abs(value - median(values[:i] + values[i + 1 :])) for i, value in enumerate(values)]
        print(
            f"non-torch, {ranks} tensor ranks: {median(values):.2f} GiB, {min(values):.2f} to "
            f"{max(values):.2f} in {len(values)} runs; "
            f"mean error with each run left out {mean(errors):.3f} GiB"
        )
    examples = graphs()
    fixed, layer, mixture = fitted(examples)
    print(
        f"captured graphs: {fixed:.2f} GiB, {layer:.4f} each layer, {mixture:.4f} more with experts, from "
        f"{len(examples)} runs; "
        f"mean relative error with whole models left out {mean(left_out(examples)):.1%}"
    )


def logged() -> list[Row]:
    return [row for row in rows_for_fits([ROWS]) if row.id.startswith("vllm019-")]


def outside_torch() -> dict[int, list[float]]:
    """GiB by tensor ranks."""
    made: dict[int, list[float]] = {}
    for row in logged():
        made.setdefault(_ranks(row), []).extend(_figure(row, "non-torch"))
    return made


def graphs() -> list[Example]:
    """One run of each model and number of ranks: most repeat for other contexts."""
    made: dict[tuple[str, int], Example] = {}
    for row in logged():
        try:
            model = model_of(row.question)
        except TonnageError:
            continue
        mixed = sum(any(isinstance(op, MoE) for op in model.decoder.blocks[kind].ops) for kind in model.decoder.layers)
        for value in _figure(row, "CUDA graphs"):
            made.setdefault((model.name, _ranks(row)), (model.name, (model.num_layers, mixed), value))
    return list(made.values())


def fitted(examples: Sequence[Example]) -> tuple[float, float, float]:
    """GiB: of a process, of a layer, more of a layer with experts."""
    measured = np.array([value for _, _, value in examples])
    counts = np.array([(1, *layers) for _, layers, _ in examples]) / measured[:, None]
    fixed, layer, mixture = np.linalg.lstsq(counts, np.ones(len(examples)), rcond=None)[0]
    return float(fixed), float(layer), float(mixture)


def left_out(examples: Sequence[Example]) -> Iterable[float]:
    """Relative errors of each model by the others."""
    for name in {model for model, _, _ in examples}:
        fixed, layer, mixture = fitted([example for example in examples if example[0] != name])
        for model, (layers, mixed), value in examples:
            if model == name:
                yield abs((fixed + layer * layers + mixture * mixed) / value - 1)


def _ranks(row: Row) -> int:
    """Tensor ranks, also of a row whose model nobody knows."""
    return int(row.question.get("tensor_parallel_size") or row.labels.get("tp", 1))


def _figure(row: Row, metric: str) -> list[float]:
    return [float(each.value) for each in row.also if each.metric == metric]


if __name__ == "__main__":
    main()
