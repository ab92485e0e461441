"""scripts/record_arguments.py: names and defaults of options, read from packages without importing them."""

import io
import sys
import tarfile
import zipfile
from pathlib import Path

from every_row import every_row

SCRIPTS = Path(__file__).parents[2] / "scripts"
sys.path.insert(0, str(SCRIPTS))

import record_arguments  # noqa: E402
from _argument_sources import Package, Section  # noqa: E402

CLASSES = """
class Base(BaseModel):
    rank: int = 8
    hidden: int = field(default=1, init=False)
    _private: int = 1

class Kind(Enum):
    FAST = "fast"

class Config(Base):
    size: int = Field(default=int(1e9), alias="stage3_size")
    kind: Kind = Kind.FAST
    names: list = field(default_factory=lambda: ["a"])
    rate: float = 2 * 1e-3
    shape: tuple = computed()
    port: A[int, Arg(cli_name="--the-port")] = 80
    inner: A[int, Arg(no_cli=True)] = 1
    rank = 16
"""
PARSER = """
parser.add_argument("-c", "--ctx-size", default=512)
parser.add_argument("--fast", action="store_true")
parser.add_argument("--model")
"""
FACTORY = """
def add(parser):
    exclude = ["inner"]
    ArgumentGroupFactory(Config, exclude=exclude)

class Config:
    inner: int = 1
    fuse: bool = True
    outer: int = field(default=2, metadata={"argparse_meta": {"arg_names": ["--outer-size"]}})
"""
CPP = """
add_opt(common_arg(
    {"-fa", "--flash"}, {"--no-flash"},
    string_format("flash (default: %s)", params.no_flash ? "off" : "on"),
    [](common_params & params, bool value) { params.no_flash = !value; }
).set_examples({LLAMA_EXAMPLE_SERVER}));
add_opt(common_arg(
    {"--chunks"}, "N", string_format("chunks (default: %d)", params.n_chunks),
    [](common_params & params, int value) { params.n_chunks = value; }
).set_examples({LLAMA_EXAMPLE_PERPLEXITY}));
"""
HEADER = """struct common_params {
    bool no_flash = false; // attention
    int32_t n_chunks = -1;
};
"""


def section(reader, *classes, files=("a.py",)):
    return Section("s", reader, files, classes)


@every_row(
    "reader, classes, text, found",
    [
        (
            "fields",
            ("Config",),
            CLASSES,
            {"rank": 16, "stage3_size": 10**9, "kind": "fast", "names": ["a"], "rate": 0.002, "the-port": 80},
        ),
        ("parser", (), PARSER, {"ctx-size": 512, "fast": False, "model": None}),
        ("factory", ("Config",), FACTORY, {"no_fuse": False, "outer-size": 2}),
        ("members", ("Kind",), CLASSES, {"fast": "FAST"}),
        ("mapping", ("M",), "M = {'llama': ['q']}", {"llama": ["q"]}),
        ("pairs", ("steps",), "STEPS = 'steps'\nSTEPS_DEFAULT = 10", {"steps": 10}),
        ("yaml", (), "a:\n  b: 1\n  c: ${x}\n", {"a.b": 1}),
    ],
)
def test_a_definition_is_read_as_it_stands(reader, classes, text, found):
    read = record_arguments.READERS[reader](section(reader, *classes), {"a.py": text})
    assert {name: value for name, value in read.items() if value is not record_arguments.UNKNOWN} == found


def test_options_of_the_server_of_llama_cpp_have_the_defaults_of_its_parameters():
    read = record_arguments.READERS["cpp"](section("cpp"), {"common/arg.cpp": CPP, "common/common.h": HEADER})
    assert read == {"flash": True}


def test_a_record_names_its_package_its_version_and_what_is_computed(tmp_path):
    wheel = tmp_path / "toy_tool-1.10.0-py3-none-any.whl"
    with zipfile.ZipFile(wheel, "w") as archive:
        archive.writestr("toy/a.py", CLASSES)
    with tarfile.open(tmp_path / "toy_tool-1.9.0.tar.gz", "w:gz") as archive:
        member = tarfile.TarInfo("toy_tool-1.9.0/toy/a.py")
        archive.addfile(member, io.BytesIO())
    package = Package("toy", "toy_tool", (section("fields", "Config", files=("toy/a.py",)),))
    newest = record_arguments.newest(tmp_path, "toy_tool")
    assert newest == wheel
    found = record_arguments.recorded(package, newest)
    assert (found["tool"], found["version"]) == ("toy", "1.10.0")
    assert found["source"] == "toy_tool 1.10.0 on PyPI: toy/a.py"
    assert found["computed"] == {"s": ["shape"]}
