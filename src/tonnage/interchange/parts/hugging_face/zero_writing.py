"""A DeepSpeed config, written from a plan.

Source: DeepSpeed 0.19.8, deepspeed/runtime/config.py; deepspeed/runtime/zero/config.py.
"""

import json
from collections.abc import Mapping
from typing import Any

from tonnage.interchange.parts.hugging_face.zero_batches import BATCH, MICRO, STEPS
from tonnage.interchange.parts.hugging_face.zero_settings import SIZES, SWITCHES, ZERO
from tonnage.interchange.planned_run import PlannedRun
from tonnage.interchange.reading import AUTO
from tonnage.kernel.errors import InvalidInput
from tonnage.kernel.message import listed
from tonnage.spec import DeepSpeedSettings, TrainingPlan

OPTIMIZERS = {
    "adamw": "AdamW",
    "adam": "Adam",
    "lion": "Lion",
    "lamb": "Lamb",
    "muon": "Muon",
    "adagrad": "Adagrad",
    "sgd": "SGD",
    "rmsprop": "RMSprop",
}
PRECISIONS: Mapping[str, Mapping[str, Any]] = {
    "fp32": {"bf16": {"enabled": False}},
    "bf16-mixed": {"bf16": {"enabled": True}},
    "fp16-mixed": {"fp16": {"enabled": True}},
    "bf16-master": {
        "bf16": {"enabled": True, "bf16_master_weights_and_grads": True, "bf16_optimizer_states": True},
    },
}
SAYS = frozenset(
    (
        *SIZES,
        *SWITCHES,
        *(
            "runtime",
            "zero_stage",
            "micro_batch_size",
            "num_microbatches",
            "global_batch_size",
            "precision",
            "optimizer",
        ),
        *("offload_optimizer", "offload_parameters", "optimizer_offload_fraction", "tensor_parallel_size"),
        *("expert_parallel_size", "sequence_parallel", "data_parallel_size"),
    )
)
NVME = "/local_nvme"
UNUSED = "allgather_bucket_size"  # torch gathers without it
FIELDS = DeepSpeedSettings.__struct_fields__


def fills(verb: str, question: Mapping[str, Any]) -> Mapping[str, Any]:
    """AutoTP leaves norms and residuals whole on each rank."""
    return {"sequence_parallel": False} if (question.get("tensor_parallel_size") or 1) != 1 else {}


def write(w: PlannedRun) -> str:
    """The config. InvalidInput for what it has no words for."""
    assert w.training is not None
    return json.dumps(config_of(w, w.training), indent=2) + "\n"


def config_of(w: PlannedRun, plan: TrainingPlan) -> dict[str, Any]:
    micro, steps = int(plan.micro_batch_size), int(plan.num_microbatches)
    config: dict[str, Any] = {
        "train_batch_size": micro * steps * int(plan.data_parallel_size),
        "train_micro_batch_size_per_gpu": micro,
        "gradient_accumulation_steps": steps,
        "gradient_clipping": 1.0,
        **_chosen("precision", plan.precision, PRECISIONS),
        "optimizer": {"type": _chosen("optimizer", plan.optimizer, OPTIMIZERS)},
        "zero_optimization": _zero(w, plan),
    }
    if plan.tensor_parallel_size != 1:
        if plan.sequence_parallel:
            raise InvalidInput("AutoTP of DeepSpeed does not cut norms and residuals: leave --sequence-parallel out.")
        config["tensor_parallel"] = {"autotp_size": int(plan.tensor_parallel_size)}
    if plan.expert_parallel_size != 1:
        config["expert_parallel"] = {"enabled": True, "autoep_size": int(plan.expert_parallel_size)}
    return config


def config_inside(w: PlannedRun, plan: TrainingPlan) -> dict[str, Any]:
    """The config inside another tool's file, whose own keys fill in what is "auto"."""
    return {
        ZERO: _zero(w, plan),
        "bf16": {"enabled": AUTO},
        "fp16": {"enabled": AUTO},
        **dict.fromkeys((STEPS, "gradient_clipping", BATCH, MICRO), AUTO),
    }


def _zero(w: PlannedRun, plan: TrainingPlan) -> dict[str, Any]:
    section: dict[str, Any] = {"stage": plan.zero_stage}
    for part, place in (
        ("offload_optimizer", plan.offload.offload_optimizer),
        ("offload_param", plan.offload.offload_parameters),
    ):
        if place != "none":
            section[part] = {"device": place, **({"nvme_path": NVME} if place == "nvme" else {}), "pin_memory": True}
    if plan.offload.optimizer_offload_fraction != 1:
        section["offload_optimizer"]["ratio"] = plan.offload.optimizer_offload_fraction
    for name, stages in (*((name, stages) for name, (stages, _) in SIZES.items()), *SWITCHES.items()):
        value = getattr(plan.deepspeed, name)
        is_usual = name.startswith("zero_") and value == DeepSpeedSettings.__struct_defaults__[FIELDS.index(name)]
        if plan.zero_stage in stages and value is not None and not is_usual and (name != UNUSED or w.is_set(name)):
            section[name] = value if isinstance(value, bool) else int(value)
    return section


def _chosen(option: str, value: str, known: Mapping[str, Any]) -> Any:
    if value not in known:
        raise InvalidInput(
            "A DeepSpeed config has no words for {option} {value}. It has {known}.",
            option=option,
            value=value,
            known=listed(known),
        )
    return known[value]
