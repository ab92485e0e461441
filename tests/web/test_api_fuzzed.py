"""Requests made from the API's own description, right and wrong: no failure of the server, and every answer as
described.
"""

import json
import os
from collections.abc import Iterator
from random import Random

import pytest
import schemathesis
from hypothesis import HealthCheck, settings
from schemathesis.checks import not_a_server_error
from schemathesis.specs.openapi.checks import (
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
    status_code_conformance,
)

from tonnage.web.schema.openapi import document
from tonnage.web.settings import Limits, Settings
from web.live import live

# A search may be as large as the question says: here it ends soon, which is one of the answers that are described.
QUICK = Limits(quick_seconds=0.5, answer_seconds=0.5, kept_bytes=0)
CHECKS = [
    not_a_server_error,
    status_code_conformance,
    content_type_conformance,
    response_headers_conformance,
    response_schema_conformance,
]
EXAMPLES = int(os.environ.get("TONNAGE_API_CASES", "10000")) // 19  # of each route
described = schemathesis.openapi.from_dict(json.loads(json.dumps(document())))
# Where tests are collected, each route's cases are made already: for `make soak` alone.
SOAK = os.environ.get("HYPOTHESIS_PROFILE") == "soak"
described.config.phases.coverage.enabled = SOAK and "TONNAGE_API_CASES" not in os.environ
few = schemathesis.openapi.from_dict(json.loads(json.dumps(document())))
few.config.phases.coverage.enabled = False  # a thousand cases for each route of many options


@pytest.fixture(scope="module")
def served() -> Iterator[str]:
    """Where the server is."""
    with live(Settings(port=0, hub=False, limits=QUICK)) as port:
        yield f"http://127.0.0.1:{port}"


MODELS, MACHINES = (
    ("llama-3.1-8b", "mixtral-8x7b", "t5-small", "deepseek-v3"),
    ("8xh100", "rtx-4090", "2x8xh100", "tpu-v4"),
)


def ask(case: schemathesis.Case, served: str) -> None:
    """As it was made; and with a model and a machine that there are, so that more than their names is read."""
    case.call_and_validate(base_url=served, checks=CHECKS)
    if not isinstance(case.body, dict):
        return
    chosen = Random(repr(case.body))
    kept = chosen.sample(sorted(case.body), min(3, len(case.body)))
    aimed = {"model": chosen.choice(MODELS), "on": chosen.choice(MACHINES)}
    case.body = {**aimed, **{name: case.body[name] for name in kept}}
    if case.path.endswith("launch"):
        case.body["verb"] = chosen.choice(("train", "serve"))
    if case.path.endswith("batch"):
        case.body = {"verb": chosen.choice(("train", "serve")), "rows": [aimed, {**aimed, "mbs": 2}]}
    case.call_and_validate(base_url=served, checks=CHECKS)


COMMON = {"deadline": None, "suppress_health_check": list(HealthCheck), "database": None}


@few.parametrize()
@settings(max_examples=5, **COMMON)
def test_no_request_of_a_few_breaks_the_server(case, served):
    ask(case, served)


@pytest.mark.soak
@described.parametrize()
@settings(max_examples=EXAMPLES, **COMMON)
def test_no_request_of_ten_thousand_breaks_the_server(case, served):
    ask(case, served)
