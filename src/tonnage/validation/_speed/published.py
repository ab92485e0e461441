"""Whole published runs: their layouts are seldom said."""

from tonnage.validation._speed._run import Run, Source, even_chunks


def llama3(run: Run) -> None:
    """Grattafiori2024, section 3.3: table 4."""
    replica, data = run.config.size("batch_per_dp"), run.config.size("dp")
    run.options |= {
        "runtime": "megatron",
        "zero_stage": 1,
        "precision": "bf16-mixed",
        "recompute": "none",
        "num_microbatches": None,
    }
    if replica and data:
        run.options["global_batch_size"] = replica * data
    run.options["micro_batch_size"] = 1
    run.guess(
        "micro_batch_size 1 and a plain pipeline are guessed; 'FSDP' that reshards no weights is taken as ZeRO-1; megatron stands for Meta's own"
    )
    if (run.layers + 2) % run.chunks == 0:  # "reduce one Transformer layer each from the first and the last stages"
        run.options |= {"account_for_embedding_in_pipeline_split": True, "account_for_loss_in_pipeline_split": True}
    else:
        even_chunks(run)


def pythia(run: Run) -> None:
    """arXiv 2304.01373, on GPT-NeoX; its hours include all that is no step."""
    batch, length = run.config.size("global_batch_tokens"), run.config.length("seq_len")
    if batch and length:
        run.options["global_batch_size"] = batch // length
        found = [b for b in (32, 16, 8, 4, 2, 1) if run.gpus and (batch // length) % (b * run.gpus) == 0]
        run.guessed("micro_batch_size", found[0] if found else 1, "in the Pythia configs, not transcribed")
    run.options |= {"runtime": "deepspeed", "zero_stage": 1, "precision": "fp16-mixed"}
    run.guessed("recompute", "full", "configs of Pythia: checkpoint-activations true")
    run.guess("its hours include restarts, evaluation and checkpoints")


def others(run: Run) -> None:
    run.guess("the layout is not said")


SOURCES = (
    Source(name="llama3-herd", pattern=r"Llama 3 herd", rules=llama3, convention="torchtitan"),
    Source(name="pythia", pattern=r"Pythia", rules=pythia, accelerator="A100-SXM-40GB"),
    Source(name="palm", pattern=r"PaLM paper arXiv", rules=others, convention="palm"),
    Source(name="mlperf", pattern=r"MLPerf|mlperf", rules=others),
)

OTHERS = Source(name="published-run", pattern=r"", rules=others)
