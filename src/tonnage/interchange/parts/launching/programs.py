"""Programs that start another program, and their options: what they count, and what changes neither memory nor time."""

from collections.abc import Mapping

from msgspec import Struct

from tonnage.interchange.parts.words import names


class Launcher(Struct, frozen=True, kw_only=True):
    """A program in front of another.

    starts: the words that begin it, such as `uv run`
    valued: options that take the word behind them; `twice`: those that take two
    switches: options without a value
    counts: options that say how many processes or machines there are -> our word for it , which `counting.py` reads
    short: other names of options -> those above
    skips: words of its own between the options and the program, such as an image
    decides: options besides `counts` that decide how many processes there are
    is_module: whether `-m` names a module of Python, which is the program
    """

    starts: tuple[tuple[str, ...], ...]
    valued: frozenset[str] = frozenset()
    twice: frozenset[str] = frozenset()
    switches: frozenset[str] = frozenset()
    counts: Mapping[str, str] = {}
    short: Mapping[str, str] = {}
    decides: frozenset[str] = frozenset()
    skips: int = 0
    is_module: bool = False

    @property
    def name(self) -> str:
        return " ".join(self.starts[0])

    @property
    def harmless(self) -> frozenset[str]:
        """Options that change neither memory nor time, nor the number of processes."""
        return (self.valued | self.twice | self.switches) - self.decides - set(self.counts)


def _names(text: str) -> frozenset[str]:
    return frozenset(names(text))


def _starts(*texts: str) -> tuple[tuple[str, ...], ...]:
    return tuple(names(text) for text in texts)


