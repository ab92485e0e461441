"""KServe: InferenceService and LLMInferenceService, which serve with vLLM where they say no other engine."""

from typing import Any

from tonnage.interchange.formats import FORMATS, Format
from tonnage.interchange.parts.carriers.kserve import KEYS, classify, kinds, read_service, services
from tonnage.interchange.parts.carriers.pods import flat
from tonnage.interchange.parts.jobs.carried_command import carries_with_machine, counts_copies
from tonnage.interchange.parts.jobs.kserve_manifest import write
from tonnage.interchange.reading import Reading
from tonnage.interchange.source import Source
from tonnage.kernel.errors import InvalidInput
from tonnage.kernel.message import OR, listed

SIGNS = 40


def recognises(source: Source) -> int:
    return SIGNS if source.kind in ("yaml", "json") and services(source) else 0


def values(source: Source) -> dict[str, Any]:
    manifests = services(source)
    return dict(flat(manifests[0], "")) if manifests else {}


def read(r: Reading) -> None:
    manifests = services(r.source)
    if len(manifests) != 1:
        raise InvalidInput(
            "{file} must have one {kinds}. Got {count}.",
            file=r.source.name,
            kinds=listed(kinds(), OR),
            count=len(manifests),
        )
    r.inside = ("kserve",)
    read_service(r, manifests[0])
    classify(r)


FORMATS.add(
    "kserve",
    Format(
        name="kserve",
        tool="KServe",
        version="0.20",
        source="KServe, pkg/apis/serving: v1beta1/predictor.go, v1alpha2/llm_inference_service_types.go",
        recognises=recognises,
        values=values,
        read=read,
        known=lambda: KEYS,
        verbs=("serve",),
        sets={"serve": "vllm"},
        write=write,
        ending=".yaml",
        carries=carries_with_machine,
        counts=counts_copies,
    ),
)
