"""`docker run`, and its like: options, image, and the words that it starts."""

from collections.abc import Mapping, Sequence
from typing import Any

from msgspec import Struct

from tonnage.interchange.parts.launching.images import entry_point
from tonnage.interchange.parts.launching.programs import Launcher
from tonnage.interchange.parts.words import names
from tonnage.interchange.shell import program_name

PROGRAMS = ("docker", "podman", "nerdctl")
# Docker 29, docs/reference/commandline/container_run.md
RUN = Launcher(
    starts=(("docker", "run"),),
    counts={"gpus": "per node"},
    short={
        "e": "env",
        "v": "volume",
        "p": "publish",
        "w": "workdir",
        "u": "user",
        "h": "hostname",
        "m": "memory",
        "l": "label",
    },
    valued=frozenset(names("""
    env env-file volume publish workdir user hostname label name network net ipc shm-size ulimit memory cpus
    runtime device entrypoint mount restart cap-add cap-drop security-opt add-host group-add platform pid pull
    log-driver log-opt tmpfs cpuset-cpus cpuset-mems memory-swap memory-swappiness oom-score-adj health-cmd
    health-interval health-retries health-start-period health-timeout expose dns annotation cgroupns cidfile uts
    userns stop-timeout stop-signal sysctl volume-driver volumes-from label-file kernel-memory cpu-shares
    hooks-dir
""")),
    switches=frozenset(names("""
    rm d detach i interactive t tty it ti itd dit P publish-all privileged init read-only no-healthcheck
    oom-kill-disable q quiet sig-proxy dt td id di
""")),
)  # fmt: skip


class Run(Struct, frozen=True, kw_only=True):
    """One container: its image, what it starts, its variables and its options."""

    name: str
    image: str
    words: tuple[str, ...]
    environment: Mapping[str, str]
    values: Mapping[str, Any]
    unknown: tuple[str, ...] = ()


def run_of(words: Sequence[str]) -> Run | None:
    """What a command line of `docker run`, `docker container run` or `docker exec` starts; None of another command."""
    if not words or program_name(words[0]) not in PROGRAMS:
        return None
    left = [word for word in words[1:3] if word != "container"][:1]
    if left not in (["run"], ["exec"], ["create"]):
        return None
    values, rest, unknown = _options(list(words[words.index(left[0]) + 1 :]))
    image, *arguments = rest or [""]
    entry = str(values.get("entrypoint", [""])[-1])
    environment = dict(pair.split("=", 1) for pair in values.get("env", ()) if "=" in pair)
    if left == ["exec"]:
        image, entry = "", " "
    started = (*entry.split(), *arguments) if entry else (*entry_point(image, arguments), *arguments)
    return Run(
        name=f"{program_name(words[0])} {left[0]}",
        image=image,
        words=started,
        environment=environment,
        values={name: value if len(value) > 1 else value[0] for name, value in values.items()},
        unknown=tuple(unknown),
    )


def _options(words: list[str]) -> tuple[dict[str, list[Any]], list[str], list[str]]:
    """All values of each option, the words from the image on, and options that docker has not."""
    values: dict[str, list[Any]] = {}
    unknown: list[str] = []
    left = list(words)
    takes = RUN.valued | frozenset(RUN.counts)
    while left and left[0].startswith("-") and len(left[0]) > 1:
        word = left.pop(0)
        name, equals, value = word.lstrip("-").partition("=")
        plain = RUN.short.get(name, name)
        option_value: Any = value if equals else True
        if plain in RUN.switches:
            pass
        elif plain in takes:
            option_value = value if equals else left.pop(0) if left else ""
        elif not word.startswith("--") and RUN.short.get(name[:1], name[:1]) in takes:
            plain, option_value = RUN.short.get(name[:1], name[:1]), word[2:]
        else:
            unknown.append(plain)
        values.setdefault(plain, []).append(option_value)
    return values, left, unknown


def number_of_gpus(value: Any, devices: int = 0) -> int:
    """Accelerators of `--gpus`: a number, `all` (0: as many as there are), or `device=0,1`."""
    text = str(value).strip("\"' ")
    for part in text.split(",") if text.startswith(("count", "driver", "capabilities")) else [text]:
        if part.startswith("count="):
            text = part.removeprefix("count=")
    if text.startswith("device=") or '"device=' in text:
        listed = text.partition("device=")[2].strip("\"'").split(",")
        return len([name for name in listed if name and "=" not in name])
    return int(text) if text.isascii() and text.isdecimal() and len(text) < 7 else devices
