"""Batch sizes and number types of a DeepSpeed config, with the training arguments that fill in what is "auto".

Sources: DeepSpeed 0.19.8, deepspeed/runtime/config.py: _set_batch_related_parameters, _batch_assertion; transformers
5.24, transformers/integrations/deepspeed.py: trainer_config_process.
"""

from msgspec import Struct

from tonnage.interchange.parts.hugging_face.keys import assume_auto
from tonnage.interchange.reading import AUTO, Reading
from tonnage.kernel.errors import InvalidInput
from tonnage.kernel.message import Message

MICRO, STEPS, BATCH = "train_micro_batch_size_per_gpu", "gradient_accumulation_steps", "train_batch_size"
ARGUMENTS = {"micro_batch_size": "per_device_train_batch_size", "num_microbatches": "gradient_accumulation_steps"}
PER_DEVICE, ACCUMULATION = 8, 1  # per_device_train_batch_size and gradient_accumulation_steps of TrainingArguments
TRAINER = "auto: the default of TrainingArguments of transformers 5.24"


class Trainer(Struct, frozen=True, kw_only=True):
    """What training arguments, or a launcher, say that come with a DeepSpeed config. `micro_batch_size` and
    `accumulation`: 0 where they are left to the script; `precision`: bf16, fp16 or "".
    """

    micro_batch_size: int = 0
    accumulation: int = 0
    precision: str = ""


def read_batches(r: Reading, at: str, ranks: int, trainer: Trainer | None) -> None:
    """Micro-batch and number of micro-batches. `ranks`: those that see different sequences."""
    sizes = {name: _number(r, f"{at}{name}") for name in (MICRO, STEPS, BATCH)}
    filled = trainer is not None and bool(trainer.micro_batch_size)
    if trainer is not None and filled:
        _check_trainer(r, at, sizes, trainer)
        sizes[MICRO], sizes[STEPS] = trainer.micro_batch_size, trainer.accumulation
    micro, steps, batch = sizes[MICRO], sizes[STEPS], sizes[BATCH]
    if not (micro or batch) and trainer is not None:  # the script of a launcher says it
        for name, option in ((MICRO, "micro_batch_size"), (STEPS, "num_microbatches")):
            r.put(option, sizes[name], f"{at}{name}")
        r.ignore([f"{at}{BATCH}"])
        return
    if batch and micro and not steps:
        steps = _quotient(r, at, batch, micro * ranks, ranks)
    elif batch and not micro:
        steps = steps or 1
        micro = _quotient(r, at, batch, steps * ranks, ranks)
    micro, steps = micro or PER_DEVICE, steps or ACCUMULATION
    if batch and batch != micro * steps * ranks:
        raise _no_product(r, at, micro, steps, ranks)
    keys = [f"{at}{name}" for name in (MICRO, STEPS, BATCH) if r.has(f"{at}{name}") and not r.is_auto(f"{at}{name}")]
    _put(r, "micro_batch_size", micro, f"{at}{MICRO}", keys if sizes[MICRO] is None else [], filled)
    _put(r, "num_microbatches", steps, f"{at}{STEPS}", keys if sizes[STEPS] is None else [], filled)
    if r.is_auto(f"{at}{BATCH}"):
        assume_auto(r, f"{at}{BATCH}", micro * steps * ranks, why="auto: the product of the other two and the ranks")
    elif r.has(f"{at}{BATCH}"):
        r.put("num_microbatches", steps, *([f"{at}{STEPS}"] if r.has(f"{at}{STEPS}") else []), f"{at}{BATCH}")


def _put(r: Reading, option: str, value: int, key: str, others: list[str], filled: bool) -> None:
    if filled:
        r.put(option, value, key, ARGUMENTS[option])
    elif r.has(key) and not r.is_auto(key):
        r.put(option, value, key)
    elif others:
        assume_auto(r, key, value, option, why="what the other batch sizes leave")
    else:
        assume_auto(r, key, value, option, why=TRAINER if r.is_auto(key) else "default of transformers 5.24")


def _number(r: Reading, key: str) -> int | None:
    """A number from 1; None where it is "auto" or not there."""
    if not r.has(key) or r.is_auto(key):
        return None
    number = r.integer(key)
    if number < 1:
        raise r.wrong(key, "a number from 1, or auto")
    return number


def _check_trainer(r: Reading, at: str, sizes: dict[str, int | None], trainer: Trainer) -> None:
    for name, value, other in (
        (MICRO, trainer.micro_batch_size, "per_device_train_batch_size"),
        (STEPS, trainer.accumulation, "gradient_accumulation_steps"),
    ):
        if sizes[name] not in (None, value):
            raise InvalidInput(
                "{file}: {key} is {said}, and {other} of the training arguments is {value}: the Trainer refuses that. "
                "Write auto in the DeepSpeed config.",
                file=r.source.name,
                key=f"{at}{name}",
                said=sizes[name],
                other=other,
                value=value,
            )


