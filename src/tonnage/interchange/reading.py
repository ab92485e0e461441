"""The reading of one source: which keys decide which options, what is assumed, what is ignored, and what is not
understood.
"""

from collections.abc import Callable, Container, Iterable, Mapping
from typing import Any

from msgspec import Struct

from tonnage.documents.interchange.read import KeyDocument, KeyStatus, ReadDocument
from tonnage.interchange.here_documents import why_unknown
from tonnage.interchange.source import Source
from tonnage.kernel.errors import InvalidInput, TonnageError, shown
from tonnage.kernel.message import Message, listed
from tonnage.kernel.registry import nearest

AUTO = "auto"
LONGEST = 200  # characters of a value that are shown
FROM_ONE = "a whole number from 1 on"
TRUE, FALSE = ("true", "yes", "1", "on"), ("false", "no", "0", "off")


class Asker(Struct, frozen=True, kw_only=True):
    """What the user says beside the file.

    model, on: override the file
    tool, version: the tool and its release, where the file does not tell
    is_lenient: keys that are not understood do not make the verdict unsure
    """

    model: str = ""
    on: str = ""
    tool: str = ""
    version: str = ""
    is_lenient: bool = False


class Machines(Struct, frozen=True, kw_only=True):
    """The machines that a file names: nodes, accelerators of each node, their name; 0 and "" where it says nothing."""

    nodes: int = 0
    per_node: int = 0
    accelerator: str = ""


