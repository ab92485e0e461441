"""Training recipes and runtimes by the mechanisms of their frameworks, against what their authors published."""

import json

import pytest

import tonnage
from every_row import every_row
from tonnage.estimate.step_time.casts import CASTS, cast_seconds
from tonnage.kernel.errors import InvalidPlan, NotApplicable
from tonnage.numerics.optimizers import newton_schulz_flops, optimizer, soap_flops

GIB = 2**30


def train(model, **options):
    return tonnage.train(model, **{"as_is": True, "advice": False, **options})


def part(answer, name):
    return next(row["value"] for row in answer.rows("step_time") if row["name"] == name)


# ---- float8 and fp4 ----


@every_row("recipe, operand, weight", [("tensorwise", 6, 8), ("rowwise", 8, 10), ("mxfp8", 6, 6)])
def test_casts_move_what_torchao_counts(recipe, operand, weight):
    """torchao, testing/training/roofline_utils.py: get_tensor_memory_traffic_ovhd_s, bytes a number."""
    casts = CASTS[recipe]
    assert (casts.rows + casts.columns, sum(casts.weight)) == (operand, weight)


def test_products_of_backward_with_scales_for_rows_are_scaled_after_them():
    """torchao, float8/float8_ops.py: addmm_float8_unwrapped: without fast accumulation a product has one scale, and its
    result of 16 bit is read and written again: the gradient of an input (half of 100) and that of the weight (10).
    """
    said = {"gathered": False, "peak": 1.0, "share": 1.0}
    passes = [("forward", False), ("backward", False), ("backward", True)]
    seconds = [cast_seconds(CASTS["rowwise"], 100, 10, when=when, wgrad=wgrad, **said) for when, wgrad in passes]
    assert seconds == pytest.approx([4 * 50 + 3 * 10, (4 + 4) * 50 + 7 * 10, 4 * 100 + 4 * 10])


def test_async_tensor_parallelism_does_not_fuse_gathers_with_scales_for_rows():
    """pytorch/pytorch, issue 149990: matmul-reduce-scatters fuse, all-gather-matmuls do not. torchtitan's Llama 3.1 8B
    on 64 H100 went from 3,708 to 3,915 tokens/s with scales for rows, from 5,078 to 5,570 with one a tensor.
    """
    run = {"on": "8xh100", "tensor_parallel_size": 8, "compile": True, "runtime": "fsdp2", "sequence_length": 8192}
    gains = [
        1 - fused.step_time.value / plain.step_time.value
        for kind in ("tensorwise", "rowwise")
        for plain, fused in [
            [train("llama-3.1-8b", **run, float8=kind, async_tensor_parallel=on) for on in (False, True)]
        ]
    ]
    assert 0 < gains[1] < 0.7 * gains[0]


def test_casts_of_a_layer_sum_to_those_of_its_operands():
    said = {"gathered": False, "peak": 1.0, "share": 1.0}
    passes = [("forward", False), ("backward", False), ("backward", True)]
    seconds = [cast_seconds(CASTS["tensorwise"], 100, 10, when=when, wgrad=wgrad, **said) for when, wgrad in passes]
    assert sum(seconds) == pytest.approx(6 * 100 + 8 * 10)


def test_mxfp8_is_faster_than_bf16_by_less_than_half_as_torchtitan_measured():
    """torchtitan, components/quantization/nvfp4.md: 1.32 with Qwen3 8B and 1.28 with Llama 3 8B on four GPUs."""
    run = {"on": "4xGB200-186GB", "sequence_length": 2048, "micro_batch_size": 16, "compile": True}
    speeds = [
        train("qwen3-8b", **run, runtime="fsdp2", recompute="selective-op", float8=kind).run.tokens_per_second.value
        for kind in ("none", "mxfp8")
    ]
    assert 1.2 < speeds[1] / speeds[0] < 1.45


