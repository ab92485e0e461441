"""The application: route handlers, and what stands around them."""

import os

import msgspec
from litestar import Litestar
from litestar.config.compression import CompressionConfig

from tonnage.web import listings, pages, questions
from tonnage.web.jobs import routes as jobs
from tonnage.web.jobs.running import jobs_running
from tonnage.web.metrics import Metrics
from tonnage.web.process.garbage import collect_seldom
from tonnage.web.schema import openapi, options_table
from tonnage.web.settings import Settings
from tonnage.web.state import running
from tonnage.web.store import routes as saved
from tonnage.web.store.running import store_opened
from tonnage.web.wire.failures import HANDLERS
from tonnage.web.wire.guard import Guard
from tonnage.web.wire.methods import before

ENVIRONMENT = "TONNAGE_WEB_SETTINGS"  # how settings come to worker processes

# A module of routes has a list of handlers; what they share is in the application's state: settings, running, metrics,
# jobs, store.
ROUTES = [
    *questions.ROUTES,
    *jobs.ROUTES,
    *saved.ROUTES,
    *listings.ROUTES,
    *openapi.ROUTES,
    *options_table.ROUTES,
    *pages.ROUTES,
]
# Answers of some size are packed where the client takes it; not events, which are sent as they come, nor the page,
# whose files have a tag of their bytes.
PACKED = CompressionConfig("gzip", minimum_size=10_000, gzip_compress_level=1, exclude_opt_key="as_it_is")
LIFESPAN = [running, jobs_running, store_opened]


def create_app(settings: Settings = Settings()) -> Litestar:  # noqa: B008 - settings cannot change
    """The application, with these settings."""
    app = Litestar(
        route_handlers=ROUTES,
        lifespan=LIFESPAN,
        before_request=before,
        exception_handlers=HANDLERS,  # type: ignore[arg-type]
        openapi_config=None,
        logging_config=None,
        compression_config=PACKED,
        request_max_body_size=settings.limits.body_bytes,
    )
    app.state.settings, app.state.metrics = settings, Metrics()
    app.asgi_handler = Guard(app.asgi_handler, settings, app.state.metrics)  # also around what no route answers
    return app


def from_environment() -> Litestar:
    """The application of a worker process."""
    app = create_app(msgspec.json.decode(os.environ[ENVIRONMENT], type=Settings))
    collect_seldom()
    return app
