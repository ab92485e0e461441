"""The Python face of `tonnage plan`: the best plans and machines for a training run, or for users."""

import os
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from functools import cached_property
from typing import Any, ClassVar, Literal, Unpack

from msgspec.structs import replace

from tonnage.api.answer import Answer, with_text
from tonnage.api.arguments import (
    check_mapping,
    check_number,
    check_text,
    check_whole,
    listed,
    model_of,
    names_in_text,
    option_value,
    options_by_subject,
    options_from,
    public,
    reserve_of,
    typed,
)
from tonnage.api.following import SearchProgress, progress_told
from tonnage.api.options import AnyOptions, PlanServingOptions, PlanTrainingOptions
from tonnage.api.reports import Tabled, command_of
from tonnage.architectures import Model
from tonnage.estimate.load.options import LoadOptions
from tonnage.estimate.money.bill import BillOptions
from tonnage.estimate.options.run_options import RunOptions
from tonnage.estimate.plan.training_options import TrainingOptions
from tonnage.estimate.serving.options import ServingOptions
from tonnage.kernel.errors import InvalidInput, shown
from tonnage.kernel.message import Message
from tonnage.kernel.registry import unknown
from tonnage.search.pool.place import place as place_on
from tonnage.search.pool.placement import Placement
from tonnage.search.serving import answer as serving_answers
from tonnage.search.serving import plan_serving as search_serving
from tonnage.search.serving.machines import fixed, named
from tonnage.search.serving.options import ServingPlanOptions
from tonnage.search.training import document as training_document
from tonnage.search.training.options import SearchOptions, TrainingQuestion
from tonnage.search.training.plan import Planned
from tonnage.spec import Cluster


class TrainingPlan(Planned, frozen=True, kw_only=True, eq=False):
    """A plan of a training run: `options` that were chosen for it, its `machine`, seconds_per_token, usd_per_token,
    and the whole `answer` of `train`.
    """

    answer: Answer


class TrainingPlans(training_document.TrainingPlans, Tabled):
    """The best plans of a training run, in `plans`, the best first; their report, and the plans as rows and frames.

    `best`: the answer of `train` for the first plan, None where nothing holds. `status`: 0 a plan holds, 3 none does,
    4 not enough is known. `document`: what was searched too: removed and refused plans, bounds, the nearest miss.
    """

    listed = ("plans", "front")

    def __init__(self, plans: training_document.TrainingPlans, command: str = ""):
        super().__init__(plans.found, plans.document)
        self.command = command

    @cached_property
    def plans(self) -> tuple[TrainingPlan, ...]:
        """The best plans, the best first."""
        return tuple(
            TrainingPlan(
                **{name: getattr(plan, name) for name in Planned.__struct_fields__}
                | {"answer": with_text(plan.answer, str(row.text))}
            )
            for plan, row in zip(self.found.plans, self.document.plans, strict=True)
        )

    @property
    def best(self) -> Answer | None:
        """The answer of `train` for the best plan; None where nothing holds."""
        return self.plans[0].answer if self.plans else None

    def text(self, *, verbose: bool = False) -> str:
        """Return the lines that the command line prints, at most 24; `verbose`: every figure and every input (-v)."""
        if not verbose:
            from tonnage.render.brief.layout import plain_text
            from tonnage.render.brief.plan_training import plan_text
            from tonnage.search.training.launch.settings import launch_program

            program = launch_program(self.plans[0].plan) if self.plans else ""
            return plain_text(lambda width: plan_text(self, program, width))
        from tonnage.render.plans.training import plan_lines

        return "\n".join(plan_lines(self.to_dict(), self.plans[0].answer.memory if self.plans else None))

    def _unasked(self, name: str, document: Mapping[str, Any]) -> str:
        was_asked = document["question"].get("pareto", {}).get("value")
        return "pareto" if name == "front" and not was_asked else ""

    def __str__(self) -> str:
        return self.text()


