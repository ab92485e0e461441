"""From what the user said to a complete plan: defaults with their reasons, and checks that name the nearest valid
choice.
"""

from functools import lru_cache

from tonnage.architectures import ATTENTION_DROPOUT, HIDDEN_DROPOUT, Model
from tonnage.estimate.frameworks.base import PlanRequest
from tonnage.estimate.inputs import Origin, Question, own_of
from tonnage.estimate.layers.losses import CONTRASTIVE, HOLD_LOGITS, KINDS, LOGITS, TOKENS, WHOLE
from tonnage.estimate.options.framework_options import (
    framework_options,
    offload_options,
    own_options,
    own_sharding_options,
    scaled_by_recipe,
)
from tonnage.estimate.options.machine import site_of, stated_links, warn_of_machine
from tonnage.estimate.options.parallel import check_parallel, facts_of, parallel_sizes, pipeline_schedule, uneven_ranks
from tonnage.estimate.options.training_method import check_base, training_method, usual_precision
from tonnage.estimate.plan.pipeline_boxes import microbatch_rule
from tonnage.estimate.plan.rule import Facts, check, check_positions, check_size
from tonnage.estimate.plan.schedule import runtime_schedule
from tonnage.estimate.plan.training_options import TrainingOptions
from tonnage.estimate.plan.validity import BATCH, CONTEXT, LOSS_CHUNKS, MICROBATCHES
from tonnage.estimate.step.objective import objective_of
from tonnage.estimate.step.pipeline_layout import said_chunks
from tonnage.estimate.step.rollout_options import (
    ONE_UPDATE,
    ROLLOUT_WHY,
    generates,
    rollout_of,
    rows_of_step,
    stated_length,
    takes_usual_rollout,
    usual_rollout,
)
from tonnage.kernel.errors import InvalidInput, InvalidPlan, UnknownName
from tonnage.kernel.message import OR, Message, joined, listed, renamed
from tonnage.kernel.registry import unknown
from tonnage.numerics.optimizers import optimizer
from tonnage.numerics.precisions import TRAINING_RECIPES, Recipe, te_recipe
from tonnage.runtimes import (
    PEFT_CODE,
    TRAINING_RUNTIMES,
    USUAL_ALONE,
    USUAL_ON_SEVERAL,
    TrainingRuntime,
    has_training_runtime,
    model_codes,
    no_training_runtime,
    training_runtime,
    training_runtimes,
)
from tonnage.spec import AttentionKernel, Cluster, PipelineLayout, Rollout, TrainingPlan, Vision

DEFAULT_SEQUENCE_LENGTH = 4096
OF_VISION = ("images", "image_size", "video_seconds", "video_fps", "vision_tower")
LOSS = ("full", "chunked", "fused")
RECOMPUTE = ("none", "selective", "selective-op", "full")
IMPLEMENTATIONS = ("fused", "foreach", "for-loop")
ATTENTION: dict[str, AttentionKernel] = {"flash": "flash", "sdpa": "sdpa", "efficient": "efficient", "eager": "eager"}


def training_plan(model: Model, cluster: Cluster, options: TrainingOptions, question: Question) -> TrainingPlan:
    """A complete, checked plan that uses the whole cluster; every default is noted in `question`."""
    if options.runtime is None or has_training_runtime(options.runtime):
        return _on_runtime(model, cluster, options, question)
    from tonnage.estimate.options.tools import note_tool, run_of_tool  # a run that names a runtime needs none of it

    run = run_of_tool(model, cluster, options)
    if run is None:
        try:
            training_runtime(options.runtime)
        except UnknownName:
            raise no_training_runtime(options.runtime, generates=generates(options.objective or "sft")) from None
        return _on_runtime(model, cluster, options, question)
    plan = _on_runtime(model, cluster, run.options, question)
    note_tool(run, plan.runtime, question)
    if not run.tool.rollout_ranks or not plan.rollout.prompts_per_step:
        return plan
    return plan.with_fields(usual_rollout_ranks=run.tool.rollout_ranks, usual_rollout_source=run.tool.rollout_source)


