"""What was found of a checked file, as other programs read it: annotations of a GitHub workflow, a comment in Markdown,
and SARIF 2.1.0.

Sources: docs.github.com, "Workflow commands for GitHub Actions"; docs.oasis-open.org/sarif/sarif/v2.1.0.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from tonnage.kernel.version import __version__
from tonnage.language import say, worded
from tonnage.render.brief.read import read_line
from tonnage.render.brief.verdict import verdict_line

TITLE, ANNOTATION = "tonnage check", "::{level} file={file},title={title}::{text}"
LEVELS = {0: "notice", 2: "warning", 3: "error", 4: "warning", 64: "error"}  # of a workflow's annotation, by status
SARIF = {"notice": "note", "warning": "warning", "error": "error"}
RULES = {
    "fits": "the run needs no more memory than there is, at the high end of the error band",
    "tight": "what is usable lies inside the error band of the estimate",
    "does-not-fit": "the run needs more memory than there is, or misses a target",
    "not-read": "the file is of no tool that is known, or says something impossible",
    "not-sure": "keys that may change memory or time were not understood, or a number is not known",
}
RULE_OF = {0: "fits", 2: "tight", 3: "does-not-fit", 4: "not-sure", 64: "not-read"}
SCHEMA = "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"


class Checked(Struct, frozen=True):
    """A file that was checked: its name, the status, and the document of its answer, or why there is none."""

    file: str
    status: int
    document: Mapping[str, Any] | None = None
    error: str = ""

    @property
    def said(self) -> str:
        """The verdict, or the error."""
        return say("error: ") + worded(self.error) if self.document is None else str(verdict_line(self.document))

    @property
    def unclear(self) -> list[Mapping[str, Any]]:
        """The keys that were not understood."""
        keys = [] if self.document is None else self.document["read"]["keys"]
        return [key for key in keys if key["status"] == "not understood"]


def report_of(files: Sequence[Checked], shape: str) -> str:
    """What was found of files as `text` (a line each), `github`, `markdown` or `sarif`, with a newline at its end."""
    return {"text": _text, "github": _github, "markdown": _markdown, "sarif": _sarif}[shape](files)


def _text(files: Sequence[Checked]) -> str:
    return "".join(f"{say('{file}: {said}', file=one.file, said=one.said)}\n" for one in files)


def _github(files: Sequence[Checked]) -> str:
    """An annotation of each file, and one for each key that was not understood."""
    lines = []
    for one in files:
        lines.append(_annotation(LEVELS[one.status], one.file, TITLE, one.said))
        lines += [_annotation("warning", one.file, key["key"], _unclear(key)) for key in one.unclear]
    return "\n".join(lines) + "\n"


def _annotation(level: str, file: str, title: str, text: str) -> str:
    return ANNOTATION.format(level=level, file=_property(file), title=_property(title), text=_escaped(text))


def _escaped(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _escaped(text).replace(":", "%3A").replace(",", "%2C")


def _markdown(files: Sequence[Checked]) -> str:
    """A comment: of each file the verdict, what was read, and a table of the keys that decide something or were not
    understood.
    """
    return "\n".join("\n".join(_section(one)).rstrip() + "\n" for one in files)


def _section(one: Checked) -> list[str]:
    if one.document is None:
        return [f"**{_cell(one.file)}: {_cell(one.said)}**"]
    read = one.document["read"]
    lines = [f"**{_cell(one.said)}**", "", _cell(read_line(read)), ""]
    rows = [key for key in read["keys"] if key["status"] != "ignored"]
    if rows:
        lines += [f"| {say('key')} | {say('value')} | {say('read as')} |", "|---|---|---|"]
    for key in rows:
        meaning = ", ".join(f"`{option}`" for option in key["options"]) or say(key["status"])
        if key["status"] == "assumed":
            meaning = say("{meaning}, assumed", meaning=meaning) if key["options"] else say("assumed")
        why = say(" ({why})", why=worded(key["why"])) if key["why"] else ""
        lines.append(f"| `{_cell(key['key'])}` | `{_cell(key['value'])}` | {meaning}{_cell(why)} |")
    lines += [""] if rows else []
    return lines + [f"- {_cell(worded(warning))}" for warning in one.document["warnings"]]


def _cell(text: str) -> str:
    """A text in one cell of a table."""
    return " ".join(text.split()).replace("|", "\\|")


def _sarif(files: Sequence[Checked]) -> str:
    results = []
    for one in files:
        results.append(_result(RULE_OF[one.status], LEVELS[one.status], one.file, one.said))
        results += [_result("not-sure", "warning", one.file, _unclear(key)) for key in one.unclear]
    driver = {
        "name": "tonnage",
        "version": __version__,
        "rules": [{"id": name, "shortDescription": {"text": worded(text)}} for name, text in RULES.items()],
    }
    log = {"$schema": SCHEMA, "version": "2.1.0", "runs": [{"tool": {"driver": driver}, "results": results}]}
    return json.dumps(log, indent=2, ensure_ascii=False) + "\n"


def _result(rule: str, level: str, file: str, text: str) -> dict[str, Any]:
    place = {"physicalLocation": {"artifactLocation": {"uri": file.replace("\\", "/")}}}
    return {"ruleId": rule, "level": SARIF[level], "message": {"text": str(text)}, "locations": [place]}


def _unclear(key: Mapping[str, Any]) -> str:
    text = say("`{key}` = {value} was not understood", key=key["key"], value=key["value"])
    return say("{text}: {why}", text=text, why=worded(key["why"])) if key["why"] else text
