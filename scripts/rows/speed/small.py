"""Sources with few rows: nanotron's and its playbook's, torchtune, LitGPT, LLaMA-Factory, MaxText, the FSDP paper,
FlashAttention-2.
"""

from rows.speed.run import GPT, Run, Source


def nanotron(run: Run) -> None:
    """config_tiny_llama_bench.yaml recomputes nothing; pp_engine 1f1b."""
    run.options["recompute"] = run.options.get("recompute") or "none"
    run.default("attention", "flash", "flash-attn 2")
    run.options.pop("virtual_pipeline_size", None)


def scaling(run: Run) -> None:
    run.guess("micro_batch_size", "micro_batch_size is not said")


def torchtune(run: Run) -> None:
    run.options["compile"] = True
    run.guess("recompute", "recomputation is as the dialect reads it: A6000 rows without, others with")


def lit(run: Run) -> None:
    run.guess(
        "sequence_length", "batches are padded to their longest sample, on average much shorter than the longest of all"
    )


def maxtext(run: Run) -> None:
    tensor = run.config.size("tensor") or 1
    batch = run.config.size("per_device_batch")
    if run.gpus and batch:
        run.options |= {"tensor_parallel_size": tensor, "micro_batch_size": batch * tensor, "num_microbatches": 1}


def fsdp_paper(run: Run) -> None:
    """The FSDP paper, arXiv 2304.11277: minGPT under FSDP of PyTorch 1.13 and 2.0 with bf16 and checkpoints."""
    run.options |= {
        "runtime": "fsdp2",
        "zero_stage": 3,
        "recompute": "full",
        "optimizer": "adamw",
        "num_microbatches": 1,
        "precision": "bf16-mixed-16bit-gradients",
    }
    run.guessed("attention", "eager", "minGPT: no fused attention")
    run.guess(
        "on",
        "'more than' a throughput, on 128 to 512 GPUs: 128 are taken, hardware FLOP are taken to count recomputation",
    )


SOURCES = (
    Source(name="nanotron", pattern=r"benchmark plot", rules=nanotron, convention="palm"),
    Source(
        name="playbook-scaling",
        pattern=r"dp_scaling",
        rules=scaling,
        convention="palm",
        vocabulary=(131072, "the vocabulary of the same playbook's benchmark runs"),
    ),
    Source(name="torchtune", pattern=r"torchtune", rules=torchtune),
    Source(name="litgpt", pattern=r"litgpt tutorials", rules=lit),
    Source(name="llama-factory", pattern=r"LLaMA-Factory"),
    Source(
        name="maxtext",
        pattern=r"maxtext",
        rules=maxtext,
        convention="torchtitan",
        vocabulary=(32000, "MaxText, base.yml vocab_size"),
    ),
    Source(name="fsdp-paper", pattern=r"FSDP paper", rules=fsdp_paper, convention="narayanan hardware", hparams=GPT),
    Source(name="flash-attention-2", pattern=r"FlashAttention-2", convention="palm"),
)
