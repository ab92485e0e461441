"""SimuMax's measurements of Megatron-LM on B200: rows say all but what of data parallelism overlaps."""

from rows.speed.run import Run, Source, even_chunks

# The machine of its runs is bound by power: aiconfigurator-core's B200 reaches 0.69.
MEASURED, PRODUCTS = "B200-SXM-180GB", 0.488


def rules(run: Run) -> None:
    even_chunks(run)
    if run.accelerator == MEASURED:
        run.implied(
            "product_share",
            PRODUCTS,
            "configs/system/b200_bf16_ceperm.json: mean of the matmuls that SimuMax measured on this machine",
        )


SOURCE = Source(name="simumax", pattern=r"SimuMax", rules=rules, convention="megatron")
