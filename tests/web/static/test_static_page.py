"""`tonnage web --static`: the page as files. What a browser runs is run here by another Python process from the
archives alone; in a true browser by test_static_page_in_browser.py.
"""

import io
import json
import re
import subprocess
import sys
import tarfile
import zipfile
from hashlib import sha256
from pathlib import Path
from urllib.error import URLError

import pytest

from questions_of_faces import PASTED, QUESTIONS
from tonnage.cli import main
from tonnage.kernel.encoding import encode

pytest.importorskip("litestar", reason="needs tonnage[web]")

from tonnage.cli.common.print import Unwritable
from tonnage.kernel.errors import InvalidInput, MissingDatum, Unreachable
from tonnage.verbs.ask import ask
from tonnage.web.static import page as static_page
from tonnage.web.static import parts as static_parts
from tonnage.web.static.browser import WITHIN
from tonnage.web.static.parts import CORE, HOW, Parts, parts

WHEEL = "msgspec-0.22.0-cp314-cp314-pyemscripten_2026_0_wasm32.whl"


def _zip(**files):
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as archive:
        for name, content in files.items():
            archive.writestr(name, content)
    return made.getvalue()


@pytest.fixture
def given(tmp_path):
    """Files as npm and pip bring them, with nothing in them."""
    packed, wheel = tmp_path / "pyodide-314.0.7.tgz", tmp_path / WHEEL
    with tarfile.open(packed, "w:gz") as archive:
        for name in (*CORE, "package.json"):
            entry = tarfile.TarInfo(f"package/{name}")
            entry.size = len(name)
            archive.addfile(entry, io.BytesIO(name.encode()))
    wheel.write_bytes(_zip(msgspec=""))
    return packed, wheel


@pytest.fixture(scope="module")
def page(tmp_path_factory):
    """The whole page, with a Pyodide and a wheel that are none."""
    folder = tmp_path_factory.mktemp("page") / "new"
    said = static_page.write(folder, Parts(core=dict.fromkeys(CORE, b"-"), wheels={WHEEL: _zip(msgspec="")}))
    assert str(folder) in said[0]
    return folder


def test_the_parts_are_read_from_an_archive_or_a_folder(given, tmp_path):
    packed, wheel = given
    of_archive = parts(packed, [wheel], fetch=False)
    (tmp_path / "package").mkdir()
    for name in CORE:
        (tmp_path / "package" / name).write_text(name)
    assert of_archive == parts(tmp_path / "package", [wheel], fetch=False)
    assert of_archive.core == {name: name.encode() for name in CORE} and [*of_archive.wheels] == [WHEEL]


def test_what_is_missing_or_wrong_is_said_with_what_to_do(given, tmp_path):
    packed, wheel = given
    for lacking in ((None, [wheel]), (packed, []), (None, [])):
        with pytest.raises(InvalidInput, match="--fetch"):
            parts(*lacking, fetch=False)
    with pytest.raises(InvalidInput, match=r"lacks pyodide\.mjs"):
        parts(tmp_path, [wheel], fetch=False)
    native = tmp_path / "msgspec-0.22.0-cp311-cp311-manylinux.whl"
    native.write_bytes(wheel.read_bytes())
    with pytest.raises(InvalidInput, match="built for browsers"):
        parts(packed, [native], fetch=False)
    with pytest.raises(InvalidInput, match="There is none called"):
        parts(packed, [tmp_path / "msgspec-nowhere_wasm32.whl"], fetch=False)
    assert "npm" in HOW and "pip" in HOW


def test_nothing_is_fetched_unless_it_is_asked_for(given, monkeypatch):
    monkeypatch.setattr(subprocess, "run", lambda *_, **__: pytest.fail("fetched"))
    parts(*given[:1], [given[1]], fetch=False)
    with pytest.raises(InvalidInput):
        parts(None, [], fetch=False)


def test_what_is_fetched_is_the_file_that_is_known_or_none(monkeypatch):
    def brings(command, cwd, **_):
        name = static_parts.PACKED if "npm" in Path(command[0]).name else static_parts.WHEEL
        (cwd / name).write_bytes(b"something else")
        return subprocess.CompletedProcess(command, 0, "", "")

    monkeypatch.setattr(static_parts.shutil, "which", lambda name: f"/usr/bin/{name}")
    monkeypatch.setattr(subprocess, "run", brings)
    with pytest.raises(InvalidInput, match="was not taken"):
        parts(None, [], fetch=True)
    monkeypatch.setattr(
        subprocess, "run", lambda command, **_: subprocess.CompletedProcess(command, 1, "", "npm error\nno network")
    )
    with pytest.raises(Unreachable, match="no network"):
        parts(None, [], fetch=True)
    monkeypatch.setattr(static_parts.shutil, "which", lambda name: None)
    with pytest.raises(MissingDatum, match="npm is not installed"):
        parts(None, [], fetch=True)


