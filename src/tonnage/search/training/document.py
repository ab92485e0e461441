"""The answer of `plan --train`: its document, and why each plan stands before the next."""

from typing import Any

from msgspec import UNSET, UnsetType
from msgspec.structs import replace

from tonnage.architectures import Model
from tonnage.documents.document import builtins
from tonnage.documents.plan import FrontDocument, PlansDocument, RemovedDocument, TrainingPlanDocument
from tonnage.documents.question import Entry
from tonnage.estimate.advice.moves import flags_of
from tonnage.estimate.hardware.rates import rates
from tonnage.estimate.inputs import Question, today
from tonnage.estimate.options.tools import RunOfTool, check_lacking, divided, run_of_tool, tool_notes
from tonnage.estimate.step.objective import TIMED
from tonnage.estimate.step.rollout_options import ONE_UPDATE, rows_of_step
from tonnage.kernel.message import Message, joined, listed
from tonnage.question.amounts import deadline_seconds
from tonnage.runtimes import has_training_runtime, training_runtime
from tonnage.runtimes.parts.tool import PLAIN
from tonnage.search.training.launch.settings import launch_lacks, launch_settings
from tonnage.search.training.machines import fleets
from tonnage.search.training.options import TrainingQuestion
from tonnage.search.training.plan import Planned, Plans, plan_training
from tonnage.search.training.post_training import plan_post_training

SAME = 1e-3  # a share of less than that is no difference that an estimate can see
SEARCHED = ("micro_batch_size", "num_microbatches", "recompute")  # a tool's own values of these are no limits
NOT_OF_RUN = ("sequence_length", "global_batch_size", "num_microbatches", "data_parallel_size")


def document_of(result: Plans, question: TrainingQuestion) -> PlansDocument:
    """The document that the command line, the page and the API show."""
    rows = [
        _row(result.model, one, _beats(one, result.plans[at + 1], result) if at + 1 < len(result.plans) else "")
        for at, one in enumerate(result.plans)
    ]
    searched, deadline = result.searched, deadline_seconds(question.run.deadline, today())
    return PlansDocument(
        question=_question(result, question),
        goal=result.objective,
        machines=searched.machines,
        passed=searched.passed,
        considered=searched.tally.considered,
        removed=[RemovedDocument(constraint=removal.constraint, plans=removal.plans) for removal in searched.tally],
        refused=[RemovedDocument(constraint=reason, plans=plans) for reason, plans in searched.reasons.items()],
        beaten=searched.beaten,
        estimated=searched.walked,
        plans=rows,
        front=[_front(entry) for entry in result.front],
        status=result.status,
        binds=result.why,
        nearest=_row(result.model, result.nearest, "") if result.nearest else None,
        best=result.plans[0].answer.document if result.plans else None,
        warnings=_warnings(result),
        deadline_seconds=UNSET if deadline is None else deadline,
    )


def _row(model: Model, one: Planned, beats: str) -> TrainingPlanDocument:
    answer, run = one.answer, one.answer.run
    timed = answer.step_time is not None
    usd_per_token = one.usd_per_token if timed else None
    cost = answer.bill.cost if answer.bill else None
    price = answer.question.get("price")
    return TrainingPlanDocument(
        on=one.machine.name,
        accelerators=one.accelerators,
        options=one.options,
        text=(
            Message(
                "tonnage train {model} {--on} {machine} {flags_of}",
                model=answer.question["model"].value,
                machine=one.machine.name,
                flags_of=flags_of(_chosen_options(one.options) | one.of_run),
            )
        ).strip(),
        needed_bytes=answer.needed_bytes,
        usable_bytes=answer.usable_bytes,
        step_seconds=answer.step_time.value if answer.step_time else None,
        tokens_per_second=run.tokens_per_second.value if run else None,
        mfu=run.mfu.value if run else None,
        usd_per_accelerator_hour=one.entry.usd,
        usd_per_million_tokens=None if usd_per_token is None else usd_per_token * 1e6,
        run_seconds=run.seconds.value if run and run.seconds else None,
        cost=cost.value if cost is not None and run and run.seconds else None,
        launch=launch_settings(model, one.plan, one.machine),
        launch_lacks=launch_lacks(model, one.plan),
        beats=beats,
        price=price.value if price else None,
        measured=rates().of(one.machine.accelerator.generation)[1],
        run_seconds_band=_run_band(one),
    )


