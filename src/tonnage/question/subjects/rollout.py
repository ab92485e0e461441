"""Options of a training run that generates: what a step of reinforcement learning asks of the rollout engine."""

from typing import Annotated

from tonnage.question.forms import count, length, number, ranged, size, word
from tonnage.question.option import option
from tonnage.question.subjects.training_numerics import Numerics


class RolloutOptions(Numerics, frozen=True, kw_only=True):
    """Prompts, completions, the engine that generates them, and where it runs: a part of TrainingOptions."""

    prompts_per_step: Annotated[
        int | None,
        option(
            "prompts of one step of reinforcement learning; with their completions they are one or more global batches",
            size,
            unit="prompts",
            default="global batch / completions; without a batch about 1,024 completions",
        ),
    ] = None
    num_generations: Annotated[
        int | None,
        option(
            "completions of one prompt (grpo, rloo, dapo, ppo)",
            size,
            unit="completions",
            default="8 with grpo and dapo, 2 with rloo and online-dpo, 1 with ppo and gkd",
        ),
    ] = None
    prompt_length: Annotated[
        int | None,
        option(
            "mean tokens of a prompt without images and video, with an objective that generates",
            length,
            unit="tokens",
            default="512, at most half of the sequence",
        ),
    ] = None
    max_completion_length: Annotated[
        int | None,
        option(
            "tokens at which a completion is cut, with an objective that generates",
            length,
            unit="tokens",
            default="what the sequence leaves beside the prompt",
        ),
    ] = None
    mean_completion_length: Annotated[
        int | None,
        option(
            "mean tokens of a completion after the cut",
            length,
            unit="tokens",
            default="all completions have the maximum",
        ),
    ] = None
    completion_spread: Annotated[
        float | None,
        option(
            "standard deviation of completion lengths before the cut, over their mean",
            number,
            unit="factor",
            default="1, as if each token ended the completion with the same probability",
        ),
    ] = None
    rollout_engine: Annotated[
        str | None,
        option(
            "what generates the completions: vllm, sglang, or hf (the model's own generate)",
            word,
            unit="engine",
            default="vllm; hf with gkd",
            choices=("vllm", "sglang", "hf"),
        ),
    ] = None
    rollout_engine_version: Annotated[
        str | None,
        option("release of the rollout engine, such as 0.11", word, unit="version", default="the newest known"),
    ] = None
    rollout_accelerators: Annotated[
        int | None,
        option(
            "accelerators that generate and do not train, beside those of the machine",
            ranged(count, "from 0 to 1,099,511,627,776"),
            unit="accelerators",
            default="0: generation runs on those that train",
        ),
    ] = None
    rollout_tensor_parallel_size: Annotated[
        int | None,
        option(
            "ranks that share each matrix of the rollout engine",
            size,
            unit="ranks",
            default="the tool's own, or the fewest whose cache runs enough requests",
        ),
    ] = None
    rollout_max_num_seqs: Annotated[
        int | None,
        option(
            "requests that a replica of the rollout engine runs at once, at most",
            size,
            unit="requests",
            default="the engine's own; with hf all completions, with gkd those of a micro-batch",
        ),
    ] = None
    rollout_memory_share: Annotated[
        float | None,
        option(
            "part of the memory that the rollout engine takes while it generates, where it sleeps while training runs",
            number,
            unit="share",
            default="0.5, or what training leaves",
        ),
    ] = None
    rollout_offload: Annotated[
        bool | None,
        option(
            "training states go to the host while the engine generates (NeMo RL; param_offload of veRL)",
            default="on where they do not fit beside the engine",
        ),
    ] = None
    async_steps: Annotated[
        int | None,
        option(
            "steps that rollouts may be older than the weights they train: generation and training overlap from 1 on",
            ranged(count, "from 0 to 1,099,511,627,776"),
            unit="steps",
            default="0",
        ),
    ] = None
    rollout_turns: Annotated[
        int | None,
        option("turns of a rollout that calls tools", size, unit="turns", default="1"),
    ] = None
    tool_seconds: Annotated[
        float | None,
        option("seconds that a tool takes between two turns", number, unit="seconds", default="0"),
    ] = None
    ppo_epochs: Annotated[
        int | None,
        option(
            "how often a step trains on its rollouts (num_iterations of TRL's GRPO)", size, unit="epochs", default="1"
        ),
    ] = None
    lmbda: Annotated[
        float | None,
        option(
            "share of the micro-batches whose completions the student generates (gkd)",
            number,
            unit="share",
            default="0.5",
        ),
    ] = None
    beta: Annotated[
        float | None,
        option(
            "coefficient of the KL divergence: above 0 a reference model is held and run (grpo, dapo, rloo, ppo)",
            number,
            unit="factor",
            default="0 with grpo and dapo, 0.05 with rloo and ppo",
        ),
    ] = None
    sequence_packing: Annotated[
        bool | None,
        option(
            "completions are packed into micro-batches of sequence_length x micro_batch_size tokens, not padded",
            default="on with megatron",
        ),
    ] = None
