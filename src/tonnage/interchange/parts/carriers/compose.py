"""Services of Docker Compose."""

import re
import shlex
from collections.abc import Mapping
from typing import Any

from tonnage.interchange.parts.carriers.pods import mapping, sections
from tonnage.interchange.parts.launching.carried import CarriedCommand, carried_commands, read_carried
from tonnage.interchange.parts.launching.containers import number_of_gpus
from tonnage.interchange.parts.launching.counting import NO_HOST_LIMIT
from tonnage.interchange.parts.launching.images import entry_point
from tonnage.interchange.parts.words import names
from tonnage.interchange.reading import Reading, flattened
from tonnage.interchange.source import Source
from tonnage.kernel.errors import InvalidInput, shown
from tonnage.kernel.message import OR, listed

# compose-spec, schema/compose-spec.json: service
KNOWN = names("""
    image build command entrypoint environment env_file deploy gpus devices runtime ipc shm_size ulimits volumes
    ports expose networks network_mode restart container_name hostname depends_on healthcheck labels logging
    user working_dir privileged cap_add cap_drop security_opt stdin_open tty mem_limit memswap_limit
    mem_reservation cpus cpuset cpu_shares cpu_count cpu_percent profiles platform pull_policy secrets configs
    tmpfs extra_hosts dns init scale stop_grace_period stop_signal sysctls annotations extends links pid
    group_add read_only domainname mac_address userns_mode uts cgroup cgroup_parent oom_kill_disable
    oom_score_adj pids_limit post_start pre_stop storage_opt volumes_from external_links develop attach
    blkio_config credential_spec device_cgroup_rules dns_opt dns_search isolation label_file provider
    use_api_socket models
""")
DEVICES = "deploy.resources.reservations.devices"
TOP = ("services", "version", "name", "volumes", "networks", "secrets", "configs", "include", "models")
_VARIABLE = re.compile(r"\$(?:\{([A-Za-z_]\w*)(?::?-([^}]*))?(?::?\?[^}]*)?\}|([A-Za-z_]\w*))")


def services(source: Source) -> Mapping[str, Any]:
    """The services of a file; none of another tool's."""
    section = source.tree.get("services")
    if not isinstance(section, Mapping) or "resources" in source.tree or "apiVersion" in source.tree:
        return {}
    has_one = any(isinstance(one, Mapping) and ("image" in one or "build" in one) for one in section.values())
    return section if has_one else {}


def values(source: Source) -> dict[str, Any]:
    shown = {
        f"services.{name}.{key}"
        for name in services(source)
        for key in ("environment", "build", "labels", "ulimits", "logging", "depends_on", "networks", "healthcheck")
    }
    return flattened(source.tree, shown)


def read(r: Reading) -> None:
    commands = [
        one for name, service in services(r.source).items() for one in _commands_of_service(r, str(name), service)
    ]
    asking = [one for one in commands if one[1]] or commands
    names = list(dict.fromkeys(name for name, _, _ in asking))
    if len(names) > 1:
        raise InvalidInput(
            "{file} has several services that train or serve: {names}. Give one of them.",
            file=r.source.name,
            names=listed(names, OR),
        )
    name, accelerators = (asking[0][0], asking[0][1]) if asking else ("", 0)
    place = f"services.{name}."
    replicas = _replicas(r, place)
    if accelerators and accelerators > 0:
        r.count_machines(per_node=accelerators * replicas)
    for key in (f"{place}command", f"{place}entrypoint"):
        r.values.pop(key, None)
    read_carried(r, [one for _, _, one in asking])
    _classify(r, place)


def _commands_of_service(r: Reading, name: str, value: Any) -> list[tuple[str, int, CarriedCommand]]:
    """The commands of a service that formats read, with its accelerators: -1 for all that there are."""
    file, place = r.source.name, f"services.{name}"
    service = mapping(value, file, place)
    environment = _environment(r, place, service.get("environment"))
    image = _filled(str(service.get("image") or ""), environment)
    entry = _words(r, f"{place}.entrypoint", service.get("entrypoint"), environment)
    command = _words(r, f"{place}.command", service.get("command"), environment)
    line = [*(entry or entry_point(image, command)), *command]
    if not line:
        return []
    words = (*(f"{key}={text}" for key, text in environment.items()), *line)
    source = Source(name=file, text="", folder=r.source.folder, words=words)
    number = _accelerators(r, place, service)
    return [(name, number, one) for one in carried_commands(source, where=name, image=image)]


