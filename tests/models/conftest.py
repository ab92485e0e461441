"""A Hub, its CDN and ModelScope on this machine, and a home of huggingface_hub that is the test's own."""

from collections.abc import Iterator
from pathlib import Path

import huggingface_hub
import pytest
from huggingface_hub import constants
from huggingface_hub.utils import close_session

from models.hub_server import Server, Sites

VARIABLES = (
    "HF_TOKEN",
    "HUGGING_FACE_HUB_TOKEN",
    "HF_HUB_OFFLINE",
    "TRANSFORMERS_OFFLINE",
    "HF_OIDC_RESOURCE",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "ALL_PROXY",
    "http_proxy",
    "https_proxy",
    "all_proxy",
    "MODELSCOPE_API_TOKEN",
    "MODELSCOPE_DOMAIN",
)


@pytest.fixture
def sites(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Sites]:
    """The servers, to which every endpoint of the environment leads; steps of requests may take two seconds."""
    made = Sites()
    servers = [Server("hub", made), Server("cdn", made)]
    made.hub, made.cdn = (server.url for server in servers)
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HF_ENDPOINT", made.hub)
    monkeypatch.setenv("MODELSCOPE_ENDPOINT", made.hub)
    monkeypatch.setenv("MODELSCOPE_CACHE", str(tmp_path / "modelscope"))
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "hub"))
    monkeypatch.setattr(constants, "HF_ASSETS_CACHE", str(tmp_path / "assets"))
    monkeypatch.setattr(constants, "HF_TOKEN_PATH", str(tmp_path / "token"))
    monkeypatch.setattr(constants, "HF_HUB_OFFLINE", False)
    monkeypatch.setattr(constants, "HF_HUB_DOWNLOAD_TIMEOUT", 2.0)
    assert huggingface_hub.get_token() is None
    close_session()
    yield made
    close_session()
    for server in servers:
        server.stop()