def _on_runtime(model: Model, cluster: Cluster, options: TrainingOptions, question: Question) -> TrainingPlan:
    """The plan of options that name no tool."""
    try:
        return _plan(model, cluster, options, question)
    except InvalidPlan as error:
        runtime_name = options.runtime or ""
        several = TRAINING_RUNTIMES[runtime_name].on_several if runtime_name in TRAINING_RUNTIMES else None
        if several is None:
            raise
        # DDP is what the Trainer runs under on several accelerators: the user did not write its name
        raise InvalidPlan(renamed(error, "runtime", several.runtime, several.shown)) from None


def _plan(model: Model, cluster: Cluster, options: TrainingOptions, question: Question) -> TrainingPlan:
    o, q = options, question
    for name in (
        "sequence_length",
        "micro_batch_size",
        "global_batch_size",
        "num_microbatches",
        "tensor_parallel_size",
        "pipeline_parallel_size",
        "virtual_pipeline_size",
        "context_parallel_size",
        "expert_parallel_size",
        "expert_tensor_parallel_size",
        "data_parallel_size",
        "lora_rank",
        "trainable_layers",
        "first_stage_layers",
        "last_stage_layers",
        "replicate_size",
    ):
        check_size(name, getattr(o, name))
    runtime = _runtime(cluster, o, q)
    o = scaled_by_recipe(runtime, o)
    stated = rollout_length(model, o)
    sizes = parallel_sizes(model, cluster, runtime, o.sequence_length or stated or _usual_length(model), o, q)
    facts = facts_of(model, runtime, o, says_why=q.is_read)
    check_parallel(facts, sizes | {"accelerators": cluster.size}, o)
    length = _sequence_length(model, stated, o, q)
    of_batch = sizes | {"sequence_length": length}
    check(facts, of_batch, CONTEXT)
    micro, count = _batch(facts, of_batch, o, q)
    schedule = pipeline_schedule(facts, sizes | {"num_microbatches": count}, o, q)
    stage = _zero_stage(runtime, sizes["pipeline_parallel_size"], cluster.size == 1, o, q)
    _check_zero(runtime, stage)
    hidden, inside = _dropout(model, o, q)
    model_code = _model_code(runtime, o, q)
    usual, why = usual_precision(runtime, o)
    recipe = _recipe(runtime, usual, why, o, q)
    warn_of_machine(q, cluster, recipe.compute, sizes["tensor_parallel_size"], fixed_counted=False)
    offload = offload_options(runtime, stage, o, q)
    request = PlanRequest(
        model=model, runtime=runtime, sizes=sizes, zero_stage=stage, offload=offload, options=o, question=q
    )
    tuning = training_method(model, runtime, recipe, o, q)
    check_base(runtime, recipe, tuning.base_weights, sizes["tensor_parallel_size"])
    vision = _vision(model, length, tuning.method, o, q)
    return TrainingPlan.of_fields(
        sequence_length=length,
        micro_batch_size=micro,
        num_microbatches=count,
        zero_stage=stage,
        mean_packed_length=_mean_packed_length(length, o, q),
        pipeline_schedule=schedule,
        **sizes,
        **stated_links(o.inter_node_bandwidth, o.intra_node_bandwidth, q),
        site=site_of(o.calibrated, q),
        sequence_parallel=q.take(
            "sequence_parallel",
            o.sequence_parallel,
            sizes["tensor_parallel_size"] > 1 and runtime.sequence_parallel,
            "default",
            "on with tensor parallelism",
        ),
        recompute=_recompute(runtime, model_code, cluster.size == 1, o, q),
        attention=_attention(runtime, cluster, o, q),
        dropout=hidden,
        attention_dropout=inside,
        loss=_loss(facts, model_code, of_batch, o, q),
        precision=recipe.name,
        optimizer=optimizer(q.take("optimizer", o.optimizer, "adamw")).name,
        optimizer_implementation=_choice(
            "implementation of the optimizer",
            q.take(
                "optimizer_implementation",
                o.optimizer_implementation,
                "fused",
                "runtime",
                own_of(runtime.name),
            ),
            IMPLEMENTATIONS,
        ),
        runtime=runtime.name,
        model_code=model_code,
        layout=PipelineLayout(
            first_stage_layers=o.first_stage_layers,
            last_stage_layers=o.last_stage_layers,
            chunk_layers=said_chunks(model, runtime, sizes, o),
        ),
        **uneven_ranks(model, runtime, sizes, o, q),
        **(own_options(request) | framework_options(model, runtime, sizes, model_code, o, q)),
        tuning=tuning,
        vision=vision,
        post_training=(objective := objective_of(model, runtime, tuning.method, o, q)),
        rollout=_rollout(
            objective.objective,
            runtime,
            of_batch | {"micro_batch_size": micro, "count": count, "media": vision.image_tokens},
            o,
            q,
        ),
        **offload,
        **own_sharding_options(request),
    )


