"""What veRL's SFT trainer is told: verl 0.9.1, verl/trainer/sft_trainer.py and config/sft_trainer_engine.yaml.

Its sections `model`, `engine` and `optim` are those of the actor of main_ppo, and are read as these.
"""

from tonnage.interchange.parts.launching.torchrun import count_torchrun
from tonnage.interchange.parts.verl.actor import read_adapters, read_fsdp, read_megatron, read_model
from tonnage.interchange.parts.verl.names import KNOWN as OF_ACTOR
from tonnage.interchange.parts.verl.read import fitting, read_rest, replicas
from tonnage.interchange.parts.verl.values import ACTOR, FSDP, MEGATRON, MODEL, on, size
from tonnage.interchange.parts.words import names
from tonnage.interchange.reading import Reading
from tonnage.kernel.errors import InvalidInput

GROUPS = ("engine", "model", "optim", "profiler")  # `engine=megatron` names a file of such a section
ENGINES = ("fsdp", "megatron")
SEQUENCE = "ulysses_sequence_parallel_size"
DATA = names(
    """
    train_batch_size micro_batch_size_per_gpu max_token_len_per_gpu use_dynamic_bsz train_files val_files
    train_max_samples val_max_samples messages_key tools_key enable_thinking_key enable_thinking_default pad_mode
    max_length truncation balance_dp_token use_shm num_workers ignore_input_ids_mismatch prompt_key response_key
    multiturn.enable multiturn.messages_key multiturn.tools_key micro_batch_size
    """
)
TRAINER = names(
    """
    default_local_dir default_hdfs_dir project_name experiment_name total_epochs total_training_steps logger seed
    save_freq test_freq max_ckpt_to_keep balance_batch resume_mode resume_from_path device nnodes n_gpus_per_node
    profile_interval
    """
)
IGNORED = (
    *(f"data.{name}" for name in DATA),
    *(f"trainer.{name}" for name in TRAINER),
    *GROUPS,
    "checkpoint.",
    "profiler.",
    "data.custom_cls.",
    "data.apply_chat_template_kwargs.",
)
ITS_NAMES = {MODEL: "model.", FSDP: "engine.", MEGATRON: "engine.", f"{ACTOR}optim.": "optim."}
KNOWN = frozenset(
    (
        *(name for name in IGNORED if not name.endswith(".")),
        *(
            short + key.removeprefix(section)
            for section, short in ITS_NAMES.items()
            for key in OF_ACTOR
            if key.startswith(section)
        ),
        "engine.strategy",
        f"engine.{SEQUENCE}",
    )
)


def is_run(r: Reading) -> bool:
    """Whether the keys are those of the SFT trainer, whose model is no part of an actor."""
    return r.has("model.path") or r.has("data.max_length")


def read_run(r: Reading) -> None:
    """Read a run of the SFT trainer. The defaults of its configuration are in place."""
    r.verb = "train"
    count_torchrun(r)
    nodes, each = size(r, "trainer.nnodes", 1), size(r, "trainer.n_gpus_per_node", 1)
    if not r.machines.per_node and r.has("trainer.n_gpus_per_node"):
        r.count_machines(nodes=nodes, per_node=each)
        r.put("on", None, "trainer.nnodes", "trainer.n_gpus_per_node")
    engine = r.text("engine", "fsdp")
    is_megatron = engine == "megatron"
    if engine not in ENGINES:
        r.unsure("engine", "the SFT trainer is estimated with FSDP or Megatron")
    r.rename({"engine.strategy": f"{ACTOR}strategy", f"engine.{SEQUENCE}": f"{ACTOR}{SEQUENCE}"})
    sections = {"model.": MODEL, "engine.": MEGATRON if is_megatron else FSDP, "optim.": f"{ACTOR}optim."}
    for short, section in sections.items():
        r.rename({key: section + key.removeprefix(short) for key in r.under(short)})
    r.fill({f"{ACTOR}strategy": "megatron" if is_megatron else "fsdp"})
    if r.text(f"{ACTOR}strategy") not in ("fsdp", "fsdp2", "megatron"):
        r.unsure(f"{ACTOR}strategy", "the SFT trainer is estimated with FSDP or Megatron")
    r.put("model", r.text(f"{MODEL}path") if r.has(f"{MODEL}path") else None, f"{MODEL}path")
    r.put("runtime", "megatron" if is_megatron else "fsdp2", f"{ACTOR}strategy", "engine")
    r.put("objective", "sft")
    _batch(r)
    read_adapters(r, is_megatron)
    if is_megatron:
        read_megatron(r)
    else:
        read_fsdp(r)
    read_model(r, is_megatron)
    r.ignore(IGNORED)
    read_rest(r)


def _batch(r: Reading) -> None:
    """Tokens of a sequence, sequences of a micro-batch, and those of a step."""
    length = size(r, "data.max_length", 1024)
    r.put("sequence_length", length, "data.max_length")
    r.assume("data.max_length", 1024, "sequence_length")
    total = size(r, "data.train_batch_size", 256)
    r.put("global_batch_size", total, "data.train_batch_size")
    r.assume("data.train_batch_size", 256, "global_batch_size")
    tokens_key, micro_key = "data.max_token_len_per_gpu", "data.micro_batch_size_per_gpu"
    if on(r, "data.use_dynamic_bsz", True):
        tokens = size(r, tokens_key, 8192) * size(r, f"{ACTOR}{SEQUENCE}", 1)
        micro = fitting(r, max(1, tokens // length), total)
        r.put("micro_batch_size", micro, tokens_key, "data.use_dynamic_bsz")
        r.assume(tokens_key, 8192, "micro_batch_size")
        r.question["micro_batch_size"] = micro
    else:
        micro = size(r, micro_key, 4)
        r.put("micro_batch_size", micro, micro_key, "data.use_dynamic_bsz")
        r.assume(micro_key, 4, "micro_batch_size")
    if total % (micro * replicas(r)):
        raise InvalidInput(
            "{file}: train_batch_size {total} must be a multiple of {micro} sequences of a micro-batch x {replicas} "
            "replicas.",
            file=r.source.name,
            total=total,
            micro=micro,
            replicas=replicas(r),
        )
    steps = "trainer.total_training_steps"
    if r.has(steps) and r.integer(steps) > 0:
        r.put("max_steps", r.integer(steps), steps)