def _words(r: Reading, key: str, value: Any, known: Mapping[str, str]) -> list[str]:
    if value is None:
        return []
    if isinstance(value, str):
        try:
            return [_filled(word, known) for word in shlex.split(value)]
        except ValueError as error:
            raise InvalidInput(
                "{file}: {key} is no command: {error}. Got {text}.",
                file=r.source.name,
                key=key,
                error=error,
                text=shown(value),
            ) from None
    if isinstance(value, list) and all(isinstance(word, str | int | float) for word in value):
        return [_filled(str(word).lower() if isinstance(word, bool) else str(word), known) for word in value]
    raise InvalidInput(
        "{file}: {key} must be a command: a text, or a list of words. Got {value}.",
        file=r.source.name,
        key=key,
        value=shown(value),
    )


def _environment(r: Reading, place: str, value: Any) -> dict[str, str]:
    if value is None:
        return {}
    pairs: list[tuple[Any, Any]] = []
    if isinstance(value, Mapping):
        pairs = list(value.items())
    elif isinstance(value, list):
        pairs = [(one.partition("=")[0], one.partition("=")[2]) for one in value if isinstance(one, str) and "=" in one]
    else:
        raise InvalidInput(
            "{file}: {key} must be names with values. Got {value}.",
            file=r.source.name,
            key=f"{place}.environment",
            value=shown(value),
        )
    return {
        str(name): str(text)
        for name, text in pairs
        if re.fullmatch(r"[A-Za-z_]\w*", str(name)) and isinstance(text, str | int | float)
    }


def _filled(text: str, known: Mapping[str, str]) -> str:
    """Compose puts in variables of its own environment, of which only defaults are known here; $$ is a dollar."""
    plain = text.replace("$$", "\0")
    filled = _VARIABLE.sub(
        lambda match: match[2] if match[2] is not None else known.get(match[1] or match[3], match[0]), plain
    )
    return filled.replace("\0", "$")


def _accelerators(r: Reading, place: str, service: Mapping[str, Any]) -> int:
    """Accelerators of a service: -1 where it takes all, 0 where it takes none."""
    file = r.source.name
    tree: Any = service
    for name in DEVICES.split("."):
        tree = tree.get(name) if isinstance(tree, Mapping) else None
    key = f"{place}.{DEVICES}"
    number = 0
    devices = sections(tree, file, key)
    if isinstance(service.get("gpus"), list):
        devices = [*devices, *sections(service["gpus"], file, f"{place}.gpus")]
    elif service.get("gpus") is not None:
        number = number_of_gpus(service["gpus"]) or -1
    for one in devices:
        ids, count = one.get("device_ids"), one.get("count")
        if isinstance(ids, list):
            number += len(ids)
        elif count is None or count == "all":
            number = -1
        elif isinstance(count, int | str) and str(count).isdecimal() and len(str(count)) < 6:
            number += int(count)
        else:
            raise InvalidInput(
                "{file}: {key}.count must be a number of accelerators, or all. Got {count}.",
                file=file,
                key=key,
                count=shown(count),
            )
    listed_devices = service.get("devices")
    if (
        not number
        and isinstance(listed_devices, list)
        and any("/dev/kfd" in str(one) or "gpu=all" in str(one) for one in listed_devices)
    ):
        number = -1
    if not number and service.get("runtime") == "nvidia":
        number = -1
    return number


def _replicas(r: Reading, place: str) -> int:
    for key in (f"{place}deploy.replicas", f"{place}scale"):
        if r.has(key):
            replicas = r.integer(key)
            if not 0 <= replicas <= 100_000:
                raise r.wrong(key, "a number of replicas")
            r.put("on", None, key)
            return max(replicas, 1)
    return 1


def _classify(r: Reading, place: str) -> None:
    r.ignore(
        [
            "version",
            "name",
            "volumes",
            "networks",
            "secrets",
            "configs",
            "volumes.",
            "networks.",
            "secrets.",
            "configs.",
        ]
    )
    r.ignore([key for key in r.values if key.startswith("services.") and not key.startswith(place)], "another service")
    for key in (f"{place}{DEVICES}", f"{place}gpus"):
        r.put("on", None, key)
    r.ignore([f"{place}mem_limit", f"{place}deploy.resources.limits.memory"], NO_HOST_LIMIT)
    plain = [name for name in KNOWN if name not in ("extends", "models")]
    r.ignore([name for key in plain for name in (f"{place}{key}", f"{place}{key}.")])
    for key in (f"{place}extends", *r.under(f"{place}extends.")):
        r.unsure(key, "what another service sets")