def test_a_folder_of_others_is_not_written_over(given, tmp_path, capsys):
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "thesis.txt").write_text("all of it")
    words = ["web", "--static", str(tmp_path / "mine"), "--pyodide", str(given[0]), "--wheel", str(given[1])]
    assert main(words) == 64 and "new folder" in capsys.readouterr().err
    assert (tmp_path / "mine" / "thesis.txt").read_text() == "all of it"
    words[2] = str(tmp_path / "page")
    assert main(words) == 0 and "http.server" in capsys.readouterr().out
    (tmp_path / "page" / "old.js").write_text("of an older page")
    assert main(words) == 0 and not (tmp_path / "page" / "old.js").exists()


@pytest.mark.parametrize(
    "words", [["--fetch"], ["--pyodide", "x"], ["--wheel", "x"], ["--static", "new"]], ids=" ".join
)
def test_options_of_a_page_without_a_server_belong_together(words, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["web", *words]) == 64
    assert "--static" in capsys.readouterr().err or words[0] == "--static"
    assert not any(tmp_path.iterdir())


def test_every_list_that_the_page_asks_for_is_written(page):
    api = (static_page.PAGE / "js" / "api.js").read_text()
    asked = set(re.findall(r'once\("([^"]+)"\)', api))
    assert asked and asked <= set(static_page.LISTS)
    assert set(re.findall(r"once\(`([^$`]+)\$", api)) <= {"/v1/options/", "/locale/", "/v1/models/"}
    for path in static_page.LISTS:
        json.loads((page / (path.removeprefix("/").removesuffix(".json") + ".json")).read_text())
    assert json.loads((page / "v1" / "models.json").read_text())["models"]
    server = json.loads((page / "v1" / "server.json").read_text())
    assert not (server["hubs"] or server["files"] or server["local"])
    assert str(json.dumps(static_page.LISTS)) in (page / "js" / "static.js").read_text()


def test_the_page_works_under_any_path_and_asks_nothing_elsewhere(page):
    index = (page / "index.html").read_text()
    assert not re.findall(r"""(?:href|src)=["'](?:/|[a-z]+:)""", index)
    assert (
        "connect-src 'self'" in index
        and "'wasm-unsafe-eval'" in index
        and "'unsafe-eval'" not in index
        and "'unsafe-inline'" not in index
    )
    assert index.rindex("js/static.js") < index.rindex("js/main.js")  # its transport is there before the page asks
    for path in page.rglob("*.js"):
        assert not re.findall(r"https?://(?!www\.w3\.org/)", path.read_text()), path


RUN = """
import json, sys
folder, questions = sys.argv[1], json.load(sys.stdin)
sys.path[:0] = [folder]
for name in ("rich", "litestar"):
    sys.modules[name] = None
import tonnage, yaml
assert tonnage.__file__.startswith(folder) and yaml.__file__.startswith(folder), (tonnage.__file__, yaml.__file__)
from tonnage.web.static import browser
class First(browser.Absent): pass
sys.meta_path.insert(0, First)  # here numpy is installed, and in a browser it is not
browser.begin()
out = []
for verb, question in questions:
    reply = browser.answer("POST", f"/v1/{verb}", json.dumps(question))
    out.append([reply.code, reply.headers, json.loads(reply.body)])
reply = browser.answer("GET", "/v1/models/mixtral-8x7b")
out.append([reply.code, reply.headers, json.loads(reply.body)])
out.append([browser.answer("GET", "/v1/saved").code, browser.answer("POST", "/v1/train", "{").code, browser.answer("POST", "/v1/train", "[]").code])
json.dump(out, sys.stdout)
"""


