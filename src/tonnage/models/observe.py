"""Facts of a model from the names and shapes of its tensors: table, head, layers, width, parameters."""

from collections.abc import Mapping, Sequence

from msgspec import Struct

from tonnage.models.tensors import Item, Tensor

_TABLES = (
    "embed_tokens.weight",
    "wte.weight",
    "word_embeddings.weight",
    "tok_embeddings.weight",
    "token_embd.weight",
    "embed_in.weight",
    "embeddings.weight",
    "embedding.weight",
    "embed.weight",
    "shared.weight",
    "wte.embedding.weight",
)
_FINAL_NORMS = (
    "norm.weight",
    "ln_f.weight",
    "final_layernorm.weight",
    "final_layer_norm.weight",
    "output_norm.weight",
    "norm_f.weight",
    "final_norm.weight",
)


class Facts(Struct, frozen=True, kw_only=True):
    """`layers` counts all stored layers of the language model, `per_layer` their parameters; `drafts` are the
    parameters of tensors named as multi-token prediction.
    """

    rows: int | None
    width: int | None
    head: bool
    head_parameters: int
    layers: int
    per_layer: Mapping[int, int]
    draft_layers: int
    drafts: int
    parameters: int

    @property
    def model_layers(self) -> int:
        """Layers of the model proper: all stored ones, less those at the end that are multi-token prediction."""
        return self.layers - self.draft_layers

    def drafts_behind(self, layers: int) -> int:
        """Parameters of multi-token prediction: tensors named so, and layers behind the model's last."""
        if self.model_layers != layers:
            return self.drafts
        return self.drafts + sum(count for layer, count in self.per_layer.items() if layer >= layers)


def observe(items: Sequence[Item]) -> Facts:
    table = _table(items)
    per_layer: dict[int, int] = {}
    behind: set[int] = set()
    total = drafts = head = 0
    for item in items:
        total += item.parameters
        if item.layer is not None:
            per_layer[item.layer] = per_layer.get(item.layer, 0) + item.parameters
            if item.joins:
                behind.add(item.layer)
        elif item.draft:
            drafts += item.parameters
        elif item.part == "head":
            head += item.parameters
    layers = max(per_layer, default=-1) + 1
    last = next((count for count in range(len(behind) + 1) if layers - 1 - count not in behind), 0)
    return Facts(
        rows=table.shape[0] if table else None,
        width=_width(table, items),
        head=head > 0,
        head_parameters=head,
        layers=layers,
        per_layer=per_layer,
        draft_layers=last,
        drafts=drafts,
        parameters=total,
    )


def _table(items: Sequence[Item]) -> Tensor | None:
    """The embedding table of the tokens."""
    tables = [
        item.tensor
        for item in items
        if item.part == "embedding"
        and item.layer is None
        and not item.draft
        and item.tensor.name.endswith(_TABLES)
        and len(item.tensor.shape) == 2
    ]
    return max(tables, key=lambda tensor: tensor.shape[0], default=None)


def _width(table: Tensor | None, items: Sequence[Item]) -> int | None:
    """The model's width: the table's columns, unless the final norm contradicts them (a table may be narrower)."""
    if table is None or table.dtype in ("U32", "I32", "U8", "I8"):
        return None
    norms = {
        item.tensor.shape[0]
        for item in items
        if item.part == "norm"
        and item.layer is None
        and not item.draft
        and item.tensor.name.endswith(_FINAL_NORMS)
        and len(item.tensor.shape) == 1
    }
    return table.shape[1] if table.shape[1] in norms or not norms else None
