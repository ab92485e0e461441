"""What draws pictures, and whether it is installed."""

from importlib.util import find_spec

NEEDS_PLOTLY = "plots need plotly: pip install 'tonnage[plot]'."
NEEDS_KALEIDO = (
    "pictures that end in .png or .svg need kaleido: pip install 'tonnage[plot]'. A page that ends in .html needs none."
)


def is_installed(module: str) -> bool:
    try:
        return find_spec(module) is not None
    except (ImportError, ValueError):  # without its parent; a module that is kept from being imported
        return False
