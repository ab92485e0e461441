"""A rank of Megatron-core put together from its layers on the tape: what the step's walk does, for one model in the
small.
"""

from functools import lru_cache

from msgspec import Struct

from tonnage import read
from tonnage.architectures import style_of, wiring
from tonnage.runtimes import training_runtime
from tonnage.runtimes.parts.megatron import buffers, ends, pipeline
from tonnage.runtimes.parts.megatron.experts import rows_at_experts
from tonnage.runtimes.parts.megatron.layers import MegatronLayers
from tonnage.runtimes.parts.megatron.states import MegatronStates
from tonnage.tape import layer
from tonnage.tape.megatron import MegatronSetting


class Run(Struct, frozen=True, kw_only=True):
    """Sizes of a run; `dense`: leading layers that have no experts; `kv_heads`: where the run's model has others."""

    model: str
    kv_heads: int = 0
    layers: int
    dense: int = 0
    sequence: int = 4096
    tensor: int = 1
    pipeline: int = 1
    context: int = 1
    expert: int = 1
    data: int = 1
    microbatches: int = 4
    capability: int = 100

    @property
    def tokens(self):
        return self.sequence // self.context


def setting_of(run, **options):
    return MegatronSetting(
        style=style_of(model_of(run.model)),
        kernels=training_runtime("megatron").kernels,
        attention="flash",
        sequence_parallel=run.tensor > 1,
        context_parallel="a2a" if run.context > 1 else "",
        **options,
    )


@lru_cache
def model_of(name, kv_heads=0):
    return read(name, offline=True, overrides={"num_key_value_heads": kv_heads} if kv_heads else {})


def on_tape(block, setting, hidden):
    """The layer, and the shapes of its weights."""
    code = MegatronLayers(setting)

    def run(x):
        return wiring.run(block, code, x)

    if setting.recompute == "full":
        return layer(code, lambda x: code.checkpoint(run, x), hidden, 2), code.shapes
    return layer(code, run, hidden, 2), code.shapes


def size(extent, run, rows=0):
    """How many units of an extent the rank has."""
    cut = {"tensor": run.tensor, "whole": run.tensor, "gathered": 1, "vocab": run.tensor, "replicated": 1}
    if extent.unit == "gradient":
        return 0
    if extent.unit == "row":
        return rows
    if extent.unit == "parameter":
        return 1 / {"tensor": run.tensor, "kv": run.tensor, "vocab": run.tensor, "expert": run.expert}.get(
            extent.split, 1
        )
    return run.tokens / cut[extent.split] * (run.sequence if extent.unit == "pair" else 1)


def total(live, run, rows=0):
    return sum(amount * size(key.extent, run, rows) for key, amount in live.items())


def total_kept(tape, run, rows=0):
    return sum(each.bytes * size(each.key.extent, run, rows) for each in tape.kept)


def rank_peak(run, rank, setting, states=None, null_tokenizer=True, blackwell_is_large=False):
    """Bytes at the fullest moment, and which it is. Experts are padded to a capacity factor of 1."""
    model, states = model_of(run.model, run.kv_heads), states or MegatronStates()
    kinds = [model.decoder.blocks[index] for index in model.decoder.layers]
    chunk = pipeline.even_layout(run.layers, run.pipeline)[rank][0]
    blocks = [kinds[0] if chunk.first + each < run.dense else kinds[-1] for each in range(chunk.layers)]
    hidden, is_last, is_first = model.hidden_size, chunk.loss, chunk.embedding
    mixture = next((op for block in blocks for op in block.ops if hasattr(op, "num_experts")), None)
    rows = rows_at_experts(mixture, run.tokens // run.tensor, capacity_factor=1) if mixture else 0
    latent = [op for block in blocks for op in block.ops if hasattr(op, "kv_lora_rank")]

    padded = buffers.padded_vocabulary(model.vocab_size, run.tensor, null_tokenizer=null_tokenizer)
    dense, experts, shapes = 0.0, 0.0, {}
    for block in blocks:
        for weight in block.weights():
            if weight.split == "expert":
                experts += weight.num_parameters / run.expert
            elif not weight.name.endswith("e_score_correction_bias"):
                dense += weight.num_parameters / (run.tensor if weight.split in ("tensor", "kv") else 1)
    table = padded * hidden / run.tensor
    dense += table * is_first + (table + hidden) * is_last
    tapes = {block: on_tape(block, setting, hidden) for block in set(blocks)}
    for _, made in tapes.values():
        shapes.update(made)
    if is_last:
        shapes[ends.output_shape(hidden, padded)] = None

    share, expert_share = states.shards(run.data, run.context, run.tensor, run.expert)
    steady = (states.weight_bytes + states.gradient_bytes) * (dense + experts)
    steady += states.sharded_bytes * (dense / share + experts / expert_share)
    steady += buffers.dummy_weight_gradients(shapes, setting, run.tensor)
    steady += buffers.matmul_workspace(run.capability, setting, bool(mixture))
    if buffers.multiplies_in_torch(setting, is_last, bool(mixture)):
        steady += buffers.torch_workspace(run.capability, blackwell_is_large)
    steady += buffers.global_memory(setting, run.tokens, hidden, is_last)
    rotary = (
        latent[0].qk_rope_head_dim if latent else next(op.head_dim for op in blocks[0].ops if hasattr(op, "head_dim"))
    )
    steady += buffers.rotary_tables(setting, run.tokens, rotary, len(latent))

    kept = [total_kept(tapes[block][0], run, rows) for block in blocks]
    waiting = pipeline.chunks_in_flight(rank, run.pipeline, run.microbatches) - 1
    named = pipeline.stale(rank, run.pipeline)
    shard = run.tokens * hidden * 2 / run.tensor
    moments = {}
    for index, block in enumerate(blocks):
        below = steady + waiting * sum(kept) + sum(kept[:index])
        for each in tapes[block][0].moments:
            beside = shard * (named.forward if each.forward else named.backward)
            moments[f"layer {index} {each.name}"] = below + beside + total(each.live, run, rows)
    if is_first:
        end = ends.embedding_backward(hidden, padded, setting)
        moments["embedding"] = steady + waiting * sum(kept) + named.backward * shard + total(end.live, run)
    if is_last:
        loss = ends.loss_layer(model.decoder.after, setting, hidden, padded)
        for each in loss.moments:
            beside = shard * (named.forward if each.forward else named.backward)
            moments[f"loss {each.name}"] = steady + (waiting + 1) * sum(kept) + beside + total(each.live, run)
    return max((value, name) for name, value in moments.items())
