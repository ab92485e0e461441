"""The form of an answer of `train` or `serve`: what it holds, its verdict and its document."""

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any

from msgspec import UNSET, Struct, UnsetType

from tonnage.architectures import Model
from tonnage.documents.advice import Advice, Chosen, NearestMiss
from tonnage.documents.answer import AnswerDocument, AnswerSummary, Slopes, Verdict, summary_of
from tonnage.documents.document import builtins
from tonnage.documents.interchange.read import ReadDocument
from tonnage.documents.question import Entry
from tonnage.documents.run import HostDocument, RunDocument
from tonnage.documents.serving import ServingDocument
from tonnage.documents.term import terms_of, with_figures
from tonnage.estimate.bands.forms import Band
from tonnage.estimate.inputs import Question
from tonnage.kernel.errors import InvalidInput
from tonnage.kernel.message import Message, joined, listed
from tonnage.kernel.term import FigureDocument, Term, TermDocument
from tonnage.kernel.units import human
from tonnage.spec import Cluster

if TYPE_CHECKING:  # types of the form's fields: an answer that has none of these imports none
    from tonnage.estimate.host.memory import HostMemory
    from tonnage.estimate.money.bill import Bill
    from tonnage.estimate.plan.pipeline_boxes import StepSeconds
    from tonnage.estimate.run.checkpoint import Disks
else:  # `help(tonnage.Answer)` looks the names of the fields' types up
    HostMemory = Bill = StepSeconds = Disks = Struct

# ---- Whether what fits does what was asked of it: the part of a verdict that is not memory.


def unserved(serving: ServingDocument[Term], question: Mapping[str, Entry]) -> str:
    """Why the load is not served; nothing where it is, or where nobody asked.

    Of a trace, which ends, no queue grows without end: its service level alone is judged.
    """
    if serving.service_level and not serving.service_level.met:
        return "the service level is not met"
    if "request_rate" in question and serving.ttft_seconds is None:
        return "the queue grows without end"
    if serving.encoded and serving.encoded.busy and serving.encoded.busy.value >= 1:
        return "the queue grows without end"
    return ""


def refused_context(engine: str, made_for: int) -> str:
    """What an engine says that does not start with a context beyond the model's own; nothing without one."""
    return (
        Message(
            "{engine} refuses this context: the model was made for {context:,} tokens", engine=engine, context=made_for
        )
        if engine
        else ""
    )


def missed_host(host: "HostMemory | None") -> str:
    """What the hosts' memory cannot hold; nothing where it can, or where nobody knows how much there is."""
    if host is None or host.capacity is None or host.memory.value <= host.capacity:
        return ""
    return Message(
        "a node needs {needed} of host memory and has {capacity}",
        needed=human(host.memory.value, "bytes"),
        capacity=human(host.capacity, "bytes"),
    )


def missed_limits(run: RunDocument[Term] | None, question: Mapping[str, Entry]) -> str:
    """Which of its limits a training run misses, with what it takes and what it may take; nothing where it keeps them,
    or where it has none.
    """
    if run is None:
        return ""
    late, dear = run.deadline_met is False, run.budget_met is False
    if late:
        days, of_days = _text(run.seconds), human(question["deadline_seconds"].value, "seconds")
    if dear:
        cost, of_cost = _spent(run, question)
    if late and dear:
        return Message(
            "misses the deadline: {days} of {of_days}, and the budget: {cost} of {of_cost}",
            days=days,
            of_days=of_days,
            cost=cost,
            of_cost=of_cost,
        )
    if late:
        return Message("misses the deadline: {days} of {of_days}", days=days, of_days=of_days)
    return Message("misses the budget: {cost} of {of_cost}", cost=cost, of_cost=of_cost) if dear else ""


def unjudged_limits(run: RunDocument[Term] | None, question: Mapping[str, Entry]) -> str:
    """Names the deadline and the budget of a training run whose step time is not known; "" where it has neither."""
    if run is not None:
        return ""
    late, dear = "deadline_seconds" in question, "budget" in question or "budget_accelerator_hours" in question
    if late and dear:
        return Message("the deadline and the budget cannot be judged")
    if late:
        return Message("the deadline cannot be judged")
    return Message("the budget cannot be judged") if dear else ""


