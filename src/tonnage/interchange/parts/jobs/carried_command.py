"""What jobs and manifests carry: the command of an engine or a runtime, for one node and for several."""

import re
import shlex
from collections.abc import Mapping
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from tonnage.interchange.formats import Format, formats
from tonnage.interchange.planned_run import PlannedRun
from tonnage.kernel.errors import InvalidInput, TonnageError
from tonnage.kernel.message import Message, listed
from tonnage.runtimes.parts.start import DECODE, PREFILL

PORT = 29500  # where the ranks of a training meet
FIRST, RANK = "FIRST-NODE", "NODE-RANK"  # stand for the address of the first node and the rank of a node
FIRST_NAMES = (FIRST, "HEAD_NODE", "${MASTER_ADDR}", "$MASTER_ADDR")  # as runtimes call it
SCRIPT = "TRAIN.py"  # stands for a program of the user's
AT = " \\\n  "


class Carried(Struct, frozen=True, kw_only=True):
    """What one job starts.

    command: for a shell, with FIRST and RANK in it where there are several nodes
    notes: what it leaves to whoever runs it
    nodes, per_node: of one server or run; `copies`: how many of these there are
    behind: words that all nodes but the first have besides
    roles: of prefill and decode servers that are apart, the command of each and how many it starts, which `copies`
        counts together and `command` leaves out
    router: the command of the router before them
    """

    command: str
    notes: tuple[str, ...]
    nodes: int
    per_node: int
    copies: int = 1
    behind: str = ""
    roles: tuple[tuple[str, int], ...] = ()
    router: str = ""


def carried(w: PlannedRun) -> Carried:
    """The command of the question's engine or runtime."""
    return _server(w) if w.verb == "serve" else _run(w)


def one_command(w: PlannedRun, form: str) -> Carried:
    """The same for a format that starts one command; InvalidInput where prefill and decode have commands of their
    own.
    """
    one = carried(w)
    if one.roles:
        raise InvalidInput(
            "{@prefill_replicas}: prefill, decode and router have a command each, and {form} starts one. Export dynamo "
            "for Kubernetes (vllm, sglang) or sbatch for Slurm; `tonnage serve` prints all commands.",
            form=form,
        )
    return one


def carries(w: PlannedRun) -> frozenset[str]:
    """Options that the command says by itself, so that no comment has to."""
    form = _form_of_engine(w) or _form_of_runtime(w)
    if form is None:
        return frozenset()
    return form.says - (form.omits(w) if form.omits else frozenset())


def fills(verb: str, question: Mapping[str, Any]) -> Mapping[str, Any]:
    """What the runtime's own format fills in, where its command is the one that is carried."""
    if verb != "train" or question.get("method", "full") != "full":
        return {}
    for form in formats():
        own = form.sets.get("train")
        if own and own == question.get("runtime") and form.ending == ".sh" and form.fills is not None:
            return form.fills(verb, question)
    return {}


def counts(w: PlannedRun) -> bool:
    """Whether the nodes and accelerators of a job are those of the cluster."""
    return carried(w).copies == 1 and counts_copies(w)


def counts_copies(w: PlannedRun) -> bool:
    """Whether those of all copies together are; the nodes are the usual ones of the accelerator."""
    from tonnage.catalogue import cluster

    one = carried(w)
    usual = cluster(f"{one.nodes * one.copies}x{one.per_node}x{w.cluster.accelerator.name}")
    return replace(usual, note="") == replace(w.cluster, note="")


def carries_with_machine(w: PlannedRun) -> frozenset[str]:
    """The same with the machine, where a label of nodes names its accelerator."""
    from tonnage.interchange.parts.launching.accelerators import accelerator_named, product_label

    own = carries(w)
    label = product_label(w.cluster.accelerator.name)
    names_accelerator = bool(label) and accelerator_named(label) == w.cluster.accelerator.name and counts_copies(w)
    return own | {"on"} if names_accelerator else own


