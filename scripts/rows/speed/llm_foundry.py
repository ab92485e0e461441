"""MosaicML's llm-foundry: scripts/train/benchmarking (README, submit_benchmarks.py), MPT on Composer's FSDP."""

from rows.speed.run import Run, Source


def rules(run: Run) -> None:
    if "fp8" in run.config.text("precision"):
        run.implied(
            "precision", "fp8-torchao", "amp_fp8: Transformer Engine's layers under Composer cast for each product"
        )
    run.options["recompute"] = "full" if run.config.flag("activation_checkpointing") else "none"
    run.plan["attention"] = "triton"  # attn_impl: triton, the benchmark's default
    run.options |= {"attention": "flash", "compile": False, "dropout": False, "float8": None}
    run.notes.append(
        "Composer's FSDP of PyTorch 1.13 and 2.0: fsdp2 stands for it, and torchtitan's layers for llm-foundry's"
    )


SOURCE = Source(name="llm-foundry", pattern=r"llm-foundry", rules=rules, convention="mosaicml")