def _run_band(one: Planned) -> tuple[float, float] | UnsetType:
    """Seconds of the whole run at the ends of the error band of a step, where a deadline is given."""
    run, step = one.answer.run, one.answer.step_time
    if "deadline" not in one.of_run or run is None or not run.seconds or not run.step_time_band or step is None:
        return UNSET
    low, high = (end / step.value * run.seconds.value for end in run.step_time_band)
    return low, high


def _chosen_options(options: dict[str, Any]) -> dict[str, Any]:
    """Options without those that follow from the machine and the global batch."""
    derived = {"data_parallel_size", *(("num_microbatches",) if "global_batch_size" in options else ())}
    return {name: value for name, value in options.items() if name not in derived}


def _front(entry: Any) -> FrontDocument:
    usd_per_token = entry.usd_per_token
    return FrontDocument(
        on=entry.machine.name,
        accelerators=entry.machine.size,
        options=entry.plans[0].options,
        tokens_per_second=1 / entry.seconds_per_token,
        usd_per_million_tokens=None if usd_per_token is None else usd_per_token * 1e6,
    )


def _beats(one: Planned, other: Planned, result: Plans) -> str:
    """Why a plan stands before another: what the objective asks for first."""
    advantages = [_cheaper(one, other), _faster(one, other), _fewer(one, other)]
    first = {"cheapest": 0, "fastest": 1, "fewest": 2}[result.objective]
    reasons = [advantages[first], *(reason for at, reason in enumerate(advantages) if at != first)]
    if reasons[0]:
        return reasons[0]
    better = [reason for reason in reasons[1:] if reason]
    if better and result.objective == "fewest":
        return better[-1] if len(better) == 1 else better[0]
    near = Message("as good within {same:g} %", same=100 * SAME)
    if one.order[1:3] < other.order[1:3]:
        return Message("{near}, and simpler: {simpler}", near=near, simpler=_simpler(one, other))
    return joined(": ", (near, _simpler(one, other)))


def _cheaper(one: Planned, other: Planned) -> str:
    mine, theirs = one.usd_per_token, other.usd_per_token
    if mine is None or theirs is None or theirs < mine * (1 + SAME):
        return ""
    return Message("{mine:.1f} % cheaper", mine=100 * (1 - mine / theirs))


def _faster(one: Planned, other: Planned) -> str:
    ratio = other.seconds_per_token / one.seconds_per_token
    return Message("{ratio:.1f} % faster", ratio=100 * (ratio - 1)) if ratio > 1 + SAME else ""


def _fewer(one: Planned, other: Planned) -> str:
    less = other.accelerators - one.accelerators
    return Message("{less:,} fewer accelerators", less=less) if less > 0 else ""


def _simpler(one: Planned, other: Planned) -> str:
    """The text on the options in which two plans differ, each with the other's value and this one's."""
    names = [name for name in other.options if name not in NOT_OF_RUN and one.options.get(name) != other.options[name]]
    changed = [f"{name} {other.options[name]} → {one.options.get(name, 'none')}" for name in names]
    return ", ".join(changed) or "the first of equals"


def _warnings(result: Plans) -> list[str]:
    notes: list[str] = []
    if result.unpriced:
        notes.append(
            Message(
                "no price is known of {unpriced} and more: they are not among the cheapest."
                if len(result.unpriced) > 8
                else "no price is known of {unpriced}: they are not among the cheapest.",
                unpriced=listed(result.unpriced[:8]),
            )
        )
    if result.compares and result.searched.refused:
        names = listed(list(result.searched.refused)[:6])
        more = len(result.searched.refused) - 6
        name, why = next(iter(result.searched.refused.items()))
        notes.append(
            Message("not looked at: {names} and {more} more. {name}: {why}", names=names, more=more, name=name, why=why)
            if more > 0
            else Message("not looked at: {names}. {name}: {why}", names=names, name=name, why=why)
        )
    if result.plans:
        notes += [note for note in result.plans[0].answer.warnings if note not in notes]
    return notes


