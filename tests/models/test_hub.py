"""Models of the Hugging Face Hub, on a server of this machine."""

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
from huggingface_hub import constants, hf_hub_download, try_to_load_from_cache

from models.files import GGUF_LLAMA, LLAMA, LLAMA_PARAMETERS, gguf_llama_tensors, llama, safetensors, shards, write_gguf
from models.hub_server import COMMIT, OTHER, Repository, Sites
from tonnage.kernel.errors import AccessDenied, InvalidInput, MissingDatum, UnknownName, Unreachable
from tonnage.models import read

CONFIG = json.dumps(LLAMA).encode()
NAME = "someone/tiny-llama"


@pytest.fixture
def hub(sites: Sites) -> Sites:
    sites.repositories[NAME] = Repository({"config.json": CONFIG, "README.md": b"x", **shards(llama(), 3)})
    return sites


def test_config_and_headers_of_all_shards_are_read(hub: Sites):
    found = read(NAME)
    assert found.num_parameters() == found.tensors.num_parameters == LLAMA_PARAMETERS
    assert (found.name, found.notes, found.tensors.files) == (NAME, (), 3)
    assert found.source == f"{NAME}@{COMMIT[:12]} on 127.0.0.1"
    assert len(hub.paths("cdn")) == 3
    assert all(asked.range == "bytes=0-65535" for asked in hub.asked if asked.server == "cdn")


@pytest.mark.parametrize(
    "text",
    [
        f"https://huggingface.co/{NAME}",
        f"https://hf.co/{NAME}/tree/main",
        f"https://huggingface.co/{NAME}/blob/main/config.json",
        f"https://huggingface.co/{NAME}/resolve/main/model-00002-of-00003.safetensors?download=true",
        f"hf:{NAME}@main",
        f"{NAME}@{COMMIT}",
    ],
)
def test_every_form_of_the_name_leads_to_the_endpoint_alone(hub: Sites, text: str):
    assert read(text).tensors.num_parameters == LLAMA_PARAMETERS


def test_the_endpoints_own_url_is_a_name_too(hub: Sites):
    assert read(f"{hub.hub}/{NAME}/").num_parameters() == LLAMA_PARAMETERS


def test_a_revision_is_asked_for_and_may_be_given_once(hub: Sites):
    hub.repositories[NAME].revisions |= {"v2": OTHER, "refs/pr/1": OTHER}
    assert OTHER[:12] in read(NAME, revision="v2").source
    assert OTHER[:12] in read(f"{NAME}@refs/pr/1").source
    assert f"/api/models/{NAME}/revision/refs%2Fpr%2F1" in hub.paths()
    with pytest.raises(InvalidInput, match="a revision already"):
        read(f"{NAME}@v2", revision="main")
    with pytest.raises(InvalidInput, match="no revision 'v3'"):
        read(f"{NAME}@v3")


def test_what_was_read_is_not_asked_for_again(hub: Sites):
    read(NAME)
    hub.asked.clear()
    assert read(NAME).tensors.num_parameters == LLAMA_PARAMETERS
    assert hub.paths() == [f"/api/models/{NAME}/revision/main"]
    assert hub.paths("cdn") == []


def test_the_cache_is_that_of_huggingface_hub(hub: Sites):
    read(NAME)
    path = try_to_load_from_cache(NAME, "config.json", cache_dir=constants.HF_HUB_CACHE)
    assert Path(path).read_bytes() == CONFIG
    assert hf_hub_download(NAME, "config.json", local_files_only=True, cache_dir=constants.HF_HUB_CACHE) == path
    assert Path(path).is_symlink()


def test_offline_reads_what_was_read_before(hub: Sites, monkeypatch: pytest.MonkeyPatch):
    with pytest.raises(Unreachable, match=r"offline mode forbids to ask 127.0.0.1"):
        read(NAME, offline=True)
    read(NAME)
    hub.asked.clear()
    assert read(NAME, offline=True).tensors.num_parameters == LLAMA_PARAMETERS
    assert read(f"{NAME}@{COMMIT}", offline=True).tensors.num_parameters == LLAMA_PARAMETERS
    monkeypatch.setenv("HF_HUB_OFFLINE", "1")
    assert read(NAME).tensors.num_parameters == LLAMA_PARAMETERS
    assert hub.asked == []
    with pytest.raises(Unreachable):
        read(f"{NAME}@v2")


def test_a_snapshot_that_huggingface_hub_downloaded_is_read_without_network(hub: Sites):
    snapshot = Path(constants.HF_HUB_CACHE) / "models--a--b" / "snapshots" / COMMIT
    snapshot.mkdir(parents=True)
    (snapshot / "config.json").write_bytes(CONFIG)
    (snapshot / "model.safetensors").write_bytes(safetensors(llama()))
    refs = snapshot.parent.parent / "refs"
    refs.mkdir()
    (refs / "main").write_text(COMMIT)
    assert read("a/b", offline=True).tensors.num_parameters == LLAMA_PARAMETERS
    (snapshot / "model.safetensors").unlink()
    assert read("a/b", offline=True).tensors is None
    assert hub.asked == []


