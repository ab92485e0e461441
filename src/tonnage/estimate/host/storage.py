"""Disks and processors beside the accelerators: checkpoints and their time, data sets, drives, cores, host memory
(rules D7, D9, D10).
"""

import re
from typing import TYPE_CHECKING

from msgspec import Struct

from tonnage.estimate.inputs import Question
from tonnage.estimate.options.run_options import RunOptions, duration, rate
from tonnage.formulas import failures as f
from tonnage.formulas import host as h
from tonnage.formulas import storage as s
from tonnage.kernel.errors import InvalidInput, shown
from tonnage.kernel.formula import Number
from tonnage.kernel.message import Message, joined
from tonnage.kernel.term import Term
from tonnage.kernel.units import GB, TB, human
from tonnage.spec import Cluster, Node

if TYPE_CHECKING:
    from tonnage.estimate.host.memory import HostMemory

# One drive, where a node's page tells how many there are and not how fast.
WRITE_RATE = 3.5 * GB
DRIVE_SOURCE = "Samsung2020: a PCIe 4.0 drive of a data centre reads 6.5 and writes 3.5 GB/s at most"
# Of each accelerator: 2 TB/s sustained by the storage of Llama 3's run, over its 16,384.
STORAGE_SHARE = 2e12 / 16384
STORAGE_SOURCE = "Grattafiori2024, sec. 3.3.1: 2 TB/s sustained, here over 16,384 accelerators"
SMALL_VOCABULARY = 65_500  # Megatron-LM stores ids of smaller vocabularies in 16 bits
TEXT_BYTES, TEXT_SOURCE = 4.0, "OpenAI2023: a token of English text is about 4 characters"
KEPT = 3  # as in rule D9
_DRIVES = re.compile(r"(\d+) x ([\d.]+) (TB|GB) (NVMe|SSD)")
_CORES = re.compile(r"(\d+) (vCPU|cores)")
THREADS = 2  # of a core that a cloud sells as vCPUs


class Drives(Struct, frozen=True):
    """Local drives of one node: how many, bytes of one, bytes/s that all together write, and where that comes from."""

    count: int
    capacity_bytes: int
    write_rate: Term
    source: str


class Checkpoints(Struct, frozen=True, kw_only=True):
    """Seconds of one checkpoint: `pause` of training for it, and to `write` and `read` it on the storage."""

    pause: Term
    write: Term
    read: Term


class Host(Struct, frozen=True, kw_only=True):
    """What a node should have: cores, host memory [bytes], disk for the whole run [bytes], and drives of the size that
    the node has, in all nodes together.

    What the catalogue does not know of the node is None; `warnings` say where it has less than is needed.
    """

    cores: Term
    node_cores: int | None
    memory: Term | None
    node_memory_bytes: int | None
    disk: Term
    drives: Term | None
    warnings: tuple[str, ...] = ()


def drives_of(node: Node) -> Drives | None:
    """The local drives of a node, as its page lists them; None where it does not say how many there are."""
    match = _DRIVES.fullmatch(node.storage.strip())
    if not match or match[4] != "NVMe":  # of other SSDs nothing says how fast they are
        return None
    count, size = int(match[1]), round(float(match[2]) * (TB if match[3] == "TB" else GB))
    return Drives(
        count,
        size,
        Term.of("writing", s.drives_rate, basis="rule", source=DRIVE_SOURCE, drives=count, W=WRITE_RATE),
        joined("; ", (f"{node.name}: {node.storage}", DRIVE_SOURCE)),
    )


def checkpoint_times(checkpoint: Term, num_accelerators: int, options: RunOptions) -> Checkpoints:
    """Time to write and read one checkpoint on the shared storage, at the bandwidth that was given or the default's.

    `checkpoint`: its bytes. A checkpoint_seconds that was given is the pause, and without a bandwidth also the time to
    write and to read.
    """
    seconds_given = duration("checkpoint_seconds", options.checkpoint_seconds)
    pause = (
        Term.of("time of a checkpoint", f.pause, source="given", tau=seconds_given)
        if seconds_given is not None
        else None
    )
    written, read = (rate(name, getattr(options, name)) for name in ("storage_bandwidth", "storage_read_bandwidth"))
    if pause is not None and written is None:
        writing = pause
    else:
        writing = Term.ratio("time of a checkpoint", "seconds", checkpoint, _storage(written, num_accelerators))
    if read is not None:
        reading = Term.ratio("reading the checkpoint", "seconds", checkpoint, _storage(read, 1))
    else:
        same = "an assumption: as fast as it was written"
        reading = Term.of("reading the checkpoint", f.pause, basis="rule", source=same, tau=writing.value)
    return Checkpoints(pause=pause or writing, write=writing.named("time to write a checkpoint"), read=reading)


def note_storage(times: Checkpoints, options: RunOptions, question: Question) -> None:
    """How fast the storage is taken to be; nothing where checkpoint_seconds says how long it takes."""
    if times.write.children:
        question.take(
            "storage_bandwidth",
            rate("storage_bandwidth", options.storage_bandwidth),
            times.write.children[1].value,
            "default",
            Message(
                "an assumption: {storage_share} for each accelerator; {storage_source}",
                storage_share=human(STORAGE_SHARE, "bytes/s"),
                storage_source=STORAGE_SOURCE,
            ),
        )
    if times.read.children:
        question.put("storage_read_bandwidth", times.read.children[1].value, "given")


