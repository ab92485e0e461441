"""Answers that tests of reports are about, one of each kind, and a reader of HTML that forgives nothing."""

from functools import cache
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import tonnage

ROOT = Path(__file__).parents[2]
VOID = {"meta", "br", "img", "link", "input", "hr"}
ASKED = {
    "train": lambda: tonnage.train(
        "llama-3.1-8b",
        on="8xH100-SXM-80GB",
        tokens="15B",
        machine_usd=250_000,
        electricity_usd_per_kwh=0.1,
        network_share=0.1,
        staff_usd_per_month=1000,
    ),
    "train in stages": lambda: tonnage.train(
        "llama-3.1-8b", on="4xH100-SXM-80GB", pipeline_parallel_size=4, runtime="megatron"
    ),
    "train too large": lambda: tonnage.train("llama-3.1-70b", on="H100-SXM-80GB"),
    "serve": lambda: tonnage.serve(
        "qwen3-32b", on="2xH100-SXM-80GB", concurrency=16, input_tokens=1000, output_tokens=200, ttft=1.0
    ),
    "serve too large": lambda: tonnage.serve("llama-3.1-70b", on="RTX-4090"),
    "plan train": lambda: tonnage.plan_training("llama-3.1-8b", on="8xH100-SXM-80GB", tokens=1_000_000_000),
    "plan train none": lambda: tonnage.plan_training("llama-3.1-8b", on="8xH100-SXM-80GB", tokens="15T", deadline="1d"),
    "plan serve": lambda: tonnage.plan_serving(
        "llama-3.1-8b", on="H100-SXM-80GB,L40S", concurrency=64, ttft=1.0, tpot=0.05
    ),
    "plan serve none": lambda: tonnage.plan_serving("llama-3.1-8b", on="H100-SXM-80GB", concurrency=64, tpot=0.0001),
    "plan pool": lambda: tonnage.place(ROOT / "docs" / "examples" / "pool.yaml"),
    "compare": lambda: tonnage.compare(["qwen3-32b", "llama-3.1-8b"], ["H100-SXM-80GB", "L40S"], weights=[None, "fp8"]),
    "compare training": lambda: tonnage.compare("llama-3.1-8b", ["8xH100-SXM-80GB", "8xL40S"], train=True),
    "max": lambda: tonnage.maximum("users", "qwen3-32b", on="2xH100-SXM-80GB", context=8192),
    "max none": lambda: tonnage.maximum("context", "llama-3.1-70b", on="RTX-4090"),
    "frontier": lambda: tonnage.frontier("qwen3-32b", on="2xH100-SXM-80GB", points=4),
}


@cache
def answer(kind: str) -> Any:
    """Of the kinds above; each is made once."""
    return ASKED[kind]()


class Page(HTMLParser):
    """Tags, their attributes and the text of each element with an id; an AssertionError where tags do not close as
    they open.
    """

    def __init__(self, text: str):
        super().__init__(convert_charrefs=True)
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.open: list[tuple[str, str]] = []
        self.texts: dict[str, str] = {}
        self.shown: list[str] = []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        found = dict(attrs)
        assert len(found) == len(attrs), (tag, attrs)
        self.tags.append((tag, found))
        if found.get("id"):
            assert found["id"] not in self.texts, f"two elements have the id {found['id']}"
            self.texts[found["id"]] = ""
        if tag not in VOID:
            self.open.append((tag, found.get("id") or ""))

    def handle_startendtag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag):
        assert self.open and self.open[-1][0] == tag, f"</{tag}> after {self.open[-3:]}"
        self.open.pop()

    def handle_data(self, data):
        if not any(tag == "style" for tag, _ in self.open):
            self.shown.append(data)
        for _, name in self.open:
            if name:
                self.texts[name] += data

    @property
    def text(self) -> str:
        return " ".join(" ".join(self.shown).split())
