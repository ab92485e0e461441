"""MegaScale (Jiang2024) and the Megatron-LM that it compares with: table 2 and figure 9. The paper's settings are
from memory, and no copy of its text was found to check them by: each is a guess of the row.
"""

from rows.speed.run import GPT, Run, Source, even_chunks

VIRTUAL = {96: 6, 105: 3}  # section 6.1: interleaved stages of the models with so many layers, 175B and 530B


def rules(run: Run) -> None:
    run.guessed("micro_batch_size", 1, "not transcribed")
    virtual = VIRTUAL.get(run.layers, 1)
    run.options["virtual_pipeline_size"] = virtual
    run.guess("virtual_pipeline_size", "section 6.1, from memory")
    run.guessed("recompute", "selective", "not stated")
    run.guessed("attention", "flash", "both systems of the table")
    run.guessed("zero_stage", 1, "section 3.1, from memory; Megatron-LM's distributed optimizer")
    run.guessed("sequence_length", 2048, "section 6.1, from memory")
    run.options |= {"precision": "bf16-mixed", "optimizer": "adamw", "float8": None}
    if run.config.text("framework") == "megascale":
        run.plan["tp_comm_overlap"] = run.size("tensor_parallel") > 1
        run.guess("model", "MegaScale's parallel block, sliding window and LAMB are left out")
    even_chunks(run)


SOURCE = Source(
    name="megascale",
    pattern=r"MegaScale",
    rules=rules,
    convention="narayanan",
    hparams=GPT,
    runtime="megatron",
    vocabulary=(64000, "MegaScale, section 6.1, from memory"),
)
