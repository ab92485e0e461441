"""AWS Neuron's tables of Inferentia2 and Trainium: a whole instance, one static batch."""

from rows.serving_speed.run import Run, Source
from tonnage.kernel.errors import MissingDatum, shown

CORES = 2  # NeuronCores of a chip, which is what the catalogue lists
CHIPS = {r"^inf2": "Inferentia2", r"^trn1": "Trainium1"}


def rules(run: Run) -> None:
    cores = run.config.size("neuron_cores") or 0
    tensor = run.config.size("tp") or cores
    if tensor % CORES:
        raise MissingDatum(f"{tensor} cores are no whole chips of {CORES}")
    framework = run.config.text("framework")
    weights = run.config.text("weight_dtype")
    if weights not in ("bf16", "fp16", "int8"):
        raise MissingDatum(f"weight_dtype {shown(weights)} is not known; known: bf16, fp16, int8")
    run.gpus = cores // CORES
    run.precision = weights
    run.plan |= {
        "engine": "neuron",
        "engine_version": framework.rpartition("neuron ")[2],
        "weights": weights,
        "kv_cache": "fp16",
        "tensor_parallel_size": tensor // CORES,
        "context": run.config.size("context"),
    }
    run.load |= {
        "input_tokens": run.config.size("input_len"),
        "output_tokens": run.config.size("output_len"),
        "concurrency": run.config.size("batch"),
    }
    run.imply("tensor_parallel_size", f"{tensor} cores, {CORES} a chip")


SOURCES = (Source(name="neuron", pattern=r"aws-neuron-sdk", rules=rules, accelerators=CHIPS),)
