"""Notes of a training estimate: said where an assumption decides figures, and silent elsewhere."""

import pytest

import tonnage


def notes(model, machine, **options):
    return " ".join(tonnage.train(model, machine, **options).warnings)


def test_attention_that_has_no_fused_kernel_is_said_and_flash_is_the_way_out():
    made = tonnage.train("falcon-7b", "H100-SXM-80GB", runtime="transformers")
    assert any("no fused kernel" in each for each in made.warnings)
    assert "no fused kernel" not in notes("falcon-7b", "H100-SXM-80GB", runtime="transformers", attention="flash")
    assert "no fused kernel" not in notes("llama-3.1-8b", "H100-SXM-80GB", runtime="transformers")


def test_adapters_on_another_authors_layers_are_said_unless_those_were_asked_for():
    assert "--model-code transformers" in notes("llama-3.1-8b", "8xH100-SXM-80GB", method="lora")
    assert "layers of" not in notes("llama-3.1-8b", "8xH100-SXM-80GB", method="lora", model_code="transformers")
    assert "layers of" not in notes("llama-3.1-8b", "8xH100-SXM-80GB")


def test_experts_that_no_quantisation_reaches_are_said():
    assert "experts are not quantised" in notes("gpt-oss-20b", "RTX-4090", method="qlora", runtime="transformers")
    assert "experts are" not in notes("gpt-oss-20b", "RTX-4090", method="qlora", runtime="unsloth")
    assert "experts are" not in notes("llama-3.1-8b", "RTX-4090", method="qlora", runtime="unsloth")


def test_a_machine_whose_runtime_keeps_nothing_known_is_estimated_all_the_same():
    made = tonnage.train("llama-3.1-70b", "256xTPU-v4", runtime="fsdp2", micro_batch_size=13, as_is=True)
    assert made.fits is False
    assert any("are not counted" in each for each in made.warnings)


def test_nothing_is_said_to_be_cut_by_tensor_parallelism_on_one_tensor_rank():
    def names(term):
        return [term.name, *(name for child in term.children for name in names(child))]

    def said(**options):
        return " ".join(
            name
            for phase in tonnage.train("llama-3.1-8b", "8xH100-SXM-80GB", **options).phases
            for name in names(phase)
        )

    for runtime in ("fsdp2", "megatron", "ddp"):
        assert "tensor parallelism" not in said(runtime=runtime) and "tensor rank" not in said(runtime=runtime)
    assert "cut by tensor parallelism" in said(tensor_parallel_size=2)


def test_a_rank_above_the_narrower_side_of_a_matrix_is_said_to_learn_nothing_more():
    assert "lora_rank 2,048 is above 1,024, the narrower side of" in notes(
        "llama-3.1-8b", "H100-SXM-80GB", method="lora", lora_rank=2048
    )
    assert "lora_rank" not in notes("llama-3.1-8b", "H100-SXM-80GB", method="lora", lora_rank=1024)
    assert "lora_rank" not in notes(
        "llama-3.1-8b", "H100-SXM-80GB", method="lora", lora_rank=2048, lora_targets="q_proj"
    )


def test_the_stage_that_decides_is_named_where_there_are_several():
    def peak(**options):
        return tonnage.train("llama-3.1-8b", "8xH100-SXM-80GB", runtime="megatron", **options).memory.name

    assert peak(pipeline_parallel_size=2).endswith(", on pipeline stage 0 of 2") and "stage" not in peak()


def test_where_no_move_fits_the_accelerators_that_the_states_fill_are_counted():
    """A slice has no larger machine: 16 bytes for each of 405.85 billion parameters."""
    said = notes("llama-3.1-405b", "H100-SXM-80GB:3g.40gb")
    assert "5.91 TiB in all" in said and "accelerators of H100-SXM-80GB:3g.40gb" in said
    assert "kept once, they fill" not in notes("llama-3.1-405b", "8xH100-SXM-80GB", runtime="megatron")


def test_unsloth_may_need_less_for_a_larger_micro_batch_and_says_why():
    """One part of the loss becomes four where half a part more would do (get_chunk_size): whatever the family."""
    for model in ("mamba-130m-hf", "llama-3.2-1b"):
        found = {
            size: tonnage.train(model, "H100-SXM-80GB", runtime="unsloth", sequence_length=1024, micro_batch_size=size)
            for size in range(1, 9)
        }
        falls = [size for size in range(1, 8) if found[size + 1].needed_bytes < found[size].needed_bytes]
        assert falls
        assert all("can need less" in " ".join(found[size].warnings) for size in falls)


