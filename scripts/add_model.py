"""Turn a config.json into an entry of the catalogue of models.

    python scripts/add_model.py config.json --hub ORG/NAME --source URL [--alias A] [--published "8.03B;SOURCE;model"]

Keeps the keys that decide size, KV cache, precision and context, and dropout that is not 0; leaves out token ids,
sampling, initialisation and other noise. An unknown key is kept: a size must never be lost. Prints the file that it
wrote and what tonnage counts.
"""

import argparse
import json
import re
import sys
from collections.abc import Iterator, Mapping
from datetime import datetime
from pathlib import Path
from typing import Any

from tonnage.architectures import ATTENTION_DROPOUT, HIDDEN_DROPOUT

CATALOGUE = Path(__file__).parents[1] / "src/tonnage/catalogue/models"
WIDTH = 120
TABLES = ("config", "why", "sources", "variants")

# Keys that decide no size: how text is made, how training begins, how the class is found.
NOISE = {
    "_name_or_path",
    "_attn_implementation",
    "activation_func",
    "attention_value_scale",
    "auto_map",
    "bad_words_ids",
    "chunk_size_feed_forward",
    "clip_qkv",
    "do_sample",
    "early_stopping",
    "exponential_decay_length_penalty",
    "finetuning_task",
    "gradient_checkpointing",
    "id2label",
    "ignore_index",
    "is_decoder",
    "label2id",
    "length_penalty",
    "max_length",
    "min_length",
    "norm_topk_prob",
    "num_logits_to_keep",
    "num_return_sequences",
    "pretraining_tp",
    "problem_type",
    "prefix",
    "pruned_heads",
    "query_pre_attn_scalar",
    "remove_invalid_values",
    "repetition_penalty",
    "rescale_prenorm_residual",
    "residual_in_fp32",
    "seq_aux",
    "task_specific_params",
    "temperature",
    "tf_legacy_loss",
    "tie_encoder_decoder",
    "tokenizer_class",
    "top_k",
    "top_p",
    "torchscript",
    "transformers_version",
    "typical_p",
    "use_bfloat16",
    "use_cache",
    "use_mamba_kernels",
    "routed_scaling_factor",
    "swiglu_limit",
    "swiglu_alpha",
    "hc_eps",
    "hc_sinkhorn_iters",
    "ep_size",
    "observer",
    "observer_kwargs",
    "suppress_tokens",
    "image_grid_pinpoints",
    "media_placeholder_token_id",
    "num_beams",
    "num_beam_groups",
    "diversity_penalty",
    "no_repeat_ngram_size",
    "encoder_no_repeat_ngram_size",
    "begin_suppress_tokens",
    "add_cross_attention",
    "cross_attention_hidden_size",
    "video_placeholder",
    "image_placeholder",
    "use_unified_vision_chunk",
    "gate_lower_bound",
    "attn_logit_softcapping",
    "final_logit_softcapping",
    "pad_token",
}
NOISE_LIKE = re.compile(
    r"(_token_id|_token_index|_eps|_epsilon|dropout|_pdrop|initializer|aux_loss|_scaling_factor|router_logits"
    r"|^output_(attentions|hidden_states|scores)$|^return_dict|^time_step_(min|max|floor|limit)|_act_beta|situ_.*beta|activation_situ)"
)


def kept(fields: Mapping[str, Any]) -> dict[str, Any]:
    """The fields without noise and without nulls (TOML has none: `nulls` names them), nested objects likewise."""
    return {name: _clean(value) for name, value in fields.items() if value is not None and not is_noise(name, value)}


def nulls(fields: Mapping[str, Any], where: str = "") -> Iterator[str]:
    """The fields that are null, those of sections behind their names: a class may have another default for them."""
    for name, value in fields.items():
        if value is None and not is_noise(name, value):
            yield where + name
        elif isinstance(value, Mapping) and kept(value):
            yield from nulls(value, f"{where}{name}.")


def is_noise(name: str, value: Any) -> bool:
    """Whether a field decides nothing that tonnage tells. Training keeps more with dropout, if there is any."""
    if name in (*HIDDEN_DROPOUT, *ATTENTION_DROPOUT):
        return not value
    return name in NOISE or bool(NOISE_LIKE.search(name))


def _clean(value: Any) -> Any:
    if isinstance(value, Mapping):
        return kept(value)
    return [_clean(item) for item in value] if isinstance(value, list | tuple) else value


def text(entry: Mapping[str, Any]) -> str:
    """The entry as TOML: plain keys, then tables, then the published counts."""
    lines = [line for name, value in entry.items() if name not in (*TABLES, "published") for line in _pair(name, value)]
    for name in TABLES:
        if entry.get(name):
            lines += _table(name, entry[name])
    for published in entry["published"]:
        lines += ["", "[[published]]", *(line for name, value in published.items() for line in _pair(name, value))]
    return "\n".join(lines) + "\n"


