"""The pictures below each other as one PNG or SVG, drawn by an installed Chromium through kaleido; and
what pictures need installed.
"""

import subprocess
from collections.abc import Sequence
from importlib.util import find_spec
from shutil import which

from tonnage.kernel.errors import InvalidInput
from tonnage.render.plot.layout import column
from tonnage.render.plot.panel import Panel

NEEDS_PLOTLY = "plots need plotly: pip install 'tonnage[plot]'."
NEEDS_KALEIDO = (
    "pictures that end in .png or .svg need kaleido: pip install 'tonnage[plot]'. A page that ends in .html needs none."
)


def is_installed(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except (ImportError, ValueError):  # without its parent; a module that is kept from being imported
        return False


NO_BROWSER = (
    "PNG and SVG are drawn by Chromium or Chrome, and none was found: install one (Debian: apt install "
    "chromium), name its program in "
    "BROWSER_PATH, or write .html, which needs none."
)
SHARP = 2  # pixels of a PNG for one of the layout


def lacks_font(language: str) -> bool:
    """Whether this machine is known to have no font with the characters of `language`: fontconfig, which the browser
    asks, lists none.
    """
    lister = which("fc-list")
    if lister is None or language == "en":
        return False
    try:
        listed = subprocess.run([lister, f":lang={language}", "family"], capture_output=True, timeout=20, check=True)
    except (OSError, subprocess.SubprocessError):
        return False
    return not listed.stdout.strip()


def image(title: str, parts: Sequence[Panel], form: str) -> bytes:
    """The file. `form`: png or svg."""
    try:
        import kaleido
        import plotly  # noqa: F401  # kaleido takes its JavaScript, and would ask the network for it
        from choreographer.errors import DevtoolsProtocolError
        from kaleido.errors import ChromeNotFoundError, KaleidoError
    except ImportError:
        raise InvalidInput(NEEDS_KALEIDO if is_installed("plotly") else NEEDS_PLOTLY) from None
    figure = column(title, parts)
    size = {"width": figure["layout"]["width"], "height": figure["layout"]["height"]}
    try:
        # mathjax would be fetched from the network, and no text here needs it
        drawing = kaleido.calc_fig_sync(
            figure, opts={"format": form, "scale": SHARP if form == "png" else 1, **size}, kopts={"mathjax": False}
        )
    except ChromeNotFoundError:
        raise InvalidInput(NO_BROWSER) from None
    except (RuntimeError, OSError, KaleidoError, DevtoolsProtocolError) as error:
        first = error.args[0] if error.args else type(error).__name__
        reason = str(first[0] if isinstance(first, tuple) else first)[:200].rstrip(".")
        raise InvalidInput(
            "the browser that draws PNG and SVG failed: {said}. Write .html, which needs none.", said=reason
        ) from None
    return bytes(drawing)
