"""Takes the pictures of docs/page.md, in Debian's Chromium against `tonnage web` on loopback. Pillow makes them small
where it is installed.

make page-pictures
python benchmarks/page_pictures.py --only page_phone --out FOLDER
"""

import argparse
from pathlib import Path
from typing import NamedTuple

from playwright.sync_api import sync_playwright

from page import CHROMIUM
from web import PORT, serving

IMAGES = Path(__file__).parents[1] / "docs" / "images"
LARGE = "model=llama-3.1-70b&on=8x8xH100-SXM-80GB&tensor_parallel_size=8&pipeline_parallel_size=4&global_batch_size=128&sequence_length=8192&tokens=100B"
SERVED = (
    "tab=serve&model=llama-3.1-70b&on=4xH100-SXM-80GB&weights=fp8&input_tokens=8192&output_tokens=1024&concurrency=64"
)
PLANNED = "tab=plan&model=llama-3.1-8b&plan_on=h100,h200&tokens=100B&plan_deadline=30d"


class Picture(NamedTuple):
    """A page as a reader has it; `height` 0: the whole of it."""

    name: str
    fragment: str
    height: int = 1600
    width: int = 1440
    dark: bool = False
    chinese: bool = False
    opened: str = ""  # what is pressed first


PICTURES = (
    Picture("page_first", "", 900),
    Picture("page_slot", f"tab=train&{LARGE}", 900, opened="[data-slot=machine]"),
    Picture("page_number", SERVED, 900, dark=True, opened="#v-line .n"),
    Picture("page_chosen", "tab=serve&model=deepseek-r1&on=2x8xH100-SXM-80GB", 900, dark=True),
    Picture("page_train_light", f"tab=train&{LARGE}", 1200),
    Picture("page_train_dark", f"tab=train&{LARGE}&view=time", 0, dark=True),
    Picture("page_train_whole", f"tab=train&{LARGE}&view=sure", 0),
    Picture("page_does_not_fit", f"tab=train&{LARGE}&micro_batch_size=2&as_is=true", 900),
    Picture("page_zh", f"tab=train&{LARGE}", 1200, chinese=True),
    Picture("page_serve", f"{SERVED}&view=options", 0),
    Picture("page_serve_zh_whole", f"{SERVED}&view=cost", 0, chinese=True),
    Picture("page_phone", f"tab=train&{LARGE}", 0, 390),
    Picture("page_plan", PLANNED, 0),
    Picture("page_plan_phone", PLANNED, 0, 390),
    Picture("page_rules", "tab=rules&model=llama-3.1-8b", 0),
)
TABLES = 30_000  # ms that it waits at most until what is asked beside the answer is there


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=[each.name for each in PICTURES], help="one picture alone")
    parser.add_argument("--out", type=Path, default=IMAGES, help="the folder to write to")
    said = parser.parse_args()
    with serving() as _, sync_playwright() as playwright:
        where, words = CHROMIUM
        browser = playwright.chromium.launch(executable_path=where, args=words)
        for each in PICTURES:
            if said.only not in (None, each.name):
                continue
            page = browser.new_page(
                viewport={"width": each.width, "height": each.height or 1000},
                color_scheme="dark" if each.dark else "light",
                locale="zh-CN" if each.chinese else "en-GB",
            )
            page.goto(f"http://127.0.0.1:{PORT}/#{each.fragment}")
            page.wait_for_selector("body[data-ready]:not([data-asking])")
            if page.locator(".planform .btn.go").count():  # a search begins by its button
                page.locator(".planform .btn.go").click()
                page.wait_for_selector("table.plans")
            page.wait_for_selector("body:not(:has(div.searching))", timeout=120_000)
            if each.opened:
                page.locator(each.opened).first.click()
            page.wait_for_function("() => !document.querySelector('.old, .waiting')", timeout=TABLES)
            made = said.out / f"{each.name}.png"
            page.screenshot(path=made, full_page=not each.height)
            _small(made)
            print(made.name)
            page.close()
        browser.close()


def _small(path: Path) -> None:
    """With 256 colours: a third of the size."""
    try:
        from PIL import Image
    except ImportError:
        return
    Image.open(path).convert("RGB").quantize(256).save(path, optimize=True)


if __name__ == "__main__":
    main()