def _form_of_runtime(w: PlannedRun) -> Format | None:
    """The format of the command of the runtime that trains, where it starts a process on each accelerator itself. A
    command of TRL has adapters, which those have not.
    """
    from tonnage.search.training.launch.trl import trains

    if w.training is None or trains(w.training):
        return None
    for form in formats():
        if form.sets.get("train") == w.training.runtime and form.write is not None and form.ending == ".sh":
            try:
                text = form.write(w)
            except TonnageError:  # it has no words for this plan
                continue
            if "torchrun" in text:
                return form
    return None


def _form_of_engine(w: PlannedRun) -> Format | None:
    """The format of the command of the engine that serves."""
    if w.serving is None:
        return None
    engine = w.serving.engine
    return next(
        (
            form
            for form in formats()
            if form.sets.get("serve") == engine and form.write is not None and form.ending == ".sh"
        ),
        None,
    )


def _server(w: PlannedRun) -> Carried:
    from tonnage.estimate.answer.launch import spread

    assert w.serving is not None
    form = _form_of_engine(w)
    launch = str(w.answer.serving.launch if w.answer.serving is not None else "")
    text = form.write(w) if form is not None and form.write is not None else launch
    command, notes = _parted(text)
    if not command.strip():
        raise InvalidInput("how {engine} is started is not written down here.", engine=w.serving.engine)
    placed = spread(w.model, w.serving, w.cluster)
    roles, router = _roles(launch)
    if roles:  # each replica is a server
        copies = int(w.serving.data_parallel_size)
        placed = replace(spread(w.model, replace(w.serving, data_parallel_size=1), w.cluster), copies=1, servers=copies)
        command = ""
    ranks = w.cluster.size // max(placed.servers * placed.nodes, 1)
    per_node = min(w.cluster.accelerators_per_host, max(ranks, 1))
    behind = "--headless" if any("--headless" in note for note in notes) else ""
    shown_notes = [note for note in notes if RANK not in note and "such servers" not in note]
    return Carried(
        command=command,
        notes=tuple(shown_notes),
        nodes=placed.nodes,
        per_node=per_node,
        copies=placed.servers,
        behind=behind,
        roles=roles,
        router=router,
    )


ROLE = re.compile(rf"(.*?)  # (?:{PREFILL}|{DECODE}): (\d+) servers?\n", re.DOTALL)
ROUTER = re.compile(r"(.*)  # router$", re.DOTALL | re.MULTILINE)


def _roles(launch: str) -> tuple[tuple[tuple[str, int], ...], str]:
    """The command of each role with the number of its servers, prefill first, and that of the router, from the lines
    of a launch (estimate.answer.launch); nothing of one whose servers do both.
    """
    text = f"{launch}\n"
    roles = [(match[1], int(match[2])) for match in ROLE.finditer(text)]
    rest = text[max((match.end() for match in ROLE.finditer(text)), default=0) :]
    router = ROUTER.match(rest)
    return tuple(roles), router[1] if roles and router else ""


def _parted(text: str) -> tuple[str, list[str]]:
    """The commands of a script, and its comments."""
    lines = text.strip().splitlines()
    notes = [line.removeprefix("# ") for line in lines if line.startswith("# ")]
    return "\n".join(line for line in lines if not line.startswith("#")), notes


def _run(w: PlannedRun) -> Carried:
    from tonnage.search.training.launch.settings import launch_lacks, launch_program, launch_settings

    assert w.training is not None
    form = _form_of_runtime(w)
    if form is not None and form.write is not None:
        command, notes = _parted(form.write(w))
        return Carried(
            command=command,
            notes=tuple(notes),
            nodes=w.cluster.num_hosts,
            per_node=w.cluster.accelerators_per_host,
        )
    settings, lacks = launch_settings(w.model, w.training), launch_lacks(w.model, w.training)
    if not settings:
        raise InvalidInput(
            "nothing is written down here of {lacks}: name another runtime, or export the file of the tool itself.",
            lacks=listed(lacks),
        )
    nodes, per_node = w.cluster.num_hosts, w.cluster.accelerators_per_host
    notes = [Message("not said by this command: {lacks}", lacks=listed(lacks))] if lacks else []
    words, more = _training_words(w, settings, launch_program(w.training), nodes, per_node)
    return Carried(command=AT.join(words), notes=(*notes, *more), nodes=nodes, per_node=per_node)


