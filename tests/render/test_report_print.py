"""What a browser prints of a report: the decision on one page of A4. Needs Chromium."""

import re
import shutil
import subprocess

import pytest
from report_answers import ASKED, answer

from tonnage.language import speaking
from tonnage.render.report import html_of

NAMES = ("chromium-headless-shell", "chromium", "chromium-browser", "google-chrome")
CHROMIUM = next((found for name in NAMES if (found := shutil.which(name))), None)
pytestmark = pytest.mark.skipif(CHROMIUM is None, reason="no Chromium is installed")
A4 = (595, 842)  # points


def printed(text: str, folder) -> list[tuple[float, float]]:
    """The pages of the PDF that the browser prints, as their sizes."""
    (folder / "a.html").write_text(text, encoding="utf-8")
    subprocess.run(
        [
            CHROMIUM,
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--no-pdf-header-footer",
            f"--user-data-dir={folder / 'profile'}",
            f"--print-to-pdf={folder / 'a.pdf'}",
            (folder / "a.html").as_uri(),
        ],
        check=True,
        capture_output=True,
        timeout=120,
    )
    pdf = (folder / "a.pdf").read_bytes()
    boxes = re.findall(rb"/MediaBox \[0 0 ([\d.]+) ([\d.]+)\]", pdf)
    assert len(boxes) == len(re.findall(rb"/Type /Page\b(?!s)", pdf))
    return [(float(width), float(height)) for width, height in boxes]


def first_page(text: str) -> str:
    """The report without what follows its brief."""
    end = text.index("</section></section>") + len("</section></section>")
    return text[:end] + "</main></body></html>"


@pytest.mark.parametrize("kind", ["train", "plan train", "plan serve", "compare", "plan pool"])
def test_the_decision_is_one_page_of_a4(kind, tmp_path):
    pages = printed(first_page(html_of(answer(kind).to_dict(), command=answer(kind).command)), tmp_path)
    assert [(round(width), round(height)) for width, height in pages] == [A4]


def test_the_details_begin_on_the_second_page(tmp_path):
    text = html_of(answer("max").to_dict(), command=answer("max").command)
    with_details, alone = printed(text, tmp_path), printed(first_page(text), tmp_path)
    assert len(alone) == 1 and len(with_details) > 2


def test_the_longest_texts_still_fit_on_the_page_in_both_languages(tmp_path):
    """Many long notes and reasons, a long command, a long name: what is too long is cut there, and whole in the
    details.
    """
    document = answer("plan serve").to_dict()
    long = "a note that is long and goes on " * 20
    document = {**document, "warnings": [f"{at}: {long}" for at in range(12)]}
    for entry in document["best"]["question"].values():
        entry["why"] = long
    for language in ("en", "zh"):
        with speaking(language):
            text = html_of(document, command=f"tonnage plan --serve {'--option value ' * 200}")
        assert len(printed(first_page(text), tmp_path)) == 1
        assert f"11: {long}".strip() in text


def test_every_kind_has_a_brief_to_print():
    assert all('<section class="brief">' in html_of(answer(kind).to_dict()) for kind in ASKED)
