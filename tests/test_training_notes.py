"""Notes of a training estimate: said where an assumption decides figures, and silent elsewhere."""

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
    assert "experts stay in 16 bit" in notes("gpt-oss-20b", "RTX-4090", method="qlora", runtime="unsloth")
    assert "experts stay" not in notes("llama-3.1-8b", "RTX-4090", method="qlora", runtime="unsloth")


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
