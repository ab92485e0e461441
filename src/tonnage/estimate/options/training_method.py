"""Which weights train: the user's words on methods, checked against the model and the runtime."""

from typing import Any

from tonnage.architectures import Model
from tonnage.estimate.inputs import Question, own_of
from tonnage.estimate.plan.training_options import TrainingOptions
from tonnage.estimate.step.method import bare_base_bytes
from tonnage.estimate.step.objective import OBJECTIVES
from tonnage.kernel.errors import InvalidPlan, MissingDatum, NotApplicable
from tonnage.kernel.message import Message, joined, listed, option_name
from tonnage.kernel.registry import unknown
from tonnage.kernel.units import counted
from tonnage.numerics.precisions import Recipe, precision
from tonnage.runtimes import TrainingRuntime, training_runtime, training_runtimes
from tonnage.runtimes.parts.base import METHODS, PEFT_METHODS
from tonnage.runtimes.parts.peft import IA3
from tonnage.spec import Tuning

BASES = ("nf4", "nf4-double", "fp4", "fp4-double", "int8")
WIDE = "fp32"  # a base that is not quantised, in the type of the weights that train
ALL_LINEAR = "all-linear"
DEFAULT_RANK = 16


def training_method(model: Model, runtime: TrainingRuntime, recipe: Recipe, o: TrainingOptions, q: Question) -> Tuning:
    """What trains. `qlora` is LoRA on a 4-bit base."""
    usual = "full" if not runtime.trains or "full" in runtime.trains else "lora"
    chosen = q.take(
        "method",
        o.method,
        usual,
        "default",
        ("every weight trains" if usual == "full" else Message("what {runtime} is made for", runtime=runtime.name)),
    )
    if chosen in OBJECTIVES:
        raise InvalidPlan(
            "{@method} says which weights train. {chosen} is an objective: give {@objective} {chosen}.", chosen=chosen
        )
    if chosen not in PEFT_METHODS:
        raise unknown("training method", chosen, PEFT_METHODS)
    if chosen in ("full", "freeze", "ia3"):
        _refuse(
            chosen,
            {
                "lora_rank": o.lora_rank,
                "lora_targets": o.lora_targets,
                "lora_dropout": o.lora_dropout,
                "base_weights": o.base_weights,
                "upcast_base": o.upcast_base,
            },
        )
    if chosen != "freeze":
        _refuse(chosen, {"trainable_layers": o.trainable_layers})
    able = runtime.trains or METHODS[:1]
    if chosen not in able:
        others = [name for name in training_runtimes() if chosen in training_runtime(name).trains]
        raise InvalidPlan(
            "runtime {runtime} is estimated for method {able}. Got {chosen}. Runtimes that have it: {others}.",
            runtime=runtime.name,
            able=joined(" or ", able),
            chosen=chosen,
            others=listed(others),
        )
    if chosen == "full":
        return Tuning()
    if chosen == "freeze":
        return Tuning(method=chosen, trainable_layers=_layers(model, o, q))
    if chosen == "ia3":
        return _ia3(model, recipe, runtime, q)
    base = _base(chosen, bare_base_bytes(runtime, recipe), o, q)
    if is_wide := base == WIDE:
        _check_wide(runtime, recipe)
        base = ""
    targets = q.take("lora_targets", o.lora_targets, ALL_LINEAR, "default", "all linear layers but the head")
    return Tuning(
        method="dora" if chosen == "dora" else "lora",
        base_weights=base,
        wide_base=is_wide,
        lora_targets=_targets(model, targets),
        lora_rank=q.take("lora_rank", o.lora_rank, DEFAULT_RANK, "default", "usual"),
        lora_dropout=q.take("lora_dropout", o.lora_dropout, False, "default", "none"),
        upcast_base=_upcast(runtime, base, o, q),
    )


def _ia3(model: Model, recipe: Recipe, runtime: TrainingRuntime, q: Question) -> Tuning:
    """The layers that peft scales in a model of this type."""
    kind = str(model.config.get("model_type", ""))
    outputs, inputs = IA3.get(kind, ((), ""))
    names = {
        weight.name.removesuffix(".weight")
        for block in model.decoder.blocks
        for weight in block.weights()
        if weight.linear and weight.part in ("attention", "mlp", "mixer")
    }
    lacking = [
        target
        for target in (*outputs, *filter(None, (inputs,)))
        if not any(name == target or name.endswith(f".{target}") for name in names)
    ]
    if not inputs or lacking:
        raise MissingDatum(
            "{@method} ia3 is known of models for which peft names layers, of types {types}. Got {model}, of type "
            "{kind}.",
            types=listed(IA3),
            model=model.name,
            kind=kind or "unknown",
        )
    q.put("base_weights", f"{8 * bare_base_bytes(runtime, recipe):g} bit", "default", "as the method has it")
    return Tuning(method="ia3", lora_targets=",".join((*outputs, inputs)), scaled_inputs=inputs)


