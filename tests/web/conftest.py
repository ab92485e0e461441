"""A server without a network, asked in this process; data bases for tests of saved plans."""

from collections.abc import Iterator

import pytest
from litestar import Litestar
from litestar.testing import TestClient

from tonnage.web.app import create_app
from tonnage.web.settings import Settings
from tonnage.web.store.opened import Opened
from web import postgres

HERE = "http://127.0.0.1:8000"
Client = TestClient[Litestar]


@pytest.fixture(scope="session", autouse=True)
def own_folder(tmp_path_factory):
    """No test saves anything among the plans of the user who runs it."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_DATA_HOME", str(tmp_path_factory.mktemp("data")))
        yield


@pytest.fixture(scope="session")
def client(own_folder) -> Iterator[Client]:
    with TestClient(create_app(Settings(hub=False)), base_url=HERE) as made:
        yield made


@pytest.fixture(scope="session")
def postgresql():
    """One server for all tests of a process; each test has a data base of its own on it."""
    if not postgres.PROGRAMS:
        pytest.skip(postgres.WHY_NOT)
    with postgres.server() as made:
        yield made


@pytest.fixture(params=["sqlite", "postgresql"])
def url(request, tmp_path):
    """Of an empty data base."""
    if request.param == "sqlite":
        return f"sqlite:///{tmp_path}/plans.db"
    server = request.getfixturevalue("postgresql")
    name = f"t{abs(hash(request.node.nodeid)) % 10**12}"
    import psycopg

    with psycopg.connect(server.url, autocommit=True) as connection:
        connection.execute(f"CREATE DATABASE {name} TEMPLATE template0")
    return server.url.replace("/postgres?", f"/{name}?")


@pytest.fixture
def store(url):
    made = Opened(url, own=True).for_saving()
    yield made
    made.close()