def _table(path: str, fields: Mapping[str, Any]) -> Iterator[str]:
    plain = {name: value for name, value in fields.items() if not isinstance(value, Mapping)}
    if plain or not fields:
        yield from ("", f"[{path}]")
    for name, value in plain.items():
        yield from _pair(name, value)
    for name, value in fields.items():
        if isinstance(value, Mapping):
            yield from _table(f"{path}.{_key(name)}", value)


def _pair(name: str, value: Any) -> Iterator[str]:
    line = f"{_key(name)} = {_value(value)}"
    if len(line) <= WIDTH or not isinstance(value, list | tuple):
        yield line
        return
    yield f"{_key(name)} = ["
    yield from _wrapped([_value(item) for item in value])
    yield "]"


def _wrapped(items: list[str]) -> Iterator[str]:
    line = "   "
    for item in items:
        if len(line) + len(item) + 2 > WIDTH and line.strip():
            yield line
            line = "   "
        line += f" {item},"
    yield line


def _key(name: str) -> str:
    return name if re.fullmatch(r"[A-Za-z0-9_-]+", name) else json.dumps(name)


def _value(value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, int | float):
        return repr(value)
    if isinstance(value, list | tuple):
        return "[" + ", ".join(_value(item) for item in value) + "]"
    if isinstance(value, Mapping):
        return "{ " + ", ".join(f"{_key(name)} = {_value(item)}" for name, item in value.items()) + " }"
    return json.dumps(str(value), ensure_ascii=False)


def stem(hub: str) -> str:
    """The file's name: the last component of the Hub id, as names are compared."""
    return hub.rsplit("/", 1)[-1].lower().replace("_", "-")


def entry_of(args: argparse.Namespace, fields: Mapping[str, Any]) -> dict[str, Any]:
    """The entry that the command line describes."""
    name = args.name or stem(args.hub)
    entry = {"name": name, "hub": args.hub, "aliases": sorted({args.hub.lower(), *args.alias} - {name})}
    for optional in ("released", "license", "note"):
        if value := getattr(args, optional):
            entry[optional] = value
    if unsaid := list(nulls(fields)):
        entry["nulls"] = unsaid
    entry["config"] = kept(fields)
    entry["sources"] = {"config": {"source": args.source, "as_of": args.as_of}}
    entry["published"] = [published(given, args.as_of) for given in args.published]
    return entry


def published(given: str, as_of: str) -> dict[str, Any]:
    """COUNT;SOURCE[;COUNTS]: digits alone are an exact count, anything else is kept as printed."""
    count, source, counts = [*given.split(";"), "model"][:3]
    return {"parameters": int(count) if count.isdigit() else count, "source": source, "as_of": as_of, "counts": counts}


def main() -> int:
    args = _arguments().parse_args()
    fields = json.loads(Path(args.config).read_text(encoding="utf-8"))
    entry = entry_of(args, fields)
    path = Path(args.out) / f"{entry['name']}.toml"
    path.write_text(text(entry), encoding="utf-8")
    print(f"wrote {path}")
    return _report(path)


def _report(path: Path) -> int:
    from tonnage.architectures import build
    from tonnage.catalogue.models import load
    from tonnage.kernel.errors import TonnageError

    try:
        form = load(path)
        model = build(form.config, form.name, str(path))
    except TonnageError as error:
        print(error, file=sys.stderr)
        return 1
    print(
        f"tonnage counts {model.num_parameters():,} parameters, {model.num_parameters(drafts=True):,} with draft layers"
    )
    return 0


def _arguments() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("config", help="path of the model's config.json")
    parser.add_argument("--hub", required=True, help="id on the Hub: ORG/NAME")
    parser.add_argument("--source", required=True, help="where the config.json was read, with its revision if known")
    parser.add_argument(
        "--as-of", default=datetime.now().astimezone().date().isoformat(), help="the day of that, YYYY-MM-DD"
    )
    parser.add_argument("--name", help="the entry's name, by default the last component of the Hub id")
    parser.add_argument("--alias", action="append", default=[], help="another name; repeat it")
    parser.add_argument("--published", action="append", default=[], metavar="COUNT;SOURCE[;COUNTS]", help="repeat it")
    parser.add_argument("--released", default="", help="YYYY-MM-DD")
    parser.add_argument("--license", default="", help="as the Hub names it")
    parser.add_argument("--note", default="", help="what a user should know")
    parser.add_argument("--out", default=str(CATALOGUE), help="folder to write to")
    return parser


if __name__ == "__main__":
    sys.exit(main())
