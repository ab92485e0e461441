"""How long the page takes from an input to its redrawn answer, in Debian's Chromium against `tonnage web` on loopback.
Writes results_page.json.

    make bench-page

An input is typed (a sequence length that was not asked before, so that the server estimates), and the time runs until
the verdict and the facts of the newest answer are drawn, from its summary, and the browser has painted them; a second
row until its breakdowns are drawn too, a third until the next best moves, which are asked for after them, are. Tables
that the page asks for later still are not counted: they never hold the answer up.
"""

import argparse
import json
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

from playwright.sync_api import sync_playwright

from web import PORT, serving

WRITTEN = Path(__file__).with_name("results_page.json")
CHROMIUM = ("/usr/bin/chromium", ["--no-sandbox", "--disable-gpu", "--disable-quic", "--disable-background-networking"])
QUESTIONS = {
    "training on 8 accelerators": ("tab=train&model=llama-3.1-8b&on=8xH100-SXM-80GB", "sequence_length"),
    "training on 64, four stages": (
        "tab=train&model=llama-3.1-70b&on=8x8xH100-SXM-80GB&tensor_parallel_size=8&pipeline_parallel_size=4",
        "sequence_length",
    ),
    "training on 256, sixteen stages": (
        "tab=train&model=deepseek-v3&on=32x8xH100-SXM-80GB&runtime=megatron&pipeline_parallel_size=16&expert_parallel_size=16",
        "sequence_length",
    ),
    "serving": (
        "tab=serve&model=llama-3.1-70b&on=4xH100-SXM-80GB&weights=fp8&concurrency=16&output_tokens=512",
        "input_tokens",
    ),
}
# Of which benchmarks/speed.py shows how far the goal of 100 ms is: a large model on many GPUs.
LARGE = {
    "DeepSeek-V3 on 256, 16 stages, 16 expert ranks": (
        "tab=train&model=deepseek-v3&on=32x8xH100-SXM-80GB&pipeline_parallel_size=16&expert_parallel_size=16",
        "sequence_length",
    ),
}
SERVER = "CPU time of the server for a redraw with the next best moves"
PACE = 200  # ms between an answer and the next input: a fast typist's
TYPED = """async ([name, value]) => {
    const field = document.querySelector(`[name="${name}"], #${name}`);
    const begun = performance.now();
    const { drawn: before, foretold: earlier } = document.body.dataset;
    const painted = (ready) => new Promise((done) => {
        const look = () => (ready() ? requestAnimationFrame(() => setTimeout(done, 0)) : setTimeout(look, 0));
        setTimeout(look, 0);
    });
    field.value = value;
    field.dispatchEvent(new Event("input", { bubbles: true }));
    await painted(() => earlier === undefined || document.body.dataset.foretold !== earlier);  // pages before have none
    const foretold = performance.now() - begun;
    await painted(() => document.body.dataset.drawn !== before);
    const drawn = performance.now() - begun;
    await painted(() => !("asking" in document.body.dataset));
    const settled = performance.now() - begun;
    await new Promise((done) => setTimeout(done, PACE));
    return [foretold, drawn, settled];
}""".replace("PACE", str(PACE))


def times(page: object, fragment: str, field: str, count: int) -> dict[str, list[float]]:
    """Milliseconds of each redraw, and of each with the moves, sorted."""
    page.goto("about:blank")  # type: ignore[attr-defined]
    page.goto(f"http://127.0.0.1:{PORT}/#{fragment}")  # type: ignore[attr-defined]
    page.wait_for_selector("body[data-ready]:not([data-asking])")  # type: ignore[attr-defined]
    page.click(f"[data-fields~='{field}']")  # type: ignore[attr-defined] # the slot of the sentence behind which it stands
    page.evaluate(TYPED, [field, "1000"])  # type: ignore[attr-defined]
    found = [page.evaluate(TYPED, [field, str(1024 + 32 * at)]) for at in range(count)]  # type: ignore[attr-defined]
    return {
        "redraw of the verdict": sorted(foretold for foretold, _, _ in found),
        "redraw": sorted(drawn for _, drawn, _ in found),
        "redraw with the next best moves": sorted(settled for _, _, settled in found),
    }


def measured(
    count: int, questions: Mapping[str, tuple[str, str]], python: str = sys.executable
) -> Iterator[dict[str, object]]:
    """A row for each question, what is drawn and percentile, of the server of this Python."""
    with serving(python=python) as server, sync_playwright() as playwright:
        where, words = CHROMIUM
        browser = playwright.chromium.launch(executable_path=where, args=words)
        page = browser.new_page(viewport={"width": 1440, "height": 1000})
        for name, (fragment, field) in questions.items():
            start = server.cpu_seconds()
            for what, found in times(page, fragment, field, count).items():
                for share in (50, 95):
                    value = found[min(len(found) * share // 100, len(found) - 1)] / 1000
                    yield {"name": f"page, {name}: {what}, {share}th percentile", "value": value, "unit": "s"}
            spent = (server.cpu_seconds() - start) / (count + 2)  # with the first answer and the first input
            yield {"name": f"page, {name}: {SERVER}", "value": spent, "unit": "s"}
        browser.close()


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--count", type=int, default=100, help="inputs of each question")
    parser.add_argument("--small", action="store_true", help="one input of one question: its values mean nothing")
    parser.add_argument("--out", type=Path, default=WRITTEN, help="the file to write")
    said = parser.parse_args()
    rows = []
    questions = dict([next(iter(QUESTIONS.items()))]) if said.small else QUESTIONS | LARGE
    for row in measured(1 if said.small else said.count, questions):
        rows.append(row)
        print(row, flush=True)
    said.out.write_text(json.dumps(rows, indent=2) + "\n")


if __name__ == "__main__":
    main()
