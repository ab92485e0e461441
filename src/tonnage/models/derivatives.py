"""Quantised copies of the catalogue's models, known by their names: Qwen/Qwen3-32B-AWQ, "qwen3 32b awq",
unsloth/...-bnb-4bit, mlx-community/...-4bit, ...-GGUF:Q4_K_M.

The base is the catalogue's, the weights are as the tool of that name stores them by default. What a repository's own
files say is read from the Hub where its name has the prefix hf:.
"""

import re
from collections.abc import Mapping
from typing import Any

from msgspec import Struct

from tonnage.kernel.errors import MissingDatum, TonnageError, UnknownName, shown
from tonnage.kernel.message import Message, listed
from tonnage.models.contents import Contents

DEFAULT_FILE = "Q4_K_M"  # llama.cpp, common/download.cpp: what -hf takes where no file is named, as Ollama does
MIRRORS = ("unsloth", "lmstudio-community", "mlx-community", "nousresearch", "bartowski", "modelscope")
BLOCKS = ("qwen", "zai-org", "deepseek-ai")  # whose FP8 has a scale for each block of 128 x 128
_MODES = r"(?:dwq|mtq|qat|hi)"
_FILE_TYPE = re.compile(r"(?:^|[-._/])((?:ud-)?(?:iq|q|tq)\d_[a-z0-9_]+|bf16|f16|f32|mxfp4)(?:[-._]|$)", re.IGNORECASE)
_WORDS = re.compile(r"[-_.\s]+")

Config = dict[str, Any]


class Stored(Struct, frozen=True):
    """How a tool stores weights by default: its name, and the fields of the config that say it."""

    what: str
    fields: Mapping[str, Any]


def _integers(method: str, bits: int) -> Stored:
    more = {"zero_point": True, "version": "gemm"} if method == "awq" else {"desc_act": False, "sym": True}
    config = {"quant_method": method, "bits": bits, "group_size": 128, **more}
    return Stored(
        Message("{method}, {bits} bits in groups of 128", method=method.upper(), bits=bits),
        {"quantization_config": config},
    )


def _bitsandbytes(bits: int) -> Stored:
    if bits == 8:
        config: Config = {"quant_method": "bitsandbytes", "load_in_8bit": True}
        return Stored("bitsandbytes int8", {"quantization_config": config})
    config = {
        "quant_method": "bitsandbytes",
        "load_in_4bit": True,
        "bnb_4bit_quant_type": "nf4",
        "bnb_4bit_use_double_quant": True,
    }
    return Stored("bitsandbytes nf4, its scales quantised too", {"quantization_config": config})


def _fp8(owner: str) -> Stored:
    config: Config = {"quant_method": "fp8", "activation_scheme": "dynamic"}
    if owner in BLOCKS:
        config["weight_block_size"] = [128, 128]
        return Stored("fp8, a scale for each block of 128 x 128", {"quantization_config": config})
    return Stored("fp8, a scale for each matrix", {"quantization_config": config})


def _mlx(bits: int) -> Stored:
    config = {"group_size": 64, "bits": bits}
    return Stored(
        Message("MLX, {bits} bits in groups of 64", bits=bits), {"quantization": config, "quantization_config": config}
    )


def _exllama(method: str, bits: float, head: int) -> Stored:
    config = {"quant_method": method, "bits": bits, "head_bits": head}
    return Stored(
        Message("{method}, {bits:g} bits and a head of {head}", method=method.upper(), bits=bits, head=head),
        {"quantization_config": config},
    )


def _gguf(file_type: str) -> Stored:
    config = {"quant_method": "gguf", "file_type": file_type.upper()}
    return Stored(Message("GGUF {file_type}", file_type=file_type.upper()), {"quantization_config": config})


def contents(text: str) -> Contents | None:
    """The catalogue's base with the weights that a name says; None where the name is of no such copy."""
    from tonnage.models import names

    if "\0" in text or len(text) > names.MAX_NAME:
        return None
    owner, name, file = _parts(text)
    found = _found(owner, name, file)
    if found is None:
        return None
    base, stored = found
    from tonnage.catalogue import models as catalogue

    form = catalogue.model_file(base)
    said = text if "/" in text else name
    note = Message(
        "{name} is read as {base}, its weights as {what}: prefix hf: to read the repository's own files.",
        name=said,
        base=form.name,
        what=stored.what,
    )
    if not stored.fields:
        note = Message("{name} is read as {base} of the catalogue.", name=said, base=form.name)
    return Contents(
        name=said if "/" in text else f"{form.name}-{name[len(base) :].strip(' -_')}".rstrip("-"),
        source=Message("catalogue entry {name}", name=form.name),
        where=form.name,
        fields={**form.config, **stored.fields},
        notes=[*([form.note] if form.note else []), note],
        place=text.partition(":")[0] if "/" in text else "",
    )


