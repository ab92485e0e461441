"""tonnage accelerators: the catalogue of accelerators and nodes, and one of them in detail."""

import argparse
from typing import Any

from tonnage.cli.common.parser import add_form, add_output
from tonnage.cli.common.print import print_json, print_lines
from tonnage.kernel.units import human
from tonnage.language import say, worded
from tonnage.language.columns import left
from tonnage.question.form import Given
from tonnage.question.verbs import form_of
from tonnage.spec import Accelerator, Link, Node
from tonnage.verbs.accelerators import describe, listed, named

HELP = "the catalogue of accelerators and nodes; one in detail, each figure with its source and date"


def add_arguments(parser: argparse.ArgumentParser) -> None:
    add_form(parser, form_of("accelerators"))
    add_output(parser)


def run(arguments: Given) -> int:
    if arguments.name is None:
        return _list(arguments.json)
    entry = named(arguments.name)
    if arguments.json:
        print_json(describe(entry))
    else:
        print_lines(_node_lines(entry) if isinstance(entry, Node) else _accelerator_lines(entry))
    return 0


def _list(as_json: bool) -> int:
    document = listed()
    chips, machines = document.accelerators, document.nodes
    if as_json:
        print_json(document)
        return 0
    from tonnage.render.text import table_lines

    rows = [
        (
            chip.name,
            chip.vendor,
            human(chip.memory.usable_bytes, "bytes"),
            _rate(chip.memory.bytes_per_second, "bytes/s"),
            _rate(chip.dense_flops.get("bf16") or chip.dense_flops.get("fp16"), "FLOP/s"),
            ", ".join(chip.variants),
        )
        for chip in chips
    ]
    header = ("name", "vendor", "memory", "bandwidth", say("dense 16 bit"), "variants")
    nodes = [
        (node.name, f"{node.accelerators}x{node.accelerator}", _link(node.inside), _link(node.outside), node.provider)
        for node in machines
    ]
    print_lines(
        [
            say(
                "{chips_count} accelerators, {machines_count} nodes",
                chips_count=len(chips),
                machines_count=len(machines),
            ),
            "",
            *table_lines(rows, header),
            "",
            *table_lines(nodes, ("node", "accelerators", "inside", "outside", "provider")),
        ]
    )
    return 0


def _accelerator_lines(chip: Accelerator) -> list[str]:
    memory = chip.memory
    facts = [
        ("memory.nominal_gib", "memory", human(memory.nominal_bytes, "bytes")),
        ("memory.bandwidth_gb_per_s", "bandwidth", _rate(memory.bytes_per_second, "bytes/s")),
    ]
    readings = (
        ("memory.reported_mib", say("as the driver reports"), memory.reported_bytes),
        ("memory.runtime_mib", say("as programs get it"), memory.runtime_bytes),
    )
    facts[1:1] = [(path, label, human(size, "bytes")) for path, label, size in readings if size]
    if memory.system_bytes:
        facts.append(("memory.system_gib", say("kept by the system"), human(memory.system_bytes, "bytes")))
    facts += [
        (f"dense_tflops.{name}", say("{name}, dense", name=name), human(peak, "FLOP/s"))
        for name, peak in chip.dense_flops.items()
    ]
    facts += [
        (f"sparse_tflops.{name}", say("{name}, 2:4 sparse", name=name), human(peak, "FLOP/s"))
        for name, peak in chip.sparse_flops.items()
    ]
    facts += [
        (key, say(key.replace("_", " ")), _link(link))
        for key, link in (("scale_up", chip.scale_up), ("host_link", chip.host_link))
        if link
    ]
    if chip.tdp_watts:
        facts.append(("tdp_watts", "power", human(chip.tdp_watts, "watts")))
    lines = [f"{chip.name} ({chip.vendor}, {chip.generation})"]
    lines += [
        f"  {left(say(label), 24)} {left(value, 24)} {_fact(chip.fact(path))}".rstrip() for path, label, value in facts
    ]
    lines += ["  " + say("why {key}: {reason}", key=key, reason=worded(reason)) for key, reason in chip.why.items()]
    return (
        lines
        + ["  " + say("variant {name}:{variant}", name=chip.name, variant=variant) for variant in chip.variants]
        + (["  " + say("note: {what}", what=worded(chip.note))] if chip.note else [])
    )


def _node_lines(node: Node) -> list[str]:
    lines = [f"{node.name}: {node.accelerators} x {node.accelerator}"]
    facts: list[tuple[str, Any]] = [
        ("inside", _link(node.inside)),
        ("outside", _link(node.outside)),
        ("cpus", node.cpus),
        ("storage", node.storage),
        ("provider", node.provider),
    ]
    if node.accelerators_per_host:
        facts.append((say("of a host"), node.accelerators_per_host))
    if node.host_memory_bytes:
        facts.append((say("host memory"), human(node.host_memory_bytes, "bytes")))
    if node.power_watts:
        facts.append(("power", human(node.power_watts, "watts")))
    lines += [f"  {left(say(label), 12)} {worded(str(value))}" for label, value in facts if value and value != "-"]
    lines += ["  " + say("source of {key}: {fact}", key=key, fact=_fact(fact)) for key, fact in node.sources.items()]
    return (
        lines
        + ["  " + say("why {key}: {reason}", key=key, reason=worded(reason)) for key, reason in node.why.items()]
        + (["  " + say("note: {what}", what=worded(node.note))] if node.note else [])
    )


def _rate(value: float | None, unit: str) -> str:
    return human(value, unit) if value else "-"


def _link(link: Link | None) -> str:
    return f"{human(link.bytes_per_second, 'bytes/s')} {link.name}" if link else "-"


def _fact(fact: Any) -> str:
    return f"{fact.source} ({fact.as_of})" if fact else ""
