"""torchtitan: its command lines (0.3), `run_train.sh`, and the TOML of earlier releases."""

from collections.abc import Mapping, Sequence
from typing import Any

from tonnage.interchange.formats import FORMATS, Format
from tonnage.interchange.parts.hugging_face.machines import expands_segments
from tonnage.interchange.parts.launching.training import TrainingLaunch, training_launch
from tonnage.interchange.parts.recipes import torchtitan_keys as keys
from tonnage.interchange.parts.recipes.torchtitan_command import completed_titan, titan_command
from tonnage.interchange.parts.recipes.torchtitan_registry import CONFIGS, model_of
from tonnage.interchange.parts.recipes.torchtitan_sizes import Defaults, read_batch, read_numerics, read_sizes
from tonnage.interchange.parts.recipes.trainer_launches import (
    command_signs,
    launch_values,
    read_launch,
)
from tonnage.interchange.parts.recipes.trainer_options import ignore_empty, ignore_names
from tonnage.interchange.parts.words import names
from tonnage.interchange.planned_run import PlannedRun
from tonnage.interchange.reading import Reading, flattened, options_of_command
from tonnage.interchange.source import Command, Source
from tonnage.kernel.errors import InvalidInput
from tonnage.kernel.message import Message

NAME = "torchtitan"
SECTIONS = names("job model training parallelism activation_checkpoint lr_scheduler metrics profiling checkpoint")
MODULES = ("torchtitan.train", "torchtitan_train")
SCRIPTS = ("run_train.sh", "run_llama_train.sh")
VARIABLES = ("MODULE", "CONFIG", "CONFIG_FILE", "COMM_MODE", "TRAIN_FILE", "TORCHFT_LIGHTHOUSE")
USUAL_GPUS = 8  # run_train.sh: NGPU
CHUNKS = 8  # components/loss.py: ChunkedLossWrapper
FLEX = "FlexAttention and varlen keep for backward what flash attention keeps"
CHECKPOINTS = {"none": "none", "full": "full", "selective": "selective-op"}
IMPLEMENTATIONS = {"fused": "fused", "foreach": "foreach", "for-loop": "for-loop", "fused_opt_states_bf16": "fused"}
SAYS = frozenset(
    names(
        """
        model sequence_length micro_batch_size num_microbatches global_batch_size tensor_parallel_size
        sequence_parallel pipeline_parallel_size pipeline_schedule virtual_pipeline_size context_parallel_size
        expert_parallel_size zero_stage replicate_size recompute attention loss precision optimizer
        optimizer_implementation compile async_tensor_parallel float8 offload_optimizer offload_parameters
        expandable_segments runtime max_steps
        """
    )
)


# ---- What a source is.


def recognises(source: Source) -> int:
    if source.kind in ("command", "text"):
        ours = [parts for command in source.commands if (parts := _command(command)) is not None]
        return max((command_signs(parts[0]) for parts in ours), default=0)
    if source.kind != "toml":
        return 0
    tree = source.tree
    model = tree.get("model")
    has_flavor = isinstance(model, Mapping) and "flavor" in model
    sections = sum(name in tree for name in SECTIONS)
    return sections + 4 * has_flavor if "training" in tree and (has_flavor or "activation_checkpoint" in tree) else 0


def _command(command: Command) -> tuple[TrainingLaunch, str, tuple[str, ...]] | None:
    """The launcher, `module` or `script`, and the words of torchtitan; None of another command."""
    words = command.words
    if words[:1] in (("bash",), ("sh",)):
        words = words[1:]
    launch = training_launch(words)
    if launch.words and (launch.words[0] in MODULES or launch.words[0].endswith("torchtitan/train.py")):
        return launch, "module", launch.words[1:]
    if launch.program == "train.py" and any(word.startswith("--job.config_file") for word in launch.words):  # 2024
        return launch, "script", launch.words[1:]
    return (launch, "script", launch.words[1:]) if launch.program in SCRIPTS else None


def values(source: Source) -> dict[str, Any]:
    if source.kind not in ("command", "text"):
        return flattened(source.tree)
    for command in source.commands:
        if (parts := _command(command)) is not None:
            return _of_command(source, command, *parts)
    raise InvalidInput(
        "{file} has no command of torchtitan, such as torchrun -m torchtitan.train --module llama3 --config llama3_8b.",
        file=source.name,
    )


