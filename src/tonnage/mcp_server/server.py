"""The server: tools in, documents out. Over stdin and stdout, or over HTTP on this machine alone."""

import logging
from collections.abc import Mapping
from typing import Any, NamedTuple

import anyio
from mcp import types
from mcp.server import Server
from mcp.server.stdio import stdio_server
from msgspec import UNSET

from tonnage.documents.document import ErrorDocument, Problem, builtins, encode
from tonnage.interchange.json_questions import CHECK, checked
from tonnage.interchange.log_questions import DIAGNOSE, RECONCILE, diagnosed_question, reconciled_question
from tonnage.kernel.errors import InvalidInput, TonnageError, shown
from tonnage.kernel.reach import Reach
from tonnage.kernel.version import __version__
from tonnage.language import speaking
from tonnage.mcp_server.tools import BY_NAME, OPTIONS, listed, options_of_verb
from tonnage.render.headline import headline
from tonnage.verbs.answered import DETAILS, FULL, SUMMARY, DocumentedAnswer, document_of
from tonnage.verbs.ask import asked, line
from tonnage.verbs.wrong.fields import WrongQuestion, all_wrong

HOST = "127.0.0.1"
PATH = "/mcp"
INSTRUCTIONS = (
    "Memory, speed, time and cost of training and serving large language models, by formulas with their "
    "sources. Sizes are written as people write them "
    "(8k, 1T, 80GB, 30d), machines as h100, 8xH100-SXM-80GB or 32x8xh800. Every number has a formula; what "
    "nobody published is refused, not guessed: say so too. "
    "Repeat the first line of an answer, its error band where it has one, and its warnings. To find a "
    "model's or machine's name, ask with a likely one: the error lists the nearest."
)
# The document of `tonnage VERB --json`, or its summary; said to each assistant in every conversation.
OUTPUT_SCHEMA = {"type": "object", "required": ["schema"]}
SAYS = (
    "This is a summary of the document: without breakdowns, and of long lists the first entries; left_out counts the "
    'others. Ask with "detail": "full" for all of it, up to some 100,000 tokens.'
)
# What reads alone destroys nothing and may be repeated: clients take the other hints only of tools that write.
READS = types.ToolAnnotations(read_only_hint=True, open_world_hint=True)
NOTHING = WrongQuestion()
# Tools that take texts of other tools, and answer with a document of theirs.
TEXTS = {CHECK: checked, DIAGNOSE: diagnosed_question, RECONCILE: reconciled_question}
_LOG = logging.getLogger(__name__)


class Settings(NamedTuple):
    """`within`: what a question may read; `text`: whether documents come as text too, for clients that read no
    structured content.
    """

    within: Reach
    text: bool = False


def server(settings: Settings) -> Server[Any]:
    """A server that answers within these settings."""

    async def list_tools(context: Any, parameters: Any) -> types.ListToolsResult:
        return types.ListToolsResult(tools=tools(settings.within))

    async def call_tool(context: Any, parameters: types.CallToolRequestParams) -> types.CallToolResult:
        # A search may take minutes: the thread leaves the server free to answer others, and is left behind where a call
        # is cancelled.
        return await anyio.to_thread.run_sync(
            answer, parameters.name, parameters.arguments or {}, settings, abandon_on_cancel=True
        )

    return Server(
        "tonnage",
        version=__version__,
        title="tonnage",
        instructions=INSTRUCTIONS,
        on_list_tools=list_tools,
        on_call_tool=call_tool,
    )


def tools(within: Reach) -> list[types.Tool]:
    """The tools, as the protocol has them."""
    reads = READS.model_copy(update={"open_world_hint": within.hubs})
    return [types.Tool(**tool, output_schema=OUTPUT_SCHEMA, annotations=reads) for tool in listed()]


def answer(name: str, arguments: Mapping[str, Any], settings: Settings) -> types.CallToolResult:
    """The document of a question, or what is wrong with it: an error of the tool, which the assistant can read and
    mend.
    """
    with speaking(
        "en"
    ):  # whatever the locale of who started the server: what an assistant reads is English, as documents are
        try:
            return _answer(name, arguments, settings)
        except TonnageError as error:
            return _refused(type(error).__name__, str(error), _wrong(name, arguments, error, settings.within))
        except Exception:  # noqa: BLE001 - a question must not end the server
            _LOG.exception("a question to %s was not answered", shown(name))
            return _refused(
                "InternalError", "tonnage failed on this question, which is a bug: its server's log has more."
            )


