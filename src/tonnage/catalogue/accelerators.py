"""The catalogue of accelerators: catalogue/accelerators/*.toml -> Accelerator, in base units."""

from functools import lru_cache
from pathlib import Path
from typing import Literal

from msgspec import Struct

from tonnage.catalogue import toml_files
from tonnage.catalogue.toml_files import Source
from tonnage.kernel.errors import InvalidInput, shown
from tonnage.kernel.message import Message, joined
from tonnage.kernel.reach import called
from tonnage.kernel.registry import unknown
from tonnage.kernel.units import GB, GIB, MIB, TERA
from tonnage.spec import Accelerator, Fact, Link, Memory

# ---- A link as the files of accelerators and nodes write it.

Mesh = Literal["", "full", "cube"]


class LinkForm(Struct, forbid_unknown_fields=True):
    """`gb_per_s` is in one direction and per accelerator, all links of that kind together; `mesh`, `mesh_links`: see
    spec.Link.
    """

    name: str
    gb_per_s: float
    topology: str = ""
    joins: int = 0
    mesh: Mesh = ""
    mesh_links: int = 0


def check(form: LinkForm | None, where: str) -> None:
    """Check that a link's rate is plausible."""
    if form is not None:
        toml_files.within(form.gb_per_s, "gb_per_s", f"{where}.gb_per_s")
        if form.joins < 0 or form.joins == 1:
            raise InvalidInput(
                "{where}.joins must be at least 2, or 0 for all of a node. Got {joins}.",
                where=where,
                joins=shown(form.joins),
            )
        if form.mesh_links < 0 or bool(form.mesh) != bool(form.mesh_links):
            raise InvalidInput(
                "{where}.mesh_links must be at least 1 where mesh is said, and 0 where it is not. Got {mesh_links}.",
                where=where,
                mesh_links=shown(form.mesh_links),
            )


def link(form: LinkForm | None) -> Link | None:
    """The link in bytes per second."""
    if form is None:
        return None
    return Link(
        name=form.name,
        bytes_per_second=form.gb_per_s * GB,
        topology=form.topology,
        joins=form.joins,
        mesh=form.mesh,
        mesh_links=form.mesh_links,
    )


PRECISIONS = (
    "fp64", "fp64-matrix", "fp32", "tf32", "bf16", "fp16", "fp8", "fp6", "fp4", "nvfp4", "int8", "int4",
)  # fmt: skip
KINDS = ("gpu", "tpu", "npu", "cpu", "apple")


class MemoryForm(Struct, forbid_unknown_fields=True):
    """`nominal_gib` is what is sold, `reported_mib` what the driver shows, `runtime_mib` the total that the runtime
    gives programs, `context_mib` what a process of PyTorch holds outside of its allocator, `system_gib` what a
    shared memory's system keeps.
    """

    nominal_gib: float
    kind: str
    bandwidth_gb_per_s: float | None = None
    reported_mib: float | None = None
    runtime_mib: float | None = None
    context_mib: float | None = None
    unified: bool = False
    system_gib: float = 0


class VariantForm(Struct, forbid_unknown_fields=True):
    """A configuration of the same chip with less, or other, memory: a MIG or vGPU slice, ECC switched."""

    what: str
    source: str
    as_of: str
    nominal_gib: float | None = None
    reported_mib: float | None = None
    runtime_mib: float | None = None
    bandwidth_gb_per_s: float | None = None
    system_gib: float | None = None
    compute_fraction: float = 1


class AcceleratorFile(Struct, forbid_unknown_fields=True):
    """The form of a file; docs/catalogue.md explains each key. Peaks are dense; those with 2:4 sparsity stand apart."""

    name: str
    vendor: str
    kind: str
    generation: str
    memory: MemoryForm
    dense_tflops: dict[str, float]
    sources: dict[str, Source]
    aliases: list[str] = []
    sparse_tflops: dict[str, float] = {}
    scale_up: LinkForm | None = None
    host_link: LinkForm | None = None
    tdp_watts: float | None = None
    default_node: str | None = None
    variants: dict[str, VariantForm] = {}
    why: dict[str, str] = {}
    note: str = ""


def accelerator(name: str) -> Accelerator:
    """Return the Accelerator of this name or alias: memory [bytes], dense_flops [FLOP/s], links [bytes/s], sources.

    `NAME:VARIANT` is a MIG or vGPU slice of it, or one with ECC switched.
    """
    if not isinstance(name, str):
        raise InvalidInput("accelerator takes a name such as H100-SXM-80GB. Got {name}.", name=shown(name))
    chip, _, variant = name.partition(":")
    path = toml_files.find("accelerators", chip)
    if path is None:
        raise toml_files.missing("accelerators", "accelerator", chip)
    return load(path, variant)


