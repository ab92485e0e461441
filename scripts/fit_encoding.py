"""Fit the rates of passes without decoding and of speech: src/tonnage/estimate/serving_time/encoding.toml.

Reads validation/recent/encoders.yaml and speech.yaml, but for rows that are left out for good. Every rate is one of
several rows; a group's rates are also fitted with each publication left out in turn, and the errors of those rows make
its band, where there are at least 8 of two publications.

python scripts/fit_encoding.py            prints rates and errors
python scripts/fit_encoding.py --write    and writes them
"""

import math
import random
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from _rows_for_fits import RECENT, rows_for_fits
from tonnage.estimate.serving_time.encoding_rates import EncodingRates, SpeechRates
from tonnage.validation import Row
from tonnage.validation.encoding import EncodingRow, encoder_seconds, speech_seconds

OUT = Path(__file__).parents[1] / "src/tonnage/estimate/serving_time/encoding.toml"
Rates = dict[str, float]
Pairs = list[tuple[float, float]]
TRIES, STEP, LEAST, PERCENTILE, HELD = 3000, 0.5, 8, 0.05, 0.02
# Where a search begins, and what rows that say nothing of a rate leave it at. Passes over hidden states and scores are
# counted: residuals and norms read two and write one, an activation is four times as wide, scores are scaled, masked,
# and normalised.
ENCODER = {"products": 0.5, "full_products": 0.7, "plain_products": 0.5, "low_power": 0.6}
ENCODER |= {"passes_over_hidden": 26.0, "passes_over_scores": 8.0, "kernel": 1e-5, "server": 1.5, "small_server": 2.0}
# A window has 1,500 rows: as many tiles of 128 by 128 as a chip has units where a product is about 1,000 wide.
SPEECH = {"encoder": 0.4, "plain_encoder": 0.7, "narrow": 1000.0, "passes_over_hidden": 26.0, "passes_over_scores": 8.0}
SPEECH |= {"step": 1e-4, "layer": 2e-4, "reads": 0.8, "sequence": 0.005, "beam": 0.1, "spread": 0.2, "window": 0.05}
SPEECH |= {"server": 1.0, "small_server": 1.0}
# Python's hosts ask for a kernel in about 10 microseconds: some 40 of a layer.
PYTHON = {"encoder": 0.5, "step": 2e-3, "layer": 4e-4, "window": 0.1, "server": 1.5, "small_server": 2.0}


class Group(NamedTuple):
    """Rows whose rates are one set; `start`: in place of those of `SPEECH`; `fixed`: what no row tells apart."""

    name: str
    engine: str
    start: Rates
    fixed: tuple[str, ...]


OF_ENCODER = ("plain_encoder", "narrow", "passes_over_hidden")
GROUPS = (
    Group("faster-whisper", "faster-whisper", {"server": 1.5, "small_server": 1.5}, ("plain_encoder", "small_server")),
    Group("whisper.cpp", "whisper.cpp", {}, ("server", "small_server", "sequence", "beam", "spread", "window")),
    Group("openai-whisper", "openai-whisper", PYTHON | {"small_server": 2.5}, (*OF_ENCODER, "small_server")),
    Group("eager", "transformers", PYTHON, (*OF_ENCODER, "encoder", "passes_over_scores", "reads", "sequence", "beam")),
)
SHARES = ("products", "full_products", "plain_products", "encoder", "plain_encoder", "reads", "low_power")