def _spent(run: RunDocument[Term], question: Mapping[str, Entry]) -> tuple[str, str]:
    """What the run takes of its budget, and the budget: in USD where it is money."""
    if "budget" in question and run.accelerator_hours:
        usd = run.accelerator_hours.value * question["price_per_accelerator_hour"].value
        return human(usd, "USD"), human(question["budget"].value, "USD")
    return _text(run.accelerator_hours), _text(run.budget_accelerator_hours)


def _text(figure: Term | UnsetType) -> str:
    """A figure with its unit."""
    return human(figure.value, figure.unit) if figure else ""


NOT_SERVED: ServingDocument[Term] = ServingDocument()


class Answer(Struct, frozen=True, kw_only=True):
    """An answer of `train` or `serve`; `document` is what every face shows, `to_dict()` the same as
    dictionaries, `status` the exit status of the command line.

    `unknown` says what nobody knows of this model; `needed_bytes` is then a lower bound. `pieces` are for pictures, not
    in the document.
    """

    verb: str
    question: Mapping[str, Entry]
    chosen: Chosen | None = None  # what was not given and was chosen so that it fits
    needed_bytes: int
    usable_bytes: int
    memory: Term
    ranks: tuple[Term, ...]
    phases: tuple[Term, ...] = ()
    slopes: Slopes | None = None  # None where they were not estimated
    flops: Term | None = None
    step_time: Term | None = None
    pieces: "StepSeconds | None" = None
    run: RunDocument[Term] | None = None
    traffic: Term | None = None
    bill: "Bill | None" = None
    disks: "Disks | None" = None
    checkpoint: Term | None = None
    host: "HostMemory | None" = None
    serving: ServingDocument[Term] = NOT_SERVED
    advice: tuple[Advice, ...] = ()
    nearest_miss: NearestMiss | None = None
    warnings: tuple[str, ...] = ()
    unknown: str = ""
    band: tuple[int, int] | None = None
    band_of_others: tuple[int, int] | None = None  # of other kinds of runs, where none of this kind was measured
    made_for: int = 0  # tokens that the model was made for, where the context is longer
    refused_by: str = ""  # the engine that does not start with such a context
    read: ReadDocument | None = None  # of another tool's file or command, where that asks the question

    @property
    def fits(self) -> bool | None:
        """True: with the high end of the error band. False: not even with its low end, or the hosts' memory cannot
        hold what is offloaded. None: in between (`tight`), or what is known fits and something is not known
        (`unknown`).
        """
        low, high = self.band or (self.needed_bytes, self.needed_bytes)
        if low > self.usable_bytes or missed_host(self.host):
            return False
        return None if self.unknown or high > self.usable_bytes else True

    @property
    def tight(self) -> bool:
        """Whether what is usable lies inside the error band."""
        return not missed_host(self.host) and self.band is not None and self.band[0] <= self.usable_bytes < self.band[1]

    @property
    def status(self) -> int:
        """0 it fits, 2 tight, 3 it does not fit, or fits and does not answer the load as asked or misses its
        deadline or budget, 4 not enough is known, or not everything of a file was understood.
        """
        if self.read is not None and not self.read.is_sure:
            return 4
        if self.tight:
            return 2
        if self.fits and not self.unserved and self.unjudged:
            return 4
        return 3 if self.fits and self.unserved else {True: 0, False: 3, None: 4}[self.fits]

    @property
    def unserved(self) -> str:
        """What is missing beside the accelerators' memory: that of the hosts, or, where it fits, a load that is
        answered, a deadline and a budget that are kept. Nothing where nothing is.
        """
        return (
            missed_host(self.host)
            or refused_context(self.refused_by, self.made_for)
            or unserved(self.serving, self.question)
            or missed_limits(self.run, self.question)
        )

    @property
    def unjudged(self) -> str:
        """The limits of a training run that cannot be judged because the time of a step is not known."""
        return unjudged_limits(self.run, self.question) if self.verb == "train" else ""

    def __repr__(self) -> str:
        verdict = {0: "fits", 2: "tight", 3: "does not fit", 4: "not enough is known"}[self.status]
        if self.fits and self.unserved:
            verdict = Message("fits, but {unserved}", unserved=self.unserved)
        model, on = self.question["model"].value, self.question["on"].value
        sizes = f"{human(self.needed_bytes, 'bytes')} of {human(self.usable_bytes, 'bytes')}"
        return f"<Answer {self.verb} {model} on {on}: {verdict}, needs {sizes}>"

    @property
    def document(self) -> AnswerDocument:
        """The whole document, every breakdown opened down to its formulas."""
        known: dict[int, tuple[Term, TermDocument]] = {}
        return self._document(lambda term: term.documented(known), trees=True)

    def to_dict(self) -> dict[str, Any]:
        """The document as dictionaries and lists."""
        return builtins(self.document)

    @property
    def summary_document(self) -> AnswerSummary:
        """The document without its trees, at most 8 kB; nothing is put into texts for it."""
        bill = self.bill
        return summary_of(
            self._document(lambda term: term.figure, trees=False),
            memory=self.memory.figure_with_parts,
            step_time=self.step_time.figure_with_parts if self.step_time else UNSET,
            cost=bill.cost.figure_with_parts if bill and bill.cost else UNSET,
        )

    def summary(self) -> dict[str, Any]:
        """The summary as dictionaries and lists."""
        return builtins(self.summary_document)

    def without_trees(self) -> dict[str, Any]:
        """The document with its breakdowns closed, of which texts are made."""
        return builtins(self._document(lambda term: term.summary, trees=False))

    @property
    def others(self) -> tuple[Term, ...]:
        """Every breakdown but that of memory."""
        run = self.run
        first = (self.step_time, self.flops, self.traffic)
        terms = [term for term in first if term is not None]
        if run is not None:
            figures = (getattr(run, name) for name in run.__struct_fields__)
            terms += [value for value in figures if isinstance(value, Term)]
            terms += terms_of(run.best_models)
        if self.checkpoint is not None:
            terms.append(self.checkpoint)
        return (
            *terms,
            *(self.bill.all if self.bill else ()),
            *(self.disks.all if self.disks else ()),
            *terms_of(self.serving),
        )

    @property
    def opened(self) -> tuple[Term, ...]:
        """Breakdowns that are shown beside that of memory: what the time of a first token and of the others goes to."""
        return tuple(term for term in (self.serving.ttft_seconds, self.serving.tpot_seconds) if term)

    def _document(self, figure: Callable[[Term], TermDocument | FigureDocument], *, trees: bool) -> AnswerDocument:
        def shown(value: Any) -> Any:
            """What is not known is left out."""
            return UNSET if value is None else with_figures(value, figure)

        bill, disks = self.bill, self.disks
        return AnswerDocument(
            question=dict(self.question),
            read=self.read or UNSET,
            verdict=Verdict(
                fits=self.fits,
                needed_bytes=self.needed_bytes,
                usable_bytes=self.usable_bytes,
                band=self.band,
                missed=self.unserved or None,
                band_of_others=self.band_of_others or UNSET,
                made_for=self.made_for or UNSET,
                unjudged=self.unjudged or UNSET,
            ),
            chosen=self.chosen or UNSET,
            memory=shown(self.memory) if trees else UNSET,
            ranks=shown(self.ranks) if trees else UNSET,
            phases=shown(self.phases) if trees and self.phases else UNSET,
            slopes=self.slopes or UNSET,
            flops=shown(self.flops),
            step_time=shown(self.step_time),
            traffic=shown(self.traffic),
            checkpoint=shown(self.checkpoint),
            run=shown(self.run),
            host=shown(self._host),
            storage=shown(disks.storage if disks else None),
            cost=with_figures(bill.cost, figure) if bill else UNSET,
            energy=shown(bill.energy if bill else None),
            carbon=shown(bill.carbon if bill else None),
            ownership=shown(bill.ownership if bill else None),
            serving=shown(self.serving if self.serving != NOT_SERVED else None),
            advice=list(self.advice),
            nearest_miss=self.nearest_miss or UNSET,
            warnings=list(self.warnings),
        )

    @property
    def _host(self) -> HostDocument[Term] | None:
        if self.host is None:
            return None
        return HostDocument(
            memory=self.host.memory,
            capacity_bytes=self.host.capacity,
            storage=self.host.storage or UNSET,
            cores=self.disks.cores if self.disks else UNSET,
            disk=self.disks.disk if self.disks else UNSET,
        )