def _parts(text: str) -> tuple[str, str, str]:
    """Owner, name and file of a name as people write it."""
    repository, _, file = text.strip().partition(":")
    owner, slash, name = repository.rpartition("/")
    return (owner.lower() if slash else ""), name, file


def _found(owner: str, name: str, file: str) -> tuple[str, Stored] | None:
    """The name of the base in the catalogue, and how the copy is stored."""
    plain = "-".join(name.lower().replace("_", "-").split())
    for end, stored in _endings(owner, plain, file):
        base = _base(owner, plain[: len(plain) - end].rstrip("-."))
        if base:
            return base, stored
    if owner in MIRRORS and not file:
        base = _base(owner, plain)
        return (base, Stored("", {})) if base else None
    return None


def _endings(owner: str, plain: str, file: str) -> list[tuple[int, Stored]]:
    """What the end of a name may say of its weights: how long that end is, and what it says; the longest first."""
    found: list[tuple[int, Stored]] = []

    def add(pattern: str, stored: Stored) -> None:
        match = re.search(rf"-(?:{pattern})$", plain)
        if match:
            found.append((len(match[0]), stored))

    is_mlx = owner == "mlx-community" or "mlx" in _WORDS.split(plain)
    add(r"awq(?:-(?:int4|4bit|w4g128|marlin))?|(?:4bit-|int4-)awq", _integers("awq", 4))
    add(r"gptq(?:-(?:int4|4bit|marlin))?|4bit-gptq", _integers("gptq", 4))
    add(r"gptq-(?:int8|8bit)", _integers("gptq", 8))
    add(r"fp8(?:-(?:dynamic|static|kv))?", _fp8(owner))
    add(r"(?:unsloth-)?bnb-4bit", _bitsandbytes(4))
    add(r"(?:unsloth-)?bnb-8bit", _bitsandbytes(8))
    for bits in (2, 3, 4, 5, 6, 8):
        if is_mlx:
            add(rf"(?:mlx-)?{bits}bit(?:-mlx)?(?:-{_MODES})?(?:-[0-9]+)?", _mlx(bits))
    found += _of_exllama(plain, file)
    kind = _file_type(file) or _file_type(plain)
    if plain.endswith("-gguf"):
        add(r"(?:i1-|imat-|qat-q4-0-)?gguf", _gguf(kind or DEFAULT_FILE))
    elif kind and not is_mlx:
        from tonnage.numerics.quantization import is_file_type

        if is_file_type(kind.lower()):
            add(re.escape(kind.lower().replace("_", "-")), _gguf(kind))
    return sorted(found, key=lambda each: -each[0])


def _of_exllama(plain: str, file: str) -> list[tuple[int, Stored]]:
    """The same of ExLlama's files: -4.0bpw-h6-exl2, -exl2-4.0bpw, or -exl3 with the bits as the branch (:4.0bpw)."""
    ending = re.search(rf"-(?:{_BPW}-(exl[23])|(exl[23])(?:-{_BPW})?)$", plain)
    if ending is None:
        return []
    before, head, first, second, behind, other = ending.groups()
    branch = re.fullmatch(_BPW, file.lower().replace("_", "-")) if file else None
    bits = before or behind or (branch and branch[1])
    if not bits:
        return []
    from tonnage.numerics.quantization import HEAD_BITS

    own = head or other or (branch and branch[2])
    return [(len(ending[0]), _exllama(first or second, float(bits), int(own or HEAD_BITS)))]


_BPW = r"(\d(?:\.\d{1,2})?)bpw(?:-h(\d))?"


def _file_type(text: str) -> str:
    """The type of a GGUF file that a name holds, such as Q4_K_M of model-Q4_K_M.gguf."""
    match = _FILE_TYPE.search(text.replace("-k-", "_k_") if "_" not in text else text)
    if match is None and (plain := re.search(r"-(i?q\d(?:-[a-z0-9]+)+)$", text)):
        return plain[1].replace("-", "_").upper()
    return match[1].upper().removeprefix("UD-") if match else ""


def _base(owner: str, name: str) -> str:
    """The name in the catalogue of a model that is called so, by its owner or by anybody else."""
    from tonnage.catalogue import models as catalogue

    tried = [f"{owner}/{name}", name] if owner else [name]
    if name.startswith("meta-llama-"):
        tried.append(name.removeprefix("meta-"))
    return next((each for each in tried if name and catalogue.find(each)), "")


