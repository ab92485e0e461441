"""Memory of LoRA and QLoRA on transformers: what peft's preparation, attention's kernels and the training loop hold."""

from statistics import mean

import pytest

from tonnage import train
from tonnage.kernel.errors import InvalidPlan
from tonnage.validation import read
from tonnage.validation.training import TrainingRow, predict

MIB = 2**20
MODEL = {"sequence_length": 1024, "recompute": "full", "on": "T4", "precision": "fp16"}
TOKENS, VOCABULARY, HIDDEN, HEADS, LAYERS = 1024, 32000, 2048, 32, 22  # of TinyLlama


def leaves(term, name):
    found = [term["value"]] if term["name"] == name else []
    return found + [each for child in term.get("children", ()) for each in leaves(child, name)]


def answer(**options):
    return train("tinyllama-1.1b-chat-v1.0", **{**MODEL, **options}).to_dict()


def part(made, name):
    return next(child for child in made["memory"]["children"] if child["name"] == name)


def tensors(made):
    return made["memory"]["value"] - part(made, "runtime overhead")["value"]


def test_qlora_on_transformers_keeps_norms_embedding_and_head_in_fp32():
    wide, narrow = (answer(method="qlora", attention="efficient", upcast_base=each) for each in (None, False))
    unquantised = 2 * VOCABULARY * HIDDEN + (2 * LAYERS + 1) * HIDDEN
    assert leaves(part(wide, "weights"), "base weights") == [4 * unquantised]
    assert leaves(part(narrow, "weights"), "base weights") == [2 * unquantised]
    inputs = [leaves(part(made, "activations"), "layers")[0] for made in (wide, narrow)]
    assert inputs == [4 * TOKENS * HIDDEN * LAYERS, 2 * TOKENS * HIDDEN * LAYERS]  # hidden states follow the embedding


def test_a_base_in_fp32_holds_four_bytes_a_parameter_below_adapters():
    wide, narrow = (answer(method="lora", precision="fp16-mixed", base_weights=each) for each in ("fp32", None))
    bare = leaves(part(narrow, "weights"), "base weights")[0]
    assert leaves(part(wide, "weights"), "base weights") == [2 * bare]
    assert leaves(part(wide, "weights"), "adapters") == leaves(part(narrow, "weights"), "adapters")
    assert wide["step_time"]["value"] > narrow["step_time"]["value"]  # every product reads and casts its weights


def test_a_base_in_fp32_is_one_that_autocast_casts():
    with pytest.raises(InvalidPlan, match=r"fp32 is estimated under autocast.*transformers, ddp, litgpt"):
        train("tinyllama-1.1b-chat-v1.0", on="8xH100", method="lora", base_weights="fp32", runtime="fsdp2")
    with pytest.raises(InvalidPlan, match="under autocast"):
        answer(method="lora", base_weights="fp32")  # fp16 alone: nothing is cast
    with pytest.raises(InvalidPlan, match="base_weights"):
        answer(method="qlora", base_weights="fp32")


def test_only_a_quantised_base_is_upcast_and_only_where_peft_prepares_it():
    with pytest.raises(InvalidPlan, match="base_weights"):
        answer(method="lora", upcast_base=True)
    with pytest.raises(InvalidPlan, match="transformers, ddp"):
        answer(method="qlora", upcast_base=True, runtime="unsloth")
    assert "upcast_base" not in answer(method="qlora", runtime="unsloth")["question"]


def test_a_loop_that_holds_the_outputs_holds_the_logits_through_backward():
    held, plain = (answer(method="lora", keep_outputs=each)["phases"] for each in (True, None))
    assert [each["name"] for each in held] == [each["name"] for each in plain]
    more = [with_logits["value"] - without["value"] for with_logits, without in zip(held, plain, strict=True)]
    assert more == [0 if each["name"] == "forward" else 2 * TOKENS * VOCABULARY for each in held]
    with pytest.raises(InvalidPlan, match="transformers, ddp"):
        train("tinyllama-1.1b-chat-v1.0", on="8xH100", method="lora", keep_outputs=True)


