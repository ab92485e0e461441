"""The precision of each module of a quantised checkpoint, from its quantization_config."""

from collections.abc import Iterable, Mapping
from typing import Any, Protocol

from msgspec import Struct

from tonnage.kernel.errors import MissingDatum, shown
from tonnage.kernel.message import Message
from tonnage.numerics.precisions import Precision, precision
from tonnage.numerics.quantization import _exllama as exllama
from tonnage.numerics.quantization import _schemes as schemes
from tonnage.numerics.quantization._modules import Module, Modules

_EXCLUDED = (
    "modules_to_not_convert",
    "ignore",
    "exclude_modules",
    "exclude",
    "ignored_layers",
    "llm_int8_skip_modules",
    "modules_to_not_quantize",
)
_SIGHT = ("vis", "image", "mm_projector", "multi_modal", "audio", "speech")


class Matrix(Protocol):
    """The attributes of ops.Weight that a layout reads."""

    @property
    def part(self) -> Any: ...
    @property
    def linear(self) -> bool: ...
    @property
    def quantizable(self) -> bool: ...


class Rule(Struct, frozen=True):
    """The precision that these modules are stored in; None: the checkpoint's own type."""

    modules: Modules
    stored: Precision | None


class Layout(Struct, frozen=True, kw_only=True):
    """The precision of every module: the first rule that matches it, else `matrices` for the matrices of the layers.

    `experts`: those of routed experts, where they differ from the rest; `keeps_experts`: they stay as they were.
    `tables`: embedding, head and routers are quantised like matrices (MLX), or in a precision of their own, `table`
    (OpenVINO). `towers`: vision and audio too. `head`: what the output projection is in, where it has bits of its own
    (ExLlama).
    """

    matrices: Precision | None
    rules: tuple[Rule, ...] = ()
    experts: Precision | None = None
    keeps_experts: bool = False
    tables: bool = False
    table: Precision | None = None
    towers: bool = False
    head: Precision | None = None

    @property
    def by_layer(self) -> bool:
        return any(rule.modules.by_layer for rule in self.rules)

    @property
    def used(self) -> list[Precision]:
        """The precisions in use, the most common first."""
        precisions = [self.matrices, self.experts, *(rule.stored for rule in self.rules)]
        return list({precision.name: precision for precision in precisions if precision}.values())

    def precision_of(self, weight: Matrix, modules: Iterable[Module]) -> Precision | None:
        """The precision that a matrix is stored in; None: the checkpoint's own type."""
        if not self._can(weight):
            return None
        for rule in self.rules:
            if rule.modules.has(modules):
                return rule.stored
        if weight.part == "head" and self.head is not None:
            return self.head
        if not (weight.quantizable or self.tables):
            return None
        if self.table is not None and not weight.quantizable:
            return self.table
        if weight.part == "experts":
            return None if self.keeps_experts else self.experts or self.matrices
        return self.matrices

    def _can(self, weight: Matrix) -> bool:
        """Whether a quantiser can pack this weight: matrix products, and with `tables` embeddings."""
        return weight.linear or (self.tables and weight.part == "embedding")


def layout(config: Mapping[str, Any], scale_bits: int = 32) -> Layout:
    """The layout of a quantization_config. `scale_bits`: width of the scales of fp8 blocks, which no config states.

    Raises InvalidInput for a field that is invalid, MissingDatum where the config does not say what its matrices are
    stored in.
    """
    stored = _read(config, scale_bits)
    searches = sum(rule.modules.searches for rule in stored.rules)
    if searches > MAX_SEARCHES:
        raise MissingDatum(
            "quantization_config: {searches} patterns are too many to try on every module.", searches=searches
        )
    return stored


MAX_SEARCHES = 1000  # globs and regular expressions; names are looked up, and may be any number


