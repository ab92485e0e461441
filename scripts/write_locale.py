"""Compile the catalogues of src/tonnage/language: each .po is sorted and laid out in one way, and its .mo written
beside it.

make locale
"""

import io
from pathlib import Path

from babel.messages.catalog import Catalog
from babel.messages.mofile import write_mo
from babel.messages.pofile import read_po, write_po

FOLDER = Path(__file__).parents[1] / "src" / "tonnage" / "language"
WIDTH = 120


def main() -> None:
    for path in sources():
        catalogue = read(path)
        path.write_bytes(laid_out(catalogue))
        path.with_suffix(".mo").write_bytes(compiled(catalogue))


def sources() -> list[Path]:
    return sorted(FOLDER.glob("*/LC_MESSAGES/*.po"))


def read(path: Path) -> Catalog:
    with path.open("rb") as opened:
        return read_po(opened, locale=path.parents[1].name, domain=path.stem, abort_invalid=True)


def laid_out(catalogue: Catalog) -> bytes:
    made = io.BytesIO()
    write_po(made, catalogue, width=WIDTH, sort_output=True, no_location=True, omit_header=True)
    return HEADER + made.getvalue()


def compiled(catalogue: Catalog) -> bytes:
    """Of what is written to the .po, and of that alone."""
    plain = read_po(io.BytesIO(laid_out(catalogue)), locale=catalogue.locale, abort_invalid=True)
    made = io.BytesIO()
    write_mo(made, plain)
    return made.getvalue()


# With fixed dates, or each run would make another file.
HEADER = rb"""msgid ""
msgstr ""
"Project-Id-Version: tonnage\n"
"POT-Creation-Date: 2026-01-01 00:00+0000\n"
"PO-Revision-Date: 2026-01-01 00:00+0000\n"
"Last-Translator: tonnage\n"
"Language: zh\n"
"Language-Team: tonnage\n"
"Plural-Forms: nplurals=1; plural=0;\n"
"MIME-Version: 1.0\n"
"Content-Type: text/plain; charset=utf-8\n"
"Content-Transfer-Encoding: 8bit\n"
"Generated-By: babel\n"

"""

if __name__ == "__main__":
    main()
