"""What an engine refuses, in its own words: sizes, formats, contexts, settings that it does not have."""

from tonnage.architectures import Model
from tonnage.estimate.plan.rule import divisors, near
from tonnage.estimate.plan.validity import shares_heads
from tonnage.estimate.serving.weights.storage import is_gguf_type, is_mlx, storage
from tonnage.kernel.errors import InvalidPlan, NotApplicable, TonnageError
from tonnage.kernel.message import Message, listed, option_name
from tonnage.models.purpose import DOES, purpose
from tonnage.numerics.precisions import PRECISIONS
from tonnage.numerics.quantization import OWN_FORMATS
from tonnage.ops import Attention, LatentAttention
from tonnage.runtimes import USUAL_OF_FORMATS, ServingRuntime, serving_runtime, serving_runtimes
from tonnage.spec import Accelerator

# Options that not every engine has.
SETTINGS = (
    "weights_on_host",
    "lora_adapters",
    "attention_data_parallel_size",
    "redundant_experts",
    "draft_tokens",
    "speculative",
    "layers_on_accelerator",
    "expert_layers_on_host",
    "gpu_experts",
    "host_method",
    "host_cores",
    "gpu_prefill_tokens",
    "kv_offload",
)


def check_heads(model: Model, t: int, ranks: int, engine: ServingRuntime) -> None:
    """Tensor ranks that the engine's layers cannot share the query heads among, with its own rule. `ranks`: there is
    room for.
    """
    rule = engine.heads_rule
    if not rule or t == 1:
        return
    heads = [
        op.heads for block in model.decoder.blocks for op in block.ops if isinstance(op, Attention | LatentAttention)
    ]
    for count in heads:
        if count % t:
            nearest = near(t, [n for n in divisors(ranks) if shares_heads(model, n)])
            raise InvalidPlan(
                "{@tensor_parallel_size} must divide {@num_attention_heads} of {model} ({count}) under "
                "{engine}. Got {t}. Nearest: {nearest}. ({rule}.)",
                model=model.name,
                count=count,
                engine=engine.name,
                t=t,
                nearest=nearest,
                rule=rule,
            )


def stored_format(model: Model, weights: str | None) -> str:
    """What the weights are stored in, by a name that engines are asked about; nothing where it is a mixture without
    one.
    """
    stored = storage(model, weights)
    if is_gguf_type(stored):
        return "gguf"
    name = own_format(model, weights) or stored.name
    return name if name in PRECISIONS or name.startswith(OWN_FORMATS) else ""


def own_format(model: Model, weights: str | None) -> str:
    """The format that one engine alone loads, as it is asked for or as the checkpoint's config names it, whose files'
    headers name types alone; "" for another.
    """
    method = str((model.quantization or {}).get("quant_method") or "").lower()
    name = storage(model, weights).name if weights else f"{method}-"
    return name if name.startswith(OWN_FORMATS) else ""


def is_gguf(model: Model, weights: str | None) -> bool:
    """Whether the weights are asked for, or were read, as a GGUF file."""
    try:
        return stored_format(model, weights) == "gguf" or (
            not weights and (model.quantization or {}).get("quant_method") == "gguf"
        )
    except TonnageError:
        return False  # what cannot be is refused where it is used


def holds_mlx(model: Model, weights: str | None) -> bool:
    """Whether the weights are asked for, or were read, in files of MLX."""
    try:
        return is_mlx(storage(model, weights))
    except TonnageError:
        return False  # what cannot be is refused where it is used


def loads(engine: ServingRuntime, stored: str) -> bool:
    if stored.startswith(OWN_FORMATS):  # files that one engine alone makes
        return stored.startswith(engine.formats or ())
    return engine.formats is None or not stored or stored.startswith(engine.formats)


def engine_of_format(model: Model, weights: str | None) -> str:
    """The engine whose own format the weights are asked for, or were read, in; "" where they are in another."""
    try:
        name = own_format(model, weights)
    except TonnageError:
        return ""  # what cannot be is refused where it is used
    return next((engine for form, engine in USUAL_OF_FORMATS.items() if name.startswith(form)), "")


def runs_on(engine: ServingRuntime, accelerator: Accelerator) -> bool:
    """Whether the engine has a backend for the accelerator, as far as is known."""
    if engine.vendors and accelerator.vendor not in engine.vendors:
        return False
    return accelerator.vendor in engine.backends.get(accelerator.kind, (accelerator.vendor,))


def _check_machine(stored: str, engine: ServingRuntime, accelerator: Accelerator) -> None:
    if runs_on(engine, accelerator):
        return
    others = [name for name in serving_runtimes() if runs_on(serving_runtime(name), accelerator) and answers(name)]
    nearest = [name for name in others if loads(serving_runtime(name), stored)] or others
    if engine.vendors:
        raise InvalidPlan(
            "{@engine}: {version} runs on accelerators of {vendors}. Got {accelerator} of {vendor}. "
            "Nearest: {nearest}.",
            version=engine.version,
            vendors=listed(engine.vendors),
            accelerator=accelerator.name,
            vendor=accelerator.vendor,
            nearest=listed(nearest),
        )
    raise InvalidPlan(
        "{@engine}: {version} has no backend for a {kind} of {vendor} ({backends_source}). Got "
        "{accelerator}. Nearest: {nearest}.",
        version=engine.version,
        kind=accelerator.kind,
        vendor=accelerator.vendor,
        backends_source=engine.backends_source,
        accelerator=accelerator.name,
        nearest=listed(nearest),
    )