def test_no_network_reads_the_cache_and_says_so(hub: Sites, monkeypatch: pytest.MonkeyPatch):
    read(NAME)
    monkeypatch.setenv("HF_ENDPOINT", "http://127.0.0.1:1")
    found = read(NAME)
    assert found.num_parameters() == LLAMA_PARAMETERS
    assert found.notes[0].startswith("Read from the cache, because cannot reach 127.0.0.1")
    with pytest.raises(Unreachable, match=r"cannot reach 127.0.0.1"):
        read("someone/else")


def test_the_token_goes_to_the_endpoint_and_to_nobody_else(hub: Sites, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("HF_TOKEN", "hf_good")
    read(NAME)
    assert {asked.token for asked in hub.asked if asked.server == "hub"} == {"Bearer hf_good"}
    assert {asked.token for asked in hub.asked if asked.server == "cdn"} == {""}


def test_a_saved_token_is_used_unless_that_is_switched_off(hub: Sites, monkeypatch: pytest.MonkeyPatch):
    Path(constants.HF_TOKEN_PATH).write_text("hf_good")
    hub.repositories[NAME].private = True
    assert read(NAME).num_parameters() == LLAMA_PARAMETERS
    monkeypatch.setattr(constants, "HF_HUB_DISABLE_IMPLICIT_TOKEN", True)
    with pytest.raises(UnknownName, match="HF_TOKEN is not set"):
        read(NAME)


def test_a_wrong_token_is_named_and_not_shown(hub: Sites, monkeypatch: pytest.MonkeyPatch):
    for token in ("hf_wrong", "hf_br\tken", "hf_\u00fcber"):
        monkeypatch.setenv("HF_TOKEN", token)
        with pytest.raises(InvalidInput, match="HF_TOKEN") as caught:
            read(NAME)
        assert token not in str(caught.value)


@pytest.mark.parametrize("token", [None, "hf_good"])
def test_a_gated_model_says_what_to_do(hub: Sites, monkeypatch: pytest.MonkeyPatch, token: str | None):
    hub.repositories[NAME].gated = True
    if token:
        monkeypatch.setenv("HF_TOKEN", token)
    with pytest.raises(AccessDenied, match=f"{NAME} is gated: open https://huggingface.co/{NAME}"):
        read(NAME)


def test_a_gated_model_of_the_catalogue_says_that_the_catalogue_has_it(
    hub: Sites, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
):
    models = tmp_path / "config" / "models"
    models.mkdir(parents=True)
    (models / "gated-one.toml").write_text(
        'name = "x"\nhub = "a/b"\npublished = []\n[sources]\n[config]\nmodel_type = "llama"\n'
    )
    monkeypatch.setenv("TONNAGE_CONFIG", str(tmp_path / "config"))
    with pytest.raises(UnknownName, match="The nearest in the catalogue is 'gated-one'"):
        read("someone/gated-one")


@pytest.mark.parametrize("token", [None, "hf_good"])
def test_a_model_that_is_not_there_or_private_is_unknown(
    hub: Sites, monkeypatch: pytest.MonkeyPatch, token: str | None
):
    if token:
        monkeypatch.setenv("HF_TOKEN", token)
    with pytest.raises(UnknownName, match=r"there is no model 'someone/nothing' on 127.0.0.1, or it is private"):
        read("someone/nothing")


def test_a_repository_without_a_model_says_what_it_lacks(hub: Sites):
    hub.repositories["a/b"] = Repository({"README.md": b"x", "data.bin": b"y"})
    with pytest.raises(MissingDatum, match=r"no config.json"):
        read("a/b")
    hub.repositories["a/adapter"] = Repository({"adapter_config.json": b"{}", "adapter_model.safetensors": b""})
    with pytest.raises(InvalidInput, match="adapter"):
        read("a/adapter")


def test_weights_without_a_config_are_built_of_their_tensors(hub: Sites):
    hub.repositories["a/b"] = Repository({"model.safetensors": safetensors(llama())})
    found = read("a/b")
    assert (found.family, found.num_parameters()) == ("tensors", LLAMA_PARAMETERS)


def test_a_header_longer_than_the_first_part_is_read_on_from_the_same_place(hub: Sites):
    shapes = {f"model.layers.{number}.mlp.up_proj.weight": ("BF16", (2, 2)) for number in range(2000)}
    hub.repositories["a/b"] = Repository({"model.safetensors": safetensors(shapes)})
    assert read("a/b").num_parameters() == 8000
    ranges = [asked.range for asked in hub.asked if asked.server == "cdn"]
    assert len(ranges) == 2
    assert ranges[1].startswith("bytes=65536-")
    assert sum("model.safetensors" in path for path in hub.paths()) == 1


def test_an_endpoint_that_lists_nothing_is_asked_for_the_usual_files(hub: Sites):
    hub.lists = False
    assert read(NAME).tensors.num_parameters == LLAMA_PARAMETERS
    hub.repositories["a/b"] = Repository({"config.json": CONFIG, "model.safetensors": safetensors(llama())})
    assert read("a/b").tensors.num_parameters == LLAMA_PARAMETERS
    with pytest.raises(UnknownName):
        read("someone/nothing")


@pytest.fixture
def ggufs(sites: Sites, tmp_path: Path) -> Sites:
    def made(kind: str) -> bytes:
        return write_gguf(tmp_path / f"{kind}.gguf", GGUF_LLAMA, gguf_llama_tensors(kind), tokens=30_000).read_bytes()

    names = list(gguf_llama_tensors())
    parts = {
        f"Q6_K/x-Q6_K-{number:05}-of-00002.gguf": write_gguf(
            tmp_path / f"p{number}.gguf",
            GGUF_LLAMA if number == 1 else {},
            {name: gguf_llama_tensors("Q6_K")[name] for name in names[number - 1 :: 2]},
        ).read_bytes()
        for number in (1, 2)
    }
    files = {
        "x-Q4_K_M.gguf": made("Q4_K"),
        "x-Q8_0.gguf": made("Q8_0"),
        "x-UD-Q8_0.gguf": made("Q8_0"),
        "mmproj-x.gguf": b"",
        **parts,
    }
    sites.repositories["a/x-GGUF"] = Repository(files)
    return sites


@pytest.mark.parametrize(
    ("text", "kind", "files"),
    [
        ("a/x-GGUF:Q4_K_M", "Q4_K", 1),
        ("a/x-GGUF:q4_k_m", "Q4_K", 1),
        ("a/x-GGUF:x-Q8_0.gguf", "Q8_0", 1),
        ("a/x-GGUF:Q8_0", "Q8_0", 1),
        ("a/x-GGUF:UD-Q8_0", "Q8_0", 1),
        ("hf.co/a/x-GGUF:Q6_K", "Q6_K", 2),
        ("https://huggingface.co/a/x-GGUF/blob/main/Q6_K/x-Q6_K-00002-of-00002.gguf", "Q6_K", 2),
        ("https://huggingface.co/a/x-GGUF/tree/main/Q6_K", "Q6_K", 2),
    ],
)
def test_a_gguf_model_is_named_by_file_or_by_quantisation(ggufs: Sites, text: str, kind: str, files: int):
    found = read(text)
    assert kind in found.tensors.bytes_by_dtype
    assert found.tensors.files == files
    assert found.num_parameters() == found.tensors.num_parameters
    assert read(text, offline=True).tensors == found.tensors


def test_a_gguf_repository_without_a_choice_lists_its_files(ggufs: Sites):
    with pytest.raises(InvalidInput, match=r"4 GGUF models. Say which with NAME:FILE: .*x-Q4_K_M.gguf"):
        read("a/x-GGUF")
    with pytest.raises(InvalidInput, match="no GGUF file 'Q2_K'"):
        read("a/x-GGUF:Q2_K")
    with pytest.raises(InvalidInput, match="no file or folder 'Q2_K'"):
        ggufs.repositories[NAME] = Repository({"config.json": CONFIG})
        read(f"{NAME}:Q2_K")


def test_a_cache_that_cannot_be_written_is_no_error(hub: Sites, monkeypatch: pytest.MonkeyPatch, tmp_path: Path):
    (tmp_path / "file").write_text("")
    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path / "file"))
    monkeypatch.setattr(constants, "HF_ASSETS_CACHE", str(tmp_path / "file"))
    assert read(NAME).tensors.num_parameters == LLAMA_PARAMETERS