def _question(result: Plans, question: TrainingQuestion) -> dict[str, Entry]:
    q = Question()
    q.put("model", result.model.name, "given", result.model.source)
    q.put("parameters", result.model.num_parameters(), "model")
    q.put(
        "on",
        listed(question.on) or "every GPU of the catalogue",
        "given" if question.on else "default",
        "NVIDIA and AMD" if not question.on else "",
    )
    q.put(
        "goal",
        result.objective,
        "given" if question.search.goal else "default",
        "" if question.search.goal else "machines are compared" if result.compares else "of one machine",
    )
    for form in (question.options, question.run, question.money, question.search):
        for name in form.__struct_fields__:
            if name != "goal" and getattr(form, name) is not None:
                q.put(name, getattr(form, name), "given")
    for name, values in question.vary.items():
        q.put(name, ", ".join(map(str, values)), "given", "varied")
    if result.plans:
        best = result.plans[0].options
        of_batch = "about four million tokens a step, in a number that the replicas divide"
        for name, why in (
            ("sequence_length", "the model's context, at most 4096"),
            ("global_batch_size", ONE_UPDATE if rows_of_step(question.options) else of_batch),
        ):
            if getattr(question.options, name) is None and name not in question.vary and name in best:
                q.put(name, best[name], "default", why)
    return q.entries


class TrainingPlans:
    """`plans`: the best first, each with its whole answer; `status`: 0 found, 3 nothing does, 4 not enough is known."""

    def __init__(self, result: Plans, document: PlansDocument):
        self.found, self.document = result, document

    @property
    def plans(self) -> tuple[Planned, ...]:
        return self.found.plans

    @property
    def status(self) -> int:
        return self.found.status

    def to_dict(self) -> dict[str, Any]:
        """The document as dictionaries and lists."""
        return builtins(self.document)

    def __repr__(self) -> str:
        best = self.plans[0].machine.name if self.plans else Message("nothing: {why}", why=self.found.why)
        return f"<TrainingPlans of {self.found.model.name}: {best}>"


def answer(model: Model, question: TrainingQuestion) -> TrainingPlans:
    """Search, and return the plans with their document."""
    question, notes = _of_tool(model, question)
    search = plan_post_training if (question.options.objective or "sft") in TIMED else plan_training
    result = search(model, _of_one_update(question))
    document = document_of(result, question)
    return TrainingPlans(result, replace(document, warnings=[*notes, *document.warnings]))


def _of_one_update(question: TrainingQuestion) -> TrainingQuestion:
    """The question with the batch of all completions of a step, where its prompts are said and its batch is not."""
    o = question.options
    if not rows_of_step(o) or o.num_microbatches is not None or o.global_batch_size is not None:
        return question
    if "global_batch_size" in question.vary:
        return question
    return replace(question, options=replace(o, global_batch_size=rows_of_step(o)))


def _of_tool(model: Model, question: TrainingQuestion) -> tuple[TrainingQuestion, list[str]]:
    """The question about the runtime of a tool that is named, with the tool's own values of what is not searched."""
    if question.options.runtime is None or has_training_runtime(question.options.runtime):
        return question, []
    machine = fleets(question.on, question.search.max_accelerators)[0].machines[-1]
    run = run_of_tool(model, *divided(machine, question.options))
    if run is None:
        return question, []
    own = {name: value for name, value in run.own.items() if name not in (*SEARCHED, *question.vary)}
    split = question.options.rollout_accelerators  # the search tries every number that generates apart
    options = replace(run.options, **dict.fromkeys(set(run.own) - set(own)), rollout_accelerators=split)
    for name in run.tool.lacks:
        for size in question.vary.get(name, ()):
            check_lacking(run.tool, name, size)
    whole = [name for name in run.tool.lacks if name not in question.vary and getattr(options, name) is None]
    options = replace(options, **dict.fromkeys(whole, 1))
    several = training_runtime(options.runtime or PLAIN).on_several if machine.size > 1 else None
    notes = tool_notes(RunOfTool(run.tool, options, own), several.runtime if several else str(options.runtime))
    if several:
        others = listed([name for name in run.tool.runtimes if max(training_runtime(name).zero_stages) > 0], "and")
        notes.insert(
            0,
            Message(
                "{tool} runs on {others} too: name one as {--runtime} to search it.",
                tool=run.tool.title,
                others=others,
            ),
        )
    return replace(question, options=options), notes
