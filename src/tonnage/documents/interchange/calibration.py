"""The form of `tonnage calibrate show --json`."""

from msgspec import Struct

from tonnage.documents.document import Document


class KeptRunDocument(Struct, kw_only=True, forbid_unknown_fields=True):
    """A run that is kept. `version`: of tonnage, whose estimates it was compared with; `quantities`: those that it
    corrects.
    """

    id: str
    day: str
    version: str
    quantities: list[str]


class CalibratedQuantity(Struct, kw_only=True, forbid_unknown_fields=True):
    """What runs on one accelerator with one runtime say of a quantity. `error`: the median distance of estimate and
    measurement, as a share; `corrected_error`: the same with a correction by all other runs; `factor`: the median
    correction; `used`: whether the correction is used, which needs six runs that it brings nearer.
    """

    quantity: str
    accelerator: str
    runtime: str
    runs: int
    error: float
    corrected_error: float
    factor: float
    used: bool


class CalibrationDocument(Document, kw_only=True, forbid_unknown_fields=True):
    """The runs of a site. `place`: the data base that they are in."""

    place: str
    version: str
    runs: list[KeptRunDocument]
    quantities: list[CalibratedQuantity]
