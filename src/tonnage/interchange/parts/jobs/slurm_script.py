"""Writes a script for Slurm."""

import shlex

from tonnage.interchange.parts.jobs.carried_command import Carried, carried, comments, job_name, with_places
from tonnage.interchange.planned_run import PlannedRun
from tonnage.kernel.message import Message
from tonnage.runtimes.parts.start import HERE

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
    return "\n".join(lines) + "\n\n" + comments(one.notes) + "set -euo pipefail\n\n" + _body(one)


def _body(one: Carried) -> str:
    """The command, or of prefill and decode servers that of the role which this task of the array has."""
    if not one.roles:
        return _start(one, one.command)
    (prefill, number), (decode, _) = one.roles
    # a condition in (( )): `tonnage check` reads the commands of both branches
    starts = [_start(one, command) for command in (prefill, decode)]
    branches = f"if (( SLURM_ARRAY_TASK_ID < {number} )); then\n{starts[0]}else\n{starts[1]}fi\n"
    if not one.router:
        return branches
    note = Message("The router starts once the servers run, with their nodes (squeue) for PREFILL-1, DECODE-1, ...:")
    return branches + "\n" + comments([note, *one.router.splitlines()])


def _here(command: str) -> str:
    """The command with the name of the node on which it runs."""
    return command.replace(HERE, "$(hostname)")


def _start(one: Carried, command: str) -> str:
    """The command: on one node as it stands, on several by srun, once on each."""
    if one.nodes == 1:
        return f"{_here(with_places(command, 'localhost', '0'))}\n"
    command = with_places(_here(command), "$FIRST_NODE", "$SLURM_NODEID")
    if one.behind:
        head = f'if [ "$SLURM_NODEID" -gt 0 ]; then MORE={one.behind}; fi; \\\n'
        command = f"{head}{command} ${{MORE:-}}"
    words = ' job "$@"' if '"$@"' in command else ""
    return f"{MEET}\nsrun bash -c {shlex.quote(command)}{words}\n"
