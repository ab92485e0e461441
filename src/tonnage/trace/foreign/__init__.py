"""Memory as other programs recorded it, read into events, and a replay written as PyTorch's viewer reads it. Needs no
torch.

Nothing in a file is ever run: pickles are read by a machine of ours that knows plain data alone.
"""

from tonnage.trace.foreign._foreign import NOT_TOLD as NOT_TOLD
from tonnage.trace.foreign._foreign import Device as Device
from tonnage.trace.foreign._foreign import Foreign as Foreign
from tonnage.trace.foreign._foreign import Segment as Segment
from tonnage.trace.foreign.formats import read as read
from tonnage.trace.foreign.write import write_snapshot as write_snapshot