class Reading:
    """The state of a reading. A format's `read` says of each key what it decides; a key that it does not mention is not
    understood.

    verb: of the question, `train` or `serve`
    values: key -> value as written; names of sections are joined by dots, lists stay lists
    question: option of ours -> its value, as JSON has it
    origins: option of ours -> the keys that decide it
    inside: formats that carry what is read; `says`: options of ours that the file can say, what it carries included
    known: names of keys that the tool has
    """

    def __init__(self, source: Source, values: Mapping[str, Any], asker: Asker, machines: Machines | None = None):
        self.source, self.asker = source, asker
        self.machines = machines or Machines()
        self.values: dict[str, Any] = dict(values)
        self.verb = "train"
        self.tool, self.version = "", ""
        self.inside: tuple[str, ...] = ()
        self.says: frozenset[str] = frozenset()
        self.known: Callable[[], Iterable[str]] = tuple
        self.question: dict[str, Any] = {}
        self.origins: dict[str, tuple[str, ...]] = {}
        self.notes: list[str] = []
        self._keys: dict[str, KeyDocument] = {}
        self._original_names: dict[str, str] = {}
        self._filled: dict[str, str] = {}

    # ---- Values.

    def has(self, key: str) -> bool:
        return self.values.get(key) is not None

    def get(self, key: str, default: Any = None) -> Any:
        """The value of a key as it is written; `default` where there is none, or null."""
        value = self.values.get(key)
        return default if value is None else value

    def is_auto(self, key: str) -> bool:
        """Whether a value is left to the tool."""
        return self.get(key) == AUTO

    def text(self, key: str, default: str = "") -> str:
        value = self.get(key, default)
        if isinstance(value, bool | int | float):
            return str(value).lower() if isinstance(value, bool) else str(value)
        if not isinstance(value, str):
            raise self.wrong(key, "a text")
        return value

    def integer(self, key: str, default: int = 0) -> int:
        """A whole number, also one that is written as a text."""
        value = self.get(key, default)
        number = self.number(key, default)
        if isinstance(value, bool) or number != int(number):
            raise self.wrong(key, "a whole number")
        return int(number)

    def positive(self, key: str, default: int = 1) -> int:
        """A whole number from 1."""
        number = self.integer(key, default)
        if number < 1:
            raise self.wrong(key, FROM_ONE)
        return number

    def size(self, key: str, default: int = 0, largest: int = 10**7) -> int:
        """A whole number from 1 to `largest`; `default`, which may be 0, where there is none."""
        if not self.has(key):
            return default
        number = self.integer(key)
        if not 0 < number <= largest:
            raise self.wrong(key, "a whole number above 0")
        return number

    def number(self, key: str, default: float = 0.0) -> float:
        value = self.get(key, default)
        try:
            if isinstance(value, bool):
                raise ValueError
            number = float(value.replace("_", "") if isinstance(value, str) else value)
        except (TypeError, ValueError):
            raise self.wrong(key, "a number") from None
        if not abs(number) < 1e18:
            raise self.wrong(key, "a number of usual size")
        return number

    def flag(self, key: str, default: bool = False) -> bool:
        """True or false, also where it is written as a text, or is a switch without a value."""
        value = self.get(key, default)
        if isinstance(value, str) and value.lower() in (*TRUE, *FALSE, ""):
            return value.lower() not in FALSE
        if value in (0, 1):
            return bool(value)
        raise self.wrong(key, "true or false")

    def choice(self, key: str, known: Mapping[str, Any], default: Any = None) -> Any:
        """What one of several names stands for; InvalidInput for another name."""
        if not self.has(key):
            return default
        name = self.text(key)
        if name in known:
            return known[name]
        near = list(known) if len(known) <= 8 else nearest(name, known) or list(known)
        raise self.wrong(key, Message("one of {names}", names=listed(near[:8])))

    def wrong(self, key: str, wanted: str) -> InvalidInput:
        """The error for a value that a key cannot have; of a script's variable, with the line that sets it."""
        if why := why_unknown(self.source.whole_script, self.values.get(key)):
            return InvalidInput(
                "{file}: {key} must be {wanted}. Got {value}: {why}.",
                file=self.source.name,
                key=self.original_name(key),
                wanted=wanted,
                value=shown(self.values.get(key)),
                why=why,
            )
        return InvalidInput(
            "{file}: {key} must be {wanted}. Got {value}.",
            file=self.source.name,
            key=self.original_name(key),
            wanted=wanted,
            value=shown(self.values.get(key)),
        )

    def original_name(self, key: str) -> str:
        """The key as it stands in the file, where that is an older or another name of it."""
        return self._original_names.get(key, key)

    def rename(self, names: Mapping[str, str]) -> None:
        """Read keys by other names: old name -> the name that the format's `read` knows. The newer name counts where
        both are there.
        """
        for old, new in names.items():
            if old in self.values and new not in self.values:
                self.values[new] = self.values.pop(old)
                self._original_names[new] = old

    def fill(self, values: Mapping[str, Any], why: str = "") -> None:
        """Defaults of the tool for keys that are not there: read like others, and shown as assumed where they decide
        an option.
        """
        reason = why or Message("default of {tool} {version}", tool=self.tool, version=self.version)
        for key, value in values.items():
            if self.values.get(key) is None:
                self.values[key] = value
                self._filled[key] = reason

    def forget_unused(self) -> None:
        """Leave out the defaults that were filled in and decide nothing. A format that fills calls it last."""
        for key in self._filled:
            if key not in self._keys or self._keys[key].status == "ignored":
                self.values.pop(key, None)
                self._keys.pop(key, None)

    # ---- What a key means.

    def put(self, option: str, value: Any, *keys: str, why: str = "") -> None:
        """An option of ours is decided by these keys. None and "" as a value: the keys leave it as it is. A key of
        which something is not estimated stays one that was not understood.
        """
        for key in keys:
            known = self._keys.get(key)
            if known is not None and known.status == "not understood":
                continue  # it decides the option, and something else besides
            options = (*(known.options if known and known.status == "used" else ()), option)
            self._mark(key, "used", options=tuple(dict.fromkeys(options)), why=why)
        if value is not None and value != "":
            self.question[option] = value
            present = (key for key in keys if key in self.values and key not in self._filled)
            self.origins[option] = tuple(dict.fromkeys(map(self.original_name, present)))

    def same(self, table: Mapping[str, str]) -> None:
        """Keys whose value is that of an option of ours: key -> option."""
        for key, option in table.items():
            if self.has(key):
                self.put(option, self.get(key), key)

    def assume(self, key: str, value: Any, option: str = "", why: str = "") -> None:
        """The tool's default of a key that is not in the file; with `option`, it decides that one."""
        if key in self.values and self.get(key) is not None:
            return
        reason = why or Message("default of {tool} {version}", tool=self.tool, version=self.version)
        self._keys[key] = KeyDocument(
            key=key, value=_text(value), status="assumed", options=(option,) if option else (), why=reason
        )
        if option and value is not None:
            self.question[option] = value
            self.origins[option] = ()

    def ignore(self, keys: Iterable[str], why: str = "") -> None:
        """Keys that change neither memory nor time. A name that ends in a dot is a whole section. The keys are listed
        in this order, those of a set by name.
        """
        for name in sorted(keys) if isinstance(keys, set | frozenset) else keys:
            for key in self.under(name) if name.endswith(".") else (name,):
                if key in self.values and key not in self._keys:
                    self._mark(key, "ignored", why=why)

    def unsure(self, key: str, why: str) -> None:
        """A key that may change memory or time in a way that is not estimated."""
        self._mark(key, "not understood", why=why)

    def needs_default(self, key: str, *harmless: Any, why: str) -> None:
        """A key that changes nothing where it has one of these values, or is null, and is not estimated elsewhere."""
        if key not in self.values or key in self._keys:
            return
        if self.values[key] is None or any(self.values[key] == value for value in (*harmless, False)):
            self._mark(key, "ignored")
        else:
            self.unsure(key, why)

    def is_explained(self, key: str) -> bool:
        """Whether something was said of a key already."""
        return key in self._keys

    def under(self, section: str) -> list[str]:
        """The keys of a section, whose name ends in a dot."""
        return [key for key in self.values if key.startswith(section)]

    def _mark(self, key: str, status: KeyStatus, options: tuple[str, ...] = (), why: str = "") -> None:
        known = self._keys.get(key)
        if known is not None and known.status == "not understood" and status == "used":
            return  # what one part of a reader does not understand stays so
        if key in self._filled and status != "not understood":
            status, why = "assumed" if options else "ignored", self._filled[key]
        if key in self.values:
            value = _text(self.values[key])
            self._keys[key] = KeyDocument(
                key=self.original_name(key), value=value, status=status, options=options, why=why
            )

    # ---- The machines.

    def count_machines(self, nodes: int = 0, per_node: int = 0, accelerator: str = "") -> None:
        """What the file says of the machines it runs on."""
        machines = self.machines
        self.machines = Machines(
            nodes=nodes or machines.nodes,
            per_node=per_node or machines.per_node,
            accelerator=accelerator or machines.accelerator,
        )

    @property
    def on(self) -> str:
        """The cluster: what the asker says, with the file's numbers where the asker names an accelerator alone; else
        what the file says.
        """
        named = self.asker.on or str(self.question.get("on", "")) or self.machines.accelerator
        if not named:
            raise InvalidInput(
                "{file} names no accelerators: say them with --on, such as --on 8xh100.", file=self.source.name
            )
        nodes, per_node = self.machines.nodes, self.machines.per_node
        if (nodes or per_node) and _is_bare(named):
            return f"{nodes}x{per_node or 1}x{named}" if nodes > 1 else f"{per_node or 1}x{named}"
        return named

    @property
    def num_accelerators(self) -> int:
        """Accelerators of the cluster."""
        from tonnage.catalogue import cluster

        return cluster(self.on).size

    def compare_machines(self) -> None:
        """Note where --on has another number of accelerators than the file says: --on counts."""
        count = max(self.machines.nodes, 1) * self.machines.per_node
        if not (self.asker.on and count) or self.num_accelerators == count:
            return
        self.notes.append(
            Message(
                "{file} says {count} accelerators, --on {on} has {size}: --on counts.",
                file=self.source.name,
                count=count,
                on=self.asker.on,
                size=self.num_accelerators,
            )
        )

    # ---- What was read, as a whole.

    def take_over(self, inner: "Reading") -> None:
        """What a file carries, such as the command of a job: its question and keys become those of this reading."""
        self.verb, self.tool, self.version = inner.verb, inner.tool, inner.version
        self.inside, self.says = (*self.inside, *inner.inside), self.says | inner.says
        self.question |= inner.question
        self.origins |= inner.origins
        self._keys |= inner._keys
        names = tuple(inner.known())
        unread = [key for key in inner.values if key not in inner._keys]
        self._keys |= {key: _unknown(inner.original_name(key), inner.values[key], names) for key in unread}
        self.notes += inner.notes
        self.machines = inner.machines

    def document(self, known: Iterable[str] = ()) -> ReadDocument:
        """Every key. `known`: names that the tool has, of which the nearest is named where one is misspelled."""
        names = tuple(known)
        keys = dict(self._keys)
        for key, value in self.values.items():
            if key not in keys:
                keys[key] = _unknown(self.original_name(key), value, names)
        order = {"not understood": 0, "used": 1, "assumed": 2, "ignored": 3}
        listed_keys = tuple(sorted(keys.values(), key=lambda key: order[key.status]))
        unclear = any(key.status == "not understood" for key in listed_keys)
        return ReadDocument(
            file=self.source.name,
            tool=self.tool,
            version=self.version,
            inside=self.inside,
            keys=listed_keys,
            is_sure=not unclear or self.asker.is_lenient,
        )


