"""Record the names and defaults of other tools' options, read from their packages without importing them.

python -m pip download --no-deps -d FOLDER trl peft vllm ...
python scripts/record_arguments.py FOLDER [TOOL ...]

FOLDER has wheels and source archives. For each tool of _argument_sources.py one file is written to
tests/interchange/published: tool, version, files, the day of reading, and section -> option -> default. An option whose
default is computed is named under `computed`. tests/interchange/test_published.py compares them with the keys that
`tonnage check` reads.
"""

import ast
import json
import re
import sys
import tarfile
import zipfile
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import yaml

from _argument_sources import PACKAGES, Package, Section

PLACE = Path(__file__).parents[1] / "tests" / "interchange" / "published"
UNKNOWN = object()  # a default that is computed
Texts = dict[str, str]


def main(folder: str, *tools: str) -> None:
    PLACE.mkdir(exist_ok=True)
    for package in PACKAGES:
        if tools and package.tool not in tools:
            continue
        archive = newest(Path(folder), package.distribution)
        if archive is None:
            print(f"{package.tool}: no archive of {package.distribution} in {folder}")
            continue
        found = recorded(package, archive)
        text = json.dumps(found, indent=1, ensure_ascii=False, default=str)
        (PLACE / f"{package.tool}.json").write_text(text + "\n")
        print(package.tool, found["version"], {name: len(one) for name, one in found["options"].items()})


def newest(folder: Path, distribution: str) -> Path | None:
    """The archive of a distribution with the highest version."""
    found = [path for path in folder.iterdir() if path.name.lower().replace("-", "_").startswith(f"{distribution}_")]
    return max(found, key=lambda path: [int(part) for part in re.findall(r"\d+", version_of(path))], default=None)


def version_of(archive: Path) -> str:
    return archive.name.removesuffix(".tar.gz").split("-")[1]


def recorded(package: Package, archive: Path) -> dict[str, Any]:
    """What the file of a tool has."""
    wanted = {file for section in package.sections for file in section.files}
    texts = read_texts(archive, wanted)
    if lost := [
        file for section in package.sections if not (set(section.files) & set(texts)) for file in section.files
    ]:
        print(f"{package.tool}: not in {archive.name}: {lost}")
    options: dict[str, Any] = {}
    computed: dict[str, list[str]] = {}
    for section in package.sections:
        of_section = {file: texts[file] for file in section.files if file in texts}
        found = READERS[section.reader](section, of_section)
        options[section.name] = {name: value for name, value in sorted(found.items()) if value is not UNKNOWN}
        computed[section.name] = sorted(name for name, value in found.items() if value is UNKNOWN)
    return {
        "tool": package.tool,
        "version": version_of(archive),
        "source": f"{package.distribution} {version_of(archive)} on PyPI: " + ", ".join(sorted(texts)),
        "as_of": datetime.now(tz=UTC).date().isoformat(),
        "options": options,
        "computed": computed,
    }


def read_texts(archive: Path, wanted: set[str]) -> Texts:
    """File -> text of those that the archive has; names may stand below a folder of the archive."""
    texts: Texts = {}

    def take(name: str, read: Callable[[], bytes]) -> None:
        plain = next((file for file in wanted if name == file or name.endswith(f"/{file}")), "")
        if plain:
            texts[plain] = read().decode()

    if archive.suffix == ".whl":
        with zipfile.ZipFile(archive) as wheel:
            for name in wheel.namelist():
                take(name, lambda name=name: wheel.read(name))
    else:
        with tarfile.open(archive) as tar:
            for member in tar:
                if member.isfile():
                    take(member.name, lambda member=member: tar.extractfile(member).read())  # type: ignore[union-attr]
    return texts


# ---- Fields of classes.


