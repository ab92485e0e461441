"""What a step of reinforcement learning generates: from the options to a `Rollout`, with the frameworks' defaults.

Sources of defaults, looked up 2026-11-29: TRL 1.16, trl/trainer/{grpo,rloo,ppo,online_dpo}_config.py; veRL,
verl/trainer/config/ppo_trainer.yaml and rollout/rollout.yaml; NeMo RL, examples/configs/grpo_math_1B.yaml.
"""

from math import lcm

from tonnage.estimate.inputs import Question
from tonnage.estimate.plan.rule import check_size
from tonnage.estimate.plan.training_options import TrainingOptions
from tonnage.kernel.errors import InvalidPlan, NotApplicable
from tonnage.kernel.message import Message, listed, option_name
from tonnage.kernel.registry import unknown
from tonnage.runtimes import ServingRuntime, TrainingRuntime, serving_runtime, serving_runtimes
from tonnage.spec import Rollout

TRL = "TRL, trl/trainer/{grpo,rloo,online_dpo}_config.py"
VERL = "veRL, verl/trainer/config/ppo_trainer.yaml"
GKD, OWN_GENERATE = "gkd", "hf"
LMBDA = 0.5  # TRL, trl/experimental/gkd/gkd_config.py
# Completions of one prompt: TRL's num_generations of each trainer; veRL's rollout.n for PPO.
GENERATIONS = {"grpo": 8, "dapo": 8, "rloo": 2, "online-dpo": 2, "ppo": 1, GKD: 1}
# Completions of a step, as a plan of 4,096-token sequences has: with few, a rollout mostly waits for its longest one.
# Frameworks: veRL, verl/trainer/config/actor/actor.yaml: ppo_mini_batch_size 256 prompts; OpenRLHF, openrlhf/cli/
# train_ppo_ray.py: rollout.batch_size 1024; NeMo RL: 32 prompts x 16.
ROLLOUT_ROWS = 1024
ROLLOUT_WHY = Message("about {rows:,} completions a step: {@prompts_per_step} says how many prompts", rows=ROLLOUT_ROWS)
PROMPT = 512  # tokens: data.max_prompt_length
LONGEST_WAIT = 1_000_000  # seconds of a tool
SIZES = (
    "prompts_per_step",
    "num_generations",
    "prompt_length",
    "max_completion_length",
    "mean_completion_length",
    "rollout_tensor_parallel_size",
    "rollout_max_num_seqs",
    "rollout_turns",
    "ppo_epochs",
)
STATED = (  # options that have no value of their own where nobody says them
    "rollout_engine_version",
    "rollout_tensor_parallel_size",
    "rollout_max_num_seqs",
    "rollout_memory_share",
    "rollout_offload",
)
OWN = (  # options that belong to objectives that generate
    *SIZES,
    "completion_spread",
    "rollout_engine",
    "rollout_engine_version",
    "rollout_accelerators",
    "rollout_memory_share",
    "rollout_offload",
    "async_steps",
    "tool_seconds",
    "sequence_packing",
    "lmbda",
)


def generates(objective: str) -> bool:
    """Whether a step of this objective generates what it trains on."""
    return objective in GENERATIONS


ONE_UPDATE = "prompts_per_step x completions: one update a step"


def rows_of_step(o: TrainingOptions) -> int:
    """Rows of all completions of a step, which one update takes where nobody says the batch; 0: its prompts are not
    said, or it generates nothing.
    """
    objective = o.objective or "sft"
    if not generates(objective) or o.prompts_per_step is None:
        return 0
    return o.prompts_per_step * rows_of_prompt(objective, o.num_generations or GENERATIONS[objective])


def rows_of_prompt(objective: str, completions: int) -> int:
    """Rows of the global batch that a prompt's completions make: a pair of them is a row of online-dpo."""
    return 1 if objective == "online-dpo" else completions


