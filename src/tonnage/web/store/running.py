"""Saved plans of one worker, from its start to its end."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from importlib import import_module

from litestar import Litestar

from tonnage.web.store.figures import Figures
from tonnage.web.store.opened import Opened
from tonnage.web.store.writer import Writer

MODULES = (
    "tonnage.web.store.saved",
    "tonnage.verbs.train",
    "tonnage.verbs.serve",
    "tonnage.verbs.plan_train",
)  # that a save needs


@asynccontextmanager
async def store_opened(app: Litestar) -> AsyncIterator[None]:
    """After the processes that answer have been started: figures of plans are computed by them."""
    settings = app.state.settings
    app.state.store = Opened(settings.store, own=settings.loopback, most_bytes=settings.store_limit)
    app.state.figures = Figures(app.state.running, app.state.store)
    app.state.writer = Writer(app.state.store)
    reading = asyncio.create_task(asyncio.to_thread(_import_modules)) if app.state.store.saves else None
    try:
        yield
    finally:
        if reading is not None:
            await reading
        await app.state.figures.close()
        await app.state.writer.close()
        app.state.store.close()


def _import_modules() -> None:
    """Beside the first requests, so that the first save does not wait for it."""
    for name in MODULES:
        import_module(name)
