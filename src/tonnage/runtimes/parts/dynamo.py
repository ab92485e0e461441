"""NVIDIA Dynamo before workers of an engine: the engine's memory and passes, and Dynamo's commands.

A worker takes the options of its engine (dynamo.vllm and dynamo.sglang take all of its server's); the frontend routes
requests to workers, and in disaggregated serving from prefill workers to decode workers.
"""

from collections.abc import Callable, Mapping

from msgspec.structs import replace

from tonnage.kernel.message import Message
from tonnage.runtimes.parts.serving import ServingRuntime
from tonnage.runtimes.parts.start import Roles, Start

FRONTEND = "python -m dynamo.frontend"
SOURCE = "Dynamo, components/src/dynamo"
Worker = Callable[[Start], str]


def behind_dynamo(
    engine: ServingRuntime, name: str, worker: Worker, listed: int, aliases: tuple[str, ...]
) -> ServingRuntime:
    """The engine as Dynamo's workers run it. `worker`: its command. Versions are the engine's."""

    def wrapped(rules: ServingRuntime, older: Mapping[str, ServingRuntime]) -> ServingRuntime:
        return replace(
            rules,
            name=name,
            passes_in=engine.name,
            rollout="",
            source=Message("{engine}; {source}", engine=rules.source, source=SOURCE),
            launch=_with_frontend(worker),
            router=_frontend,
            transfers=tuple(each for each in rules.transfers if each == "nixl"),
            transfers_source=f"{SOURCE}: --disaggregation-mode, NIXL",
            serves=("generate",),
            copies_in_server="",
            kv_tiers=(),
            kv_tiers_source="",
            settings=tuple(each for each in rules.settings if each != "kv_offload"),
            vendors=("NVIDIA",),
            listed=listed,
            aliases=aliases,
            older=older,
        )

    return wrapped(engine, {version: wrapped(rules, {}) for version, rules in engine.older.items()})


def _with_frontend(worker: Worker) -> Worker:
    def launch(start: Start) -> str:
        start.notes.append(
            Message(
                "Workers and frontend find each other through etcd and NATS: start these first. One frontend serves "
                "all workers; {flag} sends requests to the worker that has their prefix.",
                flag="--router-mode kv",
            )
        )
        command = worker(start)
        return command if start.role else f"{FRONTEND} &\n{command}"

    return launch


def _frontend(roles: Roles) -> str:
    """examples/backends/vllm/launch/disagg_router.sh; prefill workers are found, not listed."""
    return f"{FRONTEND} --router-mode kv"
