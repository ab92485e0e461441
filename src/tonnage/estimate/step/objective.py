"""What training is for: one model on its own, or others beside it - a reference, a reward model, a critic, a teacher.

Source: TRL 1.16, trl/trainer/{dpo,grpo,distillation}_trainer.py and trl/experimental/gkd/gkd_trainer.py; for PPO
Ouyang2022, sec. 3.5: policy, reference, reward model and value function, the last of which trains too.
"""

from typing import TYPE_CHECKING, Any

from msgspec import Struct

from tonnage.architectures import Model
from tonnage.estimate.inputs import Question
from tonnage.estimate.step.communication import copies
from tonnage.estimate.step.rollout_options import GENERATIONS, check_unused, generates
from tonnage.formulas import memory as f
from tonnage.kernel.errors import InvalidPlan, MissingDatum, NotApplicable, TonnageError
from tonnage.kernel.formula import Number
from tonnage.kernel.message import Message, listed, option_name
from tonnage.kernel.registry import unknown
from tonnage.kernel.term import Term
from tonnage.ops import Head
from tonnage.runtimes import TrainingRuntime, training_runtime, training_runtimes
from tonnage.runtimes.parts.base import PEFT_METHODS
from tonnage.spec import PostTraining, TrainingPlan

if TYPE_CHECKING:  # serving imports the names of objectives, and none of the options
    from tonnage.estimate.plan.training_options import TrainingOptions


class Objective(Struct, frozen=True):
    """`sequences`: of one sample; `beside`: models that do not train; `critic`: a value model trains beside the
    policy.
    """

    sequences: int = 1
    beside: tuple[str, ...] = ()
    critic: bool = False


OBJECTIVES = {
    "sft": Objective(),
    "dpo": Objective(sequences=2, beside=("reference model",)),  # chosen and rejected in one pass
    "online-dpo": Objective(sequences=2, beside=("reference model", "reward model")),  # two completions of a prompt
    "grpo": Objective(),  # beta 0 by default: no reference
    "dapo": Objective(),  # grpo without a KL divergence
    "rloo": Objective(beside=("reference model",)),
    "ppo": Objective(beside=("reference model", "reward model"), critic=True),
    "distillation": Objective(beside=("teacher",)),
    "gkd": Objective(beside=("teacher",)),  # distillation on what the student generates
    "contrastive": Objective(sequences=2),  # a text and its match; negatives come on top
}
CONTRASTIVE = "contrastive"
MOST_NEGATIVES = 1000
# Besides sft: those whose phases are estimated.
TIMED = ("dpo", "online-dpo", "grpo", "dapo", "rloo", "ppo", "distillation", "gkd", CONTRASTIVE)
GRPO_REFERENCE = (
    "TRL, trl/trainer/grpo_config.py: beta is 0.0, so that no reference model is loaded; another beta holds "
    "one, unless adapters train"
)
NO_REFERENCE = {"grpo": GRPO_REFERENCE, "dapo": GRPO_REFERENCE}
REFERENCE = "reference model"
# Coefficients of the KL divergence: TRL, trl/trainer/{grpo,rloo,ppo}_config.py.
BETA = {"grpo": 0.0, "dapo": 0.0, "rloo": 0.05, "ppo": 0.05}