def test_backward_of_eager_attention_holds_the_product_of_gradient_and_scores_too():
    made = answer(method="qlora", attention="eager", sequence_length=2048, micro_batch_size=2)
    pairs = 2 * 2048 * 2048 * HEADS
    assert made["memory"]["name"] != "forward"
    assert (
        sum(term["value"] for term in part(made, "temporary")["children"]) > 3 * 4 * pairs
    )  # gradient, product, result


def test_fp16_scores_are_turned_to_fp32_by_the_softmax_itself():
    options = {"method": "lora", "attention": "eager", "sequence_length": 2048, "micro_batch_size": 2}
    half, brain = (answer(precision=each, **options) for each in ("fp16", "bf16"))
    assert tensors(brain) - tensors(half) == 2 * 2 * 2048 * 2048 * HEADS


def test_segments_of_the_logits_and_of_a_layer_that_runs_again_serve_the_other_not():
    options = {"method": "qlora", "attention": "eager", "micro_batch_size": 2}
    whole, expandable = (answer(**options, expandable_segments=each) for each in (False, True))
    idle = leaves(part(whole, "runtime overhead"), "allocator reserve: logits or layer temporaries")
    tokens = 2 * TOKENS
    assert whole["memory"]["name"] != "memory at the peak: loss"  # the layer's matrices are larger
    assert idle == [12 * tokens * VOCABULARY]  # three in fp32
    assert not leaves(part(expandable, "runtime overhead"), "allocator reserve: logits or layer temporaries")


def test_a_frozen_base_adds_nothing_to_what_the_allocator_keeps_idle():
    made = train("llama-2-7b", on="A100-SXM-80GB", method="lora", runtime="unsloth", sequence_length=1024).to_dict()
    (idle,) = leaves(part(made, "runtime overhead"), "allocator reserve")
    assert 0 < idle < 0.01 * part(made, "weights")["value"]


def test_the_efficient_kernel_alone_keeps_no_scores_where_sdpa_falls_back_on_products():
    chosen, alone = (answer(method="qlora", attention=each, recompute="none") for each in ("sdpa", "efficient"))
    warned = [any("no fused kernel" in text for text in made["warnings"]) for made in (chosen, alone)]
    assert warned == [True, False]
    assert tensors(chosen) - tensors(alone) > 4 * TOKENS**2 * HEADS * LAYERS / 2


def test_a_process_on_a_t4_holds_141_mib_outside_of_the_allocator():
    assert leaves(answer(method="lora")["memory"], "CUDA context") == [141 * MIB]


def rows():
    return [row for row in read(["validation/train_memory.yaml"]) if row.source.startswith("Anassbzdd/fitcheck")]


def test_measured_steps_of_lora_and_qlora_are_predicted_within_two_percent():
    errors = {"lora": [], "qlora": []}
    for row in rows():
        made = predict(row)[0]
        errors[row.question["method"]].append(abs(made.value / row.measured.value - 1))
    assert [len(errors["lora"]), len(errors["qlora"])] == [14, 35]
    assert max(errors["lora"] + errors["qlora"]) < 0.02
    assert mean(errors["lora"]) < 0.005
    assert mean(errors["qlora"]) < 0.01


def test_a_row_says_whether_the_scales_of_its_base_are_quantised_too():
    found = {row.question["method"]: TrainingRow(row).options for row in rows()}
    assert found["qlora"].base_weights == "nf4"
    assert found["lora"].base_weights is None
    assert found["qlora"].keep_outputs


def kept(method, **options):
    made = train(
        "codellama-7b", on="8xH100-SXM-80GB", method=method, model_code="transformers", sequence_length=8191, **options
    ).to_dict()
    return made["verdict"]["needed_bytes"], leaves(part(made, "activations"), "layers")[0]


@pytest.mark.parametrize("runtime", ["fsdp2", "deepspeed"])
def test_adapters_of_sharded_runs_read_16_bit_inputs_and_need_less_than_full_training(runtime):
    full, adapters = (kept(method, runtime=runtime, zero_stage=3) for method in ("full", "lora"))
    assert adapters[0] < full[0]
    assert adapters[1] <= full[1]  # of each layer: no fp32 copy of a layer's input for every adapter


