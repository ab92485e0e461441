"""NeMo on Megatron: recipes of NeMo 2 and of Megatron-Bridge, in Python or YAML, and NeMo's own YAML before them."""

import re
from collections.abc import Mapping
from typing import Any

from tonnage.interchange.parts.megatron.effects import KNOWN, OPPOSITES
from tonnage.interchange.parts.megatron.files import FIELDS, by_argument, read_fields
from tonnage.interchange.parts.megatron.run import read_arguments
from tonnage.interchange.parts.nemo.recipe import Recipe, is_python
from tonnage.interchange.reading import Reading, flattened
from tonnage.interchange.source import Source
from tonnage.kernel.message import Message

MODULES = ("nemo.collections", "nemo_run", "megatron.bridge", " ".join(("nemo", "import", "lightning")))
# Sections of a config whose fields are arguments of Megatron, the longer first.
SECTIONS = (
    "trainer.strategy.ddp.",
    "trainer.strategy.",
    "trainer.plugins.",
    "model.config.",
    "model.optim.",
    "model.data.",
    "optim.config.",
    "mixed_precision.",
    "comm_overlap.",
    "validation.",
    "optimizer.",
    "scheduler.",
    "checkpoint.",
    "profiling.",
    "tokenizer.",
    "dataset.",
    "logger.",
    "model.",
    "train.",
    "data.",
    "dist.",
    "ddp.",
    "rng.",
    "",
)
# Sections that decide nothing.
OPEN = (
    "log.",
    "logger.",
    "resume.",
    "exp_manager.",
    "checkpoint.",
    "scheduler.",
    "profiling.",
    "validation.",
    "tokenizer.",
    "model.tokenizer.",
    "model.optim.sched.",
    "model.exp_manager.",
    "rng.",
    "rerun_state_machine.",
    "ft.",
    "straggler.",
    "nvrx_straggler.",
    "inprocess_restart.",
    "env_vars.",
    "dist.",
    "dataset.",
    "data.",
    "model.data.",
    "optim.",
    "optimizer.",
    "trainer.callbacks.",
    "trainer.logger.",
    "executor.",
    "restore_config.",
    "run.",
)
# Other names of fields: NeMo's -> the argument.
OTHER = {
    "encoder-seq-length": "seq-length",
    "devices": "gpus-per-node",
    "ntasks-per-node": "gpus-per-node",
    "num-gpus-per-node": "gpus-per-node",
    "num-nodes": "num-nodes",
    "type": "tokenizer-type",
    "nproc-per-node": "gpus-per-node",
    "nodes": "num-nodes",
    "max-steps": "train-iters",
    "grad-reduce-in-fp32": "grad-reduce-in-fp32",
    "activation": "activation",
    "activations-checkpoint-granularity": "recompute-granularity",
    "activations-checkpoint-method": "recompute-method",
    "activations-checkpoint-num-layers": "recompute-num-layers",
    "moe-extended-tp": "moe-extended-tp",
    "bias": "add-bias-linear",
    "share-embeddings-and-output-weights": "share-embeddings-and-output-weights",
}
MACHINES = ("num-nodes", "gpus-per-node")
IGNORED = (
    *("fully-parallel-save", "load-weights", "hf-path", "pipeline-dtype", "wandb-experiment-name", "name", "dir"),
    *("accelerator", "limit-val-batches", "limit-test-batches", "val-check-interval", "num-sanity-val-steps"),
    *("accumulate-grad-batches", "use-distributed-sampler", "log-every-n-steps", "enable-checkpointing", "logger"),
    *("check-for-nan-in-grad", "max-epochs", "max-time", "gradient-clip-val", "gradient-as-bucket-view"),
    *("ckpt-async-save", "ckpt-parallel-load", "ckpt-load-strictness", "average-in-collective", "autocast-enabled"),
    *("lazy-init", "mcore-gpt", "megatron-amp-O2", "save-top-k", "enable-progress-bar", "replace-sampler-ddp"),
    *(
        "use-te-rng-tracker",
        "env-vars",
        "persist-layer-norm",
        "hf-model-revision",
        "yarn-mscale",
        "yarn-mscale-all-dim",
    ),
)
PRECISIONS: Mapping[str, Mapping[str, Any]] = {
    "bf16_mixed": {"bf16": True},
    "bf16-mixed": {"bf16": True},
    "bf16": {"bf16": True},
    "fp16_mixed": {"fp16": True},
    "16-mixed": {"fp16": True},
    "16": {"fp16": True},
    "32": {},
    "32-true": {},
    "bf16_with_fp8_mixed": {"bf16": True, "fp8-format": "hybrid", "fp8-recipe": "delayed"},
    "bf16_with_fp8_delayed_scaling_mixed": {"bf16": True, "fp8-format": "hybrid", "fp8-recipe": "delayed"},
    "bf16_with_fp8_current_scaling_mixed": {"bf16": True, "fp8-format": "hybrid", "fp8-recipe": "tensorwise"},
    "bf16_with_fp8_subchannel_scaling_mixed": {"bf16": True, "fp8-format": "hybrid", "fp8-recipe": "blockwise"},
    "bf16_with_mxfp8_mixed": {"bf16": True, "fp8-format": "e4m3", "fp8-recipe": "mxfp8"},
    "bf16_with_nvfp4_mixed": {"bf16": True, "fp4-format": "e2m1"},
}
PARAM_GATHER = ("bf16_with_fp8_current_scaling_mixed", "bf16_with_mxfp8_mixed", "bf16_with_fp8_delayed_scaling_mixed")
# NeMo 2's and Megatron-Bridge's defaults, which are not those of Megatron-LM's arguments.
DEFAULTS: Mapping[str, Any] = {
    "use-distributed-optimizer": True,
    "overlap-grad-reduce": True,
    "overlap-param-gather": True,
    "hidden-dropout": 0.0,
    "attention-dropout": 0.0,
    "moe-grouped-gemm": True,
}
ADAPTERS = ("LoRA", "DoRA", "CanonicalLoRA", "VLMLoRA")
OF_EXPERTS = {"moe-token-dispatcher-type": "alltoall"}
_RECIPE = re.compile(
    r"(?:llm\.)?([a-z0-9_]+)\.(?:pretrain|finetune)_recipe|(\w+?)_(?:pretrain|sft|peft|finetune)_\w*config"
)
_GPUS = re.compile(r"_(\d{1,6})gpu_([a-z]+\d+)_")  # llama31_8b_pretrain_8gpu_h100_bf16_config
IN_A_NODE = 8  # GPUs, where a name says all that there are
# Names of models in NeMo, without their punctuation: the catalogue's.
FAMILIES = (
    (r"llama3_?_?8b|llama38b", "meta-llama-3-8b"),
    (r"llama3_?70b", "meta-llama-3-70b"),
    (r"llama31_?(8b|70b|405b)", "llama-3.1-{}"),
    (r"llama32_?(1b|3b)", "llama-3.2-{}"),
    (r"llama2_?(7b|13b|70b)", "llama-2-{}-hf"),
    (r"mistral_?7b", "mistral-7b-v0.1"),
    (r"mixtral_?8x(7b|22b)", "mixtral-8x{}-v0.1"),
    (r"gemma2_?(2b|9b|27b)", "gemma-2-{}"),
    (r"gemma_?(2b|7b)", "gemma-{}"),
    (r"qwen2_?(0\.5b|1\.5b|7b|72b)", "qwen2-{}"),
    (r"qwen25_?(7b|14b|32b|72b)", "qwen2.5-{}"),
    (r"qwen3_?(30b_a3b|235b_a22b)", "qwen3-{}"),
    (r"qwen3_?(4b|8b|14b|32b)", "qwen3-{}"),
    (r"deepseek_?v3", "deepseek-v3"),
    (r"deepseek_?v2_lite", "deepseek-v2-lite"),
    (r"deepseek_?v2", "deepseek-v2"),
    (r"gpt_?oss_?(20b|120b)", "gpt-oss-{}"),
    (r"kimi_?k2", "kimi-k2-instruct"),
)


