"""Lists of names, as texts that are easy to read."""


def names(text: str) -> tuple[str, ...]:
    """The words of a text."""
    return tuple(text.split())