# ---- What every answer says of its question: model, machine, and the memory that can be used.

# What `usable_bytes` starts from, and the fact that has its source.
USABLE = {
    "runtime": ("the total that the runtime gives programs", "runtime_mib"),
    "driver": ("the total that the driver reports", "reported_mib"),
    "nominal": ("the memory as sold", "nominal_gib"),
}


def about(model: Model, cluster: Cluster, advise: bool = True, choose: bool | None = None) -> Question:
    """The question with model and machine. `advise`, `choose`: as of `train`; what was switched off is said."""
    question = Question()
    question.put("model", model.name, "given", model.source)
    question.put(
        "parameters",
        model.num_parameters(),
        "model",
        Message("family {family}, {architecture}", family=model.family, architecture=model.architecture)
        if model.architecture
        else Message("family {family}", family=model.family),
    )
    question.put("on", cluster.name, "given")
    question.put("accelerators", cluster.size, "cluster")
    if choose is False:
        question.put("as_is", True, "given")
    if not advise:
        question.put("advice", False, "given")
    for note in (*([cluster.note] if cluster.note else ()), *model.notes):
        question.warn(note)
    if model.assumed:
        shown = listed(f"{key}={value!r}" for key, value in list(model.assumed.items())[:8])
        question.warn(Message("the config leaves these to the family's defaults: {shown}.", shown=shown))
    return question


