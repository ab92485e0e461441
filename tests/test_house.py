"""scripts/house.py counts what it says: on a small package whose figures are known, and on this one."""

import json

import pytest

import house

FILES = {
    "tonnage/__init__.py": "",
    "tonnage/top.py": "from tonnage.left import _hidden\nfrom tonnage.left.open import _name, name\n",
    "tonnage/left/__init__.py": "",
    "tonnage/left/_hidden.py": "from tonnage.left.open import name\n",
    "tonnage/left/open.py": "if TYPE_CHECKING := False:\n    from tonnage.right import late\nname = _name = 1\n",
    "tonnage/right/__init__.py": "",
    "tonnage/right/late.py": "def call():\n    import tonnage.left.open\n",
    "tonnage/estimate/__init__.py": 'def slow(runtime):\n    return runtime == "megatron"  # fmt: skip\n',
}


@pytest.fixture
def small_package(tmp_path, monkeypatch):
    for name, text in FILES.items():
        path = tmp_path / "src" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
    monkeypatch.setattr(house, "ROOT", tmp_path)
    monkeypatch.setattr(house, "PACKAGE", tmp_path / "src" / "tonnage")
    _forget()
    yield
    _forget()


def _forget():
    house.sources.cache_clear()
    house.import_graph.cache_clear()


@pytest.mark.usefixtures("small_package")
class TestASmallPackage:
    def test_circles_are_found_wherever_the_import_stands(self):
        assert house.circles() == [["tonnage.left.open", "tonnage.right.late"]]

    def test_private_modules_and_names_of_another_package_are_counted(self):
        counted = [(item.importer, item.module, item.name) for item in house.private_imports()]
        assert counted == [("tonnage.top", "tonnage.left", "_hidden"), ("tonnage.top", "tonnage.left.open", "_name")]

    def test_lines_and_files_are_counted(self):
        assert house.lines() == sum(text.count("\n") for text in FILES.values())
        assert house.format_skips() == house.framework_comparisons() == ["src/tonnage/estimate/__init__.py:2"]
        assert house.folder_sizes()[0] == (3, "src/tonnage/left")
        assert house.long_lines() == []


def test_every_list_is_printed(capsys):
    for option in house.LISTS:
        if option != "files":
            house.main([f"--{option}"])
    house.main(["--no-walk"])
    assert "import circles" in capsys.readouterr().out


def test_the_question_is_followed_from_file_to_file(capsys):
    house.main(["--json"])
    figures = {row["name"]: row for row in json.loads(capsys.readouterr().out)}
    assert figures["files entered by `train`"]["value"] > 10
    assert figures["calls that cross from file to file"]["value"] > 100
    assert all(row["goal"] >= 0 for row in figures.values())
