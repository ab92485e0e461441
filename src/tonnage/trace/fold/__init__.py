"""The events of a deep program from those of the same program with few layers, by expanding what repeats.

Three traces, each one period of layers longer than the one before, show where events are inserted, which allocation
each free of an insertion means, and which layer its module is. Nothing is scaled: the result is an event list like any
other. Needs no torch.
"""

from tonnage.trace.fold._errors import DoesNotFold as DoesNotFold
from tonnage.trace.fold._fold import fold as fold
from tonnage.trace.fold._fold import fold_recordings as fold_recordings
from tonnage.trace.fold._pattern import short_layers as short_layers