class ServingPlans(serving_answers.ServingPlans, Tabled, frozen=True, kw_only=True, eq=False, dict=True):
    """The best machines and plans to serve a model, in `plans`, the best first; their report, and rows and frames.

    `best`: the answer of `serve` for the first plan, None where nothing holds. `status`: 0 a plan holds, 3 none does.
    `document`: what was searched too: what each limit removed, and the nearest where nothing holds.
    """

    command: str = ""
    listed: ClassVar[tuple[str, ...]] = ("plans", "pareto")

    @cached_property
    def best(self) -> Answer | None:
        """The answer of `serve` for the best plan; None where nothing holds."""
        found = super().best
        return with_text(found) if found else None

    def text(self, *, formulas: bool = False, verbose: bool = False) -> str:
        """Return the lines that the command line prints, at most 24; with `verbose` every figure and every input (-v),
        with `formulas` the numbers put in besides (--formulas).
        """
        if not (formulas or verbose):
            from tonnage.render.brief.layout import plain_text
            from tonnage.render.brief.plan_serving import plan_text

            return plain_text(lambda width: plan_text(self, width))
        from tonnage.render.plans.serving import plan_lines

        return "\n".join(plan_lines(self.to_dict(), self.best, formulas=formulas))

    def _unasked(self, name: str, document: Mapping[str, Any]) -> str:
        return name if document[name] is None else ""

    def __repr__(self) -> str:
        best = self.plans[0].layout.cluster.name if self.plans else "nothing holds"
        return f"<ServingPlans of {self.question['model'].value}: {best}>"

    def __str__(self) -> str:
        return self.text()


@public
def plan_training(
    model: str | os.PathLike[str] | Model,
    on: str | Sequence[str] = (),
    *,
    vary: Mapping[str, Sequence[Any]] | None = None,
    reserve_bytes: float = 0,
    tell: Callable[[SearchProgress], object] | None = None,
    **options: Unpack[PlanTrainingOptions],
) -> TrainingPlans:
    """Return the best plans of a training run on a machine, or the best machines for it: `tonnage plan --train`.

    model: as for `train`
    on: names in a list or with commas between: "8xH100-SXM-80GB" is that machine, "h100" any number of it; none: every
        GPU of the catalogue
    vary: option -> values to try besides, such as {"precision": ["bf16-mixed", "fp8-te"]}
    reserve_bytes [bytes]: memory of each GPU to leave free (default: 0)
    tell: called with a SearchProgress as the search goes on: plans that are decided, and the best one so far

    Usual options; what is given is not varied:
      goal [name]: fastest, cheapest or fewest (accelerators) (default: fastest of one machine; of several cheapest, or
        fewest where no price is known)
      top [plans]: plans, or machines, that are shown (default: 5)
      max_accelerators [accelerators]: of a machine that is named without a number (default: 4096)
      pareto: also the machines that no other beats in time, money and number (default: off)
      sequence_length [tokens]: tokens of a sequence; 32k is 32768 (default: the model's context, at most 4096)
      global_batch_size [sequences]: sequences of one step of all replicas
      method [method]: what trains: full, lora, dora, qlora (LoRA on a 4-bit base), ia3 (vectors of peft) or freeze (the
        last layers) (default: full)
      precision [recipe]: training recipe, such as bf16-mixed, bf16, fp32, fp8-te (default: bf16-mixed)
      runtime [name]: framework that trains the model; a tool such as axolotl, trl or nemo leads to its own: fsdp2,
        megatron, transformers, ddp, deepspeed, nanotron, torchtune, unsloth, litgpt, megatron-fsdp, zero-bubble,
        hai-llm (default: fsdp2; transformers on one accelerator)
      tokens [tokens]: training tokens, such as 15T; or give epochs, or max_steps
      deadline [time]: 30d, 2w, or the last day, such as 2027-01-31: how many accelerators make it?
      budget [USD]: money that may be spent, such as 100k: how many tokens does it buy?
      provider [name]: whose machines are rented, such as AWS (default: the cheapest offer known)
      price_per_accelerator_hour [USD]: price of one accelerator for one hour
    All 155 options: `print(tonnage.options("plan_training"))`.

    Returns TrainingPlans: `plans`, the best first, each with its `answer`; `best`; `rows()` and `frame()`. Raises
    TonnageError: as `train`.

    >>> plans = tonnage.plan_training("llama-3.2-1b", "1xH100-SXM-80GB", sequence_length=2048, runtime="fsdp2")
    >>> plans.best.fits, plans.rows()[0]["on"]
    (True, 'H100-SXM-80GB')
    """
    if tell is not None and not callable(tell):
        raise InvalidInput(
            "tell takes a function that is called with a tonnage.SearchProgress, or None. Got {tell}.", tell=shown(tell)
        )
    names = tuple(map(_cluster_name, names_in_text(() if on is None else on, "on")))
    vary = (
        None if vary is None else {name: _varied(name, values) for name, values in check_mapping("vary", vary).items()}
    )
    command = command_of("plan", model, on=names, vary=vary, reserve_bytes=reserve_of(reserve_bytes), **options)
    training, search, run, bill = options_by_subject(options, TrainingOptions, SearchOptions, RunOptions, BillOptions)
    reserve = reserve_of(reserve_bytes)
    question = TrainingQuestion(
        on=names, options=training, run=run, money=bill, search=search, vary=vary or {}, reserve_bytes=reserve
    )
    with nullcontext() if tell is None else progress_told(tell):
        return TrainingPlans(training_document.answer(model_of(model), question), command)