def load(path: Path, variant: str = "") -> Accelerator:
    """Read one file, strictly; once, and again when it has changed."""
    return _loaded(path, toml_files.changed(path), variant)


@lru_cache(maxsize=1024)
def _loaded(path: Path, _changed: int, variant: str) -> Accelerator:
    form = toml_files.read(path, AcceleratorFile)
    _check(form, called(path))
    return _accelerator(form, variant)


def accelerator_names() -> list[str]:
    """Names of all accelerators, shipped and the user's own."""
    return toml_files.names("accelerators")


def accelerator_aliases() -> dict[str, str]:
    """Other names of accelerators -> their names in the catalogue."""
    return {alias: accelerator(name).name for alias, name in toml_files.aliases("accelerators").items()}


def _accelerator(form: AcceleratorFile, variant: str) -> Accelerator:
    memory, fraction, name = form.memory, 1.0, form.name
    sources = {path: Fact(source=fact.source, as_of=fact.as_of) for path, fact in form.sources.items()}
    if variant:
        chosen = _variant(form, toml_files.key(variant))
        memory, fraction = _in_variant(memory, chosen), chosen.compute_fraction
        name = f"{name}:{toml_files.key(variant)}"
        sources = _with_memory_from(sources, Fact(source=chosen.source, as_of=chosen.as_of))
    return Accelerator(
        name=name,
        vendor=form.vendor,
        kind=form.kind,
        generation=form.generation,
        memory=_memory(memory),
        dense_flops={precision: peak * fraction * TERA for precision, peak in form.dense_tflops.items()},
        sparse_flops={precision: peak * fraction * TERA for precision, peak in form.sparse_tflops.items()},
        scale_up=link(form.scale_up),
        host_link=link(form.host_link),
        tdp_watts=form.tdp_watts,
        default_node=form.default_node,
        sources=sources,
        why=form.why,
        variants=tuple(form.variants),
        note=form.note,
    )


def _variant(form: AcceleratorFile, name: str) -> VariantForm:
    if name not in form.variants:
        raise unknown(Message("variant of {form}", form=form.name), name, form.variants)
    return form.variants[name]


def _in_variant(memory: MemoryForm, chosen: VariantForm) -> MemoryForm:
    """The chip's memory with the variant's changes; another size never keeps the chip's readings."""
    resized = chosen.nominal_gib is not None or chosen.reported_mib is not None
    return MemoryForm(
        nominal_gib=chosen.nominal_gib or memory.nominal_gib,
        kind=memory.kind,
        bandwidth_gb_per_s=chosen.bandwidth_gb_per_s or memory.bandwidth_gb_per_s,
        reported_mib=chosen.reported_mib if resized else memory.reported_mib,
        runtime_mib=chosen.runtime_mib if resized or chosen.runtime_mib else memory.runtime_mib,
        context_mib=memory.context_mib,
        unified=memory.unified,
        system_gib=memory.system_gib if chosen.system_gib is None else chosen.system_gib,
    )


def _with_memory_from(sources: dict[str, Fact], fact: Fact) -> dict[str, Fact]:
    return {path: known for path, known in sources.items() if not path.startswith("memory")} | {"memory": fact}


def _memory(memory: MemoryForm) -> Memory:
    reported, runtime, bandwidth = memory.reported_mib, memory.runtime_mib, memory.bandwidth_gb_per_s
    return Memory(
        nominal_bytes=round(memory.nominal_gib * GIB),
        reported_bytes=round(reported * MIB) if reported else None,
        runtime_bytes=round(runtime * MIB) if runtime else None,
        context_bytes=round(memory.context_mib * MIB) if memory.context_mib else None,
        system_bytes=round(memory.system_gib * GIB),
        kind=memory.kind,
        unified=memory.unified,
        bytes_per_second=bandwidth * GB if bandwidth else None,
    )


def _check(form: AcceleratorFile, where: str) -> None:
    toml_files.one_of(form.kind, KINDS, Message("{where}: kind", where=where))
    _check_memory(form.memory, Message("{where}: memory", where=where))
    _check_peaks(form, where)
    check(form.scale_up, f"{where}: scale_up")
    check(form.host_link, f"{where}: host_link")
    toml_files.within(form.tdp_watts, "watts", f"{where}: tdp_watts")
    for name, variant in form.variants.items():
        _check_variant(form, name, variant, where)
    toml_files.sourced(_facts(form), form.sources, where)