def objective_of(
    model: Model, runtime: TrainingRuntime, method: str, o: "TrainingOptions", q: Question
) -> PostTraining:
    """What training is for, and what runs beside the model. Adapters that are switched off are their own reference."""
    name = q.take("objective", o.objective, "sft", "default", "the next token of the text")
    if name in PEFT_METHODS:
        raise InvalidPlan(
            "{@objective} says what is trained for. {name} is a method: give {@method} {name}.", name=name
        )
    if name not in OBJECTIVES:
        raise unknown("objective", name, OBJECTIVES)
    chosen = OBJECTIVES[name]
    if name != "sft" and not runtime.takes_objectives:
        if runtime.why_alone and generates(name):
            raise MissingDatum(runtime.why_alone)
        able = [candidate for candidate in training_runtimes() if training_runtime(candidate).takes_objectives]
        raise InvalidPlan(
            "runtime {runtime} trains one model on its own: {@objective} must be sft. Got {name}. Those "
            "that do more: {able}.",
            runtime=runtime.name,
            name=name,
            able=listed(able),
        )
    if o.teacher is not None and "teacher" not in chosen.beside:
        raise NotApplicable(
            Message(
                "{@teacher} belongs to objectives {able}. Got {teacher} with objective {name}.",
                able=listed(each for each, one in OBJECTIVES.items() if "teacher" in one.beside),
                teacher=o.teacher,
                name=name,
            ),
            "teacher",
            ("objective",),
        )
    check_unused(name, o)
    if o.beta is not None and name not in BETA:
        raise NotApplicable(
            Message("{@beta} belongs to objectives {able}. Got it with {name}.", able=listed(BETA), name=name),
            "beta",
            ("objective",),
        )
    if o.engine_memory_share is not None and not generates(name):
        raise NotApplicable(
            Message(
                "{@engine_memory_share} belongs to objectives that generate: {able}. Got it with {name}.",
                able=listed(GENERATIONS),
                name=name,
            ),
            "engine_memory_share",
            ("objective",),
        )
    if name not in ("sft", CONTRASTIVE) and (lacks := _cannot_speak(model)):
        raise InvalidPlan(
            "objective {name} trains a language model, which gives each next token a probability. Got "
            "{model}, {lacks}.",
            name=name,
            model=model.name,
            lacks=lacks,
        )
    teacher_hidden_size, share = 0, 0.0
    beside_models = []
    for candidate in _beside(name, chosen, o, q):
        if candidate == REFERENCE and method in ("lora", "dora", "ia3"):
            continue
        if candidate == "teacher":
            teacher = teacher_of(model, o, q)
            teacher_hidden_size = teacher.hidden_size
        beside_models.append((candidate, (teacher if candidate == "teacher" else model).num_parameters()))
    if beside_models:
        q.put(
            "models_beside",
            ", ".join(
                Message("{each} of {count:,} parameters", each=candidate, count=count)
                for candidate, count in beside_models
            ),
            "default",
            "as the objective needs them",
        )
    elif name not in ("sft", CONTRASTIVE):
        q.put(
            "models_beside",
            "none",
            "runtime" if name in NO_REFERENCE else "default",
            NO_REFERENCE.get(name, "the model without its adapters is the reference"),
        )
    if generates(name):
        share = q.take(
            "engine_memory_share",
            o.engine_memory_share,
            0.0,
            "default",
            (
                "no engine on the training accelerators; a vLLM that shares them takes 0.3 unless told otherwise "
                "(TRL, trl/trainer/grpo_config.py: vllm_gpu_memory_utilization), and what the model's own "
                "generate needs is not counted"
            ),
        )
        if not 0 <= share < 1:
            raise InvalidPlan(
                "{@engine_memory_share} is a part of the accelerator's memory, from 0 to below 1. Got {share}.",
                share=share,
            )
    return PostTraining(
        objective=name,
        models_beside=tuple(beside_models),
        teacher_hidden_size=teacher_hidden_size,
        engine_memory_share=share,
        **_pairs(name, o, q),
    )


