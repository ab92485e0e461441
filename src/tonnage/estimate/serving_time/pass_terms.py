"""A pass of a served model as a tree: what spends its time."""

from tonnage.estimate.serving_time.forward_pass import PassTime, Spent
from tonnage.kernel.term import Term

FITTED = "fitted: scripts/fit_serving.py"
PASS_PARTS = {  # names of the fields of Spent that have another name in the field
    "products": "GEMMs",
    "kernels": "kernel launches",
    "exchanges": "communication",
    "engine": "scheduler",
    "adapters": "LoRA adapters",
    "encoder": "image and audio encoder",
    "between": "activations, norms and residuals",
}


def pass_term(name: str, spent: Spent, **parameters: float) -> Term:
    """A pass by what spends it; what takes nothing is left out."""
    fields = zip(Spent._fields, spent, strict=True)
    parts = [walked(PASS_PARTS.get(field, field), value, parameters) for field, value in fields if value]
    return Term.sum(name, *parts, unit="seconds")


def with_encoder(term: Term, own: Spent, checks: PassTime) -> Term:
    """The pass of a prompt, in which the towers' time is opened into its parts, each that share of it."""
    media, encoding = checks.plan.media, checks.encoding
    if media is None or encoding is None or not own.encoder:
        return term
    name, share = PASS_PARTS["encoder"], own.encoder / encoding.spent.seconds
    parameters = {
        "images": media.images,
        "patches_of_an_image": media.image.sequences * media.image.patches if media.image else 0,
        **({"video_frames": media.video_frames} if media.video else {}),
        "audio_seconds": media.audio_seconds,
        "flops": encoding.flops,
        "share_not_cached": share,
    }
    opened = pass_term(name, Spent._make(part * share for part in encoding.spent), **parameters)
    return Term.sum(term.name, *(opened if part.name == name else part for part in term.children), unit="seconds")


def walked(name: str, seconds: float, parameters: dict[str, float]) -> Term:
    """A time that the walk over the kernels of a pass found [seconds]."""
    return Term.by(
        name,
        seconds,
        "seconds",
        basis="analytic",
        source=FITTED,
        procedure="walk of the kernels of a pass (estimate.inference)",
        version="1",
        **parameters,
    )


def some(term: Term) -> tuple[Term, ...]:
    """The term, unless it is nothing."""
    return (term,) if term.value else ()
