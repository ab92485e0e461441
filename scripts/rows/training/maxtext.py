"""MaxText: JAX, where the policy of rematerialisation is `remat_policy` and a batch is said per device."""

from rows.training.config import Config
from rows.training.reader import Options, Reader

# base.yml, remat_policy: what is not among these names saves some of the products of matrices
POLICIES = {"full": "full", "minimal": "selective", "none": "none"}


def options(c: Config) -> Options:
    policy = c.text("remat_policy", "remat")
    return {"recompute": POLICIES.get(policy, "selective") if policy else "full"}


READER = Reader(name="MaxText", runtime="maxtext", frameworks=r"maxtext", sources=r"maxtext", options=options)
