"""Megatron-Bridge: docs/performance-summary.md, and the recipes under scripts/performance at the commits that
bridge_recipes.py names.
"""

import re

from rows.speed.bridge_recipes import NARROW_GRADIENTS, Found, recipe_of
from rows.speed.run import Run, Source, even_chunks, lay_out

LAYOUTS = "scripts/performance/configs: account_for_embedding_in_pipeline_split"
ENDS = re.compile(r"405b|235b")  # recipes that set account_for_embedding/loss_in_pipeline_split
LAID_OUT = re.compile(r"deepseek-v3|kimi-k2")  # recipes with a layout of their own
MIXTURES = re.compile(r"a\d+b|oss|deepseek|kimi|nemotron-3|mixtral|moe")


def rules(run: Run) -> None:
    """What the recipe of a model, accelerator, precision and release says beyond the table."""
    found = recipe_of(run)
    recipe = found.recipe
    total = run.config.size("global_batch", "global_batch_size")
    if (
        total and "num_microbatches" in run.options
    ):  # the table divides by all GPUs, also by those that a model is spread over
        del run.options["num_microbatches"]
        run.options["global_batch_size"] = total
    _precision(run, found)
    run.default("loss", "fused", "utils/overrides.py: cross_entropy_fusion_impl te")
    run.default("attention", "flash", "Transformer Engine's fused attention")
    run.options["zero_stage"] = 1  # use_distributed_optimizer in every recipe
    if run.config.size("fsdp") if run.config.find("fsdp")[1] else 0:
        _fsdp(run)
    if found.is_cited:
        run.imply("recipe", found.why)
    else:
        run.guess("recipe", f"recomputation, graphs, dispatcher and overlap {found.why}")
    modules = recipe.recompute_modules
    run.options["recompute"] = "selective" if modules else "none"
    if modules:
        run.options["recompute_modules"] = ",".join(modules)
    if recipe.graphs:
        run.plan["cuda_graph"] = recipe.graphs
    run.plan["tp_comm_overlap"] = run.size("tensor_parallel") > 1 and found.overlaps_tensor_parallel
    if MIXTURES.search(run.name):
        run.plan["overlap_moe_expert_parallel_comm"] = recipe.overlaps_experts
        run.plan["moe_token_dispatcher_type"] = "flex" if recipe.dispatcher in ("hybridep", "deepep") else "alltoall"
        if re.search(r"token.?drop(?!less)", _said(run)):
            run.implied("expert_capacity_factor", 1.0, "token_drop of 25.09: apply_moe_token_drop")
    if "deepseek-v3" in run.name and not re.search(r"w/o mtp", _said(run)):
        run.implied("mtp_layers", 1, "recipes/deepseek/deepseek_v3.py: mtp_num_layers 1")
    _task(run)
    _stages(run)


def _said(run: Run) -> str:
    """What the table's line is called: its model, with the remarks behind it."""
    return " ".join(str(run.row.model.get(key, "")) for key in ("ref", "name", "note")).lower()


def _precision(run: Run, found: Found) -> None:
    """utils/precision.py and training/mixed_precision.py: fp8_param_gather for current scaling and MXFP8;
    grad_reduce_in_fp32 False.
    """
    run.implied(
        "precision",
        NARROW_GRADIENTS[found.low],
        "mixed_precision.py: grad_reduce_in_fp32=False, fp8_param_gather but for NVFP4",
    )
    run.options.pop("float8", None)


def _fsdp(run: Run) -> None:
    """Megatron-FSDP shards weights and gradients too (optim_grads_params)."""
    run.options.pop("data_parallel_size", None)
    run.plan["zero_stage"] = 3
    run.notes.append(
        "Megatron-FSDP: as ZeRO-3; the offload of some layers' activations (cpu_offloading_num_layers) is left out"
    )


def _task(run: Run) -> None:
    task = run.config.text("task")
    run.options["objective"] = None
    run.options["method"] = "lora" if "lora" in task else "full"
    if "lora" in task or "sft" in task:
        run.guess("packing", "packed sequences of SQuAD: attention inside of each is shorter than sequence_length")


def _stages(run: Run) -> None:
    """Layers of each chunk: docs of the recipes' pipelines."""
    count, layers = run.chunks, run.layers
    if run.size("pipeline_parallel") == 1 or not layers:
        return
    if ENDS.search(run.name) and (layers + 2) % count == 0:
        run.implied("account_for_embedding_in_pipeline_split", True, LAYOUTS)
        run.options["account_for_loss_in_pipeline_split"] = True
    elif LAID_OUT.search(run.name):
        lay_out(run, deepseek_chunks(layers, count))
        run.imply("pipeline_layout", "recipes/deepseek/deepseek_v3.py, recipes/kimi/kimi_k2.py")
    else:
        even_chunks(run)


def deepseek_chunks(layers: int, count: int) -> list[int]:
    """recipes/deepseek/deepseek_v3.py, layout_map: "Et|(tt|)*30mL" of 32 chunks, the last with less otherwise."""
    if count == 32 and layers == 61:
        return [1] + [2] * 30 + [0]
    each = -(-(layers + 2) // count)
    return [min(each, max(layers - each * index, 0)) for index in range(count)]


SOURCE = Source(name="megatron-bridge", pattern=r"Megatron-Bridge", rules=rules, convention="megatron")
