"""Parts of a pool: accelerators of one node that are alike in all that matters, and kinds of parts that are alike
with each other.
"""

from collections import Counter
from collections.abc import Iterable
from functools import cached_property

from msgspec import Struct
from msgspec.structs import replace

from tonnage.catalogue import accelerator as accelerator_named
from tonnage.catalogue.nodes import node as node_named
from tonnage.estimate.money.money import best_price, usd_per_accelerator
from tonnage.kernel.errors import InvalidInput, MissingDatum
from tonnage.kernel.message import Message, listed
from tonnage.kernel.registry import unknown
from tonnage.kernel.units import human
from tonnage.search.pool.inventory import Inventory, NodeForm, bytes_of, node_names, rate_of
from tonnage.spec import Accelerator, Cluster, Link, Node


class Kind(Struct, frozen=True, kw_only=True, eq=False):
    """Parts that are alike: `each` accelerators with `free` bytes, in a node with the same links. `price`: USD of an
    accelerator and hour, None: not known.
    """

    group: str
    accelerator: Accelerator
    each: int
    free: int
    node: Node
    price: float | None
    parts: tuple[str, ...]
    nodes: tuple[str, ...]

    @property
    def name(self) -> str:
        """The name that tables show."""
        return self.accelerator.name

    @property
    def reserve(self) -> int:
        """Bytes of each accelerator that other jobs hold."""
        return self.accelerator.memory.usable_bytes - self.free

    @property
    def size(self) -> int:
        return self.each * len(self.parts)

    def cluster(self, nodes: int, per_node: int) -> Cluster:
        """A cluster of `nodes` nodes with `per_node` accelerators of each."""
        return Cluster(accelerator=self.accelerator, num_nodes=nodes, accelerators_per_node=per_node, node=self.node)


class Pool:
    """The free accelerators of a pool, by kind."""

    def __init__(self, inventory: Inventory, *, leave: Iterable[str] = (), join: Iterable[str] = ()):
        self.inventory = inventory
        self.joined = _joined(inventory, join)
        self.left = _leaving(inventory, leave, self.joined)
        groups = [*inventory.nodes, *(form for form in inventory.spare if form.name in self.joined)]
        self.unpriced: list[str] = []
        kinds: dict[tuple[object, ...], Kind] = {}
        for form in groups:
            for kind in self._kinds(form):
                node = kind.node
                key = (
                    kind.accelerator.name,
                    kind.each,
                    kind.free,
                    node.inside,
                    node.outside,
                    node.host_memory_bytes,
                    kind.price,
                )
                kinds[key] = _joined_kinds(kinds[key], kind) if key in kinds else kind
        self.kinds = tuple(kinds.values())
        if not self.kinds:
            raise InvalidInput("no accelerator of the pool is free: all are held, or have left.")

    def _kinds(self, form: NodeForm) -> list[Kind]:
        chip = accelerator_named(form.accelerator)
        free = chip.memory.usable_bytes if form.free_memory is None else bytes_of(form.free_memory, "free_memory")
        price, node = self._price(form), node_of(form)
        kinds = []
        for name in node_names(form):
            if name in self.left:
                continue
            amounts = _left_free(form, name, free)
            for number, (size, count) in enumerate(sorted(amounts.items(), reverse=True)):
                part = name if number == 0 else Message("{name} ({size} free)", name=name, size=human(size, "bytes"))
                kinds.append(
                    Kind(
                        group=form.name,
                        accelerator=chip,
                        each=count,
                        free=size,
                        node=node,
                        price=price,
                        parts=(part,),
                        nodes=(name,),
                    )
                )
        return kinds

    def _price(self, form: NodeForm) -> float | None:
        if form.price is not None:
            return form.price
        try:
            cluster = Cluster(accelerator=accelerator_named(form.accelerator), accelerators_per_node=form.count)
            return usd_per_accelerator(cluster, best_price(cluster).price)
        except MissingDatum:
            self.unpriced.append(form.name)
            return None

    @cached_property
    def size(self) -> int:
        return sum(kind.size for kind in self.kinds)

    @property
    def types(self) -> list[str]:
        """The names of the pool's accelerators, each once."""
        return list(dict.fromkeys(kind.accelerator.name for kind in self.kinds))

    @property
    def free_bytes(self) -> int:
        return sum(kind.size * kind.free for kind in self.kinds)

    def describe(self) -> str:
        """The number of accelerators of each type, as text."""
        counts: Counter[str] = Counter()
        for kind in self.kinds:
            counts[kind.accelerator.name] += kind.size
        return listed(f"{count} {name}" for name, count in counts.items())


