"""A server without a network, asked in this process; data bases for tests of saved plans."""

import json
from collections.abc import Iterator
from pathlib import Path

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
def folder_of_models(tmp_path_factory) -> Path:
    """What a server of strangers reads: a model, a machine, a file that is none of both, a link to itself."""
    made = tmp_path_factory.mktemp("secret") / "models"
    (made / "m").mkdir(parents=True)
    config = {
        "architectures": ["LlamaForCausalLM"],
        "model_type": "llama",
        "hidden_size": 64,
        "num_hidden_layers": 2,
        "num_attention_heads": 2,
        "intermediate_size": 128,
        "vocab_size": 100,
        "max_position_embeddings": 2048,
    }
    (made / "m" / "config.json").write_text(json.dumps(config), encoding="utf-8")
    (made / "config.json").write_text(json.dumps(config), encoding="utf-8")
    (made / "odd").mkdir()
    (made / "odd" / "config.json").write_text("[1]", encoding="utf-8")
    (made / "empty").mkdir()
    (made / "two").mkdir()
    for name in ("a.gguf", "b.gguf"):
        (made / "two" / name).write_bytes(b"x")
    for ending in ("toml", "yaml", "json", "jsonl", "gguf", "safetensors"):
        (made / f"odd.{ending}").write_bytes(b"\xff{[")
        (made / f"folder.{ending}").mkdir()
    (made / "pool.yaml").write_text("nodes: [{name: a, accelerator: nothing}]", encoding="utf-8")
    (made / "node.toml").write_text('accelerators = 0\naccelerator = "h100"\n', encoding="utf-8")
    (made / "trace.jsonl").write_text('{"arrival_seconds": 1}', encoding="utf-8")
    (made / "circle.yaml").symlink_to("circle.yaml")
    return made


@pytest.fixture(scope="session")
def reading(own_folder, folder_of_models) -> Iterator[Client]:
    """A server that reads a folder."""
    with TestClient(create_app(Settings(hub=False, models=str(folder_of_models))), base_url=HERE) as made:
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
