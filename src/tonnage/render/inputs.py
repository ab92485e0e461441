"""Units of the inputs that are quantities: the document has them in base units, people read them with their unit."""

from typing import Any

SECONDS = (
    "ttft",
    "tpot",
    "deadline_seconds",
    "accelerator_mtbf",
    "checkpoint_seconds",
    "restart_seconds",
    "repair_seconds",
    "checkpoint_interval",
)
RATES = (
    "storage_bandwidth",
    "storage_read_bandwidth",
    "host_update_bandwidth",
    "inter_node_bandwidth",
    "intra_node_bandwidth",
)
UNITS = {
    **dict.fromkeys(SECONDS, "seconds"),
    **dict.fromkeys(RATES, "bytes/s"),
    "price_per_accelerator_hour": "USD",
    "budget": "USD",
    "budget_accelerator_hours": "accelerator-hours",
    "request_rate": "requests/s",
}


def unit_of(name: str, value: Any) -> str | None:
    """The unit of a number under this name; None where it has none, or where the value stands as it was typed."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    return "bytes" if name.endswith("_bytes") else UNITS.get(name)