def _upcast(runtime: TrainingRuntime, base: str, o: TrainingOptions, q: Question) -> bool:
    """Whether what bitsandbytes does not quantise is turned to fp32. Where the runtime or the base leaves no choice,
    nothing is noted.
    """
    if not base and o.upcast_base is not None:
        raise InvalidPlan(
            "{@upcast_base} belongs to a base that bitsandbytes quantised: {@base_weights} must be "
            "one of {bases}. Got {upcast_base} with {@base_weights} {base_weights}.",
            bases=listed(BASES),
            upcast_base=o.upcast_base,
            base_weights=o.base_weights or "16 bit",
        )
    if base and o.upcast_base and not runtime.upcasts_base:
        able = [name for name in training_runtimes() if training_runtime(name).upcasts_base]
        raise InvalidPlan(
            "runtime {runtime} keeps a quantised base in its own types: {@upcast_base} must be off. "
            "Runtimes that have it: {able}.",
            runtime=runtime.name,
            able=listed(able),
        )
    if not base or not runtime.upcasts_base:
        return False
    return bool(
        q.take("upcast_base", o.upcast_base, True, "default", "PEFT, utils/other.py: prepare_model_for_kbit_training")
    )


def usual_precision(runtime: TrainingRuntime, o: TrainingOptions) -> tuple[str, str]:
    """The precision that a runtime takes if nobody says one, and why."""
    if runtime.plain_base and (o.method == "qlora" or (o.base_weights or "16 bit") != "16 bit"):
        return runtime.plain_base, Message("{runtime} quantises no base under mixed precision", runtime=runtime.name)
    mixed = runtime.default_precision == "bf16-mixed"
    return runtime.default_precision, "16-bit arithmetic, fp32 master weights" if mixed else own_of(runtime.name)


WHOLE_BASE = (
    "bitsandbytes, docs/source/fsdp_qlora.md, and torchao, dtypes/nf4tensor.py: shards of FSDP are known, tensor "
    "parallelism is not"
)


def check_base(runtime: TrainingRuntime, recipe: Recipe, base: str, tensor: int) -> None:
    """A quantised base is cut by no tensor ranks; and some runtimes quantise one only where nothing is cast."""
    if base and tensor > 1:
        raise InvalidPlan(
            "{@tensor_parallel_size} must be 1 with a base in {base}: its packed matrices are "
            "sharded over data-parallel ranks, not cut by tensor parallelism. Got {tensor}. "
            "({whole_base}.)",
            base=base,
            tensor=tensor,
            whole_base=WHOLE_BASE,
        )
    if runtime.plain_base and base and recipe.master_bytes:
        raise InvalidPlan(
            "{runtime} quantises no base under mixed precision: precision must be {plain_base}, fp16 or "
            "fp32. Got {recipe}.",
            runtime=runtime.name,
            plain_base=runtime.plain_base,
            recipe=recipe.name,
        )


def _refuse(method: str, settings: dict[str, Any]) -> None:
    for name, value in settings.items():
        if value is not None:
            owner = "freeze" if name == "trainable_layers" else "lora, dora or qlora"
            raise NotApplicable(
                Message(
                    "{name} belongs to method {owner}. Got {value} with method {method}.",
                    name=option_name(name),
                    owner=owner,
                    value=value,
                    method=method,
                ),
                name,
                ("method",),
            )


def _layers(model: Model, o: TrainingOptions, q: Question) -> int:
    count: int = q.take("trainable_layers", o.trainable_layers, 2, "default", "the last two, as LLaMA-Factory has it")
    if count > model.num_layers:
        raise InvalidPlan(
            "{@trainable_layers} must be from 1 to the {num_layers} of {model}. Got {count}.",
            num_layers=counted(model.num_layers, "layers"),
            model=model.name,
            count=count,
        )
    return count


def _base(method: str, bare: float, o: TrainingOptions, q: Question) -> str:
    if o.base_weights in (None, "16 bit") and method != "qlora":
        q.put("base_weights", f"{8 * bare:g} bit", "default", "as the method and the precision have it")
        return ""
    wanted = q.take("base_weights", o.base_weights, "nf4-double", "default", "as the method has it")
    if wanted == "16 bit":
        return ""
    name = precision(wanted).name
    if name not in (*BASES, WIDE) or (name == WIDE and method == "qlora"):
        others = BASES if method == "qlora" else (*BASES, WIDE)
        raise InvalidPlan("{@base_weights} must be one of {bases}. Got {given}.", bases=listed(others), given=wanted)
    return name


def _check_wide(runtime: TrainingRuntime, recipe: Recipe) -> None:
    """A base in fp32 is one that autocast casts for its products."""
    if _loads_wide(runtime) and recipe.master_bytes:
        return
    able = [name for name in training_runtimes() if _loads_wide(training_runtime(name))]
    raise InvalidPlan(
        "{@base_weights} fp32 is estimated under autocast: with a mixed precision, of the runtimes {able}. Got "
        "{runtime} with {recipe}.",
        able=listed(able),
        runtime=runtime.name,
        recipe=recipe.name,
    )


def _loads_wide(runtime: TrainingRuntime) -> bool:
    """Whether users load the base themselves, in a type that autocast then casts."""
    return runtime.casts and (runtime.upcasts_base or runtime.wide_base)


def _targets(model: Model, targets: str) -> str:
    if targets == ALL_LINEAR:
        return ""
    wanted = tuple(part.strip() for part in targets.split(",") if part.strip())
    linear = sorted(
        {
            weight.name.removesuffix(".weight").rpartition(".")[2]
            for block in model.decoder.blocks
            for weight in block.weights()
            if weight.linear and weight.part in ("attention", "mlp", "mixer")
        }
    )
    for name in wanted:
        if name not in linear:
            raise unknown("target of LoRA", name, [*linear, ALL_LINEAR])
    if not wanted:
        raise InvalidPlan(
            "{@lora_targets} must name linear layers of {model}: {linear}, or {all_linear}. Got nothing.",
            model=model.name,
            linear=listed(linear),
            all_linear=ALL_LINEAR,
        )
    return ",".join(wanted)