def _vision(model: Model, length: int, method: str, o: TrainingOptions, q: Question) -> Vision:
    """Images of each sequence, and whether the vision tower trains."""
    if all(getattr(o, name) is None for name in OF_VISION):
        return Vision()
    from tonnage.estimate.options.vision import vision_of  # most runs are on text

    return vision_of(model, length, method, o, q)


def media_tokens(model: Model, o: TrainingOptions) -> int:
    """Tokens of the images or the video of a sequence."""
    if o.images is None and o.video_seconds is None:
        return 0
    from tonnage.estimate.options.vision import media_of  # most runs are on text

    media = media_of(model, o)
    return media.tokens if media else 0


def rollout_length(model: Model, o: TrainingOptions) -> int | None:
    """Tokens of a sequence of an objective that generates, where nobody says them: prompt and longest completion, else
    the usual ones beside the images or the video. None: as of text that is there.
    """
    media = media_tokens(model, o)
    stated = stated_length(o, media)
    if stated is not None or not media or o.sequence_length is not None or not generates(o.objective or "sft"):
        return stated
    length = _usual_length(model) + media
    return min(length, model.context) if model.context else length


def _recipe(runtime: TrainingRuntime, usual: str, why: str, o: TrainingOptions, q: Question) -> Recipe:
    """The training recipe, by its name or by one that Transformer Engine's has elsewhere."""
    meant = te_recipe(o.precision) if o.precision not in TRAINING_RECIPES else ""
    if meant and runtime.multiplies_narrow:
        return TRAINING_RECIPES[q.put("precision", meant, "given", o.precision or "")]
    if meant and o.precision in runtime.float8:
        raise InvalidInput(
            "with runtime {runtime}, {name} is the scaling of products: write {@float8} {name} and leave "
            "{@precision} out.",
            runtime=runtime.name,
            name=o.precision,
        )
    return TRAINING_RECIPES[q.take("precision", o.precision, usual, "default", why)]


def _mean_packed_length(length: int, o: TrainingOptions, q: Question) -> float | None:
    """Mean tokens of the sequences of a row, where they are said: not noted else."""
    if o.mean_packed_length is None:
        return None
    if not 1 <= o.mean_packed_length <= length:
        raise InvalidPlan(
            "{@mean_packed_length} must be from 1 to {@sequence_length} {length:,}. Got {value:,}.",
            length=length,
            value=o.mean_packed_length,
        )
    return float(q.take("mean_packed_length", o.mean_packed_length, None))


def _rollout(
    objective: str, runtime: TrainingRuntime, sizes: dict[str, int], o: TrainingOptions, q: Question
) -> Rollout:
    """What a step generates, of objectives that do."""
    if not generates(objective):
        return Rollout()
    batch = sizes["micro_batch_size"] * sizes["count"] * sizes["data_parallel_size"]
    length, micro = sizes["sequence_length"], sizes["micro_batch_size"]
    return rollout_of(objective, runtime, length, micro, batch, o, q, sizes["media"])


