"""Unsloth on one accelerator: adapters in fp32 beside a base in 16 or 4 bits, its own kernels and checkpoints, and
transformers' Trainer.
"""

from msgspec.structs import replace

from tonnage.kernel.message import Message
from tonnage.runtimes import training_runtime
from tonnage.runtimes.parts.base import TRAINING_RUNTIMES
from tonnage.runtimes.parts.fused import UNSLOTH

TRAINING_RUNTIMES.add(
    "unsloth",
    replace(
        training_runtime("transformers"),
        name="unsloth",
        version="unsloth 2026.10",
        source="Unsloth, unsloth/models/llama.py: LlamaModel_fast_forward, CausalLM_fast_forward; Unsloth, "
        "unsloth/kernels/fast_lora.py; "
        "unsloth-zoo, unsloth_zoo/gradient_checkpointing.py, unsloth_zoo/fused_losses/cross_entropy_loss.py, "
        "unsloth_zoo/temporary_patches/gpt_oss.py, moe_utils_bnb4bit.py",
        kernels=replace(training_runtime("transformers").kernels, attention="flash"),
        framework="unsloth",
        listed=8,
        on_several=None,
        takes_objectives=False,
        # unsloth-zoo, unsloth_zoo/vllm_utils.py: the adapters' base and the engine's weights are the same tensors
        why_alone=Message(
            "Unsloth's GRPO shares its weights with its engine, of which no published run says the memory. The "
            "nearest is {--runtime} trl with {--method} lora."
        ),
        launch_program="",
        launch_words={},
        trl_config="",
        offload_activations=("none",),
        code=UNSLOTH,
        model_codes=("unsloth",),
        one_accelerator=True,
        trains=("lora", "qlora"),
        recompute="full",  # use_gradient_checkpointing = "unsloth"
        liger=(),
        # unsloth/models/_utils.py has a prepare_model_for_kbit_training of its own, which leaves 16 bits
        upcasts_base=False,
        # temporary_patches/gpt_oss.py, GptOssExpertsBnb4bit: linear layers, which bitsandbytes replaces;
        # moe_utils_bnb4bit.py: gate_up_proj and down_proj of other mixtures become Params4bit
        quantises_experts=True,
        keeps_outputs=False,
    ),
)
