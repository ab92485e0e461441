"""Ask tonnage three questions on the shipped catalogue and print the heads of its answers: core install, no GPU, no
torch, no network.

make demo
"""

from collections.abc import Iterator
from typing import Any

import tonnage
from tonnage.documents.advice import Advice
from tonnage.documents.document import builtins
from tonnage.render.advice import advice_line
from tonnage.render.brief.verdict import verdict_line
from tonnage.render.prompts import with_prompts
from tonnage.render.text import named, tree_lines

FITS = {"model": "llama-3.1-8b", "on": "8xH100-SXM-80GB", "sequence_length": 8192, "recompute": "full"}
TOO_LARGE = {"model": "qwen3-8b", "on": "RTX-4090", "method": "lora"}
SERVED = {"model": "qwen3-32b", "on": "RTX-4090", "weights": "awq", "context": 4096}
NEXT = """\
What to do next:
  .venv/bin/tonnage train MODEL --on MACHINE       your own run; `tonnage models` and `tonnage accelerators` list the names
  .venv/bin/tonnage serve MODEL --on MACHINE --users 16 --input 1000 --output 200
  .venv/bin/tonnage plan MODEL --train             the best machines and layouts
  .venv/bin/tonnage rules                          all rules of thumb, each worked, with its source and its errata
  .venv/bin/tonnage web                            the same answers as a page (after .venv/bin/python -m pip install -e '.[web]')
  Add --formulas to an answer to see each figure's formula with the numbers put in; README.md tells the rest."""


def head(answer: Any, *figures: str) -> Iterator[str]:
    """The command, the verdict, where the memory goes, and the named figures of an answer."""
    document = answer.without_trees()
    yield f"$ {answer.command}"
    yield verdict_line(document)
    yield from tree_lines(answer.memory, depth=1)
    for name in figures:
        figure = document.get("serving", {}).get(name) or document[name]
        yield named(figure) if name != "ttft_seconds" else with_prompts(named(figure), document["question"])


def mended(answer: Any, move: Advice) -> Any:
    """The answer to the same question with the changes of a suggestion."""
    return tonnage.train(**TOO_LARGE, **move.change)


def lines() -> Iterator[str]:
    yield from ("A training run that fits:", "", *head(tonnage.train(**FITS), "step_time", "cost"), "")
    too_large = tonnage.train(**TOO_LARGE)
    first = too_large.advice[0]
    yield from ("One that does not, and the first suggestion:", "", *head(too_large), advice_line(builtins(first)), "")
    yield from (*head(mended(too_large, first), "step_time"), "")
    served = tonnage.serve(**SERVED)
    yield from ("A model served:", "", *head(served, "ttft_seconds", "tpot_seconds"), "")
    yield NEXT


if __name__ == "__main__":
    print("\n".join(lines()))