def _check_memory(memory: MemoryForm, where: str) -> None:
    toml_files.within(memory.nominal_gib, "gib", f"{where}.nominal_gib")
    toml_files.within(memory.bandwidth_gb_per_s, "gb_per_s", f"{where}.bandwidth_gb_per_s")
    _check_reading(memory, "reported_mib", memory.reported_mib, where)
    _check_reading(memory, "runtime_mib", memory.runtime_mib, where)
    if memory.runtime_mib and memory.reported_mib and memory.runtime_mib > memory.reported_mib:
        raise InvalidInput(
            "{where}.runtime_mib ({runtime_mib}) exceeds reported_mib ({reported_mib}): a program never "
            "gets more than the driver shows.",
            where=where,
            runtime_mib=memory.runtime_mib,
            reported_mib=memory.reported_mib,
        )
    if memory.context_mib is not None and not 0 < memory.context_mib < memory.nominal_gib * 1024 / 2:
        raise InvalidInput(
            "{where}.context_mib must be above 0 and below half of nominal_gib ({nominal_gib}). Got {context_mib}.",
            where=where,
            nominal_gib=memory.nominal_gib,
            context_mib=memory.context_mib,
        )
    if not 0 <= memory.system_gib < memory.nominal_gib:
        raise InvalidInput(
            "{where}.system_gib must be at least 0 and below nominal_gib. Got {system_gib}.",
            where=where,
            system_gib=memory.system_gib,
        )


def _check_reading(memory: MemoryForm, field: str, value: float | None, where: str) -> None:
    """Check a reading of the whole memory in MiB: not above the nominal size, and not so far below that its unit must
    be wrong.
    """
    toml_files.within(value, "mib", f"{where}.{field}")
    if value and value > memory.nominal_gib * 1024:
        raise InvalidInput(
            "{where}.{field} ({value}) exceeds nominal_gib ({nominal_gib}): MiB for GiB?",
            where=where,
            field=field,
            value=value,
            nominal_gib=memory.nominal_gib,
        )
    if value and value < memory.nominal_gib * 1024 / 2:
        raise InvalidInput(
            "{where}.{field} ({value}) is below half of nominal_gib ({nominal_gib}): GiB for MiB?",
            where=where,
            field=field,
            value=value,
            nominal_gib=memory.nominal_gib,
        )


def _check_peaks(form: AcceleratorFile, where: str) -> None:
    for table, peaks in (("dense_tflops", form.dense_tflops), ("sparse_tflops", form.sparse_tflops)):
        for precision, peak in peaks.items():
            if precision not in PRECISIONS:
                raise InvalidInput(joined(": ", (where, table, unknown("precision", precision, PRECISIONS))))
            toml_files.within(peak, "tflops", f"{where}: {table}.{precision}")


def _check_variant(form: AcceleratorFile, name: str, variant: VariantForm, where: str) -> None:
    if name != toml_files.key(name):
        raise InvalidInput(
            "{where}: variants.{name} must be written {key}: small letters, no spaces.",
            where=where,
            name=name,
            key=shown(toml_files.key(name)),
        )
    toml_files.within(
        variant.compute_fraction,
        "fraction",
        Message("{where}: variants.{name}.compute_fraction", where=where, name=name),
    )
    toml_files.date(variant.as_of, Message("{where}: variants.{name}.as_of", where=where, name=name))
    _check_memory(_in_variant(form.memory, variant), Message("{where}: variants.{name}", where=where, name=name))


def _facts(form: AcceleratorFile) -> list[str]:
    """Dotted paths of the figures that the file states, each of which needs a source."""
    readings = ("bandwidth_gb_per_s", "reported_mib", "runtime_mib")
    memory = [f"memory.{field}" for field in readings if getattr(form.memory, field)]
    system = ["memory.system_gib"] if form.memory.system_gib else []
    peaks = [f"dense_tflops.{precision}" for precision in form.dense_tflops]
    peaks += [f"sparse_tflops.{precision}" for precision in form.sparse_tflops]
    others = [field for field in ("scale_up", "host_link", "tdp_watts") if getattr(form, field) is not None]
    return ["memory.nominal_gib", *memory, *system, *peaks, *others]