def flattened(tree: Mapping[str, Any], unflattened: Container[str] = frozenset()) -> dict[str, Any]:
    """Names of sections joined by dots; mappings called as in `unflattened`, and lists, stay as they are. An empty
    section is one of no keys.
    """
    values: dict[str, Any] = {}
    waiting: list[tuple[str, Any]] = [("", tree)]
    while waiting:
        place, value = waiting.pop()
        if isinstance(value, Mapping) and (place not in unflattened or not place):
            waiting += [(f"{place}.{name}" if place else str(name), inner) for name, inner in value.items()]
        else:
            values[place] = value
    return {key: values[key] for key in sorted(values)}


def options_of_command(
    words: Iterable[str], switches: Container[str] = frozenset(), several: Container[str] = frozenset()
) -> tuple[dict[str, Any], list[str]]:
    """The options of a command and the words that stand alone. `--tp-size 2`, `--tp_size=2` and `-tp 2` are `tp-size`,
    `tp-size` and `tp`. `switches`: options that take no value; `several`: those that take all words up to the next
    option. What is given twice is a list.
    """
    options: dict[str, Any] = {}
    alone: list[str] = []
    left = list(words)
    while left:
        word = left.pop(0)
        if word == "--":
            alone += left
            break
        if not _is_option(word):
            alone.append(word)
            continue
        name, equals, value = word.lstrip("-").partition("=")
        name = name.replace("_", "-")
        option_value: Any = value
        if not equals:
            if name in switches or not left or _is_option(left[0]):
                option_value = True
            elif name in several:
                option_value = []
                while left and not _is_option(left[0]):
                    option_value.append(left.pop(0))
            else:
                option_value = left.pop(0)
        if name in options:
            before = options[name] if isinstance(options[name], list) else [options[name]]
            options[name] = [*before, *(option_value if isinstance(option_value, list) else [option_value])]
        else:
            options[name] = option_value
    return options, alone


def _is_option(word: str) -> bool:
    return word.startswith("-") and len(word) > 1 and not (word[1].isdigit() or word[1] == ".")


def _is_bare(name: str) -> bool:
    """Whether a cluster is one accelerator without a number of them; a node such as dgx-h100 has its own."""
    from tonnage.catalogue.clusters import says_how_many

    try:
        return not says_how_many(name)
    except TonnageError:
        return not name.partition("x")[0].isdecimal()


def _unknown(key: str, value: Any, known: tuple[str, ...]) -> KeyDocument:
    near = nearest(key, known)[:1] if known else []
    why = Message("no such key is known; did you mean {near}?", near=near[0]) if near else ""
    return KeyDocument(key=key, value=_text(value), status="not understood", why=why)


def _text(value: Any) -> str:
    if isinstance(value, bool) or value is None:
        return {True: "true", False: "false", None: "null"}[value]
    text = str(value)
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 3]}..."
