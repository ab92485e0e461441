"""The Trainer of transformers in the walk: what changed between releases of transformers in how a loss is taken."""

from tonnage.estimate import _layers as tapes
from tonnage.estimate._framework import Framework
from tonnage.estimate._rank import Stage
from tonnage.estimate._releases import Release, release_of
from tonnage.tape import Layer

NEWEST: Release = (5, 23)
# models/llama/modeling_llama.py of 4.39, 4.44 and 4.45: the model gives logits in fp32; loss/loss_utils.py of 4.46 and 4.48: the loss casts
# them, and copies all but the last position; of 4.49 on: labels are padded instead. Those between were not read.
LOSS_CASTS: Release = (4, 46)
LABELS_PADDED: Release = (4, 49)


def release(text: str) -> Release:
    """The release of transformers that a run names."""
    return release_of(text, "transformers", NEWEST)


def loss_kind(of: Release) -> str:
    """How ForCausalLM takes its loss."""
    return "shifted in the model" if of < LOSS_CASTS else "shifted" if of < LABELS_PADDED else "upcast"


class Transformers(Framework):
    """A run of the Trainer on one accelerator, or under DDP."""

    def loss(self, stage: Stage) -> Layer | None:
        if not (stage.is_last and stage.after):
            return None
        kind = loss_kind(release(self.plan.runtime_version))
        return tapes.loss_layer(stage.after, self.step.setting, self.step.model.hidden_size, kind, 1, logits_split=False)
