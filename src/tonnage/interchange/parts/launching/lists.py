"""Long lists of names, which are easier to read as texts."""


def words_in(text: str) -> tuple[str, ...]:
    """The words of a text."""
    return tuple(text.split())
