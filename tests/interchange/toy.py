"""A format of a program that trains, for tests of what carries commands: `python toytrain.py --model M --seq N`."""

from contextlib import contextmanager

from tonnage.interchange.formats import FORMATS, Format, formats
from tonnage.interchange.reading import Reading, options_of_command

PROGRAM = "toytrain.py"


def _words(source):
    return next((one.words for one in source.commands if one.words[:2] == ("python", PROGRAM)), ())


def _values(source):
    words = _words(source)
    options, _ = options_of_command(words[words.index(PROGRAM) + 1 :] if words else ())
    return options


def _read(r: Reading) -> None:
    r.put("runtime", "ddp")
    r.same({"model": "model"})
    r.put("micro_batch_size", r.integer("micro", 1), "micro")
    r.put("sequence_length", r.integer("seq", 1024), "seq")


TOY = Format(
    name="toy",
    tool="Toy",
    version="1",
    source="tests",
    recognises=lambda source: 10 * bool(_words(source)),
    values=_values,
    read=_read,
    verbs=("train",),
)


@contextmanager
def toy():
    """The format is one of those that are known."""
    formats()
    FORMATS.add("toy", TOY)
    formats.cache_clear()
    try:
        yield
    finally:
        FORMATS._items.pop("toy")
        formats.cache_clear()