def _storage(bandwidth: float | None, num_accelerators: int) -> Term:
    """Bytes a second of the storage that all accelerators share."""
    if bandwidth is not None:
        return Term.of("storage", s.storage_rate, source="given", W=bandwidth, n=1)
    return Term.of("storage", s.storage_rate, basis="rule", source=STORAGE_SOURCE, W=STORAGE_SHARE, n=num_accelerators)


def kept(checkpoint: Term, keep: int | None) -> Term:
    """Disk for the checkpoints that are kept; None: as many as rule D9 keeps."""
    count = KEPT if keep is None else keep
    if not 1 <= count <= 1_000_000:
        raise InvalidInput("{@keep_checkpoints} must be from 1 to 1,000,000. Got {count}.", count=shown(count))
    return Term.of("checkpoints kept", s.kept_bytes, M=checkpoint.value, n_copies=count)


def token_bytes(vocab_size: int) -> int:
    """Bytes of a stored token id, as Megatron-LM's preprocessing writes them: 2 below a vocabulary of 65,500, else
    4.
    """
    if vocab_size < 1:
        raise InvalidInput("{@vocab_size} must be at least 1. Got {vocab_size}.", vocab_size=shown(vocab_size))
    return 2 if vocab_size < SMALL_VOCABULARY else 4


def dataset_bytes(tokens: Number, vocab_size: int) -> Term:
    """Disk for a data set of token ids. tokens [tokens] may be an array."""
    return Term.of("data set, token ids", s.token_ids_bytes, D=tokens, w=token_bytes(vocab_size))


def raw_text_bytes(tokens: Number, bytes_per_token: float | None = None) -> Term:
    """Disk for the plain text of so many tokens. bytes_per_token [bytes]: by default that of English, which the
    Term's source says.
    """
    if bytes_per_token is not None and not 0 < bytes_per_token < 100:
        raise InvalidInput(
            "{@text_bytes_per_token} must be above 0 and below 100. Got {bytes_per_token}.",
            bytes_per_token=shown(bytes_per_token),
        )
    width, source = (TEXT_BYTES, TEXT_SOURCE) if bytes_per_token is None else (bytes_per_token, "given")
    return Term.of("data set, plain text", s.text_bytes, source=source, D=tokens, w=width)


def host_needs(
    cluster: Cluster,
    *,
    checkpoints: Term | None = None,
    datasets: tuple[Term, ...] = (),
    data_loader_workers: int = 0,
    memory: "HostMemory | None" = None,
) -> Host:
    """Cores, host memory and disk of one node. `checkpoints` [bytes]: those kept; `datasets` [bytes]: what lies on disk
    beside them.

    data_loader_workers [processes]: of each rank. `memory`: what the estimate of host memory says.
    """
    if not 0 <= data_loader_workers <= 10_000:
        raise InvalidInput(
            "{@data_loader_workers} must be from 0 to 10,000. Got {data_loader_workers}.",
            data_loader_workers=shown(data_loader_workers),
        )
    node = cluster.node
    cores = Term.of(
        "cores of a node", h.process_cores, ranks=cluster.accelerators_per_node, n_copies=data_loader_workers
    )
    disk = Term.sum("disk", *([checkpoints] if checkpoints else []), *datasets, unit="bytes")
    local = drives_of(node) if node else None
    drives = (
        Term.of("drives", s.drives_needed, source=local.source, M=disk.value, cap=local.capacity_bytes)
        if local
        else None
    )
    has = node_cores(node) if node else None
    return Host(
        cores=cores,
        node_cores=has,
        memory=memory.memory if memory else None,
        node_memory_bytes=node.host_memory_bytes if node else None,
        disk=disk,
        drives=drives,
        warnings=tuple(_too_little(cluster, cores, has, disk, local)),
    )


def node_cores(node: Node) -> int | None:
    """Cores of a node: two vCPUs are one; None where its page names processors without their cores."""
    match = _CORES.search(node.cpus)
    if not match or (" x " in node.cpus[: match.start()] and match[2] == "vCPU"):
        return None
    return int(match[1]) // THREADS if match[2] == "vCPU" else int(match[1])


def _too_little(cluster: Cluster, cores: Term, has: int | None, disk: Term, local: Drives | None) -> list[str]:
    shortages: list[str] = []
    name = cluster.node.name if cluster.node else ""
    if has is not None and cores.value > has:
        shortages.append(
            Message(
                "{cores:,.0f} processes want a core each and {name} has {has}: fewer {@data_loader_workers}.",
                cores=cores.value,
                name=name,
                has=has,
            )
        )
    if local is not None:
        room = local.count * local.capacity_bytes * cluster.num_nodes
        if disk.value > room:
            shortages.append(
                Message(
                    "the drives of all nodes hold {room:,.1f} TB and {disk:,.1f} TB are needed: shared storage is.",
                    room=room / TB,
                    disk=disk.value / TB,
                )
            )
    return shortages
