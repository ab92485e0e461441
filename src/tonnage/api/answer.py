"""What `train` and `serve` return in Python: the answer with its text, report, tables and pictures."""

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypedDict

from tonnage.api.reports import Reported
from tonnage.estimate.answer import form
from tonnage.kernel.term import Term

if TYPE_CHECKING:
    import plotly.graph_objects


class PartRow(TypedDict):
    """A part of the memory of the fullest GPU. `level`: 0 is the total; `share`: of the total."""

    part: str
    level: int
    bytes: int
    gib: float
    share: float
    basis: str
    formula: str | None
    text: str
    source: str


class Answer(form.Answer, Reported, frozen=True, kw_only=True):
    """The answer of `train` or `serve`: the verdict, and where memory, time and money go.

    A figure is a `Term`: `value` in base units (bytes, seconds, FLOP, tokens/s, USD, joules), `unit`, `formula`,
    `source` and `children`, the parts that it is made of. What the verb does not answer is None.

    Verdict:
      fits: True, False, or None where the error band holds the limit (`tight`) or not enough is known (`unknown`)
      status: exit status of the command line: 0 fits, 2 tight, 3 does not fit or misses a target, 4 not enough known
      needed_bytes, usable_bytes [bytes]: of the fullest GPU
      band [bytes]: low and high end of the error band of `needed_bytes`; None where no runs were measured
      band_of_others [bytes]: the same of other kinds of runs, where none of this kind was measured; None
      made_for [tokens]: context that the model was made for, where a longer one is asked; refused_by: the engine that
        does not start with it; 0 and "" where none
      unserved: the service level, deadline or budget that is missed, in words; "" where none is
      unknown: what nobody published of this model, in words; `needed_bytes` is then a lower bound
      chosen: options that were not given and were chosen so that it fits: change, text, needed_bytes without it; None

    Question:
      verb: "train" or "serve"
      question: each input by its name, an Entry with `value`, `origin` (given, default, model, runtime, ...) and `why`
      command: the command line that asks the same; "" where there is none
      warnings: sentences about what was assumed

    Memory:
      memory [bytes]: of the fullest GPU at the peak; its children are weights, gradients, optimizer, activations, ...
      ranks [bytes]: memory of each pipeline stage; phases [bytes]: of the fullest at each moment of a step
      slopes [bytes]: what one more sequence, and one more token a sequence, add; None with advice=False
      host [bytes]: `memory` of one node's host, and its `capacity`

    Training:
      step_time [seconds], flops [FLOP of a step], traffic [bytes a GPU sends in a step], checkpoint [bytes]
      run: mfu, hfu, tokens_per_second, bound_by, step_time_band [seconds]; with tokens, a deadline or a budget also
        seconds, accelerator_hours, steps, failures, ...; figures of a run that was not asked for are UNSET, which is
        false: `if answer.run and answer.run.seconds:`
      disks: checkpoints and data on storage [bytes], write and read [seconds]
      pieces: forward, backward and communication of each pipeline stage [seconds], from which `plot` draws the step

    Serving:
      serving: ttft_seconds, tpot_seconds, end_to_end_seconds [seconds]; tokens_per_second of all replicas;
        concurrency, safe_concurrency [requests]; kv_capacity_tokens; cost_per_million_tokens [USD]; ...; UNSET, which
        is false, where it is not known

    Money:
      bill: cost [USD], energy [joules], carbon [grams of CO2e] and ownership, of a step, a run or an hour (`bill.of`)

    Suggestions:
      advice: changes that fit, each estimated again, the best first; `text` is its command-line options
      nearest_miss: where none fits, the one that comes closest

    >>> import tonnage
    >>> answer = tonnage.train("llama-3.1-8b", on="8xH100-SXM-80GB", recompute="full")
    >>> answer
    <Answer train llama-3.1-8b on 8xH100-SXM-80GB: fits, needs 26.95 GiB of 79.10 GiB>
    >>> [(part.name, part.unit) for part in answer.memory.children][0]
    ('weights', 'bytes')
    """

    command: str = ""

    def text(self, *, formulas: bool = False, verbose: bool = False) -> str:
        """Return the lines that the command line prints, without colour: at most 24; with `verbose` every figure and
        every input (-v), with `formulas` the numbers put in besides (--formulas).
        """
        if not (formulas or verbose):
            from tonnage.render.brief.answer import answer_text
            from tonnage.render.brief.layout import plain_text

            return plain_text(lambda width: answer_text(self, width))
        from tonnage.render.text import answer_lines

        return "\n".join(
            answer_lines(
                self.without_trees(),
                self.memory,
                formulas=formulas,
                others=self.others if formulas else (),
                opened=self.opened,
            )
        )

    def parts(self) -> list[PartRow]:
        """Return the parts of the memory of the fullest GPU, each before its own parts, which add up to it.

        Each is a dictionary: part, level (0: the total), bytes, gib, share (of the total), basis, formula, text,
        source. Parts of nothing are left out.
        """
        return [
            {
                "part": term.name,
                "level": level,
                "bytes": round(term.value),
                "gib": term.value / 2**30,
                "share": term.value / self.memory.value,
                "basis": term.basis,
                "formula": term.formula.name if term.formula else None,
                "text": str(term.text),
                "source": term.source,
            }
            for level, term in _added(self.memory, 0)
        ]

    def _frame_rows(self, names: Sequence[str]) -> Sequence[Mapping[str, Any]]:
        return self.rows(*names) if names else self.parts()

    def plot(self, path: str | os.PathLike[str]) -> None:
        """Write its pictures, as --plot: a page of HTML that needs no network, or a .png or .svg. Needs the extra
        `plot`.
        """
        from tonnage.render.plot import write_plot

        write_plot(self, path)

    def figure(self, kind: str = "ranks") -> "plotly.graph_objects.Figure":
        """Return a picture as a plotly figure: ranks, phases, pipeline, work or ownership, as far as the answer has
        it. Needs the extra `plot`.
        """
        from tonnage.render.plot import figure_of

        return figure_of(self, kind)

    def __str__(self) -> str:
        return self.text()


def with_text(answer: form.Answer, command: str = "") -> Answer:
    """Return the answer of an estimate as Python's users have it."""
    return Answer(**{name: getattr(answer, name) for name in form.Answer.__struct_fields__}, command=command)


def _added(term: Term, level: int) -> Iterator[tuple[int, Term]]:
    """Terms that are added up to this one, each with its level."""
    yield level, term
    for child in term.children if term.combine == "sum" else ():
        if child.value:
            yield from _added(child, level + 1)
