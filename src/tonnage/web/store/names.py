"""Names of saved plans."""

from tonnage.kernel.errors import InvalidInput, shown

NAME_LENGTH = 100
ANY = -1  # as the version that is expected: whichever there is, and there must be one


def check_name(name: str) -> None:
    """InvalidInput where it is no name of a plan: names stand in paths and on lines."""
    if (
        not name.strip()
        or name != name.strip()
        or len(name) > NAME_LENGTH
        or "/" in name
        or not name.isprintable()
        or name in (".", "..")
    ):
        raise InvalidInput(
            "name of a saved plan must have from 1 to {name_length} characters that are printed, no / "
            "and no space at its ends. Got {name}.",
            name_length=NAME_LENGTH,
            name=shown(name),
        )
