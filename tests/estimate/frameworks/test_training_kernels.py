"""What kernels, dropout and the loss keep: Korthikanti's closed forms through the whole walk, and torchtitan's
chunks.
"""

import json

import pytest

import tonnage
from tonnage import read
from tonnage.architectures import ATTENTION_DROPOUT, HIDDEN_DROPOUT
from tonnage.documents.question import Entry
from tonnage.estimate.memory import training_memory
from tonnage.formulas import memory as f
from tonnage.kernel.errors import InvalidPlan
from tonnage.models import read as read_model
from tonnage.spec import TrainingPlan

# Korthikanti2022, tables 3 and figure 1: hidden size, layers, heads, tensor and pipeline ranks, chunks; GiB of
# activations on the first
# stage with tensor parallelism alone, and with sequence parallelism and selective recomputation.
PAPER = {
    "22B": (6144, 48, 64, 8, 1, 1, 4),
    "175B": (12288, 96, 96, 8, 8, 3, 1),
    "530B": (20480, 105, 128, 8, 35, 3, 1),
    "1T": (25600, 128, 160, 8, 64, 1, 1),
}
FIGURE_1 = [
    ("22B", False, "none", 59.25),
    ("175B", True, "selective", 12.3515625),
    ("530B", False, "none", 114.0234375),
    ("530B", True, "selective", 23.076171875),
    ("1T", False, "none", 131.25),
]


def layers(size, **choices):
    """Activations of the layers of the first stage, in bytes."""
    h, num_layers, heads, t, p, v, b = PAPER[size]
    model = read_model(
        "gpt3-175b", overrides={"hidden_size": h, "num_hidden_layers": num_layers, "num_attention_heads": heads}
    )
    plan = TrainingPlan.of_fields(
        **{
            "sequence_length": 2048,
            "micro_batch_size": b,
            "num_microbatches": 16 * p,
            "tensor_parallel_size": t,
            "pipeline_parallel_size": p,
            "virtual_pipeline_size": v,
            "runtime": "megatron",
            "zero_stage": 1,
            "attention": "eager",
            "dropout": True,
            "attention_dropout": True,
            **choices,
        }
    )
    made = training_memory(model, plan).ranks[0].phases[0].child("activations").child("layers").value
    # beside what the paper counts: mean and deviation of two norms a layer, in fp32
    in_flight = num_layers * (f.interleaved_memory_factor(M=1, p=p, v=v) if v > 1 else 1)
    return made - in_flight * 2 * 8 * 2048 * b / (t if plan.sequence_parallel else 1)


@pytest.mark.parametrize("size", PAPER)
def test_megatron_keeps_the_papers_closed_forms_through_pipelines_and_interleaving(size):
    h, num_layers, heads, t, p, v, b = PAPER[size]
    letters = {"L": num_layers, "s": 2048, "b": b, "h": h}
    factor = f.interleaved_memory_factor(M=1, p=p, v=v) if v > 1 else 1
    expected = {
        (False, "none"): f.gpt_tensor_parallel_activation_bytes(**letters, a=heads, t=t),
        (True, "none"): f.gpt_sequence_parallel_activation_bytes(**letters, a=heads, t=t),
        (True, "selective"): f.gpt_selective_activation_bytes(**letters, t=t),
    }
    for (sequence_parallel, recompute), whole in expected.items():
        got = layers(size, sequence_parallel=sequence_parallel, recompute=recompute)
        assert got == pytest.approx(whole * factor, rel=1e-9)


@pytest.mark.parametrize(("size", "sequence_parallel", "recompute", "gib"), FIGURE_1)
def test_megatron_keeps_what_figure_1_of_the_paper_shows(size, sequence_parallel, recompute, gib):
    assert layers(size, sequence_parallel=sequence_parallel, recompute=recompute) == pytest.approx(
        gib * 2**30, rel=1e-9
    )


def test_without_dropout_megatron_keeps_one_softmax_in_16_bit_and_no_mask():
    h, num_layers, heads, t, *_ = PAPER["22B"]
    with_dropout, without = layers("22B"), layers("22B", dropout=False, attention_dropout=False)
    per_layer = 2048 * 4 * h * 2 / t + 3 * heads * 2048**2 * 4 / t
    assert with_dropout - without == pytest.approx(num_layers * per_layer, rel=1e-12)