def fitted(
    rows: Sequence[Row], start: Rates, free: Sequence[str], predict: Callable[[Row, Rates], Pairs], held: float = HELD
) -> Rates:
    """Rates with the least mean logarithm of errors; `held`: how much a rate that moves by a factor of e must gain."""
    chance, best = random.Random(0), dict(start)

    def loss(rates: Rates) -> float:
        errors = [abs(math.log(guess / real)) for row in rows for guess, real in predict(row, rates)]
        moved = sum(abs(math.log(rates[name] / start[name])) for name in free)
        return sum(errors) / max(len(errors), 1) + held * moved

    least, width = loss(best), STEP
    for number in range(TRIES):
        name = chance.choice(list(free))
        moved_to = best[name] * math.exp(chance.gauss(0, width))
        tried = best | {name: min(moved_to, 1.0) if name in SHARES else moved_to}
        if (now := loss(tried)) < least:
            least, best = now, tried
        if number % (TRIES // 10) == 0:
            width *= 0.8
    return best


def errors(rows: Sequence[Row], rates: Rates, predict: Callable[[Row, Rates], Pairs]) -> list[float]:
    return [guess / real - 1 for row in rows for guess, real in predict(row, rates)]


def told(name: str, found: Sequence[float]) -> str:
    sizes = sorted(map(abs, found))
    if not sizes:
        return f"# {name}: no rows"
    middle, mean = sizes[len(sizes) // 2], sum(found) / len(found)
    tenth = sizes[min(len(sizes) - 1, len(sizes) * 9 // 10)]
    return f"# {name}: n {len(sizes)} median {100 * middle:.0f} p90 {100 * tenth:.0f} bias {100 * mean:+.0f} percent"


def across(
    rows: Sequence[Row], start: Rates, free: Sequence[str], predict: Callable[[Row, Rates], Pairs]
) -> list[float]:
    """Errors of each publication by the rates of all others."""
    found: list[float] = []
    names = sorted({row.labels["publication"] for row in rows})
    for name in names if len(names) > 1 else ():
        others = [row for row in rows if row.labels["publication"] != name]
        rates = fitted(others, start, free, predict)
        found += errors([row for row in rows if row.labels["publication"] == name], rates, predict)
    return found


def band(found: Sequence[float]) -> str:
    """Measured over predicted; nothing where too few rows say it."""
    if len(found) < LEAST:
        return ""
    ratios = sorted(1 / (1 + error) for error in found)
    low = ratios[round(PERCENTILE * (len(ratios) - 1))]
    high = ratios[round((1 - PERCENTILE) * (len(ratios) - 1))]
    return f"{{ low = {low:.3g}, high = {high:.3g}, rows = {len(ratios)} }}"


def table(name: str, rates: Mapping[str, float]) -> list[str]:
    return [f"[{name}]", *(f"{key} = {value:.3g}" for key, value in rates.items())]


def main() -> None:
    text = RECENT / "encoders.yaml", RECENT / "speech.yaml"
    every = [row for row in rows_for_fits(text, "embed_speed") if row.verb and not row.skipped]
    cases = {row.id: EncodingRow(row) for row in every}
    lines = ["# Made by scripts/fit_encoding.py from validation/recent/encoders.yaml and speech.yaml."]
    body: list[str] = []

    def encoder(row: Row, rates: Rates) -> Pairs:
        return encoder_seconds(cases[row.id], EncodingRates(**rates))

    def spoken(row: Row, rates: Rates) -> Pairs:
        return speech_seconds(cases[row.id], SpeechRates(**rates))

    texts = [row for row in every if cases[row.id].is_text and row.completeness_class != "indicative"]
    eager = [row for row in texts if cases[row.id].style in ("eager", "unfused")]
    free = list(ENCODER)
    written = fitted(eager, ENCODER, free, encoder)
    found = across(eager, ENCODER, free, encoder)
    lines += [told("encoders, unfused and eager, seen", errors(eager, written, encoder))]
    lines += [told("encoders, unfused and eager, publications left out", found)]
    body += table("encoders.unfused", written) + table("encoders.eager", written | {"passes_over_scores": 0.0})
    body += ["[bands]"] + [f"{name} = {text}" for name in ("unfused", "eager") if (text := band(found))]
    fused = [row for row in texts if cases[row.id].style == "fused"]
    start = written | {"passes_over_scores": 0.0, "passes_over_hidden": 18.0}
    joined = fitted(fused, start, ["products"], encoder)
    lines += [told("encoders, fused, seen", errors(fused, joined, encoder))]
    body += table("encoders.fused", joined)

    for group in GROUPS:
        rows = [row for row in every if row.question["engine"] == group.engine and not cases[row.id].is_text]
        rows = [row for row in rows if row.completeness_class != "indicative"]
        start = SPEECH | group.start
        free = [name for name in start if name not in group.fixed]
        rates = fitted(rows, start, free, spoken)
        left = across(rows, start, free, spoken)
        lines += [told(f"speech, {group.name}, seen", errors(rows, rates, spoken))]
        lines += [told(f"speech, {group.name}, publications left out", left)]
        body += table(f'speech."{group.name}"', rates)
        if text := band(left):
            body += [f"band = {text}"]
    out = "\n".join([*lines, *body]) + "\n"
    print(out)
    if "--write" in sys.argv:
        OUT.write_text(out, encoding="utf-8")


if __name__ == "__main__":
    main()
