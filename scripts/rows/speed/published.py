"""Whole published runs: their layouts are seldom said."""

from rows.speed.run import Run, Source, even_chunks

LARGE, INSIDE = 20e9, 8  # parameters from which on models were cut; tensor ranks of a node
AT_ONCE = 8192  # tokens of a micro-batch of a model that is not cut
BATCH = 4e6  # tokens: GPT-3's 3.2 million, Llama's 4, OPT's 2, Falcon's 4


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
        "micro_batch_size",
        (
            "micro_batch_size 1 and a plain pipeline are guessed; 'FSDP' that reshards no weights is taken as "
            "ZeRO-1; megatron stands for Meta's own"
        ),
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
    run.guess("hours", "its hours include restarts, evaluation and checkpoints")


def others(run: Run) -> None:
    """What nobody says is guessed as such runs were laid out: Megatron's way from 20 billion parameters on, sharded
    data parallelism below.
    """
    run.guess("layout", "the layout is not said")
    if any(run.size(f"{name}_parallel") > 1 for name in ("tensor", "pipeline", "expert")) or not run.gpus:
        return
    large = run.parameters >= LARGE and run.gpus % INSIDE == 0
    if large:
        sizes = {"tensor_parallel_size": INSIDE, "pipeline_parallel_size": _stages(run)}
        run.options |= {"runtime": "megatron", "zero_stage": 1, **sizes}
    else:
        run.options |= {"runtime": "fsdp2"}
    run.guess("runtime", f"of {run.parameters:,} parameters")
    run.guessed("recompute", "selective", "what memory of 40 to 80 GB asks for")
    length = run.config.length("seq_len") or 2048
    run.guessed("micro_batch_size", 1 if large else max(AT_ONCE // length, 1), "thousands of tokens at once")
    if not run.options.get("global_batch_size"):
        at_once = run.options["micro_batch_size"] * run.replicas
        run.guessed("global_batch_size", max(round(BATCH / length / at_once), 1) * at_once, "about four million tokens")


def _stages(run: Run) -> int:
    """The fewest pipeline stages on which weights and gradients take half of the memory, 6 bytes for each parameter."""
    held = 6 * run.parameters / INSIDE / (run.memory / 2)
    fitting = (p for p in (1, 2, 4, 8, 16, 32) if p >= held and run.layers % p == 0 and run.gpus % (INSIDE * p) == 0)
    return next(fitting, 1)


SOURCES = (
    Source(name="llama3-herd", pattern=r"Llama 3 herd", rules=llama3, convention="torchtitan"),
    Source(name="pythia", pattern=r"Pythia", rules=pythia, accelerator="A100-SXM-40GB"),
    Source(name="palm", pattern=r"PaLM paper arXiv", rules=others, convention="palm"),
    Source(name="mlperf", pattern=r"MLPerf|mlperf", rules=others),
)

OTHERS = Source(name="published-run", pattern=r"", rules=others)
