"""Options of Slurm's jobs: what they count, and what changes neither memory nor time."""

from collections.abc import Mapping

from tonnage.interchange.parts.launching.accelerators import accelerator_named
from tonnage.interchange.parts.launching.launchers import Layer, accelerators_of, number_of, opened
from tonnage.interchange.parts.words import names
from tonnage.interchange.reading import Reading
from tonnage.interchange.source import Source
from tonnage.kernel.message import Message

# Slurm 25.11, doc/man/man1/sbatch.1
SHORT = {
    "A": "account",
    "a": "array",
    "b": "begin",
    "B": "extra-node-info",
    "C": "constraint",
    "c": "cpus-per-task",
    "D": "chdir",
    "d": "dependency",
    "e": "error",
    "F": "nodefile",
    "G": "gpus",
    "H": "hold",
    "i": "input",
    "J": "job-name",
    "k": "no-kill",
    "L": "licenses",
    "M": "clusters",
    "m": "distribution",
    "N": "nodes",
    "n": "ntasks",
    "O": "overcommit",
    "o": "output",
    "p": "partition",
    "q": "qos",
    "Q": "quiet",
    "s": "oversubscribe",
    "S": "core-spec",
    "t": "time",
    "v": "verbose",
    "w": "nodelist",
    "W": "wait",
    "x": "exclude",
}
COUNTS: Mapping[str, str] = {
    "nodes": "nodes",
    "ntasks": "tasks",
    "ntasks-per-node": "tasks per node",
    "gpus": "accelerators",
    "gpus-per-node": "per node",
    "gres": "per node",
    "gpus-per-task": "per task",
}
SWITCHES = frozenset(
    names("""
    hold requeue no-requeue overcommit quiet verbose wait exclusive contiguous spread-job use-min-nodes reboot
    ignore-pbs get-user-env parsable test-only no-kill oversubscribe stepmgr
""")
)
HOST = ("mem", "mem-per-cpu", "mem-per-gpu")
IGNORED = names("""
    account begin extra-node-info cpus-per-task cpus-per-gpu chdir dependency error nodefile hold input job-name
    no-kill licenses clusters distribution overcommit output partition qos quiet oversubscribe core-spec time
    time-min verbose nodelist wait exclude exclusive requeue no-requeue mail-type mail-user comment export
    export-file signal open-mode reservation contiguous tmp hint cpu-freq mem-bind gpu-bind gres-flags deadline
    nice priority profile power wckey threads-per-core sockets-per-node cores-per-socket ntasks-per-core
    ntasks-per-socket ntasks-per-gpu thread-spec spread-job use-min-nodes reboot segment switches acctg-freq bb
    bbf delay-boot get-user-env uid gid wrap prefer container container-id kill-on-invalid-dep burst-buffer
    propagate network stepmgr parsable resv-ports ignore-pbs container-image container-mounts container-name
    container-workdir container-env no-container-mount-home container-mount-home container-writable
    no-container-entrypoint container-remap-root test-only batch consolidate-segments spread-segments
    oom-kill-step external extra mcs-label cluster-constraint
""")
KNOWN = (*COUNTS, *HOST, *IGNORED, "array", "constraint", "gpu-freq", "tres-per-task")


def check_range(r: Reading) -> None:
    """`--nodes 2-4` leaves the number to Slurm: the fewest are taken."""
    text = r.text("nodes")
    fewest, dash, _ = text.partition("-")
    if number_of(fewest) < 1:
        raise r.wrong("nodes", "a number of nodes from 1 on")
    if dash:
        r.values["nodes"] = fewest
        note = "{file}: --nodes {text} leaves the number to Slurm; {fewest} are taken."
        r.notes.append(Message(note, file=r.source.name, text=text, fewest=fewest))


def put_machine(r: Reading) -> None:
    """The accelerator that a type or a constraint names, and clocks that are held."""
    if r.has("constraint"):
        words = r.text("constraint").replace("|", "&").replace("[", "").replace("]", "").replace("*", "&").split("&")
        names = {name for word in words if (name := accelerator_named(word.strip("() ")))}
        if len(names) == 1:
            r.count_machines(accelerator=names.pop())
            r.put("on", None, "constraint")
        elif len(names) > 1:
            r.unsure("constraint", "several accelerators: say which with --on")
        else:
            r.ignore(["constraint"])
    if r.has("gpu-freq"):
        r.unsure("gpu-freq", "clocks are those of the catalogue")


def with_variables(r: Reading, own: Layer) -> Source:
    """The script, with variables that Slurm sets from these options."""
    values = own.values
    nodes = number_of(values.get("nodes", 1)) or 1
    per_node = next((accelerators_of(values[name])[1] for name in ("gpus-per-node", "gres") if name in values), 0)
    if not per_node and "gpus" in values:
        per_node = accelerators_of(values["gpus"])[1] // nodes
    tasks_per_node = number_of(values.get("ntasks-per-node", 0))
    tasks = number_of(values.get("ntasks", 0)) or tasks_per_node * nodes or nodes
    known = {
        "SLURM_NNODES": nodes,
        "SLURM_JOB_NUM_NODES": nodes,
        "SLURM_NTASKS": tasks,
        "SLURM_NPROCS": tasks,
        "SLURM_NTASKS_PER_NODE": tasks_per_node,
        "SLURM_GPUS_ON_NODE": per_node,
        "SLURM_GPUS_PER_NODE": per_node,
        "SLURM_CPUS_PER_TASK": number_of(r.get("cpus-per-task", 0)),
        "SLURM_PROCID": 0,
        "SLURM_NODEID": 0,
        "SLURM_ARRAY_TASK_ID": 0,
    }
    lines = [f"{name}={value}" for name, value in known.items() if value or name.endswith("ID")]
    text = "\n".join([*lines, opened(r.source.text)])
    return Source(name=r.source.name, text=text, folder=r.source.folder, script=r.source.whole_script)