def _of_command(
    source: Source, command: Command, launch: TrainingLaunch, kind: str, words: Sequence[str]
) -> dict[str, Any]:
    values = launch_values(command, launch, VARIABLES)
    values["launcher.kind"] = kind
    own: dict[str, Any] = {}
    left = []
    for word in words:  # a policy is a word of its own: activation_checkpoint:full
        section, colon, name = word.partition(":")
        if colon and section.replace("_", "").isalpha() and not word.startswith("-"):
            own[section.replace("-", "_")] = name
        else:
            left.append(word)
    options, _ = options_of_command(left, keys.SWITCHES, frozenset({"compile.components"}))
    for name, value in options.items():
        section, dot, last = name.rpartition(".")
        is_off = last.startswith("no-") and value is True
        plain = f"{section}{dot}{last.removeprefix('no-') if is_off else last}".replace("-", "_")
        own[plain] = not is_off if value is True else value
    path = (
        own.pop("job.config_file", None) or own.pop("job.config-file", None) or command.environment.get("CONFIG_FILE")
    )
    if path is not None:
        own = {**flattened(source.sibling(str(path)).tree), **own}
    for name in ("MODULE", "CONFIG"):
        if name in values and path is None:
            own.setdefault(name.lower(), values[name])
    return {**own, **values}


# ---- What its keys mean.


def read(r: Reading) -> None:
    r.verb = "train"
    is_legacy = _version(r)
    _machines(r)
    r.put("runtime", "fsdp2")
    own = _model(r, is_legacy)
    read_numerics(r, own)
    read_sizes(r, own)
    read_batch(r, own)
    _checkpoints(r, own, is_legacy)
    _compile(r, own)
    _float8(r, own, is_legacy)
    _optimizer(r, own)
    _loss(r, own, is_legacy)
    _rest(r)


def _version(r: Reading) -> bool:
    """Whether the keys are those of a release with TOML, by which the version is told."""
    is_legacy = any(key.startswith(("model.", "job.")) for key in r.values)
    if not is_legacy:
        return False
    of_2024 = any(key in r.values for key in keys.OF_2024)
    of_01 = any(key in r.values for key in keys.OF_01)
    release = "2024" if of_2024 else "0.1" if of_01 else "0.2"
    version = r.asker.version
    release = next((name for name in ("0.1", "0.2", "2024") if version.startswith(name)), release)
    r.version = version or release
    r.put("runtime_version", release)
    r.rename(keys.OLDER)
    return True


def _machines(r: Reading) -> None:
    read_launch(r)
    kind = r.text("launcher.kind")
    if kind == "script" and not r.machines.per_node:
        r.count_machines(per_node=USUAL_GPUS)
        r.assume("NGPU", USUAL_GPUS, "", why="run_train.sh")
    expands = expands_segments(r)
    if expands is not None:
        r.put("expandable_segments", expands)
    elif kind == "module":
        r.assume("PYTORCH_ALLOC_CONF", "", "", why="run_train.sh sets it, a command of your own does not")
        r.put("expandable_segments", False)
    if r.text("COMM_MODE") not in ("", "None"):
        r.unsure("COMM_MODE", "a run without communication is estimated as one with it")
    r.ignore(["launcher.kind", *VARIABLES])


def _model(r: Reading, is_legacy: bool) -> Defaults:
    if is_legacy:
        name = model_of(r.text("model.name", "llama3"), r.text("model.flavor", "debugmodel"))
        r.put("model", name, "model.flavor", "model.name")
        return Defaults(r, None, "")
    config, module = r.text("config"), r.text("module")
    recipe = CONFIGS.get(config)
    r.put("model", recipe.model if recipe is not None else "", "config", "module")
    if recipe is None:
        debug = "debugmodel" in config
        why = "a model of torchtitan's tests" if debug else "what a config of your own sets is not known here"
        if r.has("config"):
            r.unsure("config", why)
    elif recipe.unsure:
        r.unsure("config", recipe.unsure)
    elif module and not module.endswith(recipe.module):
        raise r.wrong("module", Message("{module}, whose config this is", module=recipe.module))
    r.put("attention", "flash")
    r.assume("attn_backend", "flex", "", why=FLEX)
    return Defaults(r, recipe, config)


def _checkpoints(r: Reading, own: Defaults, is_legacy: bool) -> None:
    if not is_legacy:
        key = "activation_checkpoint"
        policy = r.text(key, own.recipe.checkpoints if own.recipe is not None else "selective")
        r.assume(key, policy, "", own.why if own.recipe is not None else "")
    else:
        key = "activation_checkpoint.mode"
        policy = r.text(key, "selective")
        r.assume(key, "selective", "")
    if policy in ("memory-budget", "memory_budget"):
        r.unsure(key, "a budget of memory for activations is not estimated: recomputation by operation is")
        policy = "selective"
    if policy not in CHECKPOINTS:
        raise r.wrong(key, "one of none, selective, full and memory-budget")
    r.put("recompute", CHECKPOINTS[policy], key)
    which = "activation_checkpoint.selective_ac_option"
    if is_legacy and policy == "selective":
        if r.text(which, "2") != "op":
            if r.has(which):
                r.unsure(which, "recomputation of every n-th layer is not estimated: that by operation is")
            else:
                r.unsure(key, "recomputation of every second layer is not estimated: that by operation is")
        else:
            r.put("recompute", "selective-op", which)
    r.ignore([which])