QWEN3_8B_LORA = 36 * 8 * ((4096 + 4096) * 2 + (4096 + 1024) * 2 + (4096 + 12288) * 3)  # rank 8, all linear layers


@pytest.mark.parametrize("method", ["lora", "qlora"])
@pytest.mark.parametrize("runtime", ["ddp", "ms-swift"])
def test_buckets_of_ddp_hold_gradients_of_adapters_alone(runtime, method):
    """PyTorch's DistributedDataParallel takes parameters with requires_grad; peft keeps adapters in fp32."""
    made = train("qwen3-8b", on="2xRTX-3090", method=method, lora_rank=8, runtime=runtime).to_dict()
    assert leaves(made["memory"], "gradient buckets") == [4 * QWEN3_8B_LORA]
    assert leaves(made["memory"], "first moment") == [4 * QWEN3_8B_LORA]


def test_buckets_of_ddp_hold_gradients_of_the_layers_that_train():
    one, two = (
        leaves(
            train("qwen3-8b", on="2xH100", method="freeze", trainable_layers=count, runtime="ddp").to_dict()["memory"],
            "gradient buckets",
        )[0]
        for count in (1, 2)
    )
    # q, k, v, o, gate, up, down, and the four norms of a layer
    layer = 2 * 4096 * 4096 + 2 * 4096 * 1024 + 3 * 4096 * 12288 + 2 * 4096 + 2 * 128
    assert (one, two) == (4 * layer, 8 * layer)


# gpt-oss-20b: 24 layers of 32 experts, 2,880 wide and as wide inside, gates and ups in one matrix
EXPERTS = 24 * 32 * (2880 * 2 * 2880 + 2880 * 2880)
ATTENTION = 24 * (2880 * 4096 * 2 + 2880 * 512 * 2)
NF4_DOUBLE = 0.5 + 1 / 64 + 4 / (64 * 256)  # bytes: a scale of a byte for 64 weights, one of 4 bytes for 256 scales


def gpt_oss(runtime, **options):
    return train("gpt-oss-20b", on="RTX-4090", method="qlora", runtime=runtime, **options).to_dict()


def test_unsloth_keeps_the_experts_of_gpt_oss_in_4_bit():
    """unsloth_zoo, temporary_patches/gpt_oss.py: GptOssExpertsBnb4bit has a linear layer for each expert and matrix."""
    made = gpt_oss("unsloth")
    quantised = leaves(made["memory"], "quantised base weights")[0]
    assert quantised == pytest.approx(NF4_DOUBLE * (EXPERTS + ATTENTION), rel=1e-6)
    assert not any("experts are not quantised" in note for note in made["warnings"])


@pytest.mark.parametrize(
    ("model", "on", "gb"),
    # Unsloth, docs "gpt-oss: How to run and fine-tune" and blog of August 8, 2025: 14 GB and 65 GB
    [("gpt-oss-20b", "RTX-4090", 14), ("gpt-oss-120b", "H100", 65)],
)
def test_qlora_of_gpt_oss_with_unsloth_needs_what_unsloth_says(model, on, gb):
    made = train(model, on=on, method="qlora", runtime="unsloth", sequence_length=1024, lora_rank=8).to_dict()
    assert made["verdict"]["fits"]
    assert made["verdict"]["needed_bytes"] == pytest.approx(gb * 1e9, rel=0.1)


def test_a_projection_of_all_experts_is_whole_for_a_moment():
    """unsloth_zoo, temporary_patches/gpt_oss_grouped_qlora.py: one dequantised stack for each projection."""
    needed = [gpt_oss("unsloth", base_weights=base)["memory"]["value"] for base in ("nf4-double", "16 bit")]
    weights = (2 - NF4_DOUBLE) * (EXPERTS + ATTENTION)
    assert 0 < weights - (needed[1] - needed[0]) <= 2 * 32 * 2880 * 2 * 2880 * 1.06


@pytest.mark.parametrize("runtime", ["transformers", "ddp"])
def test_what_keeps_experts_wide_is_the_first_note_where_that_does_not_fit(runtime):
    assert "experts are not quantised" in gpt_oss(runtime)["warnings"][0]