def _model_code(runtime: TrainingRuntime, o: TrainingOptions, q: Question) -> str:
    """Who wrote the layers: it decides what they keep."""
    own = runtime.model_codes[0]
    if PEFT_CODE in runtime.model_codes and (o.objective not in (None, "sft") or o.method not in (None, "full")):
        own = PEFT_CODE
    chosen: str = q.take("model_code", o.model_code, own, "runtime", own_of(runtime.name))
    if chosen not in runtime.model_codes:
        _choice("model code", chosen, model_codes())
        raise InvalidPlan(
            "{@model_code} must be one that runtime {runtime} runs: {model_codes}. Got {chosen}.",
            runtime=runtime.name,
            model_codes=listed(runtime.model_codes),
            chosen=chosen,
        )
    return chosen


def usual_runtime(cluster: Cluster) -> str:
    """Where nobody names one."""
    return USUAL_ALONE if cluster.size == 1 else USUAL_ON_SEVERAL


def _runtime(cluster: Cluster, o: TrainingOptions, q: Question) -> TrainingRuntime:
    alone = cluster.size == 1
    name = q.take(
        "runtime",
        o.runtime,
        usual_runtime(cluster),
        "default",
        "one accelerator" if alone else "more than one accelerator",
    )
    runtime = training_runtime(name)
    if runtime.on_several is not None and not alone:
        several = runtime.on_several
        q.warn(several.warning)
        runtime = training_runtime(q.put("runtime", several.runtime, "given", several.reason))
    if runtime.one_accelerator and not alone:
        able = [other for other in training_runtimes() if not training_runtime(other).one_accelerator]
        raise InvalidPlan(
            "runtime {runtime} is estimated on one accelerator alone. Got {size}. Runtimes on several: {able}.",
            runtime=runtime.name,
            size=cluster.size,
            able=listed(able),
        )
    if o.runtime_version is not None and runtime.older:
        runtime = _of_version(runtime, o.runtime_version)
        q.put("runtime_version", runtime.version, "given", runtime.source)
    else:
        q.take("runtime_version", o.runtime_version, runtime.version, "runtime", runtime.source)
    return runtime


def _of_version(newest: TrainingRuntime, wanted: str) -> TrainingRuntime:
    """The version that the user names, whole ("torchtitan 0.1.0") or by a part ("0.1", "2024")."""
    every = {version.version: version for version in (newest, *newest.older.values())}
    from tonnage.runtimes.parts.tools import names_version  # most runs name no version

    matches = [facts for version, facts in every.items() if names_version(version, wanted)]
    if not matches:
        raise unknown(Message("version of {newest}", newest=newest.name), wanted, list(every))
    return matches[0]


def _zero_stage(runtime: TrainingRuntime, stages: int, alone: bool, o: TrainingOptions, q: Question) -> int:
    why: str
    default, why = runtime.default_zero_stage, own_of(runtime.name)
    if runtime.shards_on_several and alone:
        default, why = 0, "one accelerator"
    if runtime.shards_units and stages > 1:
        default, why = 2, "under a pipeline nothing is resharded after its forward"
    chosen: int = q.take("zero_stage", o.zero_stage, default, "runtime", why)
    return chosen


def _recompute(runtime: TrainingRuntime, model_code: str, alone: bool, o: TrainingOptions, q: Question) -> str:
    usual = runtime.recompute if alone else runtime.recompute_on_several or runtime.recompute
    chosen = _choice(
        "recompute policy",
        q.take("recompute", o.recompute, usual, "runtime", own_of(runtime.name)),
        RECOMPUTE,
    )
    if chosen == "selective-op" and not (runtime.selective_op and model_code == runtime.model_codes[0]):
        raise InvalidPlan(
            Message(
                "{@recompute} selective-op is torchtitan's (runtime fsdp2, {@model_code} torchtitan): it "
                "must be none, selective or full here."
            )
        )
    return chosen


