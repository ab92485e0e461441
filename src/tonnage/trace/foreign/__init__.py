"""Readers of other programs' memory files into events, and a writer of replays for PyTorch's viewer. Needs no torch.

Nothing in a file is ever run: a machine of ours reads pickles and knows only plain data.
"""

from tonnage.trace.foreign._foreign import NOT_TOLD as NOT_TOLD
from tonnage.trace.foreign._foreign import Device as Device
from tonnage.trace.foreign._foreign import Foreign as Foreign
from tonnage.trace.foreign._foreign import Segment as Segment
from tonnage.trace.foreign.formats import read as read
from tonnage.trace.foreign.write import write_snapshot as write_snapshot
