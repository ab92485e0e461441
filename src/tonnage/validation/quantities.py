"""What a row may measure: each quantity with its verb and units."""

from collections.abc import Mapping

from msgspec import Struct

from tonnage.kernel.units import GB, GIB, KIB, MB, MIB

BYTES: Mapping[str, float] = {
    "bytes": 1,
    "KiB": KIB,
    "MiB": MIB,
    "GiB": GIB,
    "TiB": 1024 * GIB,
    "kB": 1e3,
    "MB": MB,
    "GB": GB,
    "TB": 1e12,
}
SECONDS: Mapping[str, float] = {"us": 1e-6, "ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0, "days": 86400.0}
COUNT: Mapping[str, float] = {"count": 1}
PERCENT: Mapping[str, float] = {"%": 100, "fraction": 1}  # what a share is multiplied by
BANDWIDTH: Mapping[str, float] = {"GB/s": 1e9, "GiB/s": float(1 << 30)}
ENERGY: Mapping[str, float] = {"kWh": 3.6e6, "MWh": 3.6e9, "GWh": 3.6e12}  # in joules
CARBON: Mapping[str, float] = {"t": 1e6}  # in grams of CO2 equivalent
FLOPS: Mapping[str, float] = {"TFLOP/s": 1e12, "TFLOP/s/GPU": 1e12, "PFLOP/s": 1e15, "PFLOP/s/GPU": 1e15}
SCOPES = ("", "/GPU", "/node")  # of all accelerators together, of one, of eight


def _rates(*names: str) -> Mapping[str, float]:
    return {f"{name}/s{scope}": 1 for name in names for scope in SCOPES}


class Quantity(Struct, frozen=True):
    """One thing that a row may measure. `units`: by name, in base units; `kind`: of the rows whose main figure it
    is.
    """

    verb: str
    kind: str
    units: Mapping[str, float]
    text: str


QUANTITIES: Mapping[str, Quantity] = {
    "parameters": Quantity(
        "models", "params", COUNT, "parameters of the checkpoint, layers of multi-token prediction too"
    ),
    # memory of training
    "allocated_memory": Quantity("train", "train_memory", BYTES, "tensors: max_memory_allocated"),
    "reserved_memory": Quantity("train", "train_memory", BYTES, "with what the allocator keeps: max_memory_reserved"),
    "process_memory": Quantity("train", "train_memory", BYTES, "all that the process holds: nvidia-smi"),
    "activation_memory": Quantity("train", "train_memory", BYTES, "what the layers keep for the backward pass"),
    "forward_memory": Quantity("train", "train_memory", BYTES, "what the forward pass keeps, logits too"),
    "state_memory": Quantity("train", "train_memory", BYTES, "weights, gradients and optimizer"),
    "weights_memory": Quantity("train", "train_memory", BYTES, "weights alone, master weights are the optimizer's"),
    "gradient_memory": Quantity("train", "train_memory", BYTES, "gradients alone, when all of them are there"),
    "optimizer_memory": Quantity("train", "train_memory", BYTES, "states of the optimizer alone"),
    "memory_beyond_states": Quantity("train", "train_memory", BYTES, "the peak of tensors less the states"),
    "activation_share": Quantity("train", "train_memory", {"%": 1}, "activations in percent of those of `relative_to`"),
    "fits_in": Quantity("train", "train_memory", BYTES, "a card on which the run fits"),
    "needs_more_than": Quantity("train", "train_memory", BYTES, "a card on which the run does not fit"),
    # time of training
    "step_time": Quantity("train", "train_speed", SECONDS, "seconds of `times` optimizer steps"),
    "micro_batch_time": Quantity("train", "train_speed", SECONDS, "seconds of `times` micro-batches"),
    "tokens_per_second": Quantity("train", "train_speed", _rates("tokens"), "tokens trained on"),
    "samples_per_second": Quantity("train", "train_speed", _rates("samples"), "sequences trained on"),
    "flops_per_second": Quantity("train", "train_speed", FLOPS, "FLOP/s, as `counting` counts them"),
    "mfu": Quantity("train", "train_speed", PERCENT, "share of the peak, FLOP as `counting` counts them"),
    "hfu": Quantity("train", "train_speed", PERCENT, "share of the peak with recomputation"),
    "run_flops": Quantity("train", "train_speed", {"FLOP": 1}, "FLOP of all `tokens`"),
    "run_hours": Quantity("train", "train_speed", {"GPU-hours": 1}, "hours of all accelerators for `tokens`"),
    "run_days": Quantity("train", "train_speed", {"days": 1}, "days for `tokens`"),
    # a whole run
    "goodput": Quantity("train", "goodput", PERCENT, "share of the run's time in which steps are made that last"),
    "run_energy": Quantity("train", "energy", ENERGY, "electric energy of a run of `budget_accelerator_hours`"),
    "run_carbon": Quantity("train", "energy", CARBON, "CO2 equivalent of that energy on the `grid`"),
    # a step of reinforcement learning
    "rl_step_time": Quantity("train", "rl_speed", SECONDS, "seconds of a step with its rollouts"),
    "rl_tokens_per_second": Quantity(
        "train", "rl_speed", _rates("tokens"), "tokens trained on in a step with its rollouts"
    ),
    "rollout_time": Quantity("train", "rl_speed", SECONDS, "seconds of the rollouts of a step"),
    "forward_time": Quantity(
        "train", "rl_speed", SECONDS, "seconds of log-probabilities, reference, reward model and critic"
    ),
    "rollout_and_forward_time": Quantity("train", "rl_speed", SECONDS, "seconds of both"),
    "update_time": Quantity("train", "rl_speed", SECONDS, "seconds of the updates of a step"),
    "weight_sync_time": Quantity("train", "rl_speed", SECONDS, "seconds until the engine has the weights of an update"),
    # memory of serving
    "weights": Quantity("serve", "infer_memory", BYTES, "weights of the rank that holds most"),
    "activations": Quantity("serve", "infer_memory", BYTES, "peak of activations of the first rank"),
    "outside_torch": Quantity("serve", "infer_memory", BYTES, "what vLLM's log calls non-torch memory"),
    "cuda_graphs": Quantity("serve", "infer_memory", BYTES, "CUDA graphs of the first rank"),
    "torch_peak": Quantity("serve", "infer_memory", BYTES, "weights and the peak of activations"),
    "kv_cache": Quantity("serve", "infer_memory", BYTES, "what is left for the KV cache on the first rank"),
    "kv_cache_tokens": Quantity("serve", "infer_memory", COUNT, "tokens that the KV cache holds"),
    "kv_cache_blocks": Quantity("serve", "infer_memory", COUNT, "blocks of the KV cache"),
    "concurrency": Quantity("serve", "infer_memory", COUNT, "requests of the whole context that the KV cache holds"),
    "request_cache": Quantity("serve", "infer_memory", BYTES, "KV cache of one request of the whole context"),
    "kv_buffer": Quantity("serve", "infer_memory", BYTES, "KV cache of all requests, as llama.cpp prints it"),
    "tensor_bytes": Quantity("serve", "infer_memory", BYTES, "all tensors of a GGUF file"),
    "allocated": Quantity("serve", "infer_memory", BYTES, "what PyTorch's allocator gave out on all accelerators"),
    "allocated_at_end": Quantity("serve", "infer_memory", BYTES, "the same after the last token"),
    "process": Quantity("serve", "infer_memory", BYTES, "all that nvidia-smi shows"),
    # time of serving
    "ttft": Quantity("serve", "infer_speed", SECONDS, "time to first token"),
    "tpot": Quantity("serve", "infer_speed", SECONDS, "time per output token"),
    "end_to_end": Quantity("serve", "infer_speed", SECONDS, "time of one request"),
    "output_tokens_per_second": Quantity("serve", "infer_speed", _rates("tokens"), "output tokens of all requests"),
    "input_tokens_per_second": Quantity("serve", "infer_speed", _rates("tokens"), "input tokens of all requests"),
    "requests_per_second": Quantity("serve", "infer_speed", _rates("requests"), "finished requests"),
    "request_tokens_per_second": Quantity(
        "serve", "infer_speed", {"tokens/s": 1}, "input and output tokens of one request over its time"
    ),
    "generation_tokens_per_second": Quantity(
        "serve", "infer_speed", {"tokens/s": 1}, "output tokens of one request over its time"
    ),
    "prefill_tokens_per_second": Quantity("serve", "infer_speed", {"tokens/s": 1}, "uncached input tokens over TTFT"),
    "decode_tokens_per_second": Quantity("serve", "infer_speed", {"tokens/s": 1}, "1 / TPOT"),
    # passes without decoding, and speech
    "pass_time": Quantity("serve", "embed_speed", SECONDS, "one batch of documents without decoding"),
    "documents_per_second": Quantity("serve", "embed_speed", _rates("documents"), "documents, or pairs, embedded"),
    "embedded_tokens_per_second": Quantity("serve", "embed_speed", _rates("tokens"), "tokens of documents embedded"),
    "transcription_time": Quantity("serve", "embed_speed", SECONDS, "one file of `audio_seconds` from sound to text"),
    "window_time": Quantity("serve", "embed_speed", SECONDS, "the encoder over one window of 30 seconds"),
    "decode_step": Quantity("serve", "embed_speed", SECONDS, "one token of one sequence in the decoder"),
    # speculative decoding
    "acceptance_length": Quantity(
        "serve", "acceptance", {"tokens": 1}, "mean tokens that a pass gives, the model's own among them"
    ),
    # collectives and links
    "bus_bandwidth": Quantity("collectives", "collective", BANDWIDTH, "busbw of nccl-tests"),
    "algorithm_bandwidth": Quantity("collectives", "collective", BANDWIDTH, "algbw of nccl-tests"),
    "collective_time": Quantity("collectives", "collective", SECONDS, "time of the collective"),
    "copy_bandwidth": Quantity("collectives", "collective", BANDWIDTH, "one copy over the `link`"),
    "effective_bandwidth": Quantity("collectives", "collective", BANDWIDTH, "what collectives get of the `link`"),
    "memory_copy_bandwidth": Quantity("collectives", "collective", BANDWIDTH, "a copy inside the accelerator's memory"),
}
KINDS: Mapping[str, str] = {name: quantity.kind for name, quantity in QUANTITIES.items()}
VERBS = ("train", "serve", "models", "collectives")