def _pairs(name: str, o: "TrainingOptions", q: Question) -> dict[str, Any]:
    """What embedding models train on: hard negatives beside a text and its match, and whether embeddings of all
    texts are made first (sentence-transformers, losses/CachedMultipleNegativesRankingLoss.py; Gao2021).
    """
    given = {"negatives": o.negatives, "cached_embeddings": o.cached_embeddings}
    if name != CONTRASTIVE:
        for option, value in given.items():
            if value is not None:
                raise NotApplicable(
                    Message(
                        "{name} belongs to objective contrastive. Got it with {objective}.",
                        name=option_name(option),
                        objective=name,
                    ),
                    option,
                    ("objective",),
                )
        return {}
    negatives = q.take("negatives", o.negatives, 0, "default", "the other texts of the batch")
    if not 0 <= negatives <= MOST_NEGATIVES:
        raise InvalidPlan("{@negatives} must be from 0 to {most:,}. Got {count}.", most=MOST_NEGATIVES, count=negatives)
    cached = q.take("cached_embeddings", o.cached_embeddings, False, "default", "MultipleNegativesRankingLoss")
    return {"negatives": negatives, "cached_embeddings": cached}


def _beside(name: str, chosen: Objective, o: "TrainingOptions", q: Question) -> tuple[str, ...]:
    """Models that do not train: a reference where the KL divergence counts."""
    if name not in BETA:
        return chosen.beside
    beta = BETA[name]
    if o.beta is not None:
        if o.beta < 0:
            raise InvalidPlan("{@beta} must not be negative. Got {beta}.", beta=o.beta)
        beta = q.put("beta", o.beta, "given")
    others = tuple(candidate for candidate in chosen.beside if candidate != REFERENCE)
    return (REFERENCE, *others) if beta else others


def _cannot_speak(model: Model) -> str:
    """What keeps a model from being one that TRL trains: empty if nothing does."""
    kinds = {branch.kind for branch in model.branches}
    if "decoder" not in kinds:
        return "which only encodes"
    if not any(isinstance(op, Head) for op in model.decoder.after):
        return "which has no head over its vocabulary"
    # add_fused_lm_head gives the backbone one row of tokens
    return "an encoder with a decoder" if "encoder" in kinds else ""


def teacher_of(student: Model, o: "TrainingOptions", q: Question) -> Model:
    """The model that a student learns from. InvalidPlan where none is named, or it cannot teach this one."""
    if o.teacher is None:
        raise InvalidPlan(
            "{@objective} {name} needs a teacher: name its model in {@teacher}.", name=o.objective or "distillation"
        )
    from tonnage.models import read

    try:
        teacher = read(o.teacher)
    except TonnageError as error:
        raise InvalidPlan("{@teacher}: {error}", error=error) from None
    if lacks := _cannot_speak(teacher):
        raise InvalidPlan(
            "a teacher gives each next token of its student a probability. Got {found}, {lacks}, with a "
            "vocabulary of {vocab_size:,} beside the {vocab_size2:,} of {student}.",
            found=teacher.name,
            lacks=lacks,
            vocab_size=teacher.vocab_size,
            vocab_size2=student.vocab_size,
            student=student.name,
        )
    if teacher.vocab_size != student.vocab_size:
        raise InvalidPlan(
            "objective {name} compares probabilities of one vocabulary (TRL, "
            "trl/trainer/distillation_trainer.py): teacher {found} has {vocab_size:,} tokens, {student} "
            "has {vocab_size2:,}.",
            name=o.objective or "distillation",
            found=teacher.name,
            vocab_size=teacher.vocab_size,
            student=student.name,
            vocab_size2=student.vocab_size,
        )
    q.put("teacher", teacher.name, "given", teacher.source)
    return teacher


def sequences_of_sample(plan: TrainingPlan) -> int:
    """Sequences of one sample: with an embedding's negatives."""
    return OBJECTIVES[plan.post_training.objective].sequences + plan.post_training.negatives


def sequences(plan: TrainingPlan) -> Number:
    """Sequences of one micro-batch."""
    return plan.micro_batch_size * sequences_of_sample(plan)


def models_beside(plan: TrainingPlan, width: float, shards: Number) -> list[Term]:
    """The weights of the other models on this rank: in as many shards as the trained one's."""
    held = [
        (name, Term.of("parameters", f.whole_parameters, N=count, z=shards))
        for name, count in plan.post_training.models_beside
    ]
    return [copies(name, width, parameters) for name, parameters in held]