@public
def plan_serving(
    model: str | os.PathLike[str] | Model,
    on: str | Cluster | Sequence[str | Cluster] | None = None,
    *,
    reserve_bytes: float = 0,
    **options: Unpack[PlanServingOptions],
) -> ServingPlans:
    """Return the best machines and plans to serve a model to users within limits: `tonnage plan --serve`.

    model: as for `serve`
    on: names in a list or with commas between, or Clusters: the number of "h100" is searched, "8xh100" is that machine;
        None: the whole catalogue
    reserve_bytes [bytes]: memory of each GPU to leave free (default: 0)

    Usual options; what is given is not varied; `weights` and `engine` may be several, with commas between:
      goal [name]: cost, accelerators, tpot, ttft, end-to-end, goodput or token-cost (default: cost where a price is
        known, else accelerators; of given machines tpot, or goodput where no users are given)
      vary [names]: engine, kv-cache, batch, disaggregation, or all: also search these (default: none of them)
      top [plans]: how many plans are shown (default: 5)
      max_accelerators [accelerators]: at most so many (default: 64 of a kind; a cluster as it is given)
      pareto: every plan that none beats in cost, time of a token and tokens a second together (default: off)
      context [tokens]: tokens of a request, prompt and answer; 32k is 32768 (default: the model's own)
      concurrency [requests]: requests held at the same time, by all replicas together (default: one a replica)
      input_tokens [tokens]: tokens of a prompt (default: 1024, at most 3/4 of the context)
      output_tokens [tokens]: tokens of an answer (default: 1024, at most what the context leaves)
      request_rate [requests/s]: requests that arrive by themselves at all replicas together, instead of concurrency
      ttft [time]: highest TTFT allowed (time to first token), such as 500ms
      tpot [time]: highest TPOT allowed (time per output token), such as 30ms
      budget [USD]: the most that all machines may cost: 20/h, 500/day, 15k/month; a bare number is USD an hour
        (default: any)
      weights [precision]: how weights are stored: bf16, fp8, int8, awq, nf4, mxfp4, q4_k, ... (default: the
        checkpoint's own)
      engine [name]: engine that serves the model; a tool such as lm-studio or vllm-ascend leads to its own: vllm,
        sglang, tensorrt-llm, llama.cpp, ollama, mlx, transformers, exllamav2, exllamav3, gpt-fast, openvino, lmdeploy,
        neuron, tgi, dynamo, dynamo-sglang, dynamo-trtllm, jetstream, mlc, generic, ktransformers, tei,
        sentence-transformers, infinity, faster-whisper, openai-whisper, whisper.cpp (default: vllm; llama.cpp for GGUF,
        on CPUs and Apple)
      provider [name]: whose machines are rented, such as AWS (default: the cheapest offer known)
    All 85 options: `print(tonnage.options("plan_serving"))`.

    Returns ServingPlans: `plans`, the best first; `best`: the answer of `serve` for the first; `rows()` and `frame()`.
    Raises TonnageError: as `serve`.

    >>> plans = tonnage.plan_serving("llama-3.1-8b", "H100-SXM-80GB", context=2048, max_accelerators=1)
    >>> plans.best.fits, plans.plans[0].accelerators
    (True, 1)
    """
    command = command_of("plan", model, reserve_bytes=reserve_of(reserve_bytes), **{"serve": True, "on": on, **options})
    forms = (ServingOptions, ServingPlanOptions, LoadOptions, BillOptions)
    serving, options_of_serving, load, bill = options_by_subject(options, *forms)
    serving = replace(serving, reserve_bytes=reserve_of(reserve_bytes))
    plans = search_serving(model_of(model), _machines(on), options_of_serving, serving, load, bill)
    return ServingPlans(**{name: getattr(plans, name) for name in plans.__struct_fields__}, command=command)


def _machines(on: Any) -> Any:
    if on is None or isinstance(on, str):
        return None if on is None else named(on)
    machines = tuple(
        machine
        for item in listed(on)
        for machine in ((fixed(item),) if isinstance(item, Cluster) else named(_cluster_name(item)))
    )
    if not machines:
        raise InvalidInput(Message("{@on} takes at least one name, or None for the whole catalogue. Got none."))
    return machines


def _varied(name: str, values: Any) -> list[Any]:
    """The values of an option that is varied, as the option takes them; the search refuses a name that is no option."""
    is_option = name in TrainingOptions.__struct_fields__
    return [option_value(TrainingOptions, name, value) if is_option else value for value in listed(values)]


