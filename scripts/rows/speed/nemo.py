"""NeMo's performance tables on H100 (24.07, fp8 with delayed scaling) and on B200 with long sequences (25.04)."""

from rows.speed.run import Run, Source, even_chunks

# NeMo's models by name: NVIDIA/NeMo, nemo/collections/llm/gpt/model/nemotron.py at
# 0037ec8cabb77ed219273c234c5844585a03470c (Nemotron3Config8B, Nemotron4Config340B) and base.py in versions whose commit
# is not known (GPTConfig5B, GPTConfig20B); vocabularies, and GPT of 1.3 and 2.7 billion, are from memory. A row that
# takes its model from here is guessed.
_GPT = {
    "mlp": "plain",
    "norm": "layer",
    "mlp_bias": True,
    "attention_bias": True,
    "attention_out_bias": True,
    "position_embeddings": "learned",
    "tie_word_embeddings": True,
    "model_type": "generic",
    "vocab_size": 50257,
}
_NEMOTRON = {
    "mlp": "plain",
    "norm": "layer",
    "position_embeddings": "rotary",
    "tie_word_embeddings": False,
    "model_type": "generic",
    "vocab_size": 256000,
}
DIMENSIONS = {
    "gpt3-1.3b": {
        **_GPT,
        "hidden_size": 2048,
        "num_hidden_layers": 24,
        "num_attention_heads": 32,
        "intermediate_size": 8192,
    },
    "gpt3-2.7b": {
        **_GPT,
        "hidden_size": 2560,
        "num_hidden_layers": 32,
        "num_attention_heads": 32,
        "intermediate_size": 10240,
    },
    "gpt3-5b": {
        **_GPT,
        "hidden_size": 4096,
        "num_hidden_layers": 24,
        "num_attention_heads": 32,
        "intermediate_size": 16384,
    },
    "gpt3-20b": {
        **_GPT,
        "hidden_size": 6144,
        "num_hidden_layers": 44,
        "num_attention_heads": 48,
        "intermediate_size": 24576,
    },
    "nemotron-8b": {
        **_NEMOTRON,
        "hidden_size": 4096,
        "num_hidden_layers": 32,
        "num_attention_heads": 32,
        "intermediate_size": 16384,
    },
    "nemotron-340b": {
        **_NEMOTRON,
        "hidden_size": 18432,
        "num_hidden_layers": 96,
        "num_attention_heads": 96,
        "num_key_value_heads": 8,
        "intermediate_size": 73728,
    },
}


def rules(run: Run) -> None:
    run.implied(
        "precision", "fp8-te-16bit-gradients", "FP8 of 24.07: TE, hybrid, delayed scaling; grad_sync_dtype bf16"
    )
    run.options.pop("float8", None)
    run.default("zero_stage", 1, "distributed optimizer")
    run.guessed("recompute", "none", "the table does not say")
    run.default("attention", "flash", "Transformer Engine")
    run.plan["tp_comm_overlap"] = run.size("tensor_parallel") > 1  # MegatronCommOverlapCallback of the recipes
    task = run.config.text("task")
    run.options["objective"] = None
    run.options["method"] = "lora" if "lora" in task else "full"
    if task in ("sft", "lora"):
        run.guess("packing", "packed sequences: attention inside of each is shorter than sequence_length")
    even_chunks(run)


def long_sequences(run: Run) -> None:
    rules(run)
    run.options.pop("data_parallel_size", None)
    run.guess(
        "data_parallel_size",
        "the page's data-parallel size is not what its GPUs and other sizes leave: the latter is taken",
    )
    run.guessed("micro_batch_size", 1, "not on the page")


SOURCES = (
    Source(
        name="nemo-longseq",
        pattern=r"performance_long_sequence",
        rules=long_sequences,
        convention="megatron",
        dimensions=DIMENSIONS,
    ),
    Source(name="nemo-24.07", pattern=r"NeMo git history", rules=rules, convention="torchtitan", dimensions=DIMENSIONS),
)
