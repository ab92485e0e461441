"""Names of machines as people spell them: other blanks and dashes, a maker or provider before, the memory behind."""

import re

from tonnage.catalogue import toml_files
from tonnage.catalogue.accelerators import accelerator
from tonnage.kernel.units import GIB

# Words before a name that say who makes or rents it, or, as SageMaker's "ml.", through which service.
MAKERS = (
    "nvidia", "amd", "intel", "apple", "huawei", "geforce", "radeon", "quadro", "tesla", "instinct", "aws", "amazon",
    "ec2", "sagemaker", "gcp", "google", "google cloud", "azure", "microsoft", "oracle", "oci", "aliyun", "alibaba",
)  # fmt: skip
_MAKER = re.compile(rf"(?:(?:{'|'.join(sorted(MAKERS, key=len, reverse=True))})[\s_-]+|ml\.)(?=\S)", re.IGNORECASE)
_SIZE = re.compile(r"(.*\S)[\s_(-]*?\(?\b(\d{1,4})\s?(?:gb|gib|g)\)?", re.IGNORECASE)
KINDS = ("accelerators", "nodes")


def known_spelling(name: str) -> str:
    """The catalogue's name of a machine that is spelt in another way, "NAME:VARIANT" for a variant; "" for none.

    "RTX4060Ti", "NVIDIA GeForce RTX-4060 Ti" and "rtx 4060ti 8 GB" are one card each: blanks, dashes and underscores do
    not matter, nor who makes it, and a memory is looked for among the sizes and variants of the chip.
    """
    if not name[:1].isalnum():
        return ""
    chip, colon, variant = name.partition(":")
    for candidate in _without_makers(chip):
        found = _same_letters(candidate) or ("" if colon else _of_size(candidate))
        if found:
            return f"{found}{colon}{variant}"
    return ""


def _without_makers(name: str) -> list[str]:
    """The name, and what is left of it where the makers before it are taken away one by one."""
    names = [name.strip()]
    while match := _MAKER.match(names[-1]):
        names.append(names[-1][match.end() :].strip())
    return names


def _plain(name: str) -> str:
    return re.sub(r"[\s_-]", "", name.lower())


def _same_letters(name: str, kinds: tuple[str, ...] = KINDS) -> str:
    """The one name or alias that differs in blanks and dashes alone; "" where several do."""
    wanted = _plain(name)
    files: set[tuple[str, str]] = set()
    for kind in kinds:
        known = {**{stem: stem for stem in toml_files.names(kind)}, **toml_files.aliases(kind)}
        files |= {(kind, stem) for written, stem in known.items() if _plain(written) == wanted}
    return files.pop()[1] if len(files) == 1 else ""


def _of_size(name: str) -> str:
    """The chip, its variant or its sister with the memory that is named behind it."""
    match = _SIZE.fullmatch(name)
    if match is None:
        return ""
    stem, gib = _same_letters(match[1], ("accelerators",)), int(match[2])
    if not stem:
        return ""
    chip = accelerator(stem)
    if round(chip.memory.nominal_bytes / GIB) == gib:
        return stem
    if f"{gib}gb" in chip.variants:
        return f"{stem}:{gib}gb"
    bare = re.sub(r"-\d+gb$", "", stem)
    return _same_letters(f"{bare}-{gib}gb", ("accelerators",))