def _read(config: Mapping[str, Any], scale_bits: int) -> Layout:
    inner = config.get("quantization")
    if isinstance(inner, Mapping):  # hf_quant_config.json wraps it
        config = {**config, **inner}
    method = str(config.get("quant_method") or "").lower().replace("compressed_", "compressed-")
    if method == "compressed-tensors":
        return _compressed(config)
    if isinstance(config.get("quantized_layers"), Mapping):
        return _listed(config, method, scale_bits)
    algorithm = str(config.get("quant_algo") or "").upper()
    if algorithm and method in ("modelopt", "modelopt_fp4", ""):
        return Layout(matrices=schemes.modelopt(algorithm, config), rules=_left(config))
    if method in _READERS:
        return _READERS[method](config, scale_bits)
    if not method and "group_size" in config and "bits" in config:
        return _mlx(config)
    what = (
        Message(
            "quant_method {quant_method} with quant_algo {algorithm}",
            quant_method=shown(config.get("quant_method")),
            algorithm=shown(algorithm),
        )
        if algorithm
        else Message("quant_method {quant_method}", quant_method=shown(config.get("quant_method")))
    )
    raise schemes.missing(what)


def _named(value: Any) -> list[str]:
    """The names in a list of a config; empty where it is no list of texts."""
    return [item for item in value if isinstance(item, str)] if isinstance(value, list | tuple) else []


def _excluded(config: Mapping[str, Any]) -> list[str]:
    """The modules that the config leaves in the checkpoint's own type."""
    return [item for key in _EXCLUDED for item in _named(config.get(key))]


def _left(config: Mapping[str, Any], inside: bool = False) -> tuple[Rule, ...]:
    listed = _excluded(config)
    return (Rule(Modules(listed, inside), None),) if listed else ()


def _grouped(named: Iterable[tuple[str, Precision | None]]) -> list[Rule]:
    """One rule for all modules of a precision: configs list thousands of experts."""
    kinds: dict[Precision | None, list[str]] = {}
    for name, stored in named:
        kinds.setdefault(stored, []).append(name)
    return [Rule(Modules(names), stored) for stored, names in kinds.items()]


def _gptq(config: Mapping[str, Any], scale_bits: int) -> Layout:
    stored = schemes.packed_integers(config, "gptq")
    rules = [*_dynamic(config), *_left(config)]
    if config.get("lm_head") is True:
        rules.append(Rule(Modules(["lm_head"]), stored))
    inside = config.get("modules_in_block_to_quantize")
    if isinstance(inside, list) and inside:
        names = [name for group in inside for name in _named(group if isinstance(group, list) else [group])]
        return Layout(matrices=None, rules=(*rules, Rule(Modules(names), stored)))
    return Layout(matrices=stored, rules=tuple(rules))


def _dynamic(config: Mapping[str, Any]) -> list[Rule]:
    """GPTQModel: "-:regex" leaves modules alone, "+:regex" (or "regex") changes bits and group size."""
    listed = config.get("dynamic")
    rules = []
    for pattern, changed in listed.items() if isinstance(listed, Mapping) else ():
        modules = Modules([f"re:{pattern.removeprefix('-:').removeprefix('+:')}"])
        left = pattern.startswith("-:") or not isinstance(changed, Mapping)
        rules.append(Rule(modules, None if left else schemes.packed_integers({**config, **changed}, "gptq")))
    return rules


def _awq(config: Mapping[str, Any], scale_bits: int) -> Layout:
    return Layout(matrices=schemes.packed_integers(config, "awq"), rules=_left(config, inside=True))


def _auto_round(config: Mapping[str, Any], scale_bits: int) -> Layout:
    """auto-round: GPTQ's packing without the group index; other data types are stored in other ways."""
    if config.get("data_type") not in (None, "int"):
        raise schemes.missing(f"auto-round's data_type {shown(config['data_type'])}")
    stored = schemes.packed_integers(config, "auto-round")
    extra = config.get("extra_config")
    names, rules = [], []
    for name, changed in extra.items() if isinstance(extra, Mapping) else ():
        bits = schemes.whole_number(changed, "bits") if isinstance(changed, Mapping) else None
        wide = bits is None or bits >= 16
        other = None if wide else schemes.packed_integers({**config, **changed}, "auto-round")
        if any(letter in _REGEX for letter in name):
            rules.append(Rule(Modules([f"re:{name}"], anywhere=True), other))
        else:
            names.append((name, other))
    return Layout(matrices=stored, rules=(*_grouped(names), *rules, *_left(config)))


_REGEX = frozenset("*+?^$()[]{}|\\")  # a key of extra_config with one of these is a regular expression


