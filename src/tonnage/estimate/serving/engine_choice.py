"""The engine where nobody names one, and whether an engine runs a model."""

from tonnage.architectures import Model
from tonnage.estimate.inputs import Origin
from tonnage.estimate.serving.denoising import usual_engine
from tonnage.estimate.serving.engine_checks import engine_of_format, holds_mlx, is_gguf, loads, runs_on, stored_format
from tonnage.estimate.serving.options import ServingOptions
from tonnage.kernel.errors import UnknownName
from tonnage.kernel.message import Message
from tonnage.models.purpose import purpose
from tonnage.runtimes import (
    USUAL_AT_HOME,
    USUAL_BY_VENDOR,
    USUAL_ENGINE,
    USUAL_OF_MLX,
    USUAL_OF_OTHERS,
    USUAL_OF_SPEECH,
    ServingRuntime,
    serving_runtime,
)
from tonnage.runtimes.parts.serving import number_of
from tonnage.spec import Accelerator, Cluster

GPU_VENDORS = frozenset({"NVIDIA", "AMD", "Intel", "Google", "AWS", "Huawei", "Tenstorrent", "Qualcomm"})


def usual(model: Model, cluster: Cluster, o: ServingOptions, reason: str) -> tuple[str, Origin, str]:
    """The engine where nobody says one: llama.cpp for GGUF files and outside of data centres, vLLM where it runs the
    model.
    """
    if purpose(model) == "transcribe":
        own = USUAL_OF_SPEECH.get(cluster.accelerator.vendor, USUAL_OF_OTHERS)
        return own, "model", "usual for speech to text"
    if is_gguf(model, o.weights):
        return USUAL_AT_HOME, "model", "GGUF files are llama.cpp's"
    if holds_mlx(model, o.weights) and runs_on(serving_runtime(USUAL_OF_MLX), cluster.accelerator):
        return USUAL_OF_MLX, "model", "MLX loads its own files"
    own = engine_of_format(model, o.weights)
    if own and runs_on(serving_runtime(own), cluster.accelerator):
        return own, "model", "it alone loads this format"
    if model.diffusion is not None:
        return usual_engine(model), "model", model.diffusion.source
    if reason:
        return USUAL_OF_OTHERS, "model", reason
    why = Message("usual on {vendor}", vendor=cluster.accelerator.vendor)
    of_vendor = USUAL_BY_VENDOR.get(cluster.accelerator.vendor)
    if of_vendor and loads(serving_runtime(of_vendor), stored_format(model, o.weights)):
        return of_vendor, "cluster", why
    if is_home(cluster.accelerator):
        return USUAL_ENGINE, "cluster", why
    native = serving_runtime(USUAL_AT_HOME)
    if not runs_on(native, cluster.accelerator):
        return USUAL_OF_OTHERS, "cluster", "llama.cpp has no backend for this accelerator"
    fits = loads(native, stored_format(model, o.weights))
    return (
        (native.name, "cluster", why) if fits else (USUAL_OF_OTHERS, "cluster", "llama.cpp does not load this format")
    )


def is_home(accelerator: Accelerator) -> bool:
    """Whether engines of data centres are what people run there."""
    return accelerator.vendor in GPU_VENDORS and accelerator.kind not in ("cpu", "apple")


def usual_vllm(o: ServingOptions) -> ServingRuntime:
    """vLLM at the version that is asked for; the newest where the version is another engine's."""
    try:
        return serving_runtime(USUAL_ENGINE, o.engine_version or "")
    except UnknownName:
        return serving_runtime(USUAL_ENGINE)


def cannot_run(engine: ServingRuntime, model: Model, version: str) -> str:
    """Why this engine does not run this model; nothing where nothing is known against it. `version`: as it was asked
    for, "" for the newest.
    """
    last = engine.dropped.get(model.architecture)
    if last == "":
        return Message("{version} runs no {architecture}.", version=engine.version, architecture=model.architecture)
    if last and (number_of(last) or ()) < (number_of(version) or number_of(engine.version) or ()):
        return Message(
            "{version} no longer runs {architecture}; the last version that did is {last}.",
            version=engine.version,
            architecture=model.architecture,
            last=last,
        )
    kinds = {branch.kind for branch in model.branches}
    if (
        engine.encoder_decoders is not None
        and {"encoder", "decoder"} <= kinds
        and model.family not in engine.encoder_decoders
    ):
        return Message(
            "{version} runs no model of an encoder and a decoder such as {family}.",
            version=engine.version,
            family=model.family,
        )
    return ""
