"""Diffusion language models in service: how many passes denoise an answer, over how many tokens, beside which cache."""

from tonnage.architectures import Model
from tonnage.estimate.inputs import Question
from tonnage.estimate.serving.options import ServingOptions
from tonnage.kernel.errors import InvalidInput, InvalidPlan, NotApplicable
from tonnage.kernel.message import Message, listed, option_name
from tonnage.runtimes import ServingRuntime
from tonnage.spec import Denoising

OPTIONS = ("denoising_steps", "block_length", "denoising_cache")
DRAFTS = ("speculative", "draft_model", "draft_tokens", "acceptance")
OWN_CODE = "transformers"
FAST = "Fast-dLLM, v1/llada/generate.py: generate_with_prefix_cache, generate_with_dual_cache"
RUNS_ONE = "SGLang, sglang/srt/dllm/config.py: max_running_requests 1 unless it is said"


def usual_engine(model: Model) -> str:
    """The engine of a diffusion language model where nobody says one; nothing for other models."""
    return (*model.diffusion.serves, OWN_CODE)[0] if model.diffusion else ""


def denoising(model: Model, engine: ServingRuntime, o: ServingOptions, q: Question) -> Denoising | None:
    """How this engine denoises an answer, checked, with its defaults in the question; None for other models."""
    given = [name for name in OPTIONS if getattr(o, name) is not None]
    if model.diffusion is None:
        if given:
            raise NotApplicable(
                Message(
                    "{name} is of diffusion language models such as llada-8b-instruct, and {model} is none.",
                    name=option_name(given[0]),
                    model=model.name,
                ),
                given[0],
                ("model",),
            )
        return None
    for name in DRAFTS:
        if getattr(o, name) is not None:
            raise NotApplicable(
                Message(
                    "{name} is of models that write one token after another, and {model} denoises many at once. "
                    "Got {value}.",
                    name=option_name(name),
                    model=model.name,
                    value=getattr(o, name),
                ),
                name,
                ("model",),
            )
    known = (*model.diffusion.serves, OWN_CODE)
    if engine.name not in known:
        raise InvalidPlan(
            "{version} does not denoise {architecture}, a diffusion language model: {@engine} must be one of {known}. "
            "Got {engine}. Nearest: {nearest}.",
            version=engine.version,
            architecture=model.architecture or model.name,
            known=listed(known),
            engine=engine.name,
            nearest=known[0],
        )
    prompt, answer = o.request_lengths or (1, 1)
    whole = not model.diffusion.block
    length = answer if whole else min(model.diffusion.block, answer)
    block = q.take("block_length", o.block_length, length, "model", model.diffusion.source)
    if not 1 <= block <= answer:
        raise InvalidInput(
            "{@block_length} must be from 1 to the {answer:,} tokens of the answer. Got {block}. Nearest: {nearest}.",
            answer=answer,
            block=block,
            nearest=min(max(block, 1), answer),
        )
    blocks = -(-answer // block)
    steps = q.take(
        "denoising_steps", o.denoising_steps, answer, "model", "one token a pass; a threshold of confidence takes fewer"
    )
    if not blocks <= steps <= answer:
        raise InvalidInput(
            "{@denoising_steps} are passes of a whole answer: from {blocks:,}, one for each block, to its {answer:,} "
            "tokens. Got {steps:,}. Nearest: {nearest:,}.",
            blocks=blocks,
            answer=answer,
            steps=steps,
            nearest=min(max(steps, blocks), answer),
        )
    return Denoising(
        steps=steps, block=block, cache=_cache(model, engine, o, q), prompt_tokens=prompt, answer_tokens=answer
    )


def _cache(model: Model, engine: ServingRuntime, o: ServingOptions, q: Question) -> str:
    """What a pass finds cached. SGLang and models made for it keep the blocks before; the own code of LLaDA2 passes all
    of them again, that of LLaDA and Dream the whole answer too, unless Fast-dLLM's caches are asked for.
    """
    assert model.diffusion is not None
    by_blocks = engine.name != OWN_CODE or model.family == "fast_dllm"
    usual = "block" if by_blocks else "window" if model.diffusion.block else "none"
    if o.denoising_cache is None:
        return str(q.put("denoising_cache", usual, "runtime", model.diffusion.source))
    if o.denoising_cache != usual and (usual != "none" or o.denoising_cache not in ("prefix", "dual")):
        raise InvalidPlan(
            "{@denoising_cache} prefix and dual are Fast-dLLM's, of models that denoise the whole answer with their "
            "own code; {engine} with {model} has {usual}. Got {cache}. Nearest: {usual}.",
            engine=engine.name,
            model=model.name,
            usual=usual,
            cache=o.denoising_cache,
        )
    return str(q.put("denoising_cache", o.denoising_cache, "given", FAST))
