"""Jobs of one worker, from its start to its end."""

from collections.abc import AsyncIterator
from contextlib import ExitStack, asynccontextmanager
from pathlib import Path

from litestar import Litestar
from msgspec import Struct

from tonnage.web.jobs.board import Board
from tonnage.web.jobs.folder import shared_folder
from tonnage.web.jobs.keeper import Keeper
from tonnage.web.jobs.limits import JobLimits


class Jobs(Struct, frozen=True):
    """What the routes of jobs need."""

    board: Board
    keeper: Keeper
    limits: JobLimits

    def call(self) -> None:
        """There is something to do: look now."""
        self.keeper.call()


@asynccontextmanager
async def jobs_running(app: Litestar) -> AsyncIterator[None]:
    """`settings.folder` is shared by all workers of a server; a worker alone has one of its own."""
    settings = app.state.settings
    with ExitStack() as stack:
        folder = Path(settings.folder) if settings.folder else stack.enter_context(shared_folder())
        board = Board(folder)
        stack.callback(board.close)
        keeper = Keeper(board, settings.jobs, settings.reach)
        app.state.jobs = Jobs(board, keeper, settings.jobs)
        keeper.start()
        try:
            yield
        finally:
            await keeper.stop()
