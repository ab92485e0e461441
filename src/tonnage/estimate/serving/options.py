"""What the user may say about a served model on a machine."""

from msgspec import Struct


class ServingOptions(Struct, frozen=True, kw_only=True):
    """What the user may say about serving; None is the default, which the estimate chooses and explains.

    - context [tokens]: tokens of a request, prompt and answer; 32k is 32768 (default: the model's own)
    - concurrency [requests]: requests held at the same time, by all replicas together (default: one a replica)
    - weights [precision]: how weights are stored: bf16, fp8, int8, awq, nf4, mxfp4, q4_k, ... (default: the checkpoint's own)
    - kv_cache [precision]: how keys and values are stored: auto, or what the engine has: fp8, fp8_e5m2, nvfp4; int8, int4, int2 (default: as wide as activations)
    - tensor_parallel_size [ranks]: ranks that share each matrix (default: the node, as far as heads divide)
    - pipeline_parallel_size [ranks]: pipeline stages (default: 1)
    - expert_parallel_size [ranks]: ranks that share a layer's experts (default: 1)
    - max_num_batched_tokens [tokens]: tokens of one forward pass (default: the engine's own)
    - max_num_seqs [requests]: requests that the engine runs at once (default: the engine's own)
    - gpu_memory_utilization [0 to 1]: part of the memory that the engine takes (default: vllm's 0.92)
    - enforce_eager [switch]: without captured graphs (vllm, sglang)
    - engine [name]: vllm, sglang, tensorrt-llm, llama.cpp, ollama, transformers, gpt-fast, neuron, jetstream or generic (default: vllm; llama.cpp for GGUF, on CPUs and Apple)
    - engine_version [version]: an earlier version of the engine, whose rules differ: 0.5.5 of sglang, b4000 of llama.cpp (default: the newest)
    - attention_data_parallel_size [groups]: groups of ranks that each keep the attention for their own requests and share the experts (default: 1)
    - layers_on_accelerator [layers]: layers, the head counted as one, that are on the accelerator (llama.cpp) (default: all)
    - expert_layers_on_host [layers]: layers whose experts stay in host memory (llama.cpp) (default: none)
    - weights_on_host [bytes]: weights of each rank that stay in host memory (vllm, sglang) (default: none)
    - draft_model [name]: the model that drafts (speculative decoding) (default: the model's own prediction layers)
    - draft_tokens [tokens]: tokens guessed ahead in each step (default: none)
    - acceptance [0 to 1]: probability that a guessed token is taken (default: 0)
    - lora_adapters [adapters]: adapters held at the same time (default: none)
    - lora_rank [rank]: rank of the adapters (default: 16)
    - storage_read_bandwidth [bytes/s]: bytes a second that a node reads weights at, such as 6GB/s (default: its own drives)
    - host_bandwidth [bytes/s]: bytes a second of the host's memory, such as 89.6GB/s: the time of layers that stay there
    """

    context: int | None = None
    concurrency: int | None = None
    weights: str | None = None
    kv_cache: str | None = None
    tensor_parallel_size: int | None = None
    pipeline_parallel_size: int | None = None
    expert_parallel_size: int | None = None
    max_num_batched_tokens: int | None = None
    max_num_seqs: int | None = None
    gpu_memory_utilization: float | None = None
    enforce_eager: bool | None = None
    reserve_bytes: int = 0
    engine: str | None = None
    engine_version: str | None = None
    attention_data_parallel_size: int | None = None
    layers_on_accelerator: int | None = None
    expert_layers_on_host: int | None = None
    weights_on_host: int | None = None
    draft_model: str | None = None
    draft_tokens: int | None = None
    acceptance: float | None = None
    lora_adapters: int | None = None
    lora_rank: int | None = None
    storage_read_bandwidth: float | str | None = None
    host_bandwidth: float | str | None = None