def test_transformers_upcasts_the_softmax_and_megatron_does_not():
    """Bytes a score of eager attention. GPT-2's code in transformers is the exception that does not upcast."""

    def scores(name, runtime, stage, **dropout):
        model = read(name)
        heads = model.decoder.blocks[0].ops[1].heads * model.num_layers
        plans = [
            TrainingPlan.of_fields(
                sequence_length=length,
                runtime=runtime,
                zero_stage=stage,
                attention="eager",
                precision="bf16",
                **dropout,
            )
            for length in (1024, 2048)
        ]
        kept = [
            training_memory(model, each).ranks[0].phases[0].child("activations").child("layers").value for each in plans
        ]
        return (kept[1] - 2 * kept[0]) / heads / (2048**2 - 2 * 1024**2)

    assert scores("gpt2-xl", "megatron", 1) == pytest.approx(2)
    assert scores("gpt2-xl", "megatron", 1, attention_dropout=True) == pytest.approx(5)
    assert scores("llama-2-7b", "transformers", 0) == pytest.approx(6)
    assert scores("llama-2-7b", "transformers", 0, attention_dropout=True) == pytest.approx(7)
    assert scores("gpt2-xl", "transformers", 0) == pytest.approx(2)


@pytest.mark.parametrize(
    ("name", "why", "hidden", "attention"),
    [
        ("gpt2-xl", "resid_pdrop 0.1, attn_pdrop 0.1", True, True),
        ("bert-base-uncased", "hidden_dropout_prob 0.1, attention_probs_dropout_prob 0.1", True, True),
        ("bge-m3", "hidden_dropout_prob 0.1, attention_probs_dropout_prob 0.1", True, True),
        ("t5-small", "dropout_rate 0.1", True, True),
        ("mt5-small", "dropout_rate 0.1", True, True),
        ("opt-6.7b", "dropout 0.1", True, False),
        ("starcoder", "resid_pdrop 0.1, attn_pdrop 0.1", True, True),
        ("starcoder2-3b", "residual_dropout 0.1, attention_dropout 0.1", True, True),
        ("granite-3.1-8b-instruct", "attention_dropout 0.1", False, True),
        ("granite-3.2-8b-instruct", "the catalogue's config names none", False, False),
        ("phi-2", "resid_pdrop 0.1", True, False),
        ("phi-1", "the catalogue's config names none", False, False),
        ("seed-oss-36b-instruct", "residual_dropout 0.1, attention_dropout 0.1", True, True),
        ("llama-3.1-8b", "the catalogue's config names none", False, False),
    ],
)
def test_a_model_of_the_catalogue_trains_with_the_dropout_that_its_publisher_used(name, why, hidden, attention):
    asked = tonnage.train(name, on="8xh200", sequence_length=512).question["dropout"]
    assert asked == Entry(hidden or attention, "model", why)
    config = read_model(name).config
    assert any(config.get(field) for field in HIDDEN_DROPOUT) == hidden
    assert any(config.get(field) for field in ATTENTION_DROPOUT) == attention


def test_a_config_of_ones_own_that_names_no_dropout_is_said_to_name_none(tmp_path):
    path = tmp_path / "config.json"
    fields = {
        "architectures": ["LlamaForCausalLM"],
        "hidden_size": 64,
        "intermediate_size": 128,
        "vocab_size": 256,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
    }
    path.write_text(json.dumps(fields), encoding="utf-8")
    asked = tonnage.train(str(path), on="rtx-4090", sequence_length=128).question["dropout"]
    assert asked == Entry(False, "model", "its config names none")


def test_dropout_is_as_the_models_config_says_until_it_is_said(tmp_path):
    def question(**said):
        return tonnage.train(read_model("gpt2", overrides=config), on="rtx-4090", **said)

    config = {"resid_pdrop": 0.0, "attn_pdrop": 0.0}
    assert question().question["dropout"].value is False
    config = {"resid_pdrop": 0.1, "attn_pdrop": 0.0}
    with_masks = question()
    assert with_masks.question["dropout"] == Entry(True, "model", "resid_pdrop 0.1")
    assert question(dropout=False).needed_bytes < with_masks.needed_bytes
    eager = question(attention="eager")
    assert question(attention="eager", dropout=True).needed_bytes > eager.needed_bytes


@pytest.mark.parametrize("name", ["llama-3.1-8b", "mixtral-8x7b", "deepseek-v3"])
def test_every_kind_of_layer_keeps_two_masks_of_a_byte_an_element(name):
    """Flash attention keeps a seed for its own dropout, no mask."""
    model = read(name)
    plan = TrainingPlan(sequence_length=1024, runtime="megatron", zero_stage=1)
    dropped = TrainingPlan(sequence_length=1024, runtime="megatron", zero_stage=1, dropout=True, attention_dropout=True)
    sizes = [
        training_memory(model, each).ranks[0].phases[0].child("activations").child("layers").value
        for each in (plan, dropped)
    ]
    assert sizes[1] - sizes[0] == 2 * 1024 * model.hidden_size * model.num_layers


def test_a_chunked_loss_is_refused_where_it_cannot_be():
    with pytest.raises(InvalidPlan, match="megatron has no chunked loss"):
        tonnage.train("llama-3.1-8b", on="8xH100-SXM-80GB", runtime="megatron", loss="chunked")
    with pytest.raises(InvalidPlan, match="Nearest: 4096 or 4104"):
        tonnage.train("llama-3.1-8b", on="8xH100-SXM-80GB", sequence_length=4100, loss="chunked")