@pytest.fixture(scope="module")
def replies(page, tmp_path_factory):
    """What the archives of the page answer by themselves, to every question of the table."""
    folder = tmp_path_factory.mktemp("unpacked")
    for name in ("tonnage.zip", "yaml.zip"):
        zipfile.ZipFile(page / "python" / name).extractall(folder)
    questions = [(asked.verb, asked.question) for asked in (*QUESTIONS, PASTED)]
    done = subprocess.run(
        [sys.executable, "-c", RUN, str(folder)],
        input=json.dumps(questions),
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    return json.loads(done.stdout)


def test_the_archives_hold_all_that_answers_need_and_give_the_same_documents(replies):
    import msgspec

    for asked, (code, headers, document) in zip((*QUESTIONS, PASTED), replies[: len(QUESTIONS) + 1], strict=True):
        if asked.needs:
            assert (
                code == 400
                and document["error"]["kind"] == "NotInBrowser"
                and asked.needs in document["error"]["message"]
            ), asked
        else:
            made = ask(asked.verb, asked.question, WITHIN)
            assert code == 200 and int(headers["tonnage-status"]) == made.status, (asked, document)
            assert document == msgspec.json.decode(encode(made.document)), asked


def test_one_model_is_answered_and_what_nobody_keeps_is_not_found(replies):
    assert replies[-2][0] == 200 and replies[-2][2]["name"] == "mixtral-8x7b-v0.1"
    assert replies[-1][0] == 404 and all(400 <= code < 500 for code in replies[-1])


def test_the_archives_hold_no_server_no_page_and_nothing_compiled(page):
    names = zipfile.ZipFile(page / "python" / "tonnage.zip").namelist()
    assert "tonnage/web/static/browser.py" in names and not [
        name for name in names if "/page/" in name or "mcp_server" in name or name.endswith((".pyc", ".so", ".html"))
    ]
    assert static_page._tonnage() == static_page._tonnage()  # the same bytes, so that a host may cache them


@pytest.mark.parametrize("name", ["file/sub", "file", "a" * 300, "/proc/x", "full"])
def test_a_folder_that_cannot_be_written_is_named_before_anything_is_fetched(name, tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(static_parts, "_fetched", lambda *_: pytest.fail("fetched"))
    (tmp_path / "file").write_text("mine", encoding="utf-8")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine").write_text("mine", encoding="utf-8")
    assert main(["web", "--static", str(tmp_path / name), "--fetch"]) == 64
    said = capsys.readouterr().err
    assert "--static" in said and name[:100] in said and "Traceback" not in said
    assert sorted(each.name for each in tmp_path.iterdir()) == ["file", "full"]


def test_a_full_disk_is_said_with_a_status_of_its_own(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(Path, "write_bytes", full)
    with pytest.raises(Unwritable, match="No space left"):
        static_page.write(tmp_path / "new", Parts(core={}, wheels={}))


def test_a_folder_that_can_be_written_is_left_as_it_is_by_the_check(tmp_path):
    static_page.check(tmp_path / "a" / "b")
    static_page.check(tmp_path)
    assert not [*tmp_path.iterdir()]


def test_a_file_that_was_given_and_is_not_there_is_named_with_its_option(given, tmp_path):
    packed, wheel = given
    with pytest.raises(InvalidInput, match=r"--pyodide is .* a folder or a \.tgz\. There is none called '/nope'"):
        parts(Path("/nope"), [Path("/nope2")], fetch=False)
    for fetch in (False, True):  # before anything is fetched
        with pytest.raises(InvalidInput, match=r"--wheel is a file .*_wasm32\.whl\. There is none called '/nope2'"):
            parts(packed, [wheel, Path("/nope2")], fetch=fetch)


# ---- numpy, as Pyodide's own list names it ----

NAMED = "numpy-2.4.6-cp314-cp314-pyemscripten_2026_0_wasm32.whl"


@pytest.fixture
def listed(tmp_path):
    """Pyodide's folder, whose list names a numpy."""
    wheel = _zip(numpy="")
    folder = tmp_path / "distribution"
    folder.mkdir()
    for name in CORE:
        (folder / name).write_text(name)
    entry = {"name": "numpy", "file_name": NAMED, "sha256": sha256(wheel).hexdigest(), "depends": []}
    (folder / "pyodide-lock.json").write_text(json.dumps({"info": {}, "packages": {"numpy": entry}}))
    return folder, wheel


def test_numpy_beside_the_list_is_taken_where_it_has_the_digest_that_the_list_names(given, listed):
    folder, wheel = listed
    (folder / NAMED).write_bytes(wheel)
    taken = parts(folder, [given[1]], fetch=False)
    assert taken.wheels[NAMED] == wheel and taken.lacks == ()
    (folder / NAMED).write_bytes(wheel + b"x")
    with pytest.raises(InvalidInput, match="its digest is another"):
        parts(folder, [given[1]], fetch=False)


def test_numpy_in_an_archive_of_the_distribution_is_taken(given, listed, tmp_path):
    folder, wheel = listed
    (folder / NAMED).write_bytes(wheel)
    packed = tmp_path / "distribution.tgz"
    with tarfile.open(packed, "w:gz") as archive:
        archive.add(folder, "pyodide")
    assert parts(packed, [given[1]], fetch=False).wheels[NAMED] == wheel


def test_without_numpy_the_page_is_written_and_says_what_it_cannot_answer(given, listed, tmp_path):
    made = parts(listed[0], [given[1]], fetch=False)
    assert NAMED not in made.wheels
    assert "not beside" in made.lacks[0] and NAMED in made.lacks[0] and "plan" in made.lacks[0]
    assert made.lacks[0] in static_page.write(tmp_path / "site", made)
    assert "does not name" in parts(given[0], [given[1]], fetch=False).lacks[0]


def test_numpy_is_fetched_of_pyodides_distribution_and_only_where_that_is_asked_for(given, listed, monkeypatch):
    asked = []

    def opened(address, timeout):
        asked.append(address)
        return io.BytesIO(listed[1])

    monkeypatch.setattr("urllib.request.urlopen", opened)
    assert NAMED not in parts(listed[0], [given[1]], fetch=False).wheels and not asked
    assert parts(listed[0], [given[1]], fetch=True).wheels[NAMED] == listed[1]
    version = static_parts.PYODIDE.partition("@")[2]
    assert asked == [f"https://cdn.jsdelivr.net/pyodide/v{version}/full/{NAMED}"]
    monkeypatch.setattr("urllib.request.urlopen", lambda *_, **__: io.BytesIO(b"something else"))
    with pytest.raises(InvalidInput, match="its digest is another"):
        parts(listed[0], [given[1]], fetch=True)


def test_a_distribution_that_cannot_be_reached_leaves_the_page_without_numpy(given, listed, monkeypatch):
    def unreachable(*_, **__):
        raise URLError("no network")

    monkeypatch.setattr("urllib.request.urlopen", unreachable)
    made = parts(listed[0], [given[1]], fetch=True)
    assert NAMED not in made.wheels and "no network" in made.lacks[0] and "tonnage web" in made.lacks[0]


def test_a_numpy_that_was_given_is_taken_as_it_is(given, listed, tmp_path):
    own = tmp_path / "numpy-9.9-cp314-cp314-pyemscripten_2026_0_wasm32.whl"
    own.write_bytes(_zip(numpy="own"))
    made = parts(listed[0], [given[1], own], fetch=False)
    assert own.name in made.wheels and made.lacks == ()


def test_a_list_that_names_a_path_elsewhere_reads_nothing_there(given, listed, tmp_path):
    folder, wheel = listed
    (tmp_path / "secret.whl").write_bytes(wheel)
    lock = json.loads((folder / "pyodide-lock.json").read_text())
    lock["packages"]["numpy"]["file_name"] = "../secret.whl"
    (folder / "pyodide-lock.json").write_text(json.dumps(lock))
    assert "../secret.whl" not in parts(folder, [given[1]], fetch=False).wheels


PLANNED = """
import json, sys
folder = sys.argv[1]
sys.path[:0] = [folder]
for name in ("rich", "litestar"):
    sys.modules[name] = None
from tonnage.web.static import browser
browser.begin()
question = {"model": "qwen3-0.6b", "serve": True, "on": "l4", "concurrency": 2}
reply = browser.answer("POST", "/v1/plan", json.dumps(question))
json.dump([reply.code, json.loads(reply.body)], sys.stdout)
"""


def test_with_numpy_the_archives_answer_plans_too(page, tmp_path):
    for name in ("tonnage.zip", "yaml.zip"):
        zipfile.ZipFile(page / "python" / name).extractall(tmp_path)
    done = subprocess.run([sys.executable, "-c", PLANNED, str(tmp_path)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    code, document = json.loads(done.stdout)
    made = ask("plan", {"model": "qwen3-0.6b", "serve": True, "on": "l4", "concurrency": 2}, WITHIN)
    assert code == 200 and document["plans"] == json.loads(encode(made.document))["plans"]


def test_how_much_is_loaded_is_written_beside_the_names(page):
    listed = json.loads((page / "python" / "packages.json").read_text())
    sizes = [(page / "python" / name).stat().st_size for name in listed["names"]]
    core = [(page / "pyodide" / name).stat().st_size for name in static_page.COUNTED]
    assert listed["bytes"] == sum(sizes) + sum(core)


def test_the_worker_begins_a_module_that_the_archive_holds(page):
    (begun,) = re.findall(r'pyimport\("([\w.]+)"\)', (page / "js" / "worker.js").read_text())
    names = zipfile.ZipFile(page / "python" / "tonnage.zip").namelist()
    assert f"{begun.replace('.', '/')}.py" in names
