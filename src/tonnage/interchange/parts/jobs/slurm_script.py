"""Writes a script for Slurm."""

import shlex

from tonnage.interchange.parts.jobs.carried_command import Carried, carried, comments, job_name, with_places
from tonnage.interchange.planned_run import PlannedRun

MEET = 'FIRST_NODE=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | sed -n 1p)\nexport FIRST_NODE\n'


def write(w: PlannedRun) -> str:
    one = carried(w)
    lines = [
        "#!/bin/bash",
        f"#SBATCH --job-name={job_name(w)}",
        f"#SBATCH --nodes={one.nodes}",
        "#SBATCH --ntasks-per-node=1",
        f"#SBATCH --gpus-per-node={one.per_node}",
    ]
    lines += [f"#SBATCH --array=0-{one.copies - 1}"] if one.copies > 1 else []
    lines += ["#SBATCH --exclusive"] if one.nodes > 1 else []
    return "\n".join(lines) + "\n\n" + comments(one.notes) + "set -euo pipefail\n\n" + _start(one)


def _start(one: Carried) -> str:
    """The command: on one node as it stands, on several by srun, once on each."""
    if one.nodes == 1:
        return f"{with_places(one.command, 'localhost', '0')}\n"
    command = with_places(one.command, "$FIRST_NODE", "$SLURM_NODEID")
    if one.behind:
        head = f'if [ "$SLURM_NODEID" -gt 0 ]; then MORE={one.behind}; fi; \\\n'
        command = f"{head}{command} ${{MORE:-}}"
    words = ' job "$@"' if '"$@"' in command else ""
    return f"{MEET}\nsrun bash -c {shlex.quote(command)}{words}\n"