def _answer(name: str, arguments: Mapping[str, Any], settings: Settings) -> types.CallToolResult:
    question = dict(arguments)
    if name == OPTIONS:
        return _options(question, settings)
    if name not in BY_NAME and name not in TEXTS:
        from tonnage.kernel.registry import unknown

        raise unknown("tool", name, [*BY_NAME, *TEXTS, OPTIONS])
    detail = question.pop("detail", SUMMARY)
    if detail not in DETAILS:
        raise InvalidInput(f"detail is {SUMMARY} or {FULL}. Got {shown(detail)}.")
    if name in TEXTS:
        document = builtins(TEXTS[name](question, settings.within, detail).document)
        return _result("\n".join([headline(document), *([] if detail == FULL else [SAYS])]), document, settings.text)
    reply = asked(BY_NAME[name].verb, question, settings.within, lambda answer: _told(answer, detail))
    first, document = reply.document
    lines = [first, f"command: {line(reply.words)}", *([] if detail == FULL else [SAYS])]
    return _result("\n".join(lines), document, settings.text)


def _told(answer: DocumentedAnswer, detail: str) -> tuple[str, Any]:
    """What an answer says first, and its document or the summary of it."""
    document = builtins(document_of(answer, detail))
    has_own_summary = getattr(answer, "summary_document", None) is not None
    return headline(document if has_own_summary else builtins(answer.document)), document


def _options(question: Mapping[str, Any], settings: Settings) -> types.CallToolResult:
    """The names of all options of a verb."""
    verb = question.get("verb")
    if not isinstance(verb, str) or verb not in BY_NAME:
        raise InvalidInput(f"verb is one of {', '.join(BY_NAME)}. Got {shown(verb)}.")
    if unknown_fields := [name for name in question if name != "verb"]:
        raise InvalidInput(f"{OPTIONS} takes verb alone. Got {shown(unknown_fields[0])}.")
    document = options_of_verb(verb)
    count = sum(map(len, document.options.values()))
    return _result(f"{count} options of {verb}; explain says what each means", builtins(document), settings.text)


def _wrong(name: str, arguments: Mapping[str, Any], error: TonnageError, within: Reach) -> WrongQuestion:
    """All that is wrong with the question of a tool."""
    if name not in BY_NAME:
        return WrongQuestion()
    question = {field: value for field, value in arguments.items() if field != "detail"}
    return all_wrong(BY_NAME[name].verb, question, error, within)


def _refused(kind: str, message: str, wrong: WrongQuestion = NOTHING) -> types.CallToolResult:
    error = ErrorDocument(error={"kind": kind, "message": message})
    lines = [f"error: {message}"]
    if wrong.problems:
        error.errors = list(wrong.problems)
        error.corrected = wrong.command or UNSET
    if len(wrong.problems) > 1:
        lines += [_line_of(problem) for problem in wrong.problems]
    if wrong.command:
        lines.append(f"corrected: {wrong.command}")
    return _result("\n".join(lines), builtins(error), in_text=False, is_error=True)


def _line_of(problem: Problem) -> str:
    """A field that cannot be used, as a line."""
    near = f" (nearest: {', '.join(problem.nearest)})" if problem.nearest else ""
    return f"{problem.input}: {problem.problem}{near}" if problem.input else problem.problem


def _result(text: str, document: Any, in_text: bool, *, is_error: bool = False) -> types.CallToolResult:
    texts = [text, *([encode(document).decode()] if in_text else [])]
    content = [types.TextContent(type="text", text=each) for each in texts]
    return types.CallToolResult(content=list(content), structured_content=document, is_error=is_error)


def serve_stdio(settings: Settings) -> None:
    """Until stdin ends."""

    async def run() -> None:
        mcp_server = server(settings)
        async with stdio_server() as (read, write):
            await mcp_server.run(read, write, mcp_server.create_initialization_options())

    anyio.run(run)


def serve_http(settings: Settings, port: int) -> None:
    """Until it is interrupted. Requests that a web page of another host sends are refused by their Host and Origin."""
    import uvicorn

    app = server(settings).streamable_http_app(
        streamable_http_path=PATH, host=HOST, json_response=True, stateless_http=True
    )
    uvicorn.run(app, host=HOST, port=port, log_level="warning")
