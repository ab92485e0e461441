"""Written by scripts/fit_bands.py from validation/train_memory.yaml and infer_memory.yaml: do not edit."""

from tonnage.estimate.bands.forms import Band, Table

TRAIN_MEMORY = Table(
    bands={
        ("fsdp2", "full"): Band(
            runtime="fsdp2",
            kind="full",
            low=0.967,
            high=1.1616,
            rows=11,
            sources=1,
            only="pytorch/torchtitan",
            held=None,
        ),
        ("megatron", "full"): Band(
            runtime="megatron",
            kind="full",
            low=0.9754,
            high=1.0312,
            rows=10,
            sources=1,
            only="MooreThreads/SimuMax",
            held=None,
        ),
        ("nanotron", "full"): Band(
            runtime="nanotron",
            kind="full",
            low=0.8916,
            high=1.2342,
            rows=109,
            sources=1,
            only="HF Ultra-Scale Playbook benchmark plot",
            held=None,
        ),
        ("transformers", "lora"): Band(
            runtime="transformers",
            kind="lora",
            low=0.9383,
            high=1.0766,
            rows=14,
            sources=1,
            only="Anassbzdd/fitcheck",
            held=None,
        ),
        ("transformers", "qlora"): Band(
            runtime="transformers", kind="qlora", low=0.9829, high=1.078, rows=30, sources=2, only="", held=0.667
        ),
    },
    vendors=("NVIDIA",),
    others=Band(runtime="", kind="", low=0.9732, high=1.0834, rows=66, sources=5, only="", held=None),
)
SERVE_MEMORY = Table(
    bands={
        ("transformers", "Ampere"): Band(
            runtime="transformers",
            kind="Ampere",
            low=0.9906,
            high=1.0157,
            rows=76,
            sources=1,
            only="QwenLM/Qwen3",
            held=None,
        ),
        ("transformers", "Hopper"): Band(
            runtime="transformers",
            kind="Hopper",
            low=0.9952,
            high=1.0367,
            rows=51,
            sources=1,
            only="QwenLM/Qwen3",
            held=None,
        ),
        ("vllm", "Hopper"): Band(
            runtime="vllm",
            kind="Hopper",
            low=0.9831,
            high=1.0264,
            rows=23,
            sources=1,
            only="llm-d-planner fork jgchn/llm-d-planner",
            held=None,
        ),
    },
    vendors=("NVIDIA",),
    others=Band(runtime="", kind="", low=0.9766, high=1.0364, rows=151, sources=3, only="", held=None),
)