def takes_usual_rollout(o: TrainingOptions) -> bool:
    """Whether nobody says how many prompts a step has, beside its batch. A step of gkd generates a micro-batch at a
    time, so that more of them are no faster.
    """
    objective = o.objective or "sft"
    return generates(objective) and objective != GKD and o.prompts_per_step is None


def usual_rollout(o: TrainingOptions, rows: int, microbatches: int) -> int:
    """Rows of a step where nobody says prompts or batch: about ROLLOUT_ROWS, of whole prompts. `rows`: of one
    micro-batch of all replicas; `microbatches`: of which a step has a multiple.
    """
    objective = o.objective or "sft"
    unit = lcm(rows * microbatches, rows_of_prompt(objective, o.num_generations or GENERATIONS[objective]))
    return max(round(ROLLOUT_ROWS / unit), 1) * unit


def prompts_of(batch: int, rows: int) -> int:
    """Prompts of a step whose completions make one global batch. `rows`: of a prompt."""
    return max(batch // rows, 1)


def usual_prompt(sequence_length: int) -> int:
    """Tokens of a prompt where nobody says them."""
    return max(min(PROMPT, sequence_length // 2), 1)


def stated_length(o: TrainingOptions, media: int = 0) -> int | None:
    """The sequence that prompt and longest completion make, where they are said and the sequence is not. `media`:
    tokens of the prompt's images or video, which come on top of its text.
    """
    if o.sequence_length is not None or o.max_completion_length is None or not generates(o.objective or "sft"):
        return None
    return (o.prompt_length or usual_prompt(2 * o.max_completion_length)) + o.max_completion_length + media


def usual_engine(objective: str) -> str:
    """What generates where nobody says it."""
    return OWN_GENERATE if objective == GKD else "vllm"


def rollout_engine(name: str) -> ServingRuntime:
    """The serving runtime that an option of this name means."""
    engines = {runtime.rollout: runtime for runtime in map(serving_runtime, serving_runtimes()) if runtime.rollout}
    if name not in engines:
        raise unknown("rollout engine", name, engines)
    return engines[name]


def check_unused(objective: str, o: TrainingOptions) -> None:
    """Options of rollouts need an objective that generates."""
    for name in OWN:
        if getattr(o, name) is not None and not generates(objective):
            raise NotApplicable(
                Message(
                    "{option} belongs to objectives that generate: {able}. Got it with {name}.",
                    option=option_name(name),
                    able=listed(GENERATIONS),
                    name=objective,
                ),
                name,
                ("objective",),
            )


def rollout_of(
    objective: str,
    runtime: TrainingRuntime,
    sequence_length: int,
    micro_batch: int,
    global_batch: int,
    o: TrainingOptions,
    q: Question,
    media: int = 0,
) -> Rollout:
    """What a step generates. `global_batch`: rows of one optimizer step, of pairs with online-dpo; `micro_batch`: of
    those a replica computes at once; `media`: tokens of a prompt's images or video.
    """
    for name in SIZES:
        check_size(name, getattr(o, name))
    why = "what veRL, NeMo RL and OpenRLHF run"
    if objective == GKD:
        why = "TRL, trl/experimental/gkd/gkd_trainer.py: the student's own generate"
    engine = q.take("rollout_engine", o.rollout_engine, usual_engine(objective), "default", why)
    served = rollout_engine(engine)
    completions = _completions(objective, o, q)
    rows = rows_of_prompt(objective, completions)
    prompts = _prompts(global_batch, rows, o, q)
    prompt, longest, mean = _lengths(sequence_length - media, o, q)
    alike = mean == longest
    spread = 0.0
    if not alike:
        why = "each token ends a completion with the same probability"
        spread = q.take("completion_spread", o.completion_spread, 1.0, "default", why)
    elif o.completion_spread:
        raise InvalidPlan(
            "{@completion_spread} needs {@mean_completion_length} below {@max_completion_length}, {longest}. Got "
            "{spread} alone.",
            longest=longest,
            spread=o.completion_spread,
        )
    if not 0 <= spread <= 5:
        raise InvalidPlan("{@completion_spread} must be between 0 and 5. Got {spread}.", spread=spread)
    apart = q.take(
        "rollout_accelerators", o.rollout_accelerators, 0, "default", "generation runs on those that train, in turn"
    )
    if apart and served.name == rollout_engine(OWN_GENERATE).name:
        raise InvalidPlan(
            "{@rollout_engine} hf is the model's own generate, which runs where the model trains: leave out "
            "{@rollout_accelerators}, or take vllm or sglang. Got {apart}.",
            apart=apart,
        )
    late = q.take("async_steps", o.async_steps, 0, "default", "rollouts are of the newest weights")
    if late and not apart:
        raise InvalidPlan(
            "{@async_steps} above 0 needs accelerators that generate while others train: {@rollout_accelerators}. Got "
            "{late} without them.",
            late=late,
        )
    _check_shared(o, apart)
    turns, waits = o.rollout_turns or 1, o.tool_seconds or 0.0
    if o.rollout_turns is not None:
        q.put("rollout_turns", turns, "given")
    if o.tool_seconds is not None:
        if not 0 <= waits <= LONGEST_WAIT:
            raise InvalidPlan(
                "{@tool_seconds} must be from 0 to {most:,}. Got {waits:g}.", most=LONGEST_WAIT, waits=waits
            )
        if turns < 2:
            raise InvalidPlan("{@tool_seconds} needs {@rollout_turns} of 2 or more. Got {turns}.", turns=turns)
        q.put("tool_seconds", waits, "given")
    serving_runtime(served.name, o.rollout_engine_version or "")  # the version must be one that is known
    for name in STATED:
        if getattr(o, name) is not None:
            q.put(name, getattr(o, name), "given")
    packs = runtime.packs_completions
    at_once = o.rollout_max_num_seqs
    if objective == GKD and served.name == rollout_engine(OWN_GENERATE).name and at_once is None:
        why = "TRL, trl/experimental/gkd/gkd_trainer.py: each micro-batch generates for itself"
        at_once = q.put("rollout_max_num_seqs", micro_batch, "default", why)
    return Rollout(
        prompts_per_step=prompts,
        num_generations=completions,
        prompt_length=prompt + media,
        max_completion_length=longest,
        mean_completion_length=mean,
        completion_spread=spread,
        rollout_engine=served.name,
        rollout_engine_version=o.rollout_engine_version or "",
        rollout_accelerators=apart,
        rollout_tensor_parallel_size=o.rollout_tensor_parallel_size,
        rollout_max_num_seqs=at_once,
        rollout_memory_share=o.rollout_memory_share,
        rollout_offload=o.rollout_offload,
        async_steps=late,
        rollout_turns=turns,
        tool_seconds=waits,
        lmbda=_share(objective, o, q),
        ppo_epochs=q.take("ppo_epochs", o.ppo_epochs, 1, "default", "veRL: ppo_epochs 1; TRL: num_iterations 1"),
        sequence_packing=q.take(
            "sequence_packing",
            o.sequence_packing,
            packs,
            "default",
            "veRL, NeMo RL and SkyRL pack" if packs else "TRL pads to the longest",
        ),
    )


def _share(objective: str, o: TrainingOptions, q: Question) -> float:
    """The share of micro-batches that the student generates."""
    if objective != GKD:
        if o.lmbda is not None:
            raise NotApplicable(
                Message("{@lmbda} belongs to objective gkd. Got it with {name}.", name=objective),
                "lmbda",
                ("objective",),
            )
        return 1.0
    share = float(q.take("lmbda", o.lmbda, LMBDA, "default", "TRL, trl/experimental/gkd/gkd_config.py"))
    if not 0 < share <= 1:
        raise InvalidPlan(
            "{@lmbda} is a share above 0, up to 1. Got {share}. Where the student generates nothing, the objective is "
            "distillation.",
            share=share,
        )
    return share


def _check_shared(o: TrainingOptions, apart: int) -> None:
    """Options of an engine that takes turns with training need one that does."""
    share = o.rollout_memory_share
    if share is not None and not 0 < share < 1:
        raise InvalidPlan("{@rollout_memory_share} must lie between 0 and 1. Got {share}.", share=share)
    if share is not None and o.engine_memory_share is not None:
        raise InvalidPlan(
            Message("{@rollout_memory_share} is of an engine that sleeps, {@engine_memory_share} of one that does not.")
        )
    for name in ("rollout_memory_share", "rollout_offload"):
        if getattr(o, name) is not None and apart:
            raise NotApplicable(
                Message(
                    "{option} is of an engine on the accelerators that train. Got {apart} that generate apart.",
                    option=option_name(name),
                    apart=apart,
                ),
                name,
                ("rollout_accelerators",),
            )


def _completions(objective: str, o: TrainingOptions, q: Question) -> int:
    usual = GENERATIONS[objective]
    if objective == "online-dpo" and o.num_generations not in (None, usual):
        raise InvalidPlan(
            "objective online-dpo compares two completions of a prompt: {@num_generations} must be 2. Got {given}.",
            given=o.num_generations,
        )
    why = (
        Message("{source}: completions of one prompt, each a row of the global batch", source=TRL)
        if objective != "ppo"
        else Message("{source}: rollout.n", source=VERL)
    )
    return int(q.take("num_generations", o.num_generations, usual, "runtime", why))


def _prompts(global_batch: int, rows: int, o: TrainingOptions, q: Question) -> int:
    """Prompts of a step; their rows make one or more global batches."""
    if o.prompts_per_step is None:
        if o.num_generations is not None and global_batch % rows:
            raise InvalidPlan(
                "the global batch, {global_batch}, must be a multiple of {@num_generations}. Got {rows}.",
                global_batch=global_batch,
                rows=rows,
            )
        prompts = prompts_of(global_batch, rows)
        return int(q.put("prompts_per_step", prompts, "default", "global batch / num_generations: one update a step"))
    total = o.prompts_per_step * rows
    if total % global_batch:
        near = max(round(total / global_batch), 1) * global_batch / rows
        raise InvalidPlan(
            "{@prompts_per_step} x completions, {total}, must be a multiple of the global batch, {global_batch}. Got "
            "{prompts}. Nearest: {near:g}.",
            total=total,
            global_batch=global_batch,
            prompts=o.prompts_per_step,
            near=near,
        )
    return int(q.put("prompts_per_step", o.prompts_per_step, "given"))


def _lengths(sequence_length: int, o: TrainingOptions, q: Question) -> tuple[int, int, int]:
    """Tokens of a prompt, of the longest completion, and of the mean one."""
    usual = usual_prompt(sequence_length)
    if o.max_completion_length is not None:
        usual = max(min(usual, sequence_length - o.max_completion_length), 1)
    why = Message("{source}: max_prompt_length 512, at most half of the sequence", source=VERL)
    prompt = q.take("prompt_length", o.prompt_length, usual, "default", why)
    longest = q.take(
        "max_completion_length",
        o.max_completion_length,
        max(sequence_length - prompt, 1),
        "default",
        "what the sequence leaves beside the prompt",
    )
    if prompt + longest > sequence_length:
        raise InvalidPlan(
            "{@prompt_length} and {@max_completion_length} must fit into the sequence of {sequence_length} tokens. Got "
            "{prompt} and {longest}.",
            sequence_length=sequence_length,
            prompt=prompt,
            longest=longest,
        )
    mean = q.take(
        "mean_completion_length",
        o.mean_completion_length,
        longest,
        "default",
        "not said: every completion has the maximum, so that the time is an upper bound",
    )
    if mean > longest:
        raise InvalidPlan(
            "{@mean_completion_length} must be at most {@max_completion_length}, {longest}. Got {mean}.",
            longest=longest,
            mean=mean,
        )
    return prompt, longest, mean
