"""In which phase memory ran out: by the functions of the traceback, else by the last step that the log shows."""

import re

from msgspec import Struct

from tonnage.documents.interchange.diagnose import Cause, Phase
from tonnage.interchange.diagnose.log import Line, Log

MOST_FRAMES = 400  # lines of a traceback
START = "Traceback (most recent call last)"


class _Functions(Struct, frozen=True):
    """What a traceback of a phase has: names of functions, and else parts of paths and of source lines."""

    phase: Phase
    names: str
    others: str = ""

    @property
    def pattern(self) -> re.Pattern[str]:
        functions = rf"in (?:{'|'.join(self.names.split())})\b"
        return re.compile(f"{functions}|{self.others}" if self.others else functions)


# The most telling first.
_FUNCTIONS = (
    _Functions(
        "checkpoint saving",
        r"""
        save_checkpoint _save_checkpoint save_pretrained save_model _save_model save_state consolidate_\w+
        _zero3_consolidated\w* get_model_state_dict _full_post_state_dict_hook save_16bit_model
        """,
        r"torch\.save\(",
    ),
    _Functions(
        "graph capture",
        r"""
        capture capture_model _capture_cudagraphs? capture_one_batch_size _capture_graph graph_capture init_cuda_graphs
        _capture_generation_cuda_graphs _run_cuda_graph_warmup init_device_graphs capture_\w*graph\w*
        """,
        r"cuda_graph_runner\.py|torch\.cuda\.graph\(",
    ),
    _Functions(
        "cache allocation",
        r"""
        initialize_from_config initialize_kv_caches? _initialize_kv_caches _allocate_kv_cache(?:_tensors)?
        allocate_kv_cache initialize_kv_cache(?:_tensors)? initialize_cache init_memory_pool init_cache_engine
        _init_cache_engine _create_buffers _create_kv_cache_manager _init_pools
        """,
        r"cache_engine\.py|mem_cache/memory_pool",
    ),
    _Functions(
        "profiling",
        r"""
        profile_run determine_available_memory determine_num_available_blocks profile_num_available_blocks _dummy_run
        _dummy_sampler_run _dummy_pooler_run profile_max_num_token _profile_multimodal _?flashinfer_autotune
        prealloc_symmetric_memory_pool
        """,
    ),
    _Functions(
        "optimizer step",
        r"""
        _init_group optimizer_step _optimizer_step initialize_optimizer_states init_state _take_model_step
        step_with_ready_grads _create_fp32_partitions _multi_tensor_adamw?
        """,
        r"/optim/(?:adam|adamw|sgd|optimizer|_multi_tensor|adafactor|nadam)\w*\.py|exp_avg|/bitsandbytes/optim/|"
        r"optimizer\.step\(",
    ),
    _Functions(
        "loading weights",
        r"""
        from_pretrained load_model load_weights _load_pretrained_model _load_state_dict_into\w* load_state_dict
        initialize_model create_weights set_module_tensor_to_device load_single_module process_weights_after_loading
        load_checkpoint_in_model dispatch_model _move_missing_keys\w* caching_allocator_warmup _post_init_method
        materialize_\w+ get_model setup_model setup_model_and_optimizer _init_model _ddp_init_helper
        """,
        r'module\.py", line \d+, in (?:convert|cuda|to)\b|model(?:_runner)?\.(?:to|cuda)\(|'
        r"executing load_single_module",
    ),
    _Functions(
        "backward",
        r"""
        backward run_backward _engine_run_backward _run_backward backward_step custom_backward backward_epilogue
        """,
        r"\.backward\(|autograd/graph\.py",
    ),
    _Functions(
        "loss",
        r"""
        cross_entropy \w*vocab_parallel_cross_entropy log_softmax ForCausalLMLoss fixed_cross_entropy loss_func
        compute_log_probs calculate_log_probs\w* selective_log_softmax entropy_from_logits get_batch_logps
        _get_per_token_logps\w* compute_language_model_loss calculate_logits_max
        """,
        r"cross_entropy\(|logits\.float\(\)|logits = .{0,40}(?:lm_head|\.float\(|\.to\()|lm_head\(|F\.cross_entropy|"
        r"logits_processor\.py",
    ),
    _Functions(
        "serving",
        r"""
        execute_model forward_extend forward_decode run_batch forward_batch_generation _forward_raw
        forward_thread_func_? generate _sample _generate prefill _prefill event_loop_\w+ _executor_loop\w* _forward_step
        """,
    ),
    _Functions("forward", "forward _call_impl _wrapped_call_impl forward_step training_step _forward_impl checkpoint"),
)
_PHASES = tuple((functions.phase, functions.pattern) for functions in _FUNCTIONS)
_LOSS = next(pattern for phase, pattern in _PHASES if phase == "loss")
_GROWING_CACHE = re.compile(r"cache_utils\.py|in update_cache\b|past_key_value|key_cache\[")
_REDUCER = re.compile(
    r"in (?:_ddp_init_helper|_build_reducer|allocate_grad\w*|_allocate_\w*grad\w*)\b|param_and_grad_buffer"
)

