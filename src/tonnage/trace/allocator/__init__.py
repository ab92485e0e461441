"""A model of PyTorch's caching allocator for CUDA: the segments that it requests from the driver, and the blocks that
it hands out.

The rules are those of c10/cuda/CUDACachingAllocator.cpp, class DeviceCachingAllocator, without private pools of CUDA
graphs and without record_stream. Needs no torch.
"""

from tonnage.trace.allocator._message import format_size as format_size
from tonnage.trace.allocator._message import out_of_memory_message as out_of_memory_message
from tonnage.trace.allocator._native import Allocator as Allocator
from tonnage.trace.allocator._native import OutOfMemory as OutOfMemory
from tonnage.trace.allocator._snapshot import snapshot as snapshot
from tonnage.trace.allocator.settings import Settings as Settings
from tonnage.trace.allocator.settings import parse_settings as parse_settings
