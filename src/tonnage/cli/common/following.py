"""How far a search is, on a terminal: a bar with the percentage of its plans that are decided, and the best plan so
far. Nothing where standard error is no terminal.
"""

import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from tonnage.kernel.units import human
from tonnage.language import say


@contextmanager
def shown_progress(what: str) -> Iterator[None]:
    """Show the progress of the search inside, of what is counted as `what`, on standard error."""
    if not sys.stderr.isatty():
        yield
        return
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TaskProgressColumn, TextColumn

    from tonnage.search.progress import followed

    columns = (BarColumn(bar_width=24), TaskProgressColumn(), TextColumn("{task.description}", markup=False))
    bar = Progress(*columns, console=Console(stderr=True), transient=True, refresh_per_second=10)
    with bar:
        task = bar.add_task("", total=None)

        def tell(counted: str, done: int, of: int | None) -> None:
            if counted == what:
                bar.update(task, completed=done, total=of)

        def hear(plan: Any) -> None:
            bar.update(task, description=best_so_far(plan))

        with followed(tell, hear):
            yield


def best_so_far(plan: Any) -> str:
    """One line on the best plan of a search that goes on."""
    return say("best so far: {machine}, {step} per step", machine=plan.on, step=human(plan.step_seconds, "seconds"))