def _training_words(
    w: PlannedRun, settings: list[str], program: str, nodes: int, per_node: int
) -> tuple[list[str], list[str]]:
    """The command, an option on a line, and what names in it stand for."""
    if settings[0].startswith("trl "):
        several = [
            f"--num_machines {nodes}",
            f"--machine_rank {RANK}",
            f"--main_process_ip {FIRST}",
            f"--main_process_port {PORT}",
        ]
        return [*settings[:3], *(several if nodes > 1 else []), *settings[3:]], ["DATASET and OUTPUT stand for yours."]
    start = ["torchrun", f"--nnodes {nodes}", f"--nproc-per-node {per_node}"]
    if nodes > 1:
        start += [f"--node-rank {RANK}", f"--master-addr {FIRST}", f"--master-port {PORT}"]
    if "torchtitan" in program:
        note = "MODULE and CONFIG stand for torchtitan's names of the model, such as llama3 and llama3_8b."
        return [*start, "-m torchtitan.train", "--module MODULE --config CONFIG", *settings], [note]
    if "pretrain_gpt.py" in program:
        note = "to add: the sizes of the model, the data and the tokenizer."
        return [*start, "pretrain_gpt.py", *settings], [note]
    note = Message("{script} stands for your program; the options are those of TrainingArguments.", script=SCRIPT)
    model = f"--model_name_or_path {shlex.quote(w.place)}"
    return [*start, SCRIPT, model, *settings], [note]


def with_places(command: str, first: str, rank: str) -> str:
    """The command with the words of a scheduler for the first node and the rank of a node."""
    for name in FIRST_NAMES:
        command = command.replace(name, first)
    return command.replace(RANK, rank)


def words_of(command: str) -> tuple[list[str], dict[str, str]] | None:
    """The words and the variables of a command; None of a script, which a shell has to run."""
    try:
        words = shlex.split(command.replace("\\\n", " "))
    except ValueError:
        return None
    if "\n" in command.replace("\\\n", " ").strip() or any(word in ("&&", "&", "|", ";") for word in words):
        return None
    variables: dict[str, str] = {}
    while words and (match := re.fullmatch(r"([A-Za-z_]\w*)=(.*)", words[0])):
        variables[match[1]] = match[2]
        words.pop(0)
    return words, variables


def job_name(w: PlannedRun) -> str:
    """A name for a job, of small letters, digits and dashes."""
    plain = re.sub(r"[^a-z0-9]+", "-", f"{w.verb}-{w.model.name}".lower()).strip("-")
    return plain[:50].strip("-") or "tonnage"


def engine_image(w: PlannedRun) -> str:
    """The container with the engine of this release; IMAGE where nobody publishes one, or it trains."""
    from tonnage.interchange.parts.launching.images import image_of
    from tonnage.runtimes import serving_runtime

    if w.serving is None or _has_own_command(w.serving.engine_tool):
        return "IMAGE"
    version = serving_runtime(w.serving.engine, w.serving.engine_version).version
    return image_of(w.serving.engine, version.rpartition(" ")[2]) or "IMAGE"


def _has_own_command(tool: str) -> bool:
    """Whether the command is a tool's, which the image of its engine does not have."""
    if not tool:
        return False
    from tonnage.runtimes.parts.engine_tools import ENGINE_TOOLS

    return ENGINE_TOOLS[tool].launch is not None


def image_notes(w: PlannedRun, image: str) -> list[str]:
    name = w.training.runtime if w.training is not None else ""
    name = name or (w.serving.engine_tool or w.serving.engine if w.serving is not None else "")
    return [Message("IMAGE stands for a container that has {name}.", name=name)] if image == "IMAGE" else []


def comments(notes: Mapping[str, str] | tuple[str, ...] | list[str], before: str = "") -> str:
    return "".join(f"{before}# {note}\n" for note in notes)