def is_recipe(source: Source) -> bool:
    """Whether a source is a recipe in Python."""
    return source.kind == "text" and not source.words and is_python(source.text, MODULES)


def is_tree(tree: Mapping[str, Any]) -> bool:
    """Whether a tree is a config of Megatron-Bridge, or one of NeMo on Megatron."""
    model, train = tree.get("model"), tree.get("train")
    if not isinstance(model, Mapping):
        return False
    own = "tensor_model_parallel_size" in model or "megatron.bridge" in str(model.get("_target_", ""))
    batch = isinstance(train, Mapping) and "global_batch_size" in train
    older = isinstance(tree.get("trainer"), Mapping) and ("exp_manager" in tree or "global_batch_size" in model)
    return (own and (batch or older)) or ("megatron.bridge" in str(model.get("_target_", "")) and bool(train))


def recipe_values(source: Source) -> dict[str, Any]:
    """What a recipe assigns, and the keyword arguments whose names are known; the model that a call names."""
    recipe = Recipe(source.text, source.name)
    values: dict[str, Any] = dict(recipe.assigned)
    for name, value in recipe.keywords.items():
        if _target(name) and name not in {key.rpartition(".")[2] for key in values}:
            values[name] = value
    for call, text in recipe.calls:
        if call.endswith(("from_hf_pretrained", "HFAutoModelForCausalLM")) and text:
            values.setdefault("model_name", text)
        if match := _RECIPE.fullmatch(call.partition("run.Partial")[0]):
            values.setdefault("recipe", match[1] or match[2])
    for name in recipe.functions:
        if match := _RECIPE.fullmatch(name):
            values.setdefault("model_of_function", match[2])
        if match := _GPUS.search(name):
            values.setdefault("gpus_of_function", f"{match[1]}x{match[2]}")
    for name in ("hf_path", "pretrained_model_name_or_path", "hf_model_id"):
        if isinstance(recipe.keywords.get(name), str):
            values.setdefault("model_name", recipe.keywords[name])
    for call, _ in recipe.calls:
        if call.rpartition(".")[2] in ADAPTERS:
            values.setdefault("peft", call.rpartition(".")[2])
    if recipe.keywords.get("peft_scheme"):
        values["peft_scheme"] = recipe.keywords["peft_scheme"]
    classes = [name.rpartition(".")[2] for name, _ in recipe.calls]
    for name in [*classes, *re.findall(r"\b(\w+Config\d+\w*)\b", source.text)]:
        if match := re.fullmatch(r"(\w+?)Config(\d+x?\d*B\w*)", name):
            values.setdefault("model_class", f"{match[1]}_{match[2]}".lower())
    return values


