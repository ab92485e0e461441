"""One matrix of answers: models x accelerators x whatever else was given several values of. Every cell is an answer
of `train` or `serve`.
"""

from tonnage.search.compare.asking import FORMS as FORMS
from tonnage.search.compare.asking import options_of as options_of
from tonnage.search.compare.axes import OWN as OWN
from tonnage.search.compare.axes import Axis as Axis
from tonnage.search.compare.axes import axis as axis
from tonnage.search.compare.comparison import Comparison as Comparison
from tonnage.search.compare.matrix import compare as compare
