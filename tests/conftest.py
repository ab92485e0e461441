"""Being here puts this folder on the import path: tests import `oracles` and `architectures` (data and helpers)
by name. HYPOTHESIS_PROFILE=soak (`make soak`) tries more examples of every property that does not say how many.
"""

import os

from hypothesis import settings

settings.register_profile("soak", max_examples=10_000, deadline=None)
settings.load_profile(os.environ.get("HYPOTHESIS_PROFILE", "default"))
os.environ.setdefault("CUDA_VISIBLE_DEVICES", "")  # tests say the same on a machine with a GPU, and leave it alone