def tree_of(source: Source) -> dict[str, Any]:
    """The fields of a config."""
    return {key: value for key, value in flattened(source.tree).items() if not key.endswith("_target_")}


def _target(name: str) -> str:
    """The argument that a field stands for; "" where it is none that is known."""
    plain = name.rpartition(".")[2].replace("_", "-").lower()
    plain = OTHER.get(plain, plain)
    target = FIELDS.get(plain, plain)
    return target if target in KNOWN or target in OPPOSITES or target in (*MACHINES, "precision") else ""


def read_recipe(r: Reading) -> None:
    """Read a recipe or config as arguments of Megatron."""
    _named_model(r)
    _names(r)
    nodes, per_node = (r.integer(key) if r.has(key) else 0 for key in MACHINES)
    r.count_machines(nodes=max(0, nodes), per_node=max(0, per_node))
    r.put("on", None, *MACHINES)
    if r.has("gpus_of_function"):
        count, _, name = r.text("gpus_of_function").partition("x")
        num_nodes = int(count) // IN_A_NODE if int(count) % IN_A_NODE == 0 else 1
        if not (nodes or per_node) and int(count):
            r.count_machines(nodes=num_nodes, per_node=int(count) // num_nodes, accelerator=name)
        r.put("on", None, "gpus_of_function")
    _precision(r)
    r.fill(DEFAULTS)
    if r.has("expert-model-parallel-size") and r.integer("expert-model-parallel-size") > 1:
        r.fill(OF_EXPERTS)
    read_arguments(r)
    read_fields(r)
    for key in [key for key in r.values if key.startswith("peft") and r.has(key)]:
        r.unsure(key, "adapters are not estimated with Megatron: all weights are")
    for key in [key for key in r.values if key.rpartition(".")[2].startswith("freeze_")]:
        r.needs_default(key, why="a part of the model that does not train is not estimated")
    r.ignore(OPEN)
    r.ignore([key for key in r.values if key.rpartition(".")[2].replace("_", "-") in IGNORED])
    r.ignore([key for key, value in r.values.items() if value is None])


def _names(r: Reading) -> None:
    """Fields by the names of arguments."""
    for key in list(r.values):
        name = key.rpartition(".")[2].replace("_", "-").lower()
        if name not in OTHER or not _is_in_section(key) or (name == "type" and "tokenizer" not in key):
            continue
        if OTHER[name] in r.values:
            r.ignore([key], why="another key says it too, and counts")
        else:
            r.rename({key: OTHER[name]})
    by_argument(r, SECTIONS)
    if r.has("normalization"):
        kinds = {"layernorm": "LayerNorm", "layernorm1p": "LayerNorm", "rmsnorm": "RMSNorm"}
        r.values["normalization"] = kinds.get(r.text("normalization").lower(), r.get("normalization"))
    if r.has("activation"):
        gated = r.text("activation").lower() in ("swiglu", "fast-swiglu", "geglu", "fast-geglu", "reglu")
        r.rename({"activation": "swiglu"})
        r.values["swiglu"] = gated
    if r.has("share-embeddings-and-output-weights"):
        shares = r.flag("share-embeddings-and-output-weights")
        r.rename({"share-embeddings-and-output-weights": "untie-embeddings-and-output-weights"})
        r.values["untie-embeddings-and-output-weights"] = not shares
    if r.has("grad-reduce-in-fp32"):
        narrow = not r.flag("grad-reduce-in-fp32")
        r.rename({"grad-reduce-in-fp32": "grad-reduce-in-bf16"})
        r.values["grad-reduce-in-bf16"] = narrow


def _is_in_section(key: str) -> bool:
    sections = (*SECTIONS, "trainer.", "executor.", "model.tokenizer.")
    return any(key == section + key.rpartition(".")[2] for section in sections)


def _named_model(r: Reading) -> None:
    """The model that a call or a field names: an id of a hub, or NeMo's name of it."""
    for key in ("model.hf_model_id", "model.hf_path", "model_name", "model.pretrained_model_name_or_path"):
        if r.has(key):
            r.put("model", r.text(key), key)
    for key in ("recipe", "model_class", "model_of_function"):
        if not r.has(key):
            continue
        name = known_model(r.text(key))
        dims = any(r.has(field) for field in r.values if field.rpartition(".")[2] in ("num_layers", "hidden_size"))
        r.put("model", name if name and not r.question.get("model") and not dims else None, key)
        needed = {"tensor_model_parallel_size", "global_batch_size", "micro_batch_size", "seq_length"}
        if key == "recipe" and not needed <= {field.rpartition(".")[2] for field in r.values}:
            r.unsure(key, "what this recipe sets by itself is not read: say parallelism, batch and length in the file")


def known_model(text: str) -> str:
    """The catalogue's name of a model that NeMo names; "" where it is none of them."""
    plain = text.lower().removeprefix("llm.")
    for pattern, name in FAMILIES:
        if match := re.match(pattern + r"(?![0-9])", plain):
            return name.format(*(group.replace("_", "-") for group in match.groups()))
    return ""


def _precision(r: Reading) -> None:
    """The recipe of mixed precision by its name, or by its fields; bf16 where neither is there."""
    key = next(
        (key for key in ("mixed_precision", "trainer.precision", "precision", "model.precision") if r.has(key)), ""
    )
    name = r.text(key) if key else ""
    if name and name not in PRECISIONS:
        r.unsure(key, "no recipe of mixed precision that is known")
    elif name:
        r.put("precision", None, key)
        fields: dict[str, Any] = {**PRECISIONS[name], **({"fp8-param-gather": True} if name in PARAM_GATHER else {})}
        r.fill(fields, Message("what {name} sets", name=name))
        if "current_scaling" in name:
            r.notes.append(Message("{name} leaves the first and last layer in bf16: fp8 is estimated.", name=name))
        return
    if not r.has("bf16") and not r.has("fp16"):
        r.fill({"bf16": True})