def _bitsandbytes(config: Mapping[str, Any], scale_bits: int) -> Layout:
    return Layout(matrices=schemes.bitsandbytes(config), rules=_left(config), towers=not _names_towers(config))


def _fp8(config: Mapping[str, Any], scale_bits: int) -> Layout:
    return Layout(matrices=schemes.block_fp8(config, scale_bits), rules=_left(config))


def _fbgemm(config: Mapping[str, Any], scale_bits: int) -> Layout:
    return Layout(matrices=schemes.fbgemm(), rules=_left(config))


def _mxfp4(config: Mapping[str, Any], scale_bits: int) -> Layout:
    """transformers quantises only experts to it."""
    return Layout(matrices=None, experts=precision("mxfp4"))


def _exllama(config: Mapping[str, Any], scale_bits: int) -> Layout:
    """EXL2 and EXL3: the matrices of all layers at a mean of `bits`, the head at `head_bits`; the table stays as it
    was.
    """
    return Layout(matrices=exllama.of_layers(config), head=exllama.of_head(config))


def _quark(config: Mapping[str, Any], scale_bits: int) -> Layout:
    common, special = config.get("global_quant_config"), config.get("layer_quant_config")
    rules = [
        Rule(Modules([name]), schemes.quark(scheme))
        for name, scheme in (special.items() if isinstance(special, Mapping) else ())
        if isinstance(scheme, Mapping)
    ]
    return Layout(matrices=schemes.quark(common if isinstance(common, Mapping) else {}), rules=(*_left(config), *rules))


_READERS = {
    "gptq": _gptq,
    "awq": _awq,
    "auto-round": _auto_round,
    "intel/auto-round": _auto_round,
    "bitsandbytes": _bitsandbytes,
    "fp8": _fp8,
    "fbgemm_fp8": _fbgemm,
    "mxfp4": _mxfp4,
    "quark": _quark,
    "exl2": _exllama,
    "exl3": _exllama,
}


def _mlx(config: Mapping[str, Any]) -> Layout:
    """MLX: every matrix and table, with exceptions that the config lists in another precision or as not quantised
    (false).
    """
    named = [
        (
            name.replace("switch_mlp", "experts"),
            schemes.mlx(value) if isinstance(value, Mapping) else None,
        )  # MLX's experts
        for name, value in config.items()
        if isinstance(value, Mapping) or (value is False and "." in name)
    ]
    return Layout(matrices=schemes.mlx(config), rules=tuple(_grouped(named)), tables=True)


def _listed(config: Mapping[str, Any], method: str, scale_bits: int) -> Layout:
    """modelopt's mixtures: quantized_layers gives each module its own algorithm; the rest is as in the original."""
    named = [
        (name, schemes.modelopt(str(scheme.get("quant_algo")).upper(), scheme))
        for name, scheme in config["quantized_layers"].items()
        if isinstance(scheme, Mapping)
    ]
    if not named:
        raise MissingDatum("quantization_config: quantized_layers lists no module.")
    others = schemes.block_fp8(config, scale_bits) if method == "fp8" else None
    return Layout(matrices=others, rules=tuple(_grouped(named)))


def _compressed(config: Mapping[str, Any]) -> Layout:
    groups = config.get("config_groups")
    listed = [group for group in groups.values() if isinstance(group, Mapping)] if isinstance(groups, Mapping) else []
    sparse = config.get("sparsity_config")
    if not listed or (isinstance(sparse, Mapping) and sparse.get("format") not in (None, "dense")):
        raise schemes.missing("compressed-tensors without config_groups, or with sparse weights,")
    form = str(config.get("format") or "")
    rules, matrices = list(_left(config)), None
    for group in listed:
        stored = schemes.compressed_tensors(group, str(group.get("format") or form))
        targets = _named(group.get("targets")) or ["Linear"]
        named = [item for item in targets if not item[:1].isupper()]
        matrices = stored if len(named) < len(targets) else matrices
        if named:
            rules.append(Rule(Modules(named), stored))
    return Layout(matrices=matrices, rules=tuple(rules), towers=not _names_towers(config))


def _names_towers(config: Mapping[str, Any]) -> bool:
    """Whether any pattern names a tower: then the towers are left unquantised."""
    return any(word in item for item in _excluded(config) for word in _SIGHT)