def usable_bytes(cluster: Cluster, reserve_bytes: int, question: Question) -> int:
    chip, memory = cluster.accelerator, cluster.accelerator.memory
    what, key = USABLE[memory.usable_from]
    if memory.system_bytes:
        what, key = Message("{what}, less what the system keeps", what=what), "system_gib"
    fact = chip.fact(f"memory.{key}")
    why = joined("; ", (what, fact.source)) if fact else what
    question.put("usable_memory", memory.usable_from, "catalogue", why)
    question.put("reserve_bytes", reserve_bytes, "given" if reserve_bytes else "default")
    if memory.usable_from == "driver":
        question.warn(
            Message(
                "no source says how much memory the runtime of {chip} gives programs: what its driver reports is "
                "used, of which a program can get a little less.",
                chip=chip.name,
            )
        )
    elif memory.usable_from == "nominal" and not memory.system_bytes:
        question.warn(
            Message(
                "no source says what the driver of {chip} reports or its runtime gives programs: its nominal "
                "memory is used, of which a program gets less.",
                chip=chip.name,
            )
        )
    if not 0 <= reserve_bytes < memory.usable_bytes:
        raise InvalidInput(
            "{@reserve} must leave some of the {usable_bytes} that {accelerator} has. Got {reserve_bytes}.",
            usable_bytes=human(memory.usable_bytes, "bytes"),
            accelerator=cluster.accelerator.name,
            reserve_bytes=human(reserve_bytes, "bytes"),
        )
    return memory.usable_bytes - reserve_bytes


def warn_of_towers(model: Model, question: Question) -> None:
    """What is left out of the towers of a model that is trained, or whose requests are text alone."""
    towers = [branch.name for branch in model.branches if branch.kind in ("vision", "audio")]
    if towers:
        question.warn(
            Message(
                "{towers}: weights are counted, activations of images and sounds are not.",
                towers=joined(" and ", towers),
            )
        )


def put_band(band: Band | None, question: Question) -> Band | None:
    """The band, which the question names where there is one."""
    if band is not None:
        factors = Message("x {low:.3g} to x {high:.3g}", low=band.low, high=band.high)
        question.put("error_band", factors, "measurements", band.what)
    return band
