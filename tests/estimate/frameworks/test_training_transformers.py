"""The Trainer of transformers by release, Liger's kernels, Unsloth and LitGPT: sums written by hand from their
sources.
"""

from types import SimpleNamespace

import pytest

import tonnage
from tonnage.architectures import style_of, wiring
from tonnage.documents.document import builtins
from tonnage.estimate.frameworks.transformers import liger_parts, loss_kind
from tonnage.estimate.frameworks.unsloth import Unsloth
from tonnage.estimate.layers import layers as tapes
from tonnage.estimate.step.pipeline_layout import release_of
from tonnage.estimate.step.points import by_extent
from tonnage.kernel.errors import InvalidPlan
from tonnage.runtimes import training_runtime
from tonnage.runtimes.parts.fused import UNSLOTH
from tonnage.tape import CODES, TOKEN, Adapters, Extent, Setting, Types, layer

LOGITS = Extent("token", "gathered")
LLAMA = tonnage.read("llama-2-7b", offline=True)
H, FF, V, HEADS = 4096, 11008, 32000, 32
BLOCK = LLAMA.decoder.blocks[0]
LORA = Adapters(rank=8, targets=("q_proj", "v_proj"))


def setting(runtime="transformers", **options):
    made = training_runtime(runtime)
    return Setting(
        **{
            "code": made.code,
            "types": Types(2, 2),
            "style": style_of(LLAMA),
            "kernels": made.kernels,
            "attention": "flash",
        }
        | options
    )


def block(made):
    code = CODES[made.code](made)
    return layer(code, lambda x: wiring.run(BLOCK, code, x), H, made.types.parameter)


def kept(made):
    """Bytes a token."""
    return sum(each.bytes for each in made.kept if each.key.extent.unit == "token")


def loss(kind, parts=1, **options):
    return tapes.loss_layer(LLAMA.decoder.after, setting(**options), H, kind, parts, logits_split=False)


def fullest(made, *, forward):
    """Bytes of a logit, with all that is as large."""
    return max(by_extent(each.live).get(LOGITS, 0) for each in made.moments if each.forward == forward) / V


def needed(**options):
    return float(tonnage.train("llama-2-7b", "A100-SXM-80GB", **({"sequence_length": 1024} | options)).memory.value)


# ---- releases of transformers ----


@pytest.mark.parametrize(
    ("text", "release"),
    [("4.39", (4, 39)), ("transformers 4.45.2, peft 0.10", (4, 45)), ("accelerate 1.0", (5, 23)), ("", (5, 23))],
)
def test_a_release_is_read_by_its_name_or_from_a_bare_number(text, release):
    assert release_of(text, "transformers", (5, 23)) == release


@pytest.mark.parametrize(
    ("release", "forward", "backward"),
    [((4, 45), 12, 12), ((4, 46), 14, 12), ((4, 48), 14, 12), ((4, 49), 10, 12), ((5, 23), 10, 12)],
)
def test_the_loss_holds_copies_of_the_logits_by_release(release, forward, backward):
    """fp32 logits, their shifted copy and logarithms; the 16-bit logits too where the loss casts them; no shifted
    copy from 4.49 on.
    """
    made = loss(loss_kind(release))
    assert fullest(made, forward=True) == forward
    assert fullest(made, forward=False) == backward


def test_four_bit_layers_keep_their_input_before_bitsandbytes_0_44():
    base = Adapters(rank=8, targets=("q_proj", "v_proj"), base=2, copies=True)
    old = block(
        setting(
            types=Types(2, 2, autocast=True),
            adapters=Adapters(rank=8, targets=("q_proj", "v_proj"), base=2, copies=True, keeps=True),
        )
    )
    new = block(setting(types=Types(2, 2, autocast=True), adapters=base))
    # attention's input is kept by LoRA, and its output by attention; the feed-forward's input and the product before
    # its last matrix are added
    assert kept(old) - kept(new) == 2 * H + 2 * FF


def test_adapters_beside_a_four_bit_base_read_its_input_without_a_cast():
    whole = block(setting(types=Types(2, 2, autocast=True), adapters=LORA))
    four = block(
        setting(types=Types(2, 2, autocast=True), adapters=Adapters(rank=8, targets=("q_proj", "v_proj"), base=2))
    )
    assert (
        kept(whole) - kept(four) == 2 * H
    )  # two copies in 16 bit, one for each adapter; the other reads what attention's norm made


# ---- Liger ----


def test_liger_takes_as_many_tokens_at_once_as_give_about_as_many_logits_as_hidden_states():
    assert liger_parts(LLAMA, 16384) == 8  # chunks of 2048: a power of two
    assert liger_parts(LLAMA, 3) == 3