def test_a_broken_memory_of_headers_is_read_anew(hub: Sites):
    read(NAME)
    for path in Path(constants.HF_ASSETS_CACHE).rglob("*.header"):
        path.write_bytes(b"broken")
    for path in Path(constants.HF_ASSETS_CACHE).rglob("files.json"):
        path.write_bytes(b"{")
    assert read(NAME).tensors.num_parameters == LLAMA_PARAMETERS


def test_the_environment_of_a_new_process_is_honoured(hub: Sites, tmp_path: Path):
    hub.repositories[NAME].private = True
    code = f"from tonnage.models import read; print(read({NAME!r}).tensors.num_parameters)"
    env = {
        **os.environ,
        "HOME": str(tmp_path),
        "HF_HOME": str(tmp_path / "home"),
        "HF_ENDPOINT": hub.hub,
        "HF_TOKEN": "hf_good",
    }

    def run(more):
        return subprocess.run(
            [sys.executable, "-c", code], env={**env, **more}, capture_output=True, text=True, check=False
        )

    assert run({}).stdout == f"{LLAMA_PARAMETERS}\n"
    assert (tmp_path / "home" / "hub" / "models--someone--tiny-llama" / "refs" / "main").read_text() == COMMIT
    hub.asked.clear()
    assert run({"HF_HUB_OFFLINE": "1"}).stdout == f"{LLAMA_PARAMETERS}\n"
    assert run({"HF_HUB_OFFLINE": "1", "HF_HOME": str(tmp_path / "none")}).returncode == 1
    assert hub.asked == []
    assert run({"HTTP_PROXY": hub.cdn, "HF_HOME": str(tmp_path / "other")}).returncode == 1
    assert any(asked.server == "cdn" and asked.path.startswith(hub.hub) for asked in hub.asked)