# The last of these lines says what came next. None: a step of training of which the part is not known.
_STEPS: tuple[tuple[str, Phase | None], ...] = (
    ("Starting to load model", "loading weights"),
    ("Loading checkpoint shards", "loading weights"),
    ("checkpoint shards:", "loading weights"),
    ("Load weight begin", "loading weights"),
    ("loading model tensors", "loading weights"),
    ("Load weight end", "cache allocation"),
    ("Model loading took", "profiling"),
    ("Loading model weights took", "profiling"),
    ("model weights take", "cache allocation"),
    ("Available KV cache memory", "cache allocation"),
    ("KV cache size:", "graph capture"),
    ("# GPU blocks: ", "graph capture"),
    ("Memory pool end", "graph capture"),
    ("graph begin", "graph capture"),
    ("Capturing CUDA graph", "graph capture"),
    ("Capturing the model for CUDA graphs", "graph capture"),
    ("Graph capturing finished", "serving"),
    ("Application startup complete", "serving"),
    ("fired up and ready to roll", "serving"),
    ("server is listening on", "serving"),
    ("Decode batch", "serving"),
    ("Prefill batch", "serving"),
    ("Avg prompt throughput", "serving"),
    ("efore initializing optimizer states", "optimizer step"),
    ("saving checkpoint at iteration", "checkpoint saving"),
    ("Saving model checkpoint to", "checkpoint saving"),
    ("successfully saved checkpoint", None),
    ("Running training", None),
    ("elapsed time per iteration", None),
    ("{'loss':", None),
)
# Of a failure that leaves the cause open: what grows in the phase.
GROWS: dict[Phase, Cause] = {
    "loading weights": "weights",
    "optimizer step": "optimizer states",
    "forward": "activations",
    "backward": "activations",
    "loss": "logits",
    "graph capture": "cuda graphs",
    "cache allocation": "kv cache",
    "profiling": "activations",
    "serving": "activations",
    "checkpoint saving": "weights",
    "communication": "communication buffers",
    "host": "host memory",
    "unknown": "unknown",
}


def traceback_of(log: Log, index: int, rank: str) -> list[Line]:
    """The traceback that ends in this line, in its order; nothing where there is none."""
    lines: list[Line] = []
    for _, line in log.before(index, rank, MOST_FRAMES):
        lines.append(line)
        if START in line.text:
            return lines[::-1]
    frames = [line for line in lines if 'File "' in line.text]
    return lines[::-1] if frames else []  # its start is cut off


def phase_of(frames: str, log: Log, index: int, serves: bool) -> Phase:
    """The phase, of the frames of a traceback or of the steps above it."""
    for phase, pattern in _PHASES:
        if pattern.search(frames):
            return "serving" if serves and phase in ("forward", "loss") else phase
    return last_step(log, index) or "unknown"


def last_step(log: Log, index: int) -> Phase | None:
    """What came after the last step that the log shows above a line."""
    latest, latest_phase = -1, None
    end = log.start_of(index)
    for text, phase in _STEPS:
        at = log.text.rfind(text, 0, end)
        if at > latest:
            latest, latest_phase = at, phase
    return latest_phase


def cause_of(phase: Phase, frames: str) -> Cause:
    """What grows in the phase, with what the frames tell more."""
    if phase in ("forward", "serving") and _GROWING_CACHE.search(frames):
        return "kv cache"
    if phase in ("serving", "profiling") and _LOSS.search(frames):
        return "logits"
    if phase == "loading weights" and _REDUCER.search(frames):
        return "gradients"
    return GROWS[phase]