def test_float8_on_an_accelerator_without_fp8_units_is_said_not_to_run():
    said = notes("llama-3.1-8b", "8xA100-SXM-80GB", float8="rowwise", compile=True)
    assert "float8 rowwise does not run on A100-SXM-80GB" in said and "compute capability 8.9" in said
    for machine in ("8xH100-SXM-80GB", "8xRTX-4090"):
        assert "does not run" not in notes("llama-3.2-1b", machine, float8="rowwise", compile=True)
    assert "no source gives an fp8 peak of L2" in notes("llama-3.2-1b", "8xL2", float8="rowwise", compile=True)
    assert "float8" not in notes("llama-3.1-8b", "8xA100-SXM-80GB")


def test_float8_without_compilation_is_said_to_take_longer_than_is_timed():
    assert "torchao asks for torch.compile" in notes("llama-3.1-8b", "8xH100-SXM-80GB", float8="tensorwise")
    assert "torch.compile" not in notes("llama-3.1-8b", "8xH100-SXM-80GB", float8="tensorwise", compile=True)


@pytest.mark.parametrize(
    ("name", "what"),
    [
        ("galore-adamw", "singular value"),
        ("galore-8bit", "singular value"),
    ],
)
def test_what_an_optimizer_does_that_is_not_timed_is_said(name, what):
    said = notes("llama-3.1-8b", "8xH100-SXM-80GB", optimizer=name)
    assert f"not in the time of a step: what {name} does besides" in said and what in said
    assert "besides" not in notes("llama-3.1-8b", "8xH100-SXM-80GB", optimizer="muon")


@pytest.mark.parametrize(
    ("model", "core"),
    [
        ("mamba-2.8b-hf", "selective scan"),
        ("jamba-v0.1", "selective scan"),
        ("rwkv-4-3b-pile", "weighted sum"),
        ("qwen3-next-80b-a3b-instruct", "delta rule"),
    ],
)
def test_a_recurrence_other_than_that_of_mamba_2_is_said_to_be_timed_at_its_rate(model, core):
    assert f"measured of Mamba-2 alone: the {core} of" in notes(model, "8xH100-SXM-80GB")


@pytest.mark.parametrize("model", ["mamba2-2.7b", "nemotron-h-8b-base-8k", "llama-3.1-8b"])
def test_nothing_is_said_of_recurrences_where_there_are_none_but_mamba_2s(model):
    assert "recurrences" not in notes(model, "8xH100-SXM-80GB")


def test_what_a_bridge_joins_is_said_where_groups_are_larger():
    said = notes("llama-3.2-1b", "8xH100-NVL-94GB")
    assert "bridges join 2 cards" in said and "over PCIe 5.0 x16" in said and "as in 4x2xH100-NVL-94GB" in said
    assert "bridges join 4 cards" in notes("llama-3.2-1b", "8xH200-NVL-141GB")
    for machine in ("4x2xH100-NVL-94GB", "2xH100-NVL-94GB", "8xH100-SXM-80GB"):
        assert "bridges" not in notes("llama-3.2-1b", machine)


# validation/recent/ms_swift.yaml and torchao_blackwell.yaml
LORA = {"runtime": "megatron", "method": "lora"}
SLOWER = [
    ("qwen3-30b-a3b", "2x8xA800-SXM-80GB", {"runtime": "deepspeed", "zero_stage": 3}, "took 39 times"),
    ("qwen3-30b-a3b", "4xH20-96GB", LORA | {"expert_parallel_size": 4}, "took 1.6 and 1.8 times"),
    ("llama-3.1-8b", "8xB200-SXM-180GB", {"runtime": "fsdp2"}, "took 1.8 to 2.2 times"),
]


@pytest.mark.parametrize(("model", "machine", "options", "text"), SLOWER)
def test_published_runs_that_are_slower_than_estimated_are_said_first(model, machine, options, text):
    assert text in tonnage.train(model, machine, as_is=True, **options).warnings[0]


@pytest.mark.parametrize(
    ("model", "machine", "options"),
    [
        ("llama-3.1-8b", "8xA800-SXM-80GB", {"runtime": "deepspeed", "zero_stage": 3}),
        ("qwen3-30b-a3b", "8xA800-SXM-80GB", {"runtime": "deepspeed", "zero_stage": 2}),
        ("qwen3-30b-a3b", "4xH20-96GB", LORA | {"expert_parallel_size": 4, "expert_imbalance": 1.5}),
        ("qwen3-30b-a3b", "4xH20-96GB", LORA | {"expert_parallel_size": 1}),
        ("qwen3-30b-a3b", "2x8xH100-SXM-80GB", {"runtime": "megatron", "expert_parallel_size": 8}),
        ("llama-3.1-8b", "4xGB200-186GB", {"runtime": "fsdp2"}),
    ],
)
def test_nothing_is_said_of_slower_runs_where_none_are_like_it(model, machine, options):
    assert "times as long as estimated" not in notes(model, machine, as_is=True, **options)