def test_nvfp4_keeps_narrow_operands_and_runs_every_product_again():
    """torchtitan, components/quantization/nvfp4.md: 110.95 GiB with 27 of 32 layers in NVFP4, 174.49 in bf16."""
    run = {"on": "4xGB200-186GB", "sequence_length": 2048, "micro_batch_size": 32, "compile": True}
    wide, narrow = (
        train("meta-llama-3-8b", **run, runtime="fsdp2", recompute="selective-op", float8=kind).needed_bytes / GIB
        for kind in ("none", "nvfp4")
    )
    assert wide == pytest.approx(174.49, rel=0.03)
    assert (27 * narrow + 5 * wide) / 32 == pytest.approx(110.95, rel=0.03)


def test_nvfp4_before_blackwell_is_warned_of():
    notes = train("llama-3.2-1b", on="8xh100", runtime="fsdp2", float8="nvfp4").warnings
    assert any("float8 nvfp4 does not run on H100" in note for note in notes)


def test_torchtitan_sends_a_token_of_llama_4_to_its_own_expert_alone():
    """torchtitan, models/common/moe.py: grouped products; transformers multiplies with all 16."""
    run = {"on": "32xH100-SXM-80GB", "sequence_length": 2048, "expert_parallel_size": 4, "runtime": "fsdp2"}
    routed, every = (
        part(train("llama-4-scout-17b-16e-instruct", **run, model_code=code), "products of experts")
        for code in ("torchtitan", "transformers")
    )
    assert every > 8 * routed


def test_tensor_ranks_gather_in_float8_with_one_scale_a_tensor_alone():
    """torchtitan, models/llama3/parallelize.py."""
    run = {"on": "8xh100", "tensor_parallel_size": 8, "compile": True, "runtime": "fsdp2", "sequence_length": 8192}
    sent = [train("llama-3.1-8b", **run, float8=kind).traffic.value for kind in ("tensorwise", "rowwise", "none")]
    assert sent[0] < sent[1] == pytest.approx(sent[2])


# torchtitan, components/quantization/mxfp8.md; torchao, prototype/moe_training/README.md: local batch size 1, as 10
# does not fit without recomputation
@every_row("float8, tokens_per_second", [("none", 6169), ("mxfp8", 7401)])
def test_scout_on_256_gb200_takes_the_local_batch_that_fits(float8, tokens_per_second):
    run = {"on": "4x64xGB200-186GB", "expert_parallel_size": 16, "sequence_length": 8192, "recompute": "none"}
    run |= {"runtime": "fsdp2", "compile": True, "float8": float8}
    made, ten = (train("llama-4-scout-17b-16e-instruct", **run, micro_batch_size=size) for size in (1, 10))
    assert made.fits
    assert not ten.fits
    assert made.run.tokens_per_second.value / 256 == pytest.approx(tokens_per_second, rel=0.3)


# ---- adapters of experts ----


def test_each_expert_has_adapters_under_megatron_unless_targets_leave_them_out():
    """modelscope/ms-swift, swift/megatron/tuners/lora.py: LoraParallelLinear of a TEGroupedLinear is grouped, too."""
    run = {"on": "4xH20-96GB", "runtime": "megatron", "expert_parallel_size": 4, "sequence_length": 8192}
    run |= {"method": "lora", "lora_rank": 32, "recompute": "full"}
    every = train("qwen3-30b-a3b", **run)
    attention = train("qwen3-30b-a3b", **run, lora_targets="q_proj,k_proj,v_proj,o_proj")
    of_experts = 48 * 128 * 32 * (2048 + 2 * 768 + 768 + 2048) / 4  # of a rank: into and out of both products
    gradients = [next(row["value"] for row in made.rows() if row["name"] == "gradients") for made in (every, attention)]
    assert gradients[0] - gradients[1] == pytest.approx(4 * of_experts)
    assert every.step_time.value > 1.05 * attention.step_time.value


# ---- optimizers ----


def test_muon_takes_five_newton_schulz_steps():
    """torch, optim/_muon.py: X X^T, its square and their product with X, five times."""
    assert newton_schulz_flops(4, 8) == newton_schulz_flops(8, 4) == 5 * (2 * 4 * 4 * 8 * 2 + 2 * 4**3)


def test_soap_leaves_a_side_above_its_limit_alone():
    assert soap_flops(20_000, 100) == pytest.approx(8 * 100**2 * 20_000 + (2 + 8 / 3) * 100**3 / 10)


