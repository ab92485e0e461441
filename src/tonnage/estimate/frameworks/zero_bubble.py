"""The authors' Megatron-LM of zero-bubble pipelines in the walk: Megatron's, started with options of its own."""

from tonnage.architectures import Model
from tonnage.estimate.frameworks.base import FRAMEWORKS
from tonnage.estimate.frameworks.megatron import Megatron
from tonnage.spec import TrainingPlan


class ZeroBubble(Megatron):
    """A run of it."""

    @classmethod
    def launch_settings(cls, model: Model, plan: TrainingPlan) -> list[str]:
        """README.md: a limit of as many pending backward passes as there are stages is ZB-H1 (ZB1P), of twice as many
        ZB-H2 (ZB2P).
        """
        flags = super().launch_settings(model, plan)
        schedule, stages = plan.pipeline_schedule, plan.pipeline_parallel_size
        if schedule == "zbv":
            chunks = f"--num-virtual-stages-per-pipeline-rank {plan.virtual_pipeline_size}"
            own = ["--zero-bubble-v-schedule"]
            return [*(flag for flag in flags if flag != chunks), *own, "--enable-optimizer-post-validation"]
        if schedule not in ("zb-h1", "zb-h2"):
            return flags
        pending = stages * (2 if schedule == "zb-h2" else 1)
        flags += ["--enable-zero-bubble", f"--zero-bubble-max-pending-backward {pending}"]
        return [*flags, "--enable-optimizer-post-validation"] if schedule == "zb-h2" else flags


FRAMEWORKS.add("zero_bubble", ZeroBubble)
