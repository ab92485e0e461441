"""FSDP as TrainingArguments have it: `fsdp`, with the words of earlier releases, and `fsdp_config`.

Source: transformers 5.24 and 4.57, transformers/training_args.py: _process_fsdp_args.
"""

from typing import Any

from tonnage.interchange.parts.hugging_face.fsdp_settings import read_fsdp
from tonnage.interchange.parts.hugging_face.keys import UNREADABLE
from tonnage.interchange.reading import Reading

SECTION = "fsdp_config."
RESHARDS = {"full_shard": True, "shard_grad_op": False}  # words of `fsdp` -> reshard_after_forward
FSDP1_ALONE = ("no_shard", "hybrid_shard", "hybrid_shard_zero2")


def has_fsdp(r: Reading) -> bool:
    """Whether the arguments turn FSDP on."""
    return r.get("fsdp", "") not in ("", [], False, "false", "False")


def read_fsdp_arguments(r: Reading, version: str) -> None:
    """The settings. `version`: the release of transformers, whose defaults they have."""
    is_older = version.startswith("4")
    r.rename({key: f"{SECTION}{key.removeprefix(f'{SECTION}fsdp_')}" for key in r.under(f"{SECTION}fsdp_")})
    r.rename({"fsdp_transformer_layer_cls_to_wrap": f"{SECTION}transformer_layer_cls_to_wrap"})
    r.rename({"fsdp_min_num_params": f"{SECTION}min_num_params"})
    number = 1 if is_older else 2
    if r.has(f"{SECTION}version"):
        number = r.integer(f"{SECTION}version")
    strategy = "sharding_strategy" if is_older else "reshard_after_forward"  # of FSDP1
    for word in words_of(r.get("fsdp")):
        if word == "offload":
            r.values.setdefault(f"{SECTION}cpu_offload", True)
        elif word in RESHARDS and number == 2:
            r.values.setdefault(f"{SECTION}reshard_after_forward", RESHARDS[word])
        elif word in (*RESHARDS, *FSDP1_ALONE) and number == 1:
            r.values.setdefault(f"{SECTION}{strategy}", word)
        elif word.lower() not in ("auto_wrap", "true"):
            raise r.wrong("fsdp", "true, or full_shard, shard_grad_op, offload, auto_wrap; others with FSDP1 alone")
    read_fsdp(r, SECTION, ("transformers", version), number, {"cpu_ram_efficient_loading": False})
    r.put("runtime", r.question["runtime"], "fsdp", "distributed_type")
    if isinstance(r.get("fsdp_config"), str) and not r.under(SECTION):
        r.unsure("fsdp_config", UNREADABLE)


def words_of(value: Any) -> list[str]:
    """The words of a text, or of a list of texts."""
    return [
        word for one in (value if isinstance(value, list) else [value]) for word in str(one).replace(",", " ").split()
    ]