def _cluster_name(name: Any) -> str:
    if isinstance(name, str):
        return name
    raise InvalidInput(
        "{@on} takes names such as h100 or 8xH100-SXM-80GB, and Clusters. Got {typed}.", typed=typed(name)
    )


class Placed(Tabled):
    """What `place` answers: the document's parts (`verdict`, `stages`, `replicas`, `jobs`, `moves`, `figures`, ...),
    the lines of the command line, the report, and what is placed as data frames.
    """

    listed = ("stages", "replicas", "jobs", "moves")

    def __init__(self, placement: Placement, command: str = ""):
        self.document, self.placed, self.status, self.command = (
            placement.document,
            placement.placed,
            placement.status,
            command,
        )
        self._found = placement

    def to_dict(self) -> dict[str, Any]:
        """Return the document as dictionaries and lists."""
        return self._found.to_dict()

    def text(self) -> str:
        """Return the lines that the command line prints, without colour."""
        from tonnage.render.plans.pool import pool_lines

        return "\n".join(pool_lines(self.to_dict()))

    def __repr__(self) -> str:
        return f"<Placed {self.document.placed_as}: {'placed' if self.status == 0 else 'not placed'}>"

    def __str__(self) -> str:
        return self.text()


@public
def place(
    inventory: str | os.PathLike[str] | Mapping[str, Any],
    model: str | os.PathLike[str] | Model | None = None,
    *,
    verb: Literal["serve", "train"] = "serve",
    split: str = "auto",
    goal: str = "throughput",
    stages: int | None = None,
    offload: bool = False,
    leave: str | Sequence[str] = (),
    join: str | Sequence[str] = (),
    time_limit: float | None = None,
    gap: float = 0.0,
    **options: Unpack[AnyOptions],
) -> Placed:
    """Return what goes where on a pool of unlike machines: `tonnage plan --inventory`. Needs the extra `placement`.

    inventory: a file (docs/commands/plan_pool.md), or the same as a mapping
    model: whose layers or replicas are placed; None: the jobs of the inventory
    verb: "serve" or "train"
    split: auto, replicas or pipeline
    goal: of a pipeline that serves throughput, or latency of one user alone
    stages: pipeline stages (default: as many as are best)
    offload: host memory may hold what GPUs do not (default: False)
    leave, join: nodes and spare groups, in a list or with commas between: what moves where?
    time_limit [seconds]: of the search (default: none); gap [share]: how far from the best it may stop (default: 0)
    options: those of `serve` or of `train`

    Returns Placed: `document`, and `rows("replicas")`, "stages", "jobs" or "moves". Raises TonnageError: as `serve`.
    """
    if verb not in ("serve", "train"):
        raise unknown("kind of placement", str(verb), ("serve", "train"))
    if not isinstance(inventory, str | os.PathLike | Mapping):
        raise InvalidInput(
            "{@inventory} takes a path, or a mapping of its fields. Got {typed}.", typed=typed(inventory)
        )
    split, goal = check_text("split", split), check_text("goal", goal)
    stages = None if stages is None else check_whole("stages", stages)
    time_limit, gap = None if time_limit is None else check_number("time_limit", time_limit), check_number("gap", gap)
    leave, join = (
        [check_text(name, item) for item in names_in_text(nodes or (), name)]
        for name, nodes in (("leave", leave), ("join", join))
    )
    question = {
        "inventory": inventory,
        "train": True if verb == "train" else None,
        "split": None if split == "auto" else split,
        "goal": None if goal == "throughput" else goal,
        "stages": stages,
        "offload": offload or None,
        "leave": list(leave),
        "join": list(join),
        "time_limit": time_limit,
        "gap": gap or None,
        **options,
    }
    command = "" if isinstance(inventory, Mapping) else command_of("plan", model, **question)
    if verb == "train":
        run_options, load = options_from(TrainingOptions, options, LoadOptions), LoadOptions()
    else:
        run_options, load = options_by_subject(options, ServingOptions, LoadOptions)
    if model is None and options:
        raise InvalidInput(
            "options of the inventory's jobs are written there: leave out {options}.", options=next(iter(options))
        )
    where = dict(inventory) if isinstance(inventory, Mapping) else os.fspath(inventory)
    placement = place_on(
        where,
        None if model is None else model_of(model),
        run_options,
        load,
        split=split,
        objective=goal,
        stages=stages,
        offload=offload,
        leave=tuple(leave),
        join=tuple(join),
        time_limit=time_limit,
        gap=gap,
    )
    return Placed(placement, command)
