"""What was prepared of shipped files equals its sources, and is never older than they are."""

import importlib.util
import os
import shutil
import sys
import tomllib
from pathlib import Path
from types import SimpleNamespace

import pytest
from msgspec.json import decode

import tonnage
from tonnage.catalogue import accelerator, toml_files
from tonnage.kernel import formula, prepared
from tonnage.kernel.formula import FORMULAS
from tonnage.verbs.explain import load_formulas

PACKAGE = Path(tonnage.__file__).parent
SOURCES = sorted(PACKAGE.rglob("*.toml"))


def _forget():
    for cached in (prepared._pack, formula.text_of, formula._expression, formula._expressions, toml_files._aliases):
        cached.cache_clear()
    toml_files._read.cache_clear()


@pytest.fixture(autouse=True)
def _anew():
    _forget()
    yield
    _forget()


@pytest.fixture
def packs(tmp_path, monkeypatch):
    """Packs of the package as it is."""
    folder = tmp_path / "packs"
    prepared.prepare(packs=str(folder))
    monkeypatch.setattr(prepared, "FOLDER", str(folder))
    return folder


@pytest.fixture
def checkout(tmp_path, monkeypatch):
    """A package of a few files, not prepared yet."""
    package = tmp_path / "src" / "tonnage"
    for name in ("catalogue/accelerators/rtx-4090.toml", "catalogue/accelerators/h100-sxm-80gb.toml"):
        (package / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(PACKAGE / name, package / name)
    for name in ("formulas/host.py", "kernel/prepared.py"):
        (package / name).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy2(PACKAGE / name, package / name)
    monkeypatch.setattr(prepared, "PACKAGE", str(package))
    monkeypatch.setattr(prepared, "FOLDER", str(package / "prepared"))
    return package


def _card(checkout: Path) -> Path:
    return checkout / "catalogue" / "accelerators" / "rtx-4090.toml"


def _prepare(checkout: Path, **how: bool) -> None:
    prepared.prepare(str(checkout), str(checkout / "prepared"), **how)
    _forget()


@pytest.mark.usefixtures("packs")
def test_every_table_equals_its_source_to_the_type_of_its_numbers():
    assert len(SOURCES) > 600
    for source in SOURCES:
        said = prepared.content(str(source))
        assert said is not None, source
        assert repr(decode(said)) == repr(tomllib.loads(source.read_text(encoding="utf-8"))), source


@pytest.mark.usefixtures("packs")
def test_every_text_of_a_formula_equals_that_of_its_source(monkeypatch):
    load_formulas()
    assert all(prepared.content(one.evaluate.__code__.co_filename) for one in FORMULAS.values())
    texts = {name: one.text for name, one in FORMULAS.items()}
    _forget()
    monkeypatch.setattr(prepared, "content", lambda source: None)
    assert {name: one.text for name, one in FORMULAS.items()} == texts


@pytest.mark.usefixtures("packs")
@pytest.mark.parametrize("kind", ["accelerators", "models", "nodes"])
def test_aliases_equal_those_of_the_files(kind, monkeypatch):
    known = toml_files._aliases(kind)
    assert prepared.aliases(str(toml_files.HERE / kind))
    _forget()
    monkeypatch.setattr(prepared, "aliases", lambda folder: None)
    assert toml_files._aliases(kind) == known


def test_where_nothing_was_prepared_the_sources_are_read(tmp_path, monkeypatch, packs):
    card = accelerator("h100")
    _forget()
    monkeypatch.setattr(prepared, "FOLDER", str(tmp_path / "nowhere"))
    assert prepared.content(str(toml_files.HERE / "accelerators" / "h100-sxm-80gb.toml")) is None
    assert accelerator("h100") == card


def test_a_source_that_was_edited_is_read_itself(checkout):
    _prepare(checkout)
    assert b"NVIDIA" in prepared.content(str(_card(checkout)))
    text = _card(checkout).read_text().replace("NVIDIA", "AMDXYZ")  # of the same size
    _card(checkout).write_text(text)
    assert prepared.content(str(_card(checkout))) is None
    _prepare(checkout)
    assert b"AMDXYZ" in prepared.content(str(_card(checkout)))


def test_a_formula_that_was_edited_is_read_itself(checkout):
    _prepare(checkout)
    source = checkout / "formulas" / "host.py"
    assert prepared.content(str(source))
    source.write_text(source.read_text() + "\n")
    assert prepared.content(str(source)) is None


def test_aliases_are_read_anew_after_a_file_came_went_or_changed(checkout):
    folder = checkout / "catalogue" / "accelerators"
    _prepare(checkout)
    assert prepared.aliases(str(folder))["h100"] == "h100-sxm-80gb"
    (folder / "new.toml").write_text('aliases = ["h100"]\n')
    assert prepared.aliases(str(folder)) is None
    (folder / "new.toml").unlink()
    assert prepared.aliases(str(folder))
    _card(checkout).write_text(_card(checkout).read_text())
    assert prepared.aliases(str(folder)) is None
    _prepare(checkout)
    _card(checkout).unlink()
    assert prepared.aliases(str(folder)) is None


def test_a_wheel_does_not_look_at_times_but_at_sizes(checkout):
    _prepare(checkout, installed=True)
    os.utime(_card(checkout), (1, 1))
    assert prepared.content(str(_card(checkout)))
    _card(checkout).write_text(_card(checkout).read_text() + "\n")
    assert prepared.content(str(_card(checkout))) is None


def test_a_pack_of_another_version_of_the_reader_is_not_read(checkout, monkeypatch):
    newer = checkout / "kernel" / "prepared.py"
    _prepare(checkout)
    newer.write_text(newer.read_text() + "\n")
    monkeypatch.setattr(prepared, "__file__", str(newer))
    _forget()
    assert prepared.content(str(_card(checkout))) is None


@pytest.mark.parametrize("damage", [b"", b"{", b"[1]\n", b"\xff\xff\n"])
def test_a_damaged_pack_is_not_read(checkout, damage):
    _prepare(checkout)
    (checkout / "prepared" / "catalogue.accelerators.pack").write_bytes(damage)
    assert prepared.content(str(_card(checkout))) is None


def test_a_pack_that_is_made_anew_while_it_is_in_use_is_not_read_by_the_old_index(checkout):
    _prepare(checkout)
    assert prepared.content(str(_card(checkout)))
    (_card(checkout).parent / "a.toml").write_text('name = "a"\n')
    prepared.prepare(str(checkout), str(checkout / "prepared"))
    assert prepared.content(str(_card(checkout))) is None


def test_packs_of_folders_that_are_gone_go_too(checkout):
    _prepare(checkout)
    shutil.rmtree(checkout / "formulas")
    _prepare(checkout)
    assert [path.name for path in (checkout / "prepared").iterdir()] == ["catalogue.accelerators.pack"]


def test_a_source_that_is_no_toml_is_left_to_its_reader(checkout):
    _card(checkout).write_text("name = \n")
    _prepare(checkout)
    assert prepared.content(str(_card(checkout))) is None
    assert prepared.content(str(_card(checkout).with_name("h100-sxm-80gb.toml")))


@pytest.fixture
def hook(monkeypatch):
    """The build hook, with stand-ins for the base classes of hatchling, which need a build."""
    for place, name in (("builders.hooks", "BuildHookInterface"), ("metadata", "MetadataHookInterface")):
        parts = ["hatchling", *place.split("."), "plugin", "interface"]
        for end in range(1, len(parts)):
            monkeypatch.setitem(sys.modules, ".".join(parts[:end]), SimpleNamespace())
        monkeypatch.setitem(sys.modules, ".".join(parts), SimpleNamespace(**{name: type(name, (), {})}))
    spec = importlib.util.spec_from_file_location("hatch_build", PACKAGE.parents[1] / "hatch_build.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.Prepare()


def test_an_editable_install_prepares_the_checkout_and_compiles_it(hook, checkout):
    hook.root = str(checkout.parents[1])
    hook.initialize("editable", {"force_include": {}})
    assert prepared.content(str(_card(checkout)))
    assert list((checkout / "formulas").rglob("host.*.pyc"))


def test_a_wheel_has_packs_of_its_own_and_leaves_the_checkout_alone(hook, checkout):
    hook.root, build = str(checkout.parents[1]), {"force_include": {}}
    hook.initialize("standard", build)
    assert not (checkout / "prepared").exists()
    packs = {Path(inside).name: pack for pack, inside in build["force_include"].items()}
    assert set(build["force_include"].values()) == {f"tonnage/prepared/{name}" for name in packs}
    index = decode(Path(packs["catalogue.accelerators.pack"]).read_bytes().split(b"\n")[0])
    assert {time for _, time, _, _ in index.values()} == {prepared.ANY_TIME}
