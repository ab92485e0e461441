"""All models of the catalogue, as Model objects."""

from collections.abc import Iterator

from tonnage.architectures import Model
from tonnage.catalogue import model_file, model_names
from tonnage.models import read


def every() -> Iterator[tuple[str, str, Model]]:
    """Yield (name, id on the Hub, model) of every entry, without the network."""
    for name in model_names():
        yield name, model_file(name).hub, read(name, offline=True)
