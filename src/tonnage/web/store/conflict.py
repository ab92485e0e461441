"""What keeps a plan from being saved, or read."""


class StoreError(Exception):
    """The data base does not answer, or refuses."""


class ConflictError(Exception):
    """Somebody else has saved since, or nobody has. `version`: the latest; 0 where there is none."""

    def __init__(self, version: int, message: str):
        super().__init__(message)
        self.version = version
