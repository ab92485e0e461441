"""What the user asks about: accelerators, nodes, a cluster, a plan. Frozen, keyword-only, in base units."""

from tonnage.spec.machine import Accelerator, Cluster, Fact, Link, Memory, Node
from tonnage.spec.media import Encoded, Media
from tonnage.spec.plan import Plan, StatedLinks
from tonnage.spec.serving import Denoising, Drafting, HostMemory, Load, ServedAdapters, ServingPlan
from tonnage.spec.training import (
    AttentionKernel,
    DeepSpeedSettings,
    Imbalance,
    Kernels,
    MegatronSettings,
    Offload,
    PipelineLayout,
    PostTraining,
    Rollout,
    TrainingPlan,
    Tuning,
    Vision,
)

__all__ = [
    "Accelerator",
    "AttentionKernel",
    "Cluster",
    "DeepSpeedSettings",
    "Denoising",
    "Drafting",
    "Encoded",
    "Fact",
    "HostMemory",
    "Imbalance",
    "Kernels",
    "Link",
    "Load",
    "Media",
    "MegatronSettings",
    "Memory",
    "Node",
    "Offload",
    "PipelineLayout",
    "Plan",
    "PostTraining",
    "Rollout",
    "ServedAdapters",
    "ServingPlan",
    "StatedLinks",
    "TrainingPlan",
    "Tuning",
    "Vision",
]
