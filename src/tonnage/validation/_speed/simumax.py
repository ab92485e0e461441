"""SimuMax's measurements of Megatron-LM on B200: rows say all but what of data parallelism overlaps."""

from tonnage.validation._speed._run import Run, Source, even_chunks


def rules(run: Run) -> None:
    even_chunks(run)


SOURCE = Source(name="simumax", pattern=r"SimuMax", rules=rules, convention="megatron")