def read_fields(section: Section, texts: Texts) -> dict[str, Any]:
    """The fields of the classes and of those bases of theirs that stand in the files; of a class that says a field
    again, its own default.
    """
    classes = {
        node.name: node
        for text in texts.values()
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.ClassDef)
    }
    names = classes if section.classes == ("*",) else section.classes
    found: dict[str, Any] = {}
    for name in names:
        if name in classes:
            found |= _fields_of(classes[name], classes)
    return found


def _fields_of(node: ast.ClassDef, classes: dict[str, ast.ClassDef]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for base in reversed(node.bases):
        name = base.id if isinstance(base, ast.Name) else base.attr if isinstance(base, ast.Attribute) else ""
        if name in classes and classes[name] is not node:
            found |= _fields_of(classes[name], classes)
    for line in node.body:
        if isinstance(line, ast.AnnAssign) and isinstance(line.target, ast.Name):
            field = _name(line)
            if field:
                found[field] = _default(line.value, classes)
        elif isinstance(line, ast.Assign) and isinstance(line.targets[0], ast.Name) and line.targets[0].id in found:
            found[line.targets[0].id] = _default(line.value, classes)
    return found


def _name(line: ast.AnnAssign) -> str:
    """What users call a field; "" where they cannot set it: no part of __init__, or no option of the command."""
    name = line.target.id if isinstance(line.target, ast.Name) else ""
    if name.startswith("_") or "ClassVar" in ast.unparse(line.annotation):
        return ""
    calls = [
        call for part in (line.annotation, line.value) if part for call in ast.walk(part) if isinstance(call, ast.Call)
    ]
    words = {word.arg: _literal(word.value) for call in calls for word in call.keywords if word.arg}
    if words.get("no_cli") is True or words.get("init") is False or any(_is_derived(call) for call in calls):
        return ""
    named = words.get("cli_name") or words.get("alias") or _said_names(line)
    first = named[0] if isinstance(named, list) else named
    return first.lstrip("-") if isinstance(first, str) else name


def _said_names(line: ast.AnnAssign) -> Any:
    """The list behind "arg_names" in the metadata of a field."""
    for part in ast.walk(line):
        if isinstance(part, ast.Dict):
            for key, value in zip(part.keys, part.values, strict=True):
                if isinstance(key, ast.Constant) and key.value == "arg_names":
                    return _literal(value)
    return None


def _is_derived(call: ast.Call) -> bool:
    return isinstance(call.func, ast.Name) and call.func.id == "Derived"


def _default(value: ast.expr | None, classes: dict[str, ast.ClassDef]) -> Any:
    """The value of a default; UNKNOWN where it is computed, None where there is none."""
    if value is None:
        return None
    if isinstance(value, ast.Attribute) and isinstance(value.value, ast.Name):
        return _of_class(value.value.id, value.attr, classes)
    if isinstance(value, ast.Call):
        return _of_call(value, classes)
    return _literal(value)


def _of_call(call: ast.Call, classes: dict[str, ast.ClassDef]) -> Any:
    """The default in field(...), Field(...), get_field(Class, "name")."""
    name = (
        call.func.id
        if isinstance(call.func, ast.Name)
        else call.func.attr
        if isinstance(call.func, ast.Attribute)
        else ""
    )
    words = {word.arg: word.value for word in call.keywords}
    if name == "get_field" and len(call.args) == 2 and isinstance(call.args[0], ast.Name):
        return _of_class(call.args[0].id, str(_literal(call.args[1])), classes)
    if name in ("pp_int", "int") and call.args:
        number = _literal(call.args[0])
        return UNKNOWN if number is UNKNOWN else int(number)
    if name.lower() not in ("field", "a"):
        return UNKNOWN
    if "default" in words:
        return _default(words["default"], classes)
    if factory := words.get("default_factory"):
        if isinstance(factory, ast.Lambda):
            return _default(factory.body, classes)
        empty = {"list": [], "dict": {}, "set": []}
        return empty.get(ast.unparse(factory), UNKNOWN)
    return _default(call.args[0], classes) if call.args and not isinstance(call.args[0], ast.Starred) else None


def _of_class(name: str, attribute: str, classes: dict[str, ast.ClassDef]) -> Any:
    """The default of a field of another class, or the value of a member of an enumeration."""
    if name not in classes:
        return UNKNOWN
    fields = _fields_of(classes[name], classes)
    if attribute in fields:
        return fields[attribute]
    for line in classes[name].body:
        if isinstance(line, ast.Assign) and isinstance(line.targets[0], ast.Name) and line.targets[0].id == attribute:
            return _literal(line.value)
    return UNKNOWN


def _literal(value: ast.expr) -> Any:
    try:
        return ast.literal_eval(value)
    except ValueError:
        pass
    text = ast.unparse(value)
    is_sum = re.fullmatch(r"[\d\s.e+*()/-]+", text)
    return eval(text) if is_sum else UNKNOWN  # digits and operators alone


def read_factory(section: Section, texts: Texts) -> dict[str, Any]:
    """Fields of a class that Megatron's ArgumentGroupFactory makes options of: those that it excludes are none, and a
    switch that is on is turned off with `no_`.
    """
    fields = read_fields(section, texts)
    found: dict[str, Any] = {}
    excluded = set(_excluded(section.classes[0], texts))
    for name, default in fields.items():
        if name not in excluded:
            is_turned = default is True and "-" not in name
            found[f"no_{name}" if is_turned else name] = False if default is True else default
    return found


def _excluded(of_class: str, texts: Texts) -> Iterator[str]:
    """The names that stand in `exclude=` of the factory, or in the list of this name above it."""
    for text in texts.values():
        for function in ast.walk(ast.parse(text)):
            if not isinstance(function, ast.FunctionDef):
                continue
            calls = [call for call in ast.walk(function) if isinstance(call, ast.Call)]
            if not any(ast.unparse(call).startswith(f"ArgumentGroupFactory({of_class}") for call in calls):
                continue
            for line in ast.walk(function):
                if isinstance(line, ast.Assign) and ast.unparse(line.targets[0]) == "exclude":
                    yield from ast.literal_eval(line.value)


# ---- Options of parsers.


def read_parser(section: Section, texts: Texts) -> dict[str, Any]:
    """The long option of each add_argument; False for a switch, None where no default is said."""
    found: dict[str, Any] = {}
    for text in texts.values():
        for call in ast.walk(ast.parse(text)):
            if not (isinstance(call, ast.Call) and isinstance(call.func, ast.Attribute)):
                continue
            if call.func.attr != "add_argument":
                continue
            flags = [arg.value for arg in call.args if isinstance(arg, ast.Constant) and isinstance(arg.value, str)]
            if flags:
                words = {word.arg: word.value for word in call.keywords}
                action = ast.unparse(words["action"]) if "action" in words else ""
                is_switch = "store_true" in action or "store_false" in action
                default = _default(words["default"], {}) if "default" in words else False if is_switch else None
                found[max(flags, key=len).lstrip("-")] = default
    return found


# ---- Configs, constants and llama.cpp.


def read_yaml(section: Section, texts: Texts) -> dict[str, Any]:
    """The leaves of a config, names of sections joined by dots."""
    found: dict[str, Any] = {}

    def walk(tree: Any, at: str) -> None:
        if isinstance(tree, dict) and tree:
            for name, value in tree.items():
                walk(value, f"{at}.{name}" if at else str(name))
        else:
            found[at] = UNKNOWN if isinstance(tree, str) and "${" in tree else tree

    for text in texts.values():
        walk(yaml.safe_load(text), "")
    return found


def read_pairs(section: Section, texts: Texts) -> dict[str, Any]:
    """Constants with a name, NAME = "key", and a default, NAME_DEFAULT = value; of the given names alone."""
    known: dict[str, Any] = {}
    for text in texts.values():
        for line in ast.parse(text).body:
            if isinstance(line, ast.Assign) and isinstance(line.targets[0], ast.Name):
                known[line.targets[0].id] = _literal(line.value)
    return {
        value: known[f"{name}_DEFAULT"]
        for name, value in known.items()
        if isinstance(value, str) and f"{name}_DEFAULT" in known and value in section.classes
    }


def read_members(section: Section, texts: Texts) -> dict[str, Any]:
    """The members of an enumeration, by value."""
    found: dict[str, Any] = {}
    for text in texts.values():
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.ClassDef) and node.name in section.classes:
                lines = [line for line in node.body if isinstance(line, ast.Assign)]
                found |= {str(_literal(line.value)): ast.unparse(line.targets[0]) for line in lines}
    return found


