"""Dynamo with workers of TensorRT-LLM."""

from tonnage.runtimes import serving_runtime
from tonnage.runtimes.parts.dynamo import behind_dynamo
from tonnage.runtimes.parts.serving import SERVING_RUNTIMES
from tonnage.runtimes.parts.start import Start
from tonnage.runtimes.tensorrt_llm import launch

ENGINE = serving_runtime("tensorrt-llm")
#: components/src/dynamo/trtllm/backend_args.py: the options, where trtllm-serve spells them otherwise.
SPELLED = {
    "trtllm-serve ": "python -m dynamo.trtllm --model-path ",
    " --max_seq_len ": " --max-seq-len ",
    " --tp_size ": " --tensor-parallel-size ",
    " --pp_size ": " --pipeline-parallel-size ",
    " --ep_size ": " --expert-parallel-size ",
    " --gpus_per_node ": " --gpus-per-node ",
    " --max_num_tokens ": " --max-num-tokens ",
    " --max_batch_size ": " --max-batch-size ",
    " --kv_cache_free_gpu_memory_fraction ": " --free-gpu-memory-fraction ",
    " --config ": " --extra-engine-args ",
    " --host 0.0.0.0": "",
}


def worker(start: Start) -> str:
    command = launch(start)
    for theirs, own in SPELLED.items():
        command = command.replace(theirs, own)
    return command + (f" --disaggregation-mode {start.role}" if start.role else "")


SERVING_RUNTIMES.add(
    "dynamo-trtllm", behind_dynamo(ENGINE, "dynamo-trtllm", worker, 9, ("dynamotensorrtllm", "dynamotrt"))
)