@every_row("name", ["muon", "soap", "galore-adamw", "apollo"])
def test_what_an_optimizer_multiplies_is_in_the_time_of_a_step(name):
    run = {"on": "8xh100", "runtime": "fsdp2", "recompute": "full", "optimizer": name}
    assert part(train("llama-3.1-8b", **run), "products of the update") > 0
    assert optimizer(name).work is not None


def test_shards_of_states_share_muons_products():
    run = {"runtime": "fsdp2", "recompute": "full", "optimizer": "muon"}
    eight, sixteen = (
        part(train("llama-3.1-8b", on=on, **run), "products of the update") for on in ("8xh100", "2x8xh100")
    )
    assert eight == pytest.approx(2 * sixteen)


# ---- packed rows, chips without a bound of power, DeepSpeed ----


def test_attention_of_packed_rows_spans_their_sequences():
    run = {"on": "8xh100", "sequence_length": 32768, "runtime": "fsdp2", "recompute": "full"}
    whole, packed = (train("llama-3.1-8b", **run, mean_packed_length=n) for n in (None, 2048))
    assert packed.step_time.value < 0.75 * whole.step_time.value
    assert packed.needed_bytes == whole.needed_bytes
    with pytest.raises(InvalidPlan, match="must be from 1 to sequence_length 32,768"):
        train("llama-3.1-8b", **run, mean_packed_length=65536)


# modelscope/ms-swift, examples/megatron/fp8/benchmark.sh: packed rows of 8,192 tokens
SWIFT = [("bf16-mixed", 13), ("fp8-blockwise-te-primary", 8)]


@every_row("precision, seconds", SWIFT)
def test_an_h20_reaches_most_of_its_peak_as_swift_measured(precision, seconds):
    run = {"sequence_length": 8192, "global_batch_size": 16, "recompute": "selective", "mean_packed_length": 1500}
    run |= {"on": "8xH20-96GB", "runtime": "megatron", "tensor_parallel_size": 4}
    assert train("qwen3-14b", **run, precision=precision).step_time.value == pytest.approx(seconds, rel=0.1)


def test_liger_under_deepspeed_takes_the_memory_that_swift_measured():
    """modelscope/ms-swift, examples/train/packing/liger_kernel.sh: 42 GiB on each of four A100."""
    run = {"runtime": "deepspeed", "zero_stage": 3, "recompute": "full", "attention": "flash", "packing": True}
    run |= {"sequence_length": 16384, "precision": "bf16-mixed-16bit-gradients", "liger": True}
    assert train("qwen2.5-7b", on="4xA100-SXM-80GB", **run).needed_bytes / GIB == pytest.approx(42, rel=0.05)


# ---- sequences that ranks share ----


def test_ulysses_of_swift_takes_what_it_measured():
    """modelscope/ms-swift, sequence_parallel_512k.sh: QwQ 32B, LoRA, ZeRO-3, 8 A100, 512,000 tokens: 150 s."""
    run = {"runtime": "deepspeed", "zero_stage": 3, "context_parallel_size": 8, "method": "lora", "recompute": "full"}
    run |= {"sequence_length": 512_000, "num_microbatches": 2, "attention": "flash", "mean_packed_length": 9000}
    answer = train("qwq-32b", on="8xA100-SXM-80GB", lora_rank=8, **run)
    assert answer.question["context_parallel_method"].value == "a2a"
    assert answer.step_time.value == pytest.approx(150, rel=0.15)


def test_ulysses_deals_out_whole_heads():
    with pytest.raises(InvalidPlan, match=r"must divide the 28 heads of qwen2\.5-7b"):
        train("qwen2.5-7b", on="8xh100", runtime="deepspeed", context_parallel_size=8)


def test_ulysses_on_fsdp2_sends_no_keys_around_a_ring():
    run = {"on": "8xh100", "runtime": "fsdp2", "context_parallel_size": 8, "sequence_length": 65536}
    ring, dealt = (
        train("llama-3.1-8b", **run, recompute="full", context_parallel_method=name) for name in ("ring", "ulysses")
    )
    assert dealt.question["context_parallel_method"].value == "a2a"
    assert dealt.traffic.value != ring.traffic.value