def test_ligers_loss_holds_one_part_of_the_logits_in_16_bit():
    assert fullest(loss("liger", 8, code="liger"), forward=True) == pytest.approx(2 / 8)


def test_ligers_norms_keep_their_input_and_its_gate_two_tensors_of_a_feed_forward():
    made = block(setting(code="liger"))
    attention = (
        2 * (H + H) + 4 + 2 * (3 * H + H) + 4 * HEADS
    )  # the stream, its norm and root; queries, keys, values and what comes out
    feed_forward = 2 * (H + H) + 4 + 2 * (3 * FF)
    assert kept(made) == attention + feed_forward


def test_liger_needs_less_and_says_which_models_it_patches():
    usual = {"recompute": "full", "method": "lora", "sequence_length": 4096}
    assert needed(liger=True, **usual) < needed(**usual)
    with pytest.raises(InvalidPlan, match="Liger Kernel patches"):
        tonnage.train("gpt2-xl", "A100-SXM-80GB", liger=True)


# ---- Unsloth ----


def test_unsloths_feed_forward_keeps_its_input_gates_and_ups():
    made = block(setting(code=UNSLOTH, types=Types(2, 2, autocast=True), adapters=Adapters(rank=8)))
    norms = 2 * (2 * H + 4)  # the stream and its root
    attention = (
        2 * H + 6 * H + 2 * H + 4 * HEADS
    )  # its input once for three adapters; queries, keys, values; what comes out, for o_proj too
    assert kept(made) == norms + attention + 2 * H + 2 * (2 * FF)


def test_unsloth_keeps_the_inputs_of_layers_in_the_hosts_memory():
    step = SimpleNamespace(setting=setting(code=UNSLOTH, adapters=Adapters(rank=8), recompute="full"))
    made = Unsloth.layer(SimpleNamespace(plan=SimpleNamespace(recompute="full"), step=step), BLOCK, False, H)
    assert made.kept == ()
    assert all(by_extent(each.live)[TOKEN] >= 2 * H for each in made.moments if not each.forward)


def test_unsloth_trains_adapters_and_nothing_else():
    with pytest.raises(InvalidPlan, match="unsloth is estimated for method lora or qlora"):
        needed(runtime="unsloth", method="full")


def test_unsloth_needs_less_than_the_trainer():
    for method in ("lora", "qlora"):
        assert needed(runtime="unsloth", method=method) < needed(
            runtime="transformers", method=method, recompute="full"
        )


# ---- LitGPT ----


def test_litgpts_adapter_of_a_joint_projection_keeps_what_an_index_copies():
    made = block(
        setting(
            "litgpt", types=Types(2, 2), adapters=Adapters(rank=8, targets=("q_proj", "v_proj"), dropout=True, width=2)
        )
    )
    norms = 2 * (4 * H + 4)  # in fp32
    adapter = H + 2 * H + 2 * 16 + 4 * H  # the dropout's mask and result, A's, and what index_copy takes
    attention = (
        6 * H + 4 * H + 2 * H + 4 * HEADS
    )  # the joint projection that values are a view of, queries and keys, and what comes out
    assert kept(made) == norms + adapter + attention + 6 * FF


# ---- published rows ----


def test_rows_of_llama_factory_and_litgpt_are_met():
    from tonnage.validation import read, validate

    rows = [
        row
        for row in read(["validation/train_memory.yaml"])
        if row.id.startswith(("llamafactory-ctx", "litgpt-lora-llama-2-7b"))
    ]
    lines = [line for line in builtins(validate(rows))["rows"] if line["main"] and not line["skipped"]]
    assert all(line["agrees"] for line in lines if line["agrees"] is not None)
    errors = {True: [], False: []}
    for line in lines:
        if line["relative_error"] is not None:
            errors[line["id"].startswith("litgpt")].append(abs(line["relative_error"]))
    assert sum(errors[False]) / len(errors[False]) < 0.06
    assert max(errors[True]) < 0.02


@pytest.mark.parametrize(("method", "parameters"), [("lora", 41_943_040), ("freeze", 436_224_000)])
def test_a_checkpoint_holds_what_trains(method, parameters):
    """Adapters of rank 16 on every linear layer of llama-3.1-8b are 42 M parameters, its last two layers 436 M: 12
    bytes of each.
    """
    answer = tonnage.train("llama-3.1-8b", on="8xH100-SXM-80GB", method=method)
    assert answer.to_dict()["checkpoint"]["value"] == 12 * parameters


def test_what_runs_on_one_accelerator_is_refused_on_several():
    with pytest.raises(InvalidPlan, match=r"runtime unsloth is estimated on one accelerator alone\. Got 8"):
        tonnage.train("llama-3.1-8b", on="8xH100-SXM-80GB", runtime="unsloth")
