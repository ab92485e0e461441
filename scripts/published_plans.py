"""The best plans that a search finds beside plans that were published: writes docs/plans.md from
validation/published_plans.yaml.

.venv/bin/python scripts/published_plans.py
"""

from pathlib import Path
from typing import Any

import yaml
from msgspec.structs import replace

import tonnage
from tonnage.catalogue import cluster
from tonnage.estimate.plan.training_options import TrainingOptions
from tonnage.kernel.units import human
from tonnage.search.training.search import faster, search
from tonnage.search.training.space import Space

ROOT = Path(__file__).parents[1]
SHORT = {
    "tensor_parallel_size": "tp",
    "pipeline_parallel_size": "pp",
    "virtual_pipeline_size": "vpp",
    "context_parallel_size": "cp",
    "expert_parallel_size": "ep",
    "expert_tensor_parallel_size": "etp",
    "zero_stage": "zero",
    "micro_batch_size": "mbs",
}
HEAD = """# Best plans beside published ones

Written by `scripts/published_plans.py` from `validation/published_plans.yaml`, where each published plan has its source. Both sides are
predicted by the same estimator, so the table compares plans, not the estimator with a machine: what was measured stands in the last
column, and `docs/accuracy.md` has the errors. The search holds what `fixed` names: the runtime, the numerics and the workload.

A published plan is ranked among all plans of its space that fit: rank 1 would be the best of them. Where it does not fit by the estimate,
the rank counts the plans that fit and are faster all the same, and the page says so.

| model and machine | plan | predicted tokens/s | MFU | needs | rank | measured tokens/s |
|---|---|---|---|---|---|---|
"""


def compared(row: dict[str, Any]) -> dict[str, Any]:
    """The published plan, the best one, how many plans there are, and the published one's rank."""
    machine, options = cluster(row["machine"]), TrainingOptions(**row["options"])
    published = tonnage.train(row["model"], machine, as_is=True, **row["options"])
    given = TrainingOptions(**{name: getattr(options, name) for name in row["fixed"]})
    space = Space(tonnage.read(row["model"]), [machine], given)
    usable = machine.accelerator.memory.usable_bytes
    found = search(space, usable)
    best = found.best[0][0]
    chosen = replace(given, **best.options)
    said = {name: value for name in chosen.__struct_fields__ if (value := getattr(chosen, name)) is not None}
    each = published.step_time.value / (options.sequence_length * options.global_batch_size)
    return {
        "published": published,
        "best": tonnage.train(row["model"], machine, as_is=True, **said),
        "options": said,
        "considered": found.tally.considered,
        "fits": published.fits,
        "rank": 1 + faster(space, usable, each),
        "gain": published.run.tokens_per_second.value,
        "machine": machine,
    }


def shown(options: dict[str, Any]) -> str:
    """A plan in the field's short words."""
    sizes = [
        f"{short}{options[name]}"
        for name, short in SHORT.items()
        if options.get(name, 1) != 1 or name in ("zero_stage", "micro_batch_size")
    ]
    modules = options.get("recompute_modules")
    again = f"recompute {options['recompute']}{f' ({modules})' if modules else ''}"
    return f"{' '.join(sizes)}, {again}"


def measured(row: dict[str, Any], machine: Any) -> str:
    said, options = row["measured"], row["options"]
    if "tokens_per_second_per_gpu" in said:
        rate = said["tokens_per_second_per_gpu"] * machine.size
    elif "step_seconds" in said:
        rate = options["sequence_length"] * options["global_batch_size"] / said["step_seconds"]
    elif "accelerator_hours_per_trillion_tokens" in said:
        rate = 1e12 / (said["accelerator_hours_per_trillion_tokens"] * 3600 / machine.size)
    else:
        return "-"
    return f"{rate:,.0f}"


def line(name: str, plan: str, answer: Any, rank: str, last: str) -> str:
    rate, mfu = answer.run.tokens_per_second.value, answer.run.mfu.value
    return (
        f"| {name} | {plan} | {rate:,.0f} | {100 * mfu:.1f} % | {human(answer.needed_bytes, 'bytes')} | {rank} | "
        f"{last} |"
    )


def page(rows: list[dict[str, Any]]) -> str:
    lines, notes = [], []
    for row in rows:
        made = compared(row)
        fits = "" if made["fits"] else " (does not fit)" if made["fits"] is False else " (tight)"
        lines.append(
            line(
                row["name"],
                f"published: {shown(row['options'])}",
                made["published"],
                f"{made['rank']:,}{fits}",
                measured(row, made["machine"]),
            )
        )
        lines.append(line("", f"best of {made['considered']:,}: {shown(made['options'])}", made["best"], "1", ""))
        ratio = made["best"].run.tokens_per_second.value / made["published"].run.tokens_per_second.value
        notes.append(
            f"- {row['name']}: the best plan is predicted {ratio:.2f} times as fast as the published one. "
            f"Source of the plan: {row['source']} ({row['as_of']})."
        )
    return HEAD + "\n".join(lines) + "\n\n" + "\n".join(notes) + "\n"


def main() -> None:
    rows = yaml.safe_load((ROOT / "validation" / "published_plans.yaml").read_text(encoding="utf-8"))
    (ROOT / "docs" / "plans.md").write_text(page(rows), encoding="utf-8")


if __name__ == "__main__":
    main()