def _quotient(r: Reading, at: str, batch: int, divisor: int, ranks: int) -> int:
    if batch % divisor or batch < divisor:
        raise InvalidInput(
            "{file}: {key} must be a multiple of {divisor:,}, as {ranks} ranks train. Got {batch:,}.",
            file=r.source.name,
            key=f"{at}{BATCH}",
            divisor=divisor,
            ranks=ranks,
            batch=batch,
        )
    return batch // divisor


def _no_product(r: Reading, at: str, micro: int, steps: int, ranks: int) -> InvalidInput:
    return InvalidInput(
        "{file}: {key} must be micro-batch x accumulation x ranks, {micro:,} x {steps:,} x {ranks:,} = {product:,}. "
        "Got {batch:,}.",
        file=r.source.name,
        key=f"{at}{BATCH}",
        micro=micro,
        steps=steps,
        ranks=ranks,
        product=micro * steps * ranks,
        batch=r.integer(f"{at}{BATCH}"),
    )


def read_precision(r: Reading, at: str, trainer: Trainer | None) -> None:
    """The recipe that the sections bf16, fp16 and torch_autocast choose."""
    on = {name: _is_on(r, f"{at}{name}.enabled", name, trainer) for name in ("bf16", "fp16")}
    keys = [f"{at}{name}.enabled" for name in on if r.has(f"{at}{name}.enabled")]
    if on["bf16"] and on["fp16"]:
        raise InvalidInput("{file}: bf16 and fp16 cannot both be enabled.", file=r.source.name)
    if not (r.under(f"{at}bf16.") or r.under(f"{at}fp16.")) and trainer is not None:
        on[trainer.precision] = True  # accelerate adds the section that is missing
    compute = next((name for name, is_on in on.items() if is_on and name), "")
    recipe = f"{compute}-mixed" if compute else "fp32"
    if on["bf16"] and r.flag(f"{at}bf16.bf16_master_weights_and_grads"):
        keys.append(f"{at}bf16.bf16_master_weights_and_grads")
        if r.flag(f"{at}bf16.bf16_optimizer_states"):
            keys.append(f"{at}bf16.bf16_optimizer_states")
        else:
            r.unsure(keys.pop(), "bf16 masters with fp32 optimizer states are not estimated: fp32 masters are")
        recipe = "bf16-master" if keys[-1].endswith("states") else recipe
    r.ignore([f"{at}bf16.bf16_master_weights_and_grads", f"{at}bf16.bf16_optimizer_states"])
    recipe = _autocast(r, at, recipe)
    _put_precision(r, recipe, keys, at, trainer)
    for key in (f"{at}data_types.grad_accum_dtype", f"{at}communication_data_type"):
        own = {"bf16": ("bf16", "bfloat16"), "fp16": ("fp16", "float16"), "": ("fp32", "float32")}[compute]
        if r.has(key) and r.text(key) not in own:
            r.unsure(key, "gradients of another type than the weights' are not estimated")
        else:
            r.ignore([key])


def _put_precision(r: Reading, recipe: str, keys: list[str], at: str, trainer: Trainer | None) -> None:
    if keys or (trainer is not None and trainer.precision):
        r.put("precision", recipe, *keys, *(key for key in ("bf16", "fp16", "mixed_precision") if r.has(key)))
    elif "precision" not in r.question:
        if f"{at}bf16.enabled" not in r.values:
            r.assume(f"{at}bf16.enabled", False, why="default of DeepSpeed 0.19: neither bf16 nor fp16")
        else:
            r.notes.append(
                Message(
                    "{file}: bf16 and fp16 are auto, and no training arguments turn one on: fp32 is estimated.",
                    file=r.source.name,
                )
            )
        r.question["precision"], r.origins["precision"] = recipe, ()


def _is_on(r: Reading, key: str, name: str, trainer: Trainer | None) -> bool:
    if not r.is_auto(key):
        return r.flag(key)
    on = trainer is not None and trainer.precision == name
    if trainer is None:
        assume_auto(r, key, False, why=TRAINER)
    return on


def _autocast(r: Reading, at: str, recipe: str) -> str:
    """torch_autocast keeps fp32 weights and casts them for each product."""
    key = f"{at}torch_autocast.enabled"
    r.ignore([f"{at}torch_autocast.lower_precision_safe_modules"])
    if not r.flag(key):
        r.ignore([key, f"{at}torch_autocast.dtype"])
        return recipe
    r.unsure(key, "weights and gradients in fp32 under autocast are not estimated: 16-bit copies beside fp32 are")
    dtype = r.text(f"{at}torch_autocast.dtype", AUTO).removeprefix("torch.")
    r.put("precision", None, f"{at}torch_autocast.dtype")
    return "fp16-mixed" if dtype in ("fp16", "float16", "half") else "bf16-mixed"