def _compile(r: Reading, own: Defaults) -> None:
    parts = own.raw("compile.components")
    listed = parts.replace("[", "").replace("]", "").replace("'", "").split(",") if isinstance(parts, str) else parts
    if not isinstance(listed, list):
        raise r.wrong("compile.components", "a list such as model,loss")
    names_of_parts = [name for one in listed for name in str(one).split(",")]
    is_on = own.flag("compile.enable")
    own.put("compile.enable", "compile", True if is_on and "model" in names_of_parts else None)
    r.put("compile", None, "compile.components")
    asynchronous = own.flag("compile.enable_async_tensor_parallel")
    able = is_on and int(r.question.get("tensor_parallel_size", 1)) > 1
    own.put("compile.enable_async_tensor_parallel", "async_tensor_parallel", True if asynchronous and able else None)


def _float8(r: Reading, own: Defaults, is_legacy: bool) -> None:
    if not is_legacy:
        if own.recipe is not None and own.recipe.float8:
            r.assume("converters", "float8", "float8", own.why)
            r.question["float8"] = own.recipe.float8
        return
    converters = r.get("model.converters", [])
    listed = converters.split(",") if isinstance(converters, str) else converters
    if not isinstance(listed, list) or not all(isinstance(name, str) for name in listed):
        raise r.wrong("model.converters", "a list of names")
    narrow = [name for name in listed if name in ("float8", "quantize.linear.float8")]
    if r.flag("float8.enable_float8_linear"):  # 2024
        narrow.append("float8")
        r.put("float8", None, "float8.enable_float8_linear")
    r.ignore(["float8.enable_float8_linear"])
    if [name for name in listed if name and name not in narrow]:
        r.unsure("model.converters", "products in MXFP8 and of experts in 8 bits are not estimated here")
    else:
        r.put("float8", None, "model.converters")
    scales, gather = (f"quantize.linear.float8.{name}" for name in ("recipe_name", "enable_fsdp_float8_all_gather"))
    kinds = {"tensorwise": "tensorwise", "rowwise": "rowwise", "rowwise_with_gw_hp": "rowwise"}
    if narrow:
        kind = r.choice(scales, kinds, "tensorwise")
        r.put("float8", kind, scales, "model.converters")
        if r.flag(gather) and kind == "tensorwise":
            r.put("float8_all_gather", True, gather)
    r.ignore([scales, gather], why="float8 is not among the converters")


def _optimizer(r: Reading, own: Defaults) -> None:
    if own.recipe is not None and own.recipe.muon:
        r.assume("optimizer.param_groups", "DistMuon", "optimizer", own.why)
        r.question["optimizer"] = "muon"
        r.put("optimizer_implementation", "foreach")
        return
    name = r.choice("optimizer.name", {"AdamW": "adamw", "Adam": "adam"}, "adamw")
    key = "optimizer.implementation"
    kind = r.choice(key, IMPLEMENTATIONS, "fused")
    if r.has("optimizer.fused"):  # 2024
        kind = "fused" if r.flag("optimizer.fused") else "foreach"
        r.put("optimizer_implementation", None, "optimizer.fused")
    if r.text(key) == "fused_opt_states_bf16":
        name = "adamw-bf16"
    r.put("optimizer", name, "optimizer.name", key)
    r.put("optimizer_implementation", kind, key)


def _loss(r: Reading, own: Defaults, is_legacy: bool) -> None:
    if is_legacy:
        return
    chunks = r.integer("loss.num_chunks", CHUNKS)
    r.assume("loss.num_chunks", CHUNKS, "", own.why if own.recipe is not None else "")
    r.put("loss", "full" if chunks == 1 else "chunked", "loss.num_chunks")
    if chunks not in (1, CHUNKS):
        r.unsure("loss.num_chunks", "a loss in another number of parts than eight is not estimated")


def _rest(r: Reading) -> None:
    for key, (harmless, why) in keys.OTHERS.items():
        r.needs_default(key, *harmless, why=why)
    ignore_names(r, keys.IGNORED)
    ignore_empty(r, keys.known())


def fills(verb: str, question: Mapping[str, Any]) -> Mapping[str, Any]:
    return completed_titan(question)


def write(w: PlannedRun) -> str:
    return titan_command(w)


FORMATS.add(
    NAME,
    Format(
        name=NAME,
        tool="torchtitan",
        version="0.3",
        source="torchtitan 0.3.0, config/configs.py, models/*/config_registry.py; 0.2.2, config/job_config.py",
        recognises=recognises,
        values=values,
        read=read,
        known=keys.known,
        verbs=("train",),
        sets={"train": "fsdp2"},
        fills=fills,
        write=write,
        ending=".sh",
        says=SAYS,
    ),
)
