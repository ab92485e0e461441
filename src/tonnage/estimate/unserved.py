"""Whether a model that fits answers the load: the part of a verdict that is not memory."""

from collections.abc import Mapping
from typing import Any


def unserved(serving: Mapping[str, Any], question: Mapping[str, Any]) -> str:
    """Why the load is not served; nothing where it is, or where nobody asked.

    Of a trace, which ends, no queue grows without end: its service level alone is judged.
    """
    if serving.get("service_level", {}).get("met") is False:
        return "the service level is not met"
    if "request_rate" in question and "ttft_seconds" in serving and serving["ttft_seconds"] is None:
        return "the queue grows without end"
    return ""
