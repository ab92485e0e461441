"""The lines of the table: what each measures, in which unit, its goal, and what is profiled where it is missed."""

from collections.abc import Sequence

from msgspec import Struct

TRAIN = ("train", "llama-3.1-8b", "--on", "8xH100-SXM-80GB", "--json")
TRAIN_MISFIT = ("train", "llama-3.1-70b", "--on", "8xH100-SXM-80GB", "--json")
SERVE = ("serve", "llama-3.1-8b", "--on", "1xH100-SXM-80GB", "--json")
COMMANDS = {"process_train": TRAIN, "process_train_misfit": TRAIN_MISFIT, "process_serve": SERVE}
CATALOGUE = ("plan", "llama-3.1-8b", "--json")
TWO_TYPES = ("plan", "llama-3.1-70b", "--on", "h100,a100", "--json")
PLANS = {"plan_catalogue": CATALOGUE, "plan_two_types": TWO_TYPES}
SMALL_PLANS = {
    "plan_catalogue": ("plan", "llama-3.1-8b", "--on", "2xH100-SXM-80GB", "--recompute", "full", "--json"),
    "plan_two_types": ("plan", "llama-3.1-8b", "--on", "2xh100,2xa100", "--recompute", "full", "--json"),
}
FSDP2 = (
    "trace",
    "llama-3.1-8b",
    "--runtime",
    "fsdp2",
    "--world-size",
    "64",
    "--precision",
    "bf16-mixed",
    "--rank",
    "3",
    "--json",
)


class Line(Struct, frozen=True):
    """One line. `goal`: None where there is none. `more_is_better`: of rates. `profiled`: the command, or else the
    question of probe.py, of which a profile says where the time goes; empty: nothing is profiled.
    """

    key: str
    what: str
    unit: str
    goal: float | None = None
    more_is_better: bool = False
    command: Sequence[str] = ()
    question: str = ""
    by_clock: bool = False  # what counts is the wall clock: latencies

    def gain(self, before: float, after: float) -> float:
        """How many times better `after` is."""
        return after / before if self.more_is_better else before / after

    def short_of(self, value: float) -> float:
        """How many times the goal is missed by; at most 1: it is met."""
        assert self.goal is not None
        return self.goal / value if self.more_is_better else value / self.goal


PARTS: dict[str, tuple[Line, ...]] = {
    "processes": (
        Line(
            "process_train",
            f"whole process over a bare start: `tonnage {' '.join(TRAIN)}`",
            "ratio",
            1.6,
            command=TRAIN,
        ),
        Line(
            "process_train_misfit",
            f"whole process over a bare start, does not fit: `tonnage {' '.join(TRAIN_MISFIT)}`",
            "ratio",
            1.6,
            command=TRAIN_MISFIT,
        ),
        Line(
            "process_serve",
            f"whole process over a bare start: `tonnage {' '.join(SERVE)}`",
            "ratio",
            1.6,
            command=SERVE,
        ),
    ),
    "answers": (
        Line("train_summary", "one answer of train: memory, time, cost; summary", "ms", 2, question="train_summary"),
        Line("serve_summary", "one answer of serve: memory, time, cost; summary", "ms", 2, question="serve_summary"),
        Line("train_advised", "train with suggestions, fits, summary", "ms", 5, question="train_advised"),
        Line("misfit_advised", "train with suggestions, does not fit, summary", "ms", 5, question="misfit_advised"),
        Line("serve_advised", "serve with suggestions, summary", "ms", 5, question="serve_advised"),
        Line("train_full", "full document of train, without suggestions", "ms", 4, question="train_full"),
        Line("serve_full", "full document of serve, without suggestions", "ms", 4, question="serve_full"),
        Line("many", "rows of `tonnage.train_many`, one core", "rows/s", more_is_better=True),
    ),
    "http": (
        Line(
            "http_full",
            "distinct questions over HTTP with suggestions, full documents, two workers",
            "answers/s",
            500,
            more_is_better=True,
            question="web_full",
        ),
        Line(
            "http_summary",
            "distinct questions over HTTP with suggestions, summaries (`?detail=summary`), two workers",
            "answers/s",
            500,
            more_is_better=True,
            question="web_summary",
        ),
        Line(
            "http_plain",
            "distinct questions over HTTP without suggestions, summaries, two workers",
            "answers/s",
            500,
            more_is_better=True,
            question="web_plain",
        ),
        Line("http_p99", "p99 at 80 % of the rate, full documents", "ms", 50, by_clock=True, question="web_full"),
        Line("http_p99_summary", "p99 at 80 % of the rate, summaries", "ms", 50, by_clock=True, question="web_summary"),
        Line(
            "http_p99_plain",
            "p99 at 80 % of the rate, summaries without suggestions",
            "ms",
            50,
            by_clock=True,
            question="web_plain",
        ),
        Line("http_saved", "p99 of saving a plan under 200 clients that ask", "ms", 50, by_clock=True),
    ),
    "plan": (
        Line(
            "plan_catalogue",
            f"`tonnage {' '.join(CATALOGUE)}`: the whole catalogue",
            "s",
            5,
            command=CATALOGUE,
        ),
        Line("plan_two_types", f"`tonnage {' '.join(TWO_TYPES)}`: two machine types", "s", 1, command=TWO_TYPES),
        Line(
            "plan_first", "the first good plan of the whole catalogue, after imports", "s", 0.5, question="plan_first"
        ),
    ),
    "search": (
        Line(
            "search_unpruned",
            "search, unpruned: memory, time and cost, one core",
            "plans/s",
            500_000,
            more_is_better=True,
            question="search_unpruned",
        ),
        Line(
            "search_bounded",
            "search with bounds first, one core",
            "plans/s",
            2_000_000,
            more_is_better=True,
            question="search_bounded",
        ),
    ),
    "trace": (
        Line("trace_8b", "trace of two steps of llama-3.1-8b, after imports", "s", 1.7, question="trace_8b"),
        Line(
            "trace_405b",
            "trace of two steps of llama-3.1-405b, full recomputation, folded, after imports",
            "s",
            1.1,
            question="trace_405b",
        ),
        Line("trace_fsdp2", f"`tonnage {' '.join(FSDP2)}`, less imports", "s", 10, command=FSDP2),
    ),
    "page": (
        Line(
            "page_redraw",
            "redraw of the page, 95th percentile, DeepSeek-V3 on 256 GPUs (PP16, EP16)",
            "ms",
            100,
            by_clock=True,
            question="page_redraw",
        ),
        Line(
            "page_settled",
            "redraw of the page until its suggestions are drawn too",
            "ms",
            by_clock=True,
        ),
    ),
}
LINES = {line.key: line for lines in PARTS.values() for line in lines}