def _joined_kinds(known: Kind, more: Kind) -> Kind:
    """Two kinds that are alike as one kind."""
    group = known.group if more.group in known.group.split(", ") else f"{known.group}, {more.group}"
    return replace(known, group=group, parts=known.parts + more.parts, nodes=known.nodes + more.nodes)


def _left_free(form: NodeForm, name: str, free: int) -> Counter[int]:
    """Free bytes -> accelerators of a node that have them, after what others hold."""
    state = [free] * form.count
    for held in form.held:
        if held.node not in (None, name):
            continue
        held_bytes = free if held.memory is None else bytes_of(held.memory, "memory")
        able = [index for index in range(form.count) if state[index] >= held_bytes]
        if held.memory is not None:  # those that share are put on what is shared already
            able.sort(key=lambda index: state[index])
        else:
            able = [index for index in able if state[index] == free]
        if len(able) < held.accelerators:
            raise InvalidInput(
                "{name}: held: {job} hold {accelerators} accelerators of {taken} each, and only {count} "
                "have so much free.",
                name=name,
                job=held.job or "others",
                accelerators=held.accelerators,
                taken=human(held_bytes, "bytes"),
                count=len(able),
            )
        for index in able[: held.accelerators]:
            state[index] -= held_bytes
    return Counter(size for size in state if size > 0)


def node_of(form: NodeForm) -> Node:
    """The usual node of this accelerator with what the inventory says of this one."""
    chip = accelerator_named(form.accelerator)
    usual = node_named(chip.default_node) if chip.default_node else None
    inside = usual.inside if usual else chip.scale_up
    outside = usual.outside if usual else None
    host = usual.host_memory_bytes if usual and usual.accelerators == form.count else None
    if form.inside is not None:
        inside = Link(
            name=inside.name if inside else "as the inventory says", bytes_per_second=rate_of(form.inside, "inside")
        )
    if form.outside is not None:
        outside = Link(
            name=outside.name if outside else "as the inventory says", bytes_per_second=rate_of(form.outside, "outside")
        )
    if form.host_memory is not None:
        host = bytes_of(form.host_memory, "host_memory")
    return Node(
        name=form.name,
        accelerator=chip.name,
        accelerators=form.count,
        inside=inside,
        outside=outside,
        host_memory_bytes=host,
        power_watts=usual.power_watts if usual and usual.accelerators == form.count else None,
    )


def _leaving(inventory: Inventory, names: Iterable[str], joined: frozenset[str]) -> frozenset[str]:
    """Nodes of the pool that leave it; a spare one that has not joined cannot."""
    here = [*inventory.nodes, *(form for form in inventory.spare if form.name in joined)]
    groups = {form.name: node_names(form) for form in here}
    known = [name for form in here for name in node_names(form)]
    away = {name: form.name for form in inventory.spare if form not in here for name in (form.name, *node_names(form))}
    leaving: set[str] = set()
    for name in names:
        if name in groups:
            leaving.update(groups[name])
        elif name in known:
            leaving.add(name)
        elif name in away:
            raise InvalidInput(
                "{@leave}: {name} is spare and not in the pool, so it cannot leave it: leave it out, or "
                "add {--join} {away}.",
                name=name,
                away=away[name],
            )
        else:
            raise InvalidInput("{@leave}: {unknown}", unknown=unknown("node", name, dict.fromkeys([*known, *groups])))
    return frozenset(leaving)


def _joined(inventory: Inventory, names: Iterable[str]) -> frozenset[str]:
    known = [form.name for form in inventory.spare]
    for name in names:
        if name not in known:
            hint = (
                str(unknown("spare group", name, known))
                if known
                else "the inventory has no spare groups: list what may join under spare."
            )
            raise InvalidInput("{@join}: {hint}", hint=hint)
    return frozenset(names)