def check_format(model: Model, weights: str | None, engine: ServingRuntime, accelerator: Accelerator) -> None:
    """An accelerator that the engine does not run on; a format that it does not load, or not there."""
    stored = stored_format(model, weights)
    _check_machine(stored, engine, accelerator)
    if not loads(engine, stored):
        others = [
            name
            for name in serving_runtimes()
            if name != engine.name and loads(serving_runtime(name), stored) and answers(name)
        ]
        if stored.startswith(OWN_FORMATS):
            raise InvalidPlan(
                "{@weights}: only {others} loads files in {name}. Got {@engine} {engine}.",
                others=listed(others),
                name=storage(model, weights).name,
                engine=engine.name,
            )
        known = listed(engine.formats or ())
        raise InvalidPlan(
            "{@weights}: {version} loads {known} ({formats_source}). Got {name}. Engines that load it: {others}.",
            version=engine.version,
            known=known,
            formats_source=engine.formats_source,
            name=storage(model, weights).name,
            others=listed(others) or "none",
        )
    if engine.no_metal and accelerator.kind == "apple" and stored.startswith(engine.no_metal):
        raise InvalidPlan(
            "{@weights}: {version} has no Metal kernels for {found} ({no_metal_source}). Got "
            "{accelerator}. Nearest: q4_k_m or q8_0 under llama.cpp.",
            version=engine.version,
            found=stored,
            no_metal_source=engine.no_metal_source,
            accelerator=accelerator.name,
        )
    old = next((names for prefix, names in engine.too_old.items() if stored.startswith(prefix)), ())
    if accelerator.generation in old:
        raise InvalidPlan(
            "{@weights}: {version} has no kernels of {found} for {generation} ({too_old_source}). "
            "Got {accelerator}. Nearest: gptq, or q8_0 or q4_k_m under llama.cpp.",
            version=engine.version,
            found=stored,
            generation=accelerator.generation,
            too_old_source=engine.too_old_source,
            accelerator=accelerator.name,
        )
    need = next((peak for prefix, peak in engine.peaks.items() if stored.startswith(prefix)), None)
    if need and accelerator.dense_flops and need not in accelerator.dense_flops:
        other = "fp8" if need == "fp4" and "fp8" in accelerator.dense_flops else "awq"
        raise InvalidPlan(
            "{@weights}: {version} needs an accelerator with {need} arithmetic for {found} "
            "({formats_source}), and {accelerator} has none. Nearest: {other}, or another engine.",
            version=engine.version,
            need=need,
            found=stored,
            formats_source=engine.formats_source,
            accelerator=accelerator.name,
            other=other,
        )


def check_cache(model: Model, kind: str, engine: ServingRuntime, accelerator: Accelerator) -> None:
    """InvalidPlan where the engine cannot hold keys and values in this precision there."""
    if engine.check_cache is not None:
        engine.check_cache(engine, model, kind, accelerator)


def check_layers(on_accelerator: int | None) -> None:
    """llama.cpp's -ngl 0 is a machine without the accelerator, as far as weights and cache go."""
    if on_accelerator == 0:
        raise InvalidPlan(
            Message(
                "{@layers_on_accelerator} must be from 1, which is the head alone. Got 0: with all "
                "layers on the processor, that is the machine. Name it: {--on} desktop-ddr5-64gb, {--on} "
                "epyc-9654, ..."
            )
        )


def check_answers(model: Model) -> None:
    """InvalidPlan for a model that writes no text of its own, where answers are what is compared."""
    if (found := purpose(model)) != "generate":
        raise InvalidPlan(
            "{model} {what}: a search by users and their waiting times is for models that generate text. "
            "`tonnage serve {model}` says what it does on a machine, and at what price; `tonnage compare {model} --on "
            "L4,L40S,H100-SXM-80GB --request-rate 100` how many of each are enough.",
            model=model.name,
            what=DOES[found],
        )


def answers(name: str) -> bool:
    """Whether an engine serves models that generate text, as most ask, and those without routed experts too."""
    engine = serving_runtime(name)
    return "generate" in engine.serves and engine.host_experts is None


def check_purpose(model: Model, engine: ServingRuntime) -> None:
    """An engine that serves no models of this kind."""
    found = purpose(model)
    if found in engine.serves:
        return
    others = [name for name in serving_runtimes() if found in serving_runtime(name).serves]
    what = {
        "generate": "generate text",
        "embed": "embed documents",
        "rerank": "score pairs",
        "transcribe": "write speech down",
    }[found]
    raise InvalidPlan(
        "{@engine}: {version} serves no models that {what}. Got {model}. Engines that do: {others}.",
        version=engine.version,
        what=what,
        model=model.name,
        others=listed(others),
    )


def check_settings(engine: ServingRuntime, settings: dict[str, object]) -> None:
    """Settings that another engine has."""
    for name in SETTINGS:
        if settings.get(name) and name not in engine.settings:
            engines = [other for other in serving_runtimes() if name in serving_runtime(other).settings]
            text = Message(
                "{name} is a setting of {engines}. Got engine {engine}.",
                name=option_name(name),
                engines=listed(engines),
                engine=engine.name,
            )
            if name == "lora_adapters":  # what users ask for, and no setting that another engine can do without
                raise InvalidPlan(text)
            raise NotApplicable(text, name, ("engine",))
