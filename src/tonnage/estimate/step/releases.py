"""Releases of frameworks, as a user names them in `runtime_version`: "transformers 4.39.3", "4.39" or "4.39,
accelerate 0.29".
"""

import re

Release = tuple[int, int]


def release_of(text: str, name: str, newest: Release) -> Release:
    """The release of `name`, or of what is named first without a name; `newest` where none is."""
    found = re.search(rf"{name}[ =-]*v?(\d+)\.(\d+)", text, re.IGNORECASE) or re.match(r"\s*v?(\d+)\.(\d+)", text)
    return (int(found[1]), int(found[2])) if found else newest