def _sequence_length(model: Model, stated: int | None, o: TrainingOptions, q: Question) -> int:
    """Tokens of a sequence. `stated`: those of prompt and longest completion, where these are said alone."""
    why = (
        Message(
            "the model's context, at most {default_sequence_length}", default_sequence_length=DEFAULT_SEQUENCE_LENGTH
        )
        if model.context
        else "the model names no context"
    )
    usual = _usual_length(model)
    origin: Origin = "model"
    if stated:
        usual, origin, why = stated, "default", "prompt_length + max_completion_length"
        if o.images is not None or o.video_seconds is not None:
            why = "prompt_length + tokens of images or video + max_completion_length"
        if o.max_completion_length is None:
            why = Message(
                "{default_sequence_length} tokens of text, and those of images or video",
                default_sequence_length=_usual_length(model),
            )
    length = q.take("sequence_length", o.sequence_length, usual, origin, why)
    check_positions(model, length, "sequence_length")
    if q.is_read and model.context and length > model.context:
        q.warn(
            Message(
                "{@sequence_length} {length} is beyond the {context} tokens that {model} was made for.",
                length=length,
                context=model.context,
                model=model.name,
            )
        )
    return length


def _usual_length(model: Model) -> int:
    return min(model.context or DEFAULT_SEQUENCE_LENGTH, DEFAULT_SEQUENCE_LENGTH)


def _batch(facts: Facts, sizes: dict[str, int], o: TrainingOptions, q: Question) -> tuple[int, int]:
    micro = q.take("micro_batch_size", o.micro_batch_size, 1)
    data, stages = sizes["data_parallel_size"], sizes["pipeline_parallel_size"]
    rows = rows_of_step(o) if o.num_microbatches is None else 0
    is_of_rollout = o.global_batch_size is None and rows and rows % (micro * data) == 0
    if o.global_batch_size is not None or is_of_rollout:
        batch = rows if o.global_batch_size is None else o.global_batch_size
        implied = batch // (micro * data)
        of_batch = {"micro_batch_size": micro, "global_batch_size": batch, "num_microbatches": implied}
        check(facts, sizes | of_batch, BATCH, MICROBATCHES)
        q.put("global_batch_size", batch, *(("default", ONE_UPDATE) if is_of_rollout else ("given",)))
        why = "global_batch_size / (micro_batch_size x data_parallel_size)"
        return micro, q.take("num_microbatches", o.num_microbatches, implied, "default", why)
    fewest = _fewest_microbatches(facts.runtime, sizes, o)
    why = "as many as pipeline stages, to fill the pipeline" if stages > 1 else "no gradient accumulation"
    if fewest > stages:
        why = "the fewest that the pipeline schedule takes"
    if takes_usual_rollout(o):
        fewest, why = usual_rollout(o, micro * data, fewest) // (micro * data), ROLLOUT_WHY
    count = q.take("num_microbatches", o.num_microbatches, fewest, "default", why)
    q.put(
        "global_batch_size", micro * count * data, "default", "micro_batch_size x num_microbatches x data_parallel_size"
    )
    return micro, count


def _fewest_microbatches(runtime: TrainingRuntime, sizes: dict[str, int], o: TrainingOptions) -> int:
    """As many as pipeline stages, and as the schedule needs at least."""
    p = sizes["pipeline_parallel_size"]
    if p == 1 or not runtime.microbatch_rules:
        return p
    rule = microbatch_rule(runtime, runtime_schedule(runtime, o.pipeline_schedule, sizes["virtual_pipeline_size"]).name)
    return next((m for m in range(p, 2 * p + 2) if rule is None or rule.holds(m, p)), p)


def _attention(runtime: TrainingRuntime, cluster: Cluster, o: TrainingOptions, q: Question) -> AttentionKernel:
    default: str = runtime.kernels.attention
    why: str = own_of(runtime.name)
    for generation, (kernel, source) in runtime.attention_by_generation.items():
        if cluster.accelerator.generation.startswith(generation):
            default, why = kernel, source
    chosen = q.take("attention", o.attention, default, "runtime", why)
    found: AttentionKernel | None = ATTENTION.get(chosen)
    if found is None:
        raise unknown("attention kernel", chosen, ATTENTION)
    return found