def read_mapping(section: Section, texts: Texts) -> dict[str, Any]:
    """A mapping that a module assigns."""
    for text in texts.values():
        for line in ast.walk(ast.parse(text)):
            if isinstance(line, ast.Assign) and ast.unparse(line.targets[0]) in section.classes:
                return dict(_literal(line.value))
    return {}


_CPP_FLAGS = re.compile(r"common_arg\(\s*(\{[^}]*\}(?:\s*,\s*\{[^}]*\})?)(.*?)(?=add_opt\(|\Z)", re.DOTALL)
_CPP_FIELD = re.compile(r"^\s+[\w:<>, ]+?\s(\w+)\s*=\s*([^;]+);", re.MULTILINE)


def read_cpp(section: Section, texts: Texts) -> dict[str, Any]:
    """The long option of each common_arg, with the default of the field of common_params that its help shows."""
    code = next(text for file, text in texts.items() if file.endswith("arg.cpp"))
    header = next(text for file, text in texts.items() if file.endswith("common.h"))
    defaults = {name: _cpp_value(value) for name, value in _CPP_FIELD.findall(_of_struct(header))}
    found: dict[str, Any] = {}
    for flags, rest in _CPP_FLAGS.findall(code):
        names = re.findall(r'"(--?[\w-]+)"', flags)
        programs = re.search(r"set_examples\(\{([^}]*)\}", rest)
        if programs and not {"LLAMA_EXAMPLE_SERVER", "LLAMA_EXAMPLE_COMMON"} & set(re.findall(r"\w+", programs[1])):
            continue  # of another program than llama-server
        shown = re.search(r"default: [^\"]*\"(?:[^;]*?)params\.(\w+)", rest.split("[](")[0], re.DOTALL)
        if names:
            long = [name for name in names if name.startswith("--")] or names
            plain = [name for name in long if not name.startswith("--no-")] or long
            value = defaults.get(shown[1], UNKNOWN) if shown else None
            is_turned = shown is not None and shown[1].startswith("no_") and isinstance(value, bool)
            found[plain[-1].lstrip("-")] = not value if is_turned else value
    return found


def _of_struct(header: str) -> str:
    start = header.index("struct common_params {")
    return header[start : header.index("\n};", start)]


def _cpp_value(text: str) -> Any:
    plain = text.split("//", maxsplit=1)[0].strip().rstrip("f")
    known = {"true": True, "alse": False, "false": False}
    if plain in known:
        return known[plain]
    return plain.strip('"') if plain.startswith('"') else _number(plain)


def _number(text: str) -> Any:
    return (
        float(text)
        if "." in text and re.fullmatch(r"-?[\d.]+", text)
        else int(text)
        if re.fullmatch(r"-?\d+", text)
        else UNKNOWN
    )


READERS: dict[str, Callable[[Section, Texts], dict[str, Any]]] = {
    "fields": read_fields,
    "factory": read_factory,
    "parser": read_parser,
    "yaml": read_yaml,
    "pairs": read_pairs,
    "mapping": read_mapping,
    "members": read_members,
    "cpp": read_cpp,
}


if __name__ == "__main__":
    main(*sys.argv[1:])
