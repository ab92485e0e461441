"""Derives the events of a deep program from traces of it with few layers, by repeating periods of layers.

Three traces, each one period of layers longer than the one before, show where events are inserted, which allocation
each free refers to, and the layer of each module. Nothing is scaled: the result is an ordinary event list. Needs no
torch.
"""

from tonnage.trace.fold._errors import DoesNotFold as DoesNotFold
from tonnage.trace.fold._fold import fold as fold
from tonnage.trace.fold._fold import fold_recordings as fold_recordings
from tonnage.trace.fold._pattern import short_layers as short_layers