def _dropout(model: Model, o: TrainingOptions, q: Question) -> tuple[bool, bool]:
    """Dropout of the hidden states and of attention: both as said, else as the model's config says."""
    hidden, attention, why = _dropout_of(model)
    q.take("dropout", o.dropout, hidden or attention, "model", why)
    return (hidden, attention) if o.dropout is None else (o.dropout, o.dropout)


@lru_cache(maxsize=256)
def _dropout_of(model: Model) -> tuple[bool, bool, str]:
    """Whether hidden states and attention are dropped by the model's config, and what it says."""
    text = model.config.get("text_config")
    config = {**model.config, **text} if isinstance(text, dict) else model.config
    rates = {name: config[name] for name in (*HIDDEN_DROPOUT, *ATTENTION_DROPOUT) if config.get(name)}
    whose = (
        "the catalogue's" if model.source.startswith("catalogue") else "its"
    )  # a catalogue's config is not the whole file
    why = listed(f"{name} {rate}" for name, rate in rates.items()) or Message("{whose} config names none", whose=whose)
    return any(name in rates for name in HIDDEN_DROPOUT), any(name in rates for name in ATTENTION_DROPOUT), why


def _loss(facts: Facts, model_code: str, sizes: dict[str, int], o: TrainingOptions, q: Question) -> str:
    runtime = facts.runtime
    holds_logits = o.objective in HOLD_LOGITS and bool(runtime.untiled_losses)
    if (o.objective in KINDS or holds_logits) and model_code == PEFT_CODE:
        of_scores = Message("scores of embeddings, without logits")
        untiled = tuple(runtime.untiled_losses) if holds_logits else ("full",) if o.objective in WHOLE else ()
        chosen = q.take(
            "loss",
            o.loss,
            "tiled" if o.objective in KINDS and o.objective not in WHOLE else "full",
            "default",
            of_scores
            if o.objective == CONTRASTIVE
            else "all logits at once"
            if o.objective not in KINDS or o.objective in WHOLE
            else Message("TRL's own: {tokens:,} tokens and {logits:,} logits at once", tokens=TOKENS, logits=LOGITS),
        )
        if chosen not in ("tiled", *untiled):
            raise InvalidPlan(
                "the loss of objective {objective} under {runtime} must be {able}. Got {chosen}.",
                objective=o.objective,
                runtime=runtime.name,
                able=listed(("tiled", *untiled), OR),
                chosen=chosen,
            )
        return str(chosen)
    if o.loss == "tiled":
        raise InvalidPlan(
            "a tiled loss is TRL's, of objectives {kinds} on models of transformers: loss must be {losses}.",
            kinds=listed(KINDS),
            losses=joined(" or ", runtime.losses),
        )
    loss = _choice(
        "loss",
        q.take(
            "loss",
            o.loss,
            runtime.losses[0],
            "default",
            ("all logits at once" if runtime.losses[0] == "full" else own_of(runtime.name)),
        ),
        LOSS,
    )
    if loss not in runtime.losses:
        able = [name for name in training_runtimes() if loss in training_runtime(name).losses]
        raise InvalidPlan(
            "runtime {runtime} has no {loss} loss: loss must be {losses}. {able} has it.",
            runtime=runtime.name,
            loss=loss,
            losses=joined(" or ", runtime.losses),
            able=listed(able),
        )
    check(facts.with_options(loss=loss), sizes, LOSS_CHUNKS)
    return loss


def _choice(kind: str, value: str, choices: tuple[str, ...]) -> str:
    if value not in choices:
        raise unknown(kind, value, choices)
    return value


def _check_zero(runtime: TrainingRuntime, stage: int) -> None:
    """The runtime must have this ZeRO stage; else those are named that do."""
    if stage in runtime.zero_stages:
        return
    able = [name for name in training_runtimes() if stage in training_runtime(name).zero_stages]
    stages = listed(map(str, runtime.zero_stages))
    hint = Message("Runtimes that have it: {others}.", others=listed(able)) if able else "No runtime has it."
    raise InvalidPlan(
        "{@zero_stage} must be one of those of runtime {runtime}: {stages}. Got {stage}. {hint}",
        runtime=runtime.name,
        stages=stages,
        stage=stage,
        hint=hint,
    )