def looks_like(text: str) -> str:
    """The model of the catalogue whose whole name, size and all, stands in a name; the longest one, or nothing."""
    from tonnage.catalogue import aliases, model_names

    words = "-".join(_WORDS.split(text.rpartition("/")[2].lower()))
    best = ""
    for known in (*model_names(), *aliases("models")):
        plain = "-".join(_WORDS.split(known.rpartition("/")[2]))
        sized = re.search(r"(?:^|-)[a-z]?\d+(?:-\d+)?b(?:-|$)", plain)
        if sized and len(plain) > len(best) and re.search(rf"(?:^|-){re.escape(plain)}(?:-|$)", words):
            best = plain
            named = known
    if not best:
        return ""
    from tonnage.catalogue.models import model_file

    return model_file(named).name


def unreachable(text: str, why: str) -> TonnageError | None:
    """The error for a repository that cannot be asked, whose name says what it is made of; None where it does not."""
    if refused := other_speech(text):
        return refused
    base = looks_like(text)
    if not base:
        kind = _kind_not_yet(text.rpartition("/")[2])
        missing = "{name} is {kind} that the catalogue does not have yet. Give its config.json. It was not read: {why}"
        return UnknownName(Message(missing, name=shown(text), kind=Message(kind[0]), why=why)) if kind else None
    return UnknownName(
        Message(
            "{name} looks like {base}: ask with {base}, or give its config.json. It was not read: {why}",
            name=shown(text),
            base=base,
            why=why,
        )
    )


# Speech models that no estimate covers: what writes their text.
_OTHER_SPEECH = (
    (r"canary-qwen.*", "a FastConformer encoder before Qwen3 with adapters (NeMo's SALM)"),
    (r"canary.*", "a FastConformer encoder with a small attention decoder (NeMo)"),
    (r"parakeet.*", "a FastConformer encoder with a CTC or transducer decoder (NeMo), a position every 80 ms"),
    (
        r"(?:wav2vec2|hubert|wavlm|mms|data2vec-audio).*",
        "an encoder over the waveform with CTC, a position every 20 ms",
    ),
    (r"moonshine.*", "an encoder and a decoder over sounds of any length, not windows of 30 seconds"),
    (r"(?:kyutai-)?stt.*", "a decoder that reads audio codes at 12.5 Hz as they stream"),
)
ESTIMATED_SPEECH = ("whisper-large-v3", "qwen3-asr-1.7b", "voxtral-mini-3b-2507", "granite-speech-3.3-8b")


def other_speech(text: str) -> MissingDatum | None:
    """The error for a speech model of a kind that is not estimated, with how it writes text; None for others."""
    plain = "-".join(_WORDS.split(text.rpartition("/")[2].strip().lower()))
    how = next((how for pattern, how in _OTHER_SPEECH if re.fullmatch(pattern, plain)), "")
    if not how:
        return None
    return MissingDatum(
        "{name} is not estimated: its text is written by {how}. Estimated are {known}.",
        name=shown(text),
        how=Message(how),
        known=listed(ESTIMATED_SPEECH),
    )


# Models that people ask for by names that no entry has: what they are, and where their config is.
NOT_YET = (
    (r"(?:openai-)?whisper(?:-.*)?", "a speech model", "openai/whisper-large-v3"),
    (r"(?:intfloat-)?e5-(?:small|base|large)(?:-v2)?", "an embedding model", "intfloat/e5-large-v2"),
    (r"(?:gte|bge|nomic-embed|jina-embeddings|snowflake-arctic-embed)-.*", "an embedding model", "BAAI/bge-m3"),
    (r"(?:clip|siglip2?)-.*", "an image encoder", "openai/clip-vit-large-patch14"),
)


def not_yet(text: str) -> UnknownName | None:
    """The error for a model of a kind that the catalogue has none of, or few of; None for others."""
    from tonnage.catalogue import model_names

    found = _kind_not_yet(text)
    if not found:
        return None
    kind, example = found
    near = [name for name in model_names() if "-".join(_WORDS.split(text.strip().lower())) in name]
    hint = Message(" The catalogue has {near}.", near=listed(map(repr, near))) if near else ""
    return UnknownName(
        Message(
            "{name} is {kind} that the catalogue does not have yet. Give its config.json, or its id on the Hub, such "
            "as {example}.{hint}",
            name=shown(text),
            kind=Message(kind),
            example=example,
            hint=hint,
        )
    )


def _kind_not_yet(text: str) -> tuple[str, str] | None:
    """What a model of this name is, and an example of the Hub, where the catalogue has none or few of its kind."""
    plain = "-".join(_WORDS.split(text.strip().lower()))
    return next(((kind, example) for pattern, kind, example in NOT_YET if re.fullmatch(pattern, plain)), None)