# ---- runtimes by name ----


@every_row("layers, hidden, batch, mfu", [(32, 4096, 6, 0.611), (32, 8192, 4, 0.669), (64, 8192, 2, 0.599)])
def test_maxtext_on_a_pod_of_v5e_fits_and_is_as_fast_as_published(layers, hidden, batch, mfu, tmp_path):
    """MaxText, MaxText/configs/v5e: 16B, 32B and 64B on 256 chips of 16 GB."""
    config = {"hidden_size": hidden, "num_hidden_layers": layers, "num_attention_heads": 64, "head_dim": 128}
    config |= {"model_type": "llama", "architectures": ["LlamaForCausalLM"], "num_key_value_heads": 64}
    config |= {"intermediate_size": 28672, "vocab_size": 32000, "tie_word_embeddings": False}
    path = tmp_path / "config.json"
    path.write_text(json.dumps(config), encoding="utf-8")
    answer = train(str(path), on="v5e-256", runtime="maxtext", micro_batch_size=batch, attention="flash")
    assert answer.fits
    assert answer.run.mfu.value == pytest.approx(mfu, rel=0.12)


def test_megatron_fsdp_shards_weights_and_gradients():
    run = {"on": "8xh100", "runtime": "megatron-fsdp"}
    whole, half = (train("llama-3.1-8b", **run, zero_stage=stage).memory for stage in (3, 1))
    assert whole.child("weights").value == pytest.approx(half.child("weights").value / 8)


def test_lora_on_megatron_has_states_of_adapters_alone():
    run = {"on": "8xh100", "runtime": "megatron", "tensor_parallel_size": 2, "sequence_length": 4096}
    full, lora = (train("qwen2.5-7b", **run, method=method) for method in ("full", "lora"))
    assert lora.memory.child("optimizer").value < 0.02 * full.memory.child("optimizer").value
    assert 0.6 < lora.step_time.value / full.step_time.value < 0.9


def test_unsloth_runs_the_products_of_transformers_with_fewer_reads_and_writes():
    run = {"on": "h100", "method": "qlora", "sequence_length": 2048, "micro_batch_size": 2, "recompute": "full"}
    own, plain = (train("llama-3.1-8b", **run, runtime=name) for name in ("unsloth", "transformers"))
    assert part(own, "matrix products") == pytest.approx(part(plain, "matrix products"), rel=0.01)
    assert part(own, "reads and writes") < 0.4 * part(plain, "reads and writes")


# ---- embeddings, distillation ----


def test_contrastive_training_makes_no_logits_and_runs_both_texts():
    run = {"on": "h100", "sequence_length": 512, "micro_batch_size": 8}
    pairs, triplets = (train("bert-base-uncased", **run, objective="contrastive", negatives=count) for count in (0, 1))
    assert not [row for row in pairs.rows("memory") if "logits" in str(row["name"])]
    assert triplets.memory.child("activations").value == pytest.approx(
        1.5 * pairs.memory.child("activations").value, rel=0.03
    )


def test_cached_embeddings_run_forward_once_more():
    run = {"on": "h100", "sequence_length": 512, "micro_batch_size": 32, "objective": "contrastive"}
    plain, cached = (train("bert-base-uncased", **run, cached_embeddings=on).step_time.value for on in (False, True))
    assert 1.15 < cached / plain < 1.45


def test_negatives_belong_to_contrastive_training():
    with pytest.raises(NotApplicable, match="belongs to objective contrastive"):
        train("llama-3.2-1b", on="h100", negatives=2)


def test_a_teacher_takes_as_much_longer_as_it_is_larger():
    run = {"on": "8xh100", "runtime": "fsdp2", "objective": "distillation", "sequence_length": 2048}
    small, large = (
        part(train("llama-3.2-1b", **run, teacher=name), "forward pass, teacher")
        for name in ("llama-3.2-3b", "llama-3.1-8b")
    )
    assert large / small == pytest.approx(8.03 / 3.21, rel=0.02)
