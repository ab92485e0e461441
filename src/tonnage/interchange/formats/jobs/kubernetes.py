"""Kubernetes: manifests that run pods, with the command of a container."""

from typing import Any

from tonnage.interchange.formats import FORMATS, Format
from tonnage.interchange.parts.carriers.manifest_keys import OBJECT, POD, classify
from tonnage.interchange.parts.carriers.manifests import read_workloads
from tonnage.interchange.parts.carriers.pods import flat
from tonnage.interchange.parts.carriers.workloads import objects, workloads
from tonnage.interchange.parts.jobs.carried_command import carries_with_machine, counts_copies, fills
from tonnage.interchange.parts.jobs.manifest import write
from tonnage.interchange.reading import Reading
from tonnage.interchange.source import Source
from tonnage.kernel.errors import InvalidInput
from tonnage.kernel.message import listed

SIGNS = 20


def recognises(source: Source) -> int:
    if source.kind not in ("yaml", "json"):
        return 0
    return SIGNS * any("apiVersion" in one and "kind" in one for one in objects(source))


def values(source: Source) -> dict[str, Any]:
    return {key: value for work in workloads(source) for key, value in flat(work.tree, work.place[:-1])}


def read(r: Reading) -> None:
    work = workloads(r.source)
    if not work:
        kinds = dict.fromkeys(str(one.get("kind")) for one in objects(r.source))
        raise InvalidInput(
            "{file} has no object that runs pods. Got {kinds}.", file=r.source.name, kinds=listed(kinds) or "nothing"
        )
    r.inside = ("kubernetes",)
    read_workloads(r, work)
    classify(r, work)


FORMATS.add(
    "kubernetes",
    Format(
        name="kubernetes",
        tool="Kubernetes",
        version="1.36",
        source="Kubernetes, staging/src/k8s.io/api/core/v1/types.go",
        recognises=recognises,
        values=values,
        read=read,
        known=lambda: (*OBJECT, *POD),
        verbs=("train", "serve"),
        fills=fills,
        write=write,
        ending=".yaml",
        carries=carries_with_machine,
        counts=counts_copies,
    ),
)