# Slurm 25.11, doc/man/man1/srun.1
SRUN = Launcher(
    starts=_starts("srun"),
    counts={
        "nodes": "nodes",
        "ntasks": "tasks",
        "ntasks-per-node": "tasks per node",
        "gpus": "accelerators",
        "gpus-per-node": "per node",
        "gpus-per-task": "per task",
        "gres": "gres",
    },
    short={
        "N": "nodes",
        "n": "ntasks",
        "G": "gpus",
        "c": "cpus-per-task",
        "p": "partition",
        "A": "account",
        "t": "time",
        "w": "nodelist",
        "x": "exclude",
        "o": "output",
        "e": "error",
        "i": "input",
        "J": "job-name",
        "D": "chdir",
        "m": "distribution",
        "C": "constraint",
        "q": "qos",
        "W": "wait",
        "K": "kill-on-bad-exit",
        "l": "label",
        "u": "unbuffered",
        "Q": "quiet",
        "v": "verbose",
        "O": "overcommit",
    },
    valued=_names("""
        cpus-per-task partition account time nodelist exclude output error input job-name chdir distribution constraint
        qos wait mem mem-per-cpu mem-per-gpu cpu-bind gpu-bind mem-bind hint mpi jobid export comment cpus-per-gpu
        gpu-freq network relative reservation signal task-prolog task-epilog threads-per-core tmp ntasks-per-gpu
        ntasks-per-socket ntasks-per-core container container-image container-name container-mounts container-workdir
        container-env container-save het-group licenses deadline propagate open-mode slurmd-debug tres-per-task
    """),
    switches=_names("""
        exclusive exact overlap label unbuffered quiet verbose kill-on-bad-exit no-kill overcommit pty
        container-mount-home no-container-mount-home container-remap-root no-container-remap-root container-writable
        no-container-entrypoint container-entrypoint container-readonly preserve-env resv-ports multi-prog immediate
    """),
)
# Open MPI 5.0, mpirun(1); MPICH's and Intel's names beside them
MPIRUN = Launcher(
    starts=_starts("mpirun", "mpiexec", "mpiexec.hydra", "orterun", "prterun", "horovodrun"),
    counts={
        "np": "tasks",
        "n": "tasks",
        "c": "tasks",
        "npernode": "tasks per node",
        "N": "tasks per node",
        "ppn": "tasks per node",
        "perhost": "tasks per node",
    },
    valued=_names("""
        H host hosts hostfile machinefile f x map-by bind-to rank-by wdir wd prefix output-filename launcher
        network-interface timeout report-bindings-to path am tune genvlist bootstrap
    """),
    twice=_names("mca gmca pmixmca prtemca genv env"),
    switches=_names("""
        allow-run-as-root oversubscribe bind-to-none bind-to-core tag-output timestamp-output v verbose q quiet
        display-map report-bindings nooversubscribe genvall gloo mpi start-timeout-off
    """),
)
# PyTorch 2.13, torch/distributed/run.py
TORCHRUN = Launcher(
    starts=_starts(
        "torchrun",
        "python -m torch.distributed.run",
        "python3 -m torch.distributed.run",
        "python -m torch.distributed.launch",
        "python3 -m torch.distributed.launch",
        "python -m torch.distributed.elastic.multiprocessing.run",
    ),
    counts={"nnodes": "nodes", "nproc-per-node": "per node"},
    valued=_names("""
        node-rank rdzv-backend rdzv-endpoint rdzv-id rdzv-conf max-restarts monitor-interval start-method role log-dir
        redirects r tee t local-ranks-filter node-local-rank local-addr logs-specs master-addr master-port
        event-log-handler numa-binding signals-to-handle duplicate-stdout-filters duplicate-stderr-filters
        shutdown-timeout
    """),
    switches=_names("standalone no-python run-path use-env virtual-local-rank"),
    is_module=True,
)
# DeepSpeed 0.19, deepspeed/launcher/runner.py
DEEPSPEED = Launcher(
    starts=_starts("deepspeed", "ds", "deepspeed.pt"),
    counts={"num-nodes": "nodes", "num-gpus": "per node"},
    short={"H": "hostfile", "i": "include", "e": "exclude", "q": "quiet", "num-accelerators": "num-gpus"},
    valued=_names("""
        hostfile include exclude min-elastic-nodes max-elastic-nodes master-port master-addr node-rank launcher
        launcher-args ssh-port autotuning bind-core-list venv-script log-level enable-each-rank-log
    """),
    switches=_names("""
        no-python no-local-rank no-ssh-check force-multi elastic-training bind-cores-to-rank no-ssh quiet save-pid
    """),
    decides=_names("hostfile include exclude min-elastic-nodes max-elastic-nodes elastic-training autotuning"),
    is_module=True,
)
# Apptainer 1.4, apptainer exec
CONTAINER = Launcher(
    starts=_starts("apptainer exec", "singularity exec"),
    short={"B": "bind", "H": "home", "W": "workdir", "S": "scratch", "o": "overlay", "e": "cleanenv", "c": "contain"},
    valued=_names("""
        bind env env-file home pwd cwd workdir scratch overlay network network-args dns hostname add-caps drop-caps
        security mount fusemount apply-cgroups memory cpus pem-path docker-host app keep-privs
    """),
    switches=_names("""
        nv nvccli rocm cleanenv contain containall writable writable-tmpfs no-home fakeroot userns ipc pid net uts
        no-init no-privs no-mount disable-cache compat unsquash no-eval underlay C p n i u f w
    """),
    skips=1,
)
PLAIN = (
    CONTAINER,
    Launcher(
        starts=_starts("uv run"),
        valued=_names("""
        with with-editable with-requirements extra group no-group only-group env-file python p package project directory
        index default-index index-strategy cache-dir config-file color refresh-package no-extra
    """),
        switches=_names("""
        all-extras all-groups no-sync frozen locked active isolated no-project no-dev only-dev exact offline quiet q
        verbose v no-env-file no-cache n no-config inexact managed-python no-default-groups reinstall refresh
        no-progress
    """),
        is_module=True,
    ),
    Launcher(
        starts=_starts("uvx", "uv tool run"),
        valued=_names("from with python p index"),
        switches=_names("isolated offline"),
    ),
    Launcher(starts=_starts("poetry run", "pdm run", "pipenv run", "rye run", "hatch run")),
    Launcher(
        starts=_starts("pixi run"), valued=_names("e environment manifest-path"), switches=_names("frozen locked")
    ),
    Launcher(
        starts=_starts("conda run", "mamba run", "micromamba run"),
        valued=_names("n name p prefix cwd"),
        switches=_names("no-capture-output live-stream v"),
    ),
    Launcher(
        starts=_starts("numactl"),
        valued=_names("cpunodebind N membind m physcpubind C preferred interleave i cpubind c weighted-interleave"),
        switches=_names("localalloc l all a balancing b"),
    ),
    Launcher(starts=_starts("taskset"), valued=_names("c cpu-list"), switches=_names("a all-tasks"), skips=0),
    Launcher(starts=_starts("nice", "ionice", "chrt"), valued=_names("n c adjustment")),
    Launcher(starts=_starts("timeout"), valued=_names("k s signal kill-after"), switches=_names("foreground"), skips=1),
    Launcher(starts=_starts("stdbuf"), valued=_names("o e i output error input")),
    Launcher(starts=_starts("nohup", "exec", "time", "command", "setsid", "tini", "dumb-init", "catchsegv")),
    Launcher(starts=_starts("sudo"), valued=_names("u user g group"), switches=_names("E n H preserve-env")),
    Launcher(
        starts=_starts("nsys profile"),
        valued=_names("""
        o output t trace s sample c capture-range capture-range-end y delay d duration cuda-graph-trace
    """),
        switches=_names("w stats"),
    ),
    Launcher(
        starts=_starts("ray job submit"),
        valued=_names(
            "address working-dir runtime-env runtime-env-json submission-id entrypoint-num-gpus entrypoint-num-cpus"
        ),
        switches=_names("no-wait verbose"),
    ),
)
COUNTING = (SRUN, MPIRUN, TORCHRUN, DEEPSPEED)
LAUNCHERS = (*COUNTING, *PLAIN)
SHELLS = ("bash", "sh", "zsh", "dash", "ash")
