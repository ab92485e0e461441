"""Megatron-LM's own tables: model_table on H100, SC21's weak scaling, the README's 175B run, the table of 2020."""

from rows.speed.run import GPT, Run, Source, even_chunks

BEFORE_FLASH = "before flash attention"


def h100(run: Run) -> None:
    """images/model_table.png with the README of core r0.8."""
    several = run.size("tensor_parallel") * run.size("pipeline_parallel") > 1
    share = (run.options.get("global_batch_size") or 4) // run.replicas
    run.guessed("micro_batch_size", 1 if several else max(min(4, share), 1), "not on the page")
    run.guess("virtual_pipeline_size", "an interleaved pipeline and its number are not on the page: none is taken")
    run.guessed("recompute", "none", "not on the page")
    run.default("zero_stage", 1, "README: --use-distributed-optimizer")
    run.default("attention", "flash", "Transformer Engine")
    run.options |= {"precision": "bf16-mixed", "float8": None}
    run.plan["tp_comm_overlap"] = run.size("tensor_parallel") > 1


def sc21(run: Run) -> None:
    pipeline = run.size("pipeline_parallel")
    run.guessed("micro_batch_size", 1 if pipeline > 1 else 4, "not on the image")
    virtual = next((v for v in (2, 3, 5) if run.layers % (pipeline * v) == 0), 1) if pipeline > 1 else 1
    run.options["virtual_pipeline_size"] = virtual
    run.guess("virtual_pipeline_size", "'interleaved where applicable'")
    _old(run, "fp16-mixed")


def old(run: Run) -> None:
    """MT-NLG, the README's 175B, the tables of 2020."""
    pipeline = run.size("pipeline_parallel")
    share = max((run.options.get("global_batch_size") or 8) // run.replicas, 1)
    run.guessed("micro_batch_size", 1 if pipeline > 1 else min(8, share), "not said")
    run.guessed("recompute", "full", "usual from 2020 to 2022")
    _old(run, "fp16-mixed")
    virtual = next((v for v in (3, 2) if pipeline > 1 and run.layers % (pipeline * v) == 0), 1)
    run.options["virtual_pipeline_size"] = virtual
    run.guess("virtual_pipeline_size", "not said")


def mt_nlg(run: Run) -> None:
    """arXiv 2201.11990: bf16, full recomputation; no interleaving is said."""
    old(run)
    run.options |= {"precision": "bf16-mixed", "virtual_pipeline_size": 1}


def of_2020(run: Run) -> None:
    run.guessed("sequence_length", 1024, "not in the file: that of the first Megatron paper")
    old(run)


def _old(run: Run, precision: str) -> None:
    run.default("attention", "eager", BEFORE_FLASH)
    if not run.config.has("zero", "zero_stage", "distributed_optimizer", "sharding"):
        run.options["zero_stage"] = 0  # before the distributed optimizer
    run.options |= {"precision": precision, "sequence_parallel": False, "dropout": True, "float8": None}


def korthikanti(run: Run) -> None:
    """Korthikanti2022, section 6."""
    run.options |= {"precision": "fp16-mixed", "zero_stage": 0}
    even_chunks(run)


SOURCES = (
    Source(
        name="megatron-h100", pattern=r"Megatron-LM images/model_table", rules=h100, convention="narayanan", hparams=GPT
    ),
    Source(name="megatron-sc21", pattern=r"cases_april2021", rules=sc21, convention="narayanan hardware", hparams=GPT),
    Source(
        name="megatron-2020",
        pattern=r"tables\.tex",
        rules=of_2020,
        hparams=GPT,
        accelerator="A100-SXM-40GB",
        vocabulary=(51200, "Megatron-LM's padded GPT-2 vocabulary"),
    ),
    Source(
        name="megatron-readme-175b",
        pattern=r"Megatron-LM README",
        rules=old,
        convention="narayanan hardware",
        hparams=GPT,
    ),
    Source(name="korthikanti", pattern=r"Korthikanti", rules=korthikanti, convention="narayanan", hparams=GPT),
    Source(name="mt-nlg", pattern=r"MT-NLG", rules=mt_nlg, convention="narayanan hardware", hparams=GPT),
)
