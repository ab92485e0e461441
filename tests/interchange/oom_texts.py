"""Out-of-memory reports in the wording of tools and versions, each with its tool, phase and cause.

The sentences are made from the tools' format strings; names, paths and numbers are our own.
"""

from typing import NamedTuple


class Report(NamedTuple):
    """A report. `name`: the tool and version that words it so."""

    name: str
    text: str
    tool: str
    phase: str
    cause: str


def torch_oom(
    tried="2.00 GiB",
    total="79.15 GiB",
    free="1.02 GiB",
    this="78.10 GiB",
    allocated="76.20 GiB",
    pieces="310.40 MiB",
    others="",
    error="torch.OutOfMemoryError",
    device="CUDA",
):
    """PyTorch 2.1 and newer."""
    own = f"Including non-PyTorch memory, this process has {this} memory in use. " if this else ""
    return (
        f"{error}: {device} out of memory. Tried to allocate {tried}. GPU 0 has a total capacity of {total} of which "
        f"{free} is "
        f"free. {others}{own}Of the allocated memory {allocated} is allocated by PyTorch, and {pieces} is reserved "
        f"by PyTorch "
        "but unallocated. If reserved but unallocated memory is large try setting PYTORCH_CUDA_ALLOC_CONF="
        "expandable_segments:True to avoid fragmentation."
    )


def old_oom(tried="1.16 GiB", allocated="21.90 GiB", free="1.10 GiB", reserved="22.00 GiB", total="23.69 GiB"):
    """PyTorch 1.5 to 2.0."""
    return (
        f"RuntimeError: CUDA out of memory. Tried to allocate {tried} (GPU 0; {total} total capacity; {allocated} "
        f"already "
        f"allocated; {free} free; {reserved} reserved in total by PyTorch) If reserved memory is >> allocated memory "
        f"try "
        "setting max_split_size_mb to avoid fragmentation."
    )


def traceback(*frames, error=None):
    """Frames are (path, function, source line)."""
    lines = ["Traceback (most recent call last):"]
    for path, function, source in frames:
        lines += [f'  File "/opt/venv/lib/python3.11/site-packages/{path}", line 101, in {function}', f"    {source}"]
    return "\n".join([*lines, error or torch_oom()])


TRAINER = ("transformers/trainer.py", "training_step", "loss = self.compute_loss(model, inputs)")
CALL = ("torch/nn/modules/module.py", "_call_impl", "return forward_call(*args, **kwargs)")
ATTENTION = ("transformers/models/llama/modeling_llama.py", "forward", "hidden_states = self.mlp(hidden_states)")
VLLM = "(EngineCore_DP0 pid=4711) ERROR 10-25 13:08:43 [core.py:708] "


def prefixed(prefix, text):
    return "\n".join(prefix + line for line in text.splitlines())


REPORTS = [
    # ---- PyTorch alone, and the frameworks around it
    Report("torch 2.7, forward", traceback(CALL, ATTENTION), "transformers", "forward", "activations"),
    Report(
        "torch 2.1 with the typo, a process of a container",
        traceback(
            CALL,
            ("train.py", "forward", "return self.mlp(x)"),
            error="torch.cuda.OutOfMemoryError: CUDA out of memory. Tried to allocate 112.00 MiB. GPU 0 has a total "
            "capacty of "
            "23.65 GiB of which 61.44 MiB is free. Process 20711 has 23.58 GiB memory in use. Of the allocated "
            "memory 22.80 GiB "
            "is allocated by PyTorch, and 301.10 MiB is reserved by PyTorch but unallocated.",
        ),
        "pytorch",
        "forward",
        "activations",
    ),
    Report(
        "torch 1.13",
        traceback(CALL, ("run.py", "forward", "x = x + y"), error=old_oom()),
        "pytorch",
        "forward",
        "activations",
    ),
    Report(
        "torch 1.4, cached",
        "RuntimeError: CUDA out of memory. Tried to allocate 1024.00 KiB (GPU 0; 11.17 GiB total capacity; 10.50 GiB "
        "already "
        "allocated; 576.00 KiB free; 30.96 MiB cached)",
        "pytorch",
        "unknown",
        "unknown",
    ),
    Report(
        "torch 2.10 on ROCm",
        traceback(CALL, ATTENTION, error=torch_oom(device="HIP")),
        "transformers",
        "forward",
        "activations",
    ),
    Report(
        "torch 2.9 on XPU",
        traceback(
            ("torch/_tensor.py", "backward", "torch.autograd.backward("),
            error="torch.OutOfMemoryError: XPU out of memory. Tried to allocate 20.00 MiB. GPU 0 has a total "
            "capacity of "
            "11.93 GiB of which 5.62 MiB is free. Of the allocated memory 10.93 GiB is allocated by PyTorch, and "
            "94.57 MiB is "
            "reserved by PyTorch but unallocated.",
        ),
        "pytorch",
        "backward",
        "activations",
    ),
    Report(
        "torch on MPS",
        traceback(
            CALL,
            ATTENTION,
            error="RuntimeError: MPS backend out of memory (MPS allocated: 17.36 GB, other allocations: 613.56 MB, "
            "max allowed: "
            "18.13 GB). Tried to allocate 192.00 MB on private pool. Use PYTORCH_MPS_HIGH_WATERMARK_RATIO=0.0 to "
            "disable upper "
            "limit for memory allocations (may cause system failure).",
        ),
        "transformers",
        "forward",
        "activations",
    ),
    Report(
        "torch on Ascend",
        traceback(
            CALL,
            ("models/gpt.py", "forward", "x = self.attn(x)"),
            error="RuntimeError: NPU out of memory. Tried to allocate 2.00 GiB (NPU 3; 60.97 GiB total capacity; "
            "57.10 GiB "
            "already allocated; 57.10 GiB current active; 1.20 GiB free; 58.40 GiB reserved in total by PyTorch) If "
            "reserved "
            "memory is >> allocated memory try setting max_split_size_mb to avoid fragmentation.",
        ),
        "pytorch",
        "forward",
        "activations",
    ),
    Report(
        "optimizer's first step",
        traceback(
            ("accelerate/optimizer.py", "step", "self.optimizer.step(closure)"),
            ("torch/optim/adamw.py", "_init_group", "state['exp_avg'] = torch.zeros_like("),
        ),
        "accelerate",
        "optimizer step",
        "optimizer states",
    ),
    Report(
        "bitsandbytes' optimizer",
        traceback(("bitsandbytes/optim/optimizer.py", "init_state", 'state["state1"] = self.get_state_buffer(p)')),
        "pytorch",
        "optimizer step",
        "optimizer states",
    ),
    Report(
        "transformers, backward",
        traceback(
            TRAINER,
            ("accelerate/accelerator.py", "backward", "loss.backward(**kwargs)"),
            ("torch/autograd/graph.py", "_engine_run_backward", "return Variable._execution_engine.run_backward("),
        ),
        "transformers",
        "backward",
        "activations",
    ),
    Report(
        "transformers, logits in fp32",
        traceback(TRAINER, ("transformers/loss/loss_utils.py", "ForCausalLMLoss", "logits = logits.float()")),
        "transformers",
        "loss",
        "logits",
    ),
    Report(
        "TRL, GRPO",
        traceback(
            (
                "trl/trainer/grpo_trainer.py",
                "_get_per_token_logps_and_entropies",
                "logps = selective_log_softmax(logits, ids)",
            ),
            ("trl/trainer/utils.py", "selective_log_softmax", "logsumexp_values = torch.stack("),
        ),
        "trl",
        "loss",
        "logits",
    ),
    Report(
        "transformers, loading",
        traceback(
            ("transformers/modeling_utils.py", "from_pretrained", "model = cls._load_pretrained_model("),
            (
                "transformers/modeling_utils.py",
                "caching_allocator_warmup",
                "_ = torch.empty(int(byte_count // factor),",
            ),
        ),
        "transformers",
        "loading weights",
        "weights",
    ),
    Report(
        "model.to",
        traceback(
            ("torch/nn/modules/module.py", "to", "return self._apply(convert)"),
            ("torch/nn/modules/module.py", "convert", "return t.to("),
        ),
        "pytorch",
        "loading weights",
        "weights",
    ),
    Report(
        "DDP's buckets",
        traceback(("torch/nn/parallel/distributed.py", "_ddp_init_helper", "self.reducer = dist.Reducer(")),
        "pytorch",
        "loading weights",
        "gradients",
    ),
    Report(
        "saving with ZeRO 3",
        traceback(
            ("transformers/trainer.py", "_save_checkpoint", "self.save_model(output_dir, _internal_call=True)"),
            ("deepspeed/runtime/engine.py", "_zero3_consolidated_16bit_state_dict", "with GatheredParameters(params):"),
        ),
        "deepspeed",
        "checkpoint saving",
        "weights",
    ),
    Report(
        "a growing cache in generate",
        traceback(
            ("transformers/generation/utils.py", "generate", "result = self._sample("),
            ("transformers/cache_utils.py", "update", "self.keys = torch.cat([self.keys, key_states], dim=-2)"),
        ),
        "transformers",
        "serving",
        "kv cache",
    ),
    Report(
        "fragmentation, new wording",
        traceback(CALL, ATTENTION, error=torch_oom(tried="3.00 GiB", allocated="60.10 GiB", pieces="15.90 GiB")),
        "transformers",
        "forward",
        "fragmentation",
    ),
    Report(
        "fragmentation, old wording",
        traceback(CALL, ("m.py", "forward", "y"), error=old_oom("2.00 GiB", "14.00 GiB", "0.50 GiB", "22.40 GiB")),
        "pytorch",
        "forward",
        "fragmentation",
    ),
    Report(
        "other processes that are listed",
        torch_oom(
            this="3.14 GiB",
            allocated="2.92 GiB",
            pieces="34.62 MiB",
            free="1.20 GiB",
            total="47.40 GiB",
            others="Process 3053273 has 29.04 GiB memory in use. Process 3120922 has 14.02 GiB memory in use. ",
        ),
        "pytorch",
        "unknown",
        "another process",
    ),
    Report(
        "another process that nothing lists (ROCm)",
        "torch.OutOfMemoryError: HIP out of memory. Tried to allocate 978.00 MiB. GPU 0 has a total capacity of "
        "15.98 GiB of "
        "which 630.00 MiB is free. Of the allocated memory 0 bytes is allocated by PyTorch, and 0 bytes is reserved "
        "by PyTorch "
        "but unallocated.",
        "pytorch",
        "unknown",
        "another process",
    ),
    Report(
        "the driver's own words",
        traceback(
            CALL, ATTENTION, error="RuntimeError: CUDA error: out of memory\nCUDA kernel errors might be asynchronously"
        ),
        "transformers",
        "forward",
        "activations",
    ),
    Report(
        "cuBLAS",
        traceback(
            CALL,
            ("torch/nn/modules/linear.py", "forward", "return F.linear(input, self.weight, self.bias)"),
            error="RuntimeError: CUDA error: CUBLAS_STATUS_ALLOC_FAILED when calling `cublasCreate(handle)`",
        ),
        "pytorch",
        "forward",
        "activations",
    ),
    Report(
        "cuDNN",
        traceback(
            CALL,
            ("torch/nn/modules/conv.py", "forward", "return self._conv_forward(input, self.weight, self.bias)"),
            error="RuntimeError: cuDNN error: CUDNN_STATUS_ALLOC_FAILED",
        ),
        "pytorch",
        "forward",
        "activations",
    ),
    Report(
        "NCCL",
        "ng30903:3063028:3066152 [3] include/alloc.h:178 NCCL WARN Cuda failure 'out of memory'\n"
        "ng30903:3063028:3066152 [3] include/alloc.h:185 NCCL WARN Failed to CUDA calloc 6291456 bytes",
        "pytorch",
        "communication",
        "communication buffers",
    ),
    Report(
        "Megatron-LM, loss",
        "Theoretical memory footprints: weight and optimizer=46038.57 MB\n"
        "[Rank 0] (after 1 iterations) memory (MB) | allocated: 46012.1 | max allocated: 70110.0 | reserved: 71200.0 "
        "| max "
        "reserved: 71200.0\n"
        + traceback(
            (
                "megatron/core/models/gpt/gpt_model.py",
                "compute_language_model_loss",
                "loss = fused_cross_entropy(labels, logits)",
            ),
            (
                "megatron/core/fusions/fused_cross_entropy.py",
                "fused_vocab_parallel_cross_entropy",
                "return _VocabParallel",
            ),
        ),
        "megatron",
        "loss",
        "logits",
    ),
    Report(
        "Megatron-LM, optimizer",
        traceback(
            ("megatron/core/optimizer/optimizer.py", "step_with_ready_grads", "self.optimizer.step()"),
            ("torch/optim/adam.py", "step", "self._init_group(group, params_with_grad)"),
        ),
        "megatron",
        "optimizer step",
        "optimizer states",
    ),
    Report(
        "DeepSpeed, states of ZeRO",
        "[2025-09-01 10:00:00,123] [INFO] [utils.py:781:see_memory_usage] Before initializing optimizer states\n"
        "[2025-09-01 10:00:00,124] [INFO] [utils.py:782:see_memory_usage] MA 28.37 GB         Max_MA 28.37 GB        "
        " CA 29.1 GB "
        "        Max_CA 29 GB\n"
        + traceback(
            ("deepspeed/runtime/zero/stage_1_and_2.py", "initialize_optimizer_states", "self.optimizer.step()"),
            error=old_oom("7.10 GiB", "28.40 GiB", "1.10 GiB", "29.10 GiB", "31.75 GiB"),
        ),
        "deepspeed",
        "optimizer step",
        "optimizer states",
    ),
    Report(
        "Axolotl",
        prefixed(
            "[rank2]: ",
            traceback(
                ("axolotl/train.py", "train", "trainer.train(resume_from_checkpoint=resume_from_checkpoint)"),
                TRAINER,
                ("torch/autograd/graph.py", "_engine_run_backward", "return Variable._execution_engine.run_backward("),
            ),
        ),
        "axolotl",
        "backward",
        "activations",
    ),
    Report(
        "LLaMA-Factory",
        traceback(
            ("llamafactory/train/sft/trainer.py", "compute_loss", "return super().compute_loss(model, inputs, *args)"),
            ("transformers/models/qwen2/modeling_qwen2.py", "forward", "logits = self.lm_head(hidden_states)"),
        ),
        "llamafactory",
        "loss",
        "logits",
    ),
    Report(
        "Unsloth",
        "==((====))==  Unsloth 2025.9: Fast Qwen3 patching.\n"
        + traceback(("unsloth/models/_utils.py", "training_step", "return self._old_training_step()"), CALL, ATTENTION),
        "unsloth",
        "forward",
        "activations",
    ),
    Report(
        "torchtitan",
        "[titan] 2025-09-01 10:00:00,000 - root - INFO - step:  1  loss: 12.21  memory: 76.10GiB(96.1%)  tps: 3,011\n"
        + traceback(
            ("torchtitan/trainer.py", "train_step", "self.optimizers.step()"),
            ("torch/optim/optimizer.py", "wrapper", "out = func(*args, **kwargs)"),
        ),
        "torchtitan",
        "optimizer step",
        "optimizer states",
    ),
    # ---- vLLM
    Report(
        "vLLM 0.7, nothing for the cache",
        "INFO 02-26 09:54:02 model_runner.py:1115] Loading model weights took 5.2032 GB\n"
        "INFO 02-26 09:54:05 worker.py:267] model weights take 5.20GiB; non_torch_memory takes 0.03GiB; PyTorch "
        "activation peak "
        "memory takes 1.42GiB; the rest of the memory reserved for KV Cache is -1.05GiB.\n"
        "[rank0]: ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization` when "
        "initializing the engine.",
        "vllm",
        "cache allocation",
        "kv cache",
    ),
    Report(
        "vLLM 0.33, nothing for the cache",
        VLLM + "ValueError: No available memory for the cache blocks. Try increasing `gpu_memory_utilization` when "
        "initializing "
        "the engine (this flag also controls CPU memory reservation on the CPU backend, despite its name).",
        "vllm",
        "cache allocation",
        "kv cache",
    ),
    Report(
        "vLLM 0.11, one request is too long",
        VLLM
        + "ValueError: To serve at least one request with the models's max seq len (131072), (16.00 GiB KV cache is "
        "needed, "
        "which is larger than the available KV cache memory (5.12 GiB). Based on the available memory, the estimated "
        "maximum "
        "model length is 41936. Try increasing `gpu_memory_utilization` or decreasing `max_model_len`.",
        "vllm",
        "cache allocation",
        "context too long",
    ),
    Report(
        "vLLM 0.6, one request is too long",
        "ValueError: The model's max seq len (32768) is larger than the maximum number of tokens that can be stored "
        "in KV cache "
        "(17648). Try increasing `gpu_memory_utilization` or decreasing `max_model_len` when initializing the engine.",
        "vllm",
        "cache allocation",
        "context too long",
    ),
    Report(
        "vLLM, another process at start-up",
        VLLM + "ValueError: Free memory on device cuda:0 (30.1/79.15 GiB) on startup is less than desired GPU memory "
        "utilization "
        "(0.92, 72.82 GiB). Decrease GPU memory utilization or reduce GPU memory used by other processes.",
        "vllm",
        "loading weights",
        "another process",
    ),
    Report(
        "vLLM, another process leaves while it profiles",
        "AssertionError: Error in memory profiling. Initial free memory 30.1 GiB, current free memory 41.2 GiB. This "
        "happens when "
        "other processes sharing the same container release GPU memory while vLLM is profiling during initialization.",
        "vllm",
        "profiling",
        "another process",
    ),
    Report(
        "vLLM, graphs",
        prefixed(
            VLLM,
            traceback(
                ("vllm/v1/worker/gpu_worker.py", "compile_or_warm_up_model", "self.model_runner.capture_model()"),
                ("vllm/v1/worker/gpu_model_runner.py", "capture_model", "self._capture_cudagraphs("),
                CALL,
            ),
        ),
        "vllm",
        "graph capture",
        "cuda graphs",
    ),
    Report(
        "vLLM, profiling run",
        prefixed(
            "(Worker_TP3 pid=99) ERROR 10-25 13:08:43 [multiproc_executor.py:1] ",
            traceback(
                ("vllm/v1/worker/gpu_worker.py", "determine_available_memory", "self.model_runner.profile_run()"),
                ("vllm/v1/worker/gpu_model_runner.py", "_dummy_run", "outputs = model("),
                CALL,
            ),
        ),
        "vllm",
        "profiling",
        "activations",
    ),
    Report(
        "vLLM, sampler",
        prefixed(
            VLLM,
            traceback(("vllm/v1/worker/gpu_model_runner.py", "_dummy_sampler_run", "sampler_output = self.sampler(")),
        )
        + f"\n{VLLM}RuntimeError: CUDA out of memory occurred when warming up sampler with 1024 dummy requests. "
        f"Please try "
        "lowering `max_num_seqs` or `gpu_memory_utilization` when initializing the engine.",
        "vllm",
        "profiling",
        "logits",
    ),
    Report(
        "vLLM, loading",
        prefixed(
            VLLM,
            traceback(
                ("vllm/v1/worker/gpu_worker.py", "load_model", "self.model_runner.load_model()"),
                ("vllm/model_executor/layers/linear.py", "create_weights", "weight = Parameter(torch.empty("),
            ),
        ),
        "vllm",
        "loading weights",
        "weights",
    ),
    Report(
        "vLLM, at run time",
        prefixed(
            VLLM,
            traceback(
                ("vllm/v1/worker/gpu_model_runner.py", "execute_model", "model_output = self._model_forward("),
                CALL,
            ),
        ),
        "vllm",
        "serving",
        "activations",
    ),
    # ---- SGLang
    Report(
        "SGLang, start-up: the share is too small",
        "[2025-10-22 06:31:40 TP0] Load weight end. type=Qwen3ForCausalLM, dtype=torch.bfloat16, avail mem=18.10 GB, "
        "mem "
        "usage=61.10 GB.\n[2025-10-22 06:31:49 TP0] RuntimeError: Not enough memory. Please try to increase "
        "--mem-fraction-static."
        " Current value: mem_fraction_static=0.7",
        "sglang",
        "cache allocation",
        "kv cache",
    ),
    Report(
        "SGLang, run time",
        prefixed(
            "[2025-07-07 19:00:30 DP4 TP4] ",
            traceback(
                (
                    "sglang/srt/managers/tp_worker.py",
                    "forward_batch_generation",
                    "logits_output = self.model_runner.forward(",
                ),
                ("sglang/srt/model_executor/model_runner.py", "forward_extend", "return self.model.forward("),
                CALL,
            ),
        ),
        "sglang",
        "serving",
        "activations",
    ),
    Report(
        "SGLang, graphs",
        prefixed(
            "[2024-10-22 06:31:49 TP0] ",
            traceback(
                (
                    "sglang/srt/model_executor/cuda_graph_runner.py",
                    "capture",
                    "= self.capture_one_batch_size(bs, forward)",
                ),
                CALL,
            ),
        )
        + "\nException: Capture cuda graph failed: CUDA out of memory. Tried to allocate 1.00 GiB.\nPossible "
        "solutions:\n1. set "
        "--mem-fraction-static to a smaller value (e.g., 0.8 or 0.7)",
        "sglang",
        "graph capture",
        "cuda graphs",
    ),
    Report(
        "SGLang, the pool is full",
        "[2025-03-20 10:00:00 TP0] RuntimeError: Decode out of memory. Try to lower your batch size.\nTry to "
        "allocate 148 tokens."
        "\nAvailable tokens: 20",
        "sglang",
        "serving",
        "kv cache",
    ),
    # ---- TensorRT-LLM
    Report(
        "TensorRT-LLM 1.0, cache",
        "[07/08/2025-19:47:15] [TRT-LLM] [RANK 1] [E] Failed to initialize executor on rank 1: Executor creation "
        "failed due to "
        "insufficient GPU memory.\n\nThe following component could not be created: KV cache\nTotal GPU memory (GiB): "
        "140.06\n"
        "Free GPU memory before component creation attempt (GiB): 108.86\n\nPreviously created components and free "
        "GPU memory "
        "before/after creation (GiB):\nModel: 139.55 / 110.70\n",
        "tensorrt-llm",
        "cache allocation",
        "kv cache",
    ),
    Report(
        "TensorRT-LLM 1.0, model",
        "RuntimeError: Executor creation failed due to insufficient GPU memory.\n\nThe following component could not "
        "be created: "
        "Model\nTotal GPU memory (GiB): 79.11\nFree GPU memory before component creation attempt (GiB): 78.30",
        "tensorrt-llm",
        "loading weights",
        "weights",
    ),
    # ---- llama.cpp and Ollama
    Report(
        "llama.cpp, weights",
        "load_tensors: loading model tensors, this can take a while... (mmap = true)\n"
        "ggml_backend_cuda_buffer_type_alloc_buffer: allocating 39979.48 MiB on device 0: cudaMalloc failed: out of "
        "memory\n"
        "alloc_tensor_range: failed to allocate CUDA0 buffer of size 41921523712\n"
        "llama_model_load: error loading model: unable to allocate CUDA0 buffer",
        "llama-cpp",
        "loading weights",
        "weights",
    ),
    Report(
        "llama.cpp, cache",
        "load_tensors:        CUDA0 model buffer size = 19900.10 MiB\n"
        "ggml_backend_cuda_buffer_type_alloc_buffer: allocating 16384.00 MiB on device 0: cudaMalloc failed: out of "
        "memory\n"
        "llama_kv_cache_init: failed to allocate buffer for kv cache\n"
        "llama_new_context_with_model: llama_kv_cache_init() failed for self-attention cache",
        "llama-cpp",
        "cache allocation",
        "kv cache",
    ),
    Report(
        "llama.cpp, compute buffers",
        "1.06.520.077 E ggml_backend_cuda_buffer_type_alloc_buffer: allocating 51748.72 MiB on device 1: cudaMalloc "
        "failed: out of "
        "memory\n1.06.520.084 E ggml_gallocr_reserve_n_impl: failed to allocate CUDA1 buffer of size 54262464512\n"
        "1.06.520.086 E graph_reserve: failed to allocate compute buffers",
        "llama-cpp",
        "profiling",
        "activations",
    ),
    Report(
        "llama.cpp on Metal",
        "ggml_metal_graph_compute: command buffer 0 failed with status 5\nerror: Insufficient Memory "
        "(00000008:kIOGPUCommandBufferCallbackErrorOutOfMemory)",
        "llama-cpp",
        "serving",
        "activations",
    ),
    Report(
        "Ollama, memory of the system",
        "Error: model requires more system memory (164.8 GiB) than is available (13.4 GiB)",
        "ollama",
        "host",
        "host memory",
    ),
    Report(
        "Ollama, the card",
        "Aug 14 16:27:00 box ollama[3110]: time=2024-08-14T16:27:00.222+08:00 level=INFO source=memory.go:309 "
        'msg="offload to cuda" layers.requested=-1 layers.model=33 layers.offload=33 memory.available="[21.3 GiB]" '
        'memory.required.full="22.4 GiB" memory.required.kv="4.5 GiB" memory.weights.total="15.9 GiB"\n'
        "Aug 14 16:27:02 box ollama[3110]: ggml_backend_cuda_buffer_type_alloc_buffer: allocating 16322.00 MiB on "
        "device 0: "
        "cudaMalloc failed: out of memory\n"
        "Aug 14 16:27:02 box ollama[3110]: llama_model_load: error loading model: unable to allocate CUDA0 buffer",
        "ollama",
        "loading weights",
        "weights",
    ),
    # ---- the host
    Report(
        "the kernel",
        "Out of memory: Killed process 1440763 (python) total-vm:87033376kB, anon-rss:60356340kB, file-rss:0kB",
        "host",
        "host",
        "host memory",
    ),
    Report(
        "Slurm",
        "Loading checkpoint shards:  40%|####      | 12/30\nslurmstepd: error: Detected 1 oom_kill event in "
        "StepId=1130.0. Some of "
        "the step tasks have been OOM Killed.",
        "transformers",
        "host",
        "host memory",
    ),
    Report(
        "Kubernetes",
        "    State:          Terminated\n      Reason:       OOMKilled\n      Exit Code:    137",
        "host",
        "host",
        "host memory",
    ),
    Report("a shell", "Loading checkpoint shards:   0%|\nKilled", "transformers", "host", "host memory"),
    Report("docker", "trainer-1 exited with code 137", "host", "host", "host memory"),
    Report(
        "torchrun",
        "E0725 12:00:00.123000 4711 torch/distributed/elastic/multiprocessing/api.py:869] failed (exitcode: -9) "
        "local_rank: 0",
        "host",
        "host",
        "host memory",
    ),
    Report(
        "PyTorch on the CPU",
        traceback(
            ("transformers/modeling_utils.py", "from_pretrained", "state_dict = load_state_dict(file)"),
            error="RuntimeError: [enforce fail at alloc_cpu.cpp:117] err == 0. DefaultCPUAllocator: can't allocate "
            "memory: you "
            "tried to allocate 234881024 bytes. Error code 12 (Cannot allocate memory)",
        ),
        "transformers",
        "host",
        "host memory",
    ),
    Report(
        "pinned memory",
        traceback(
            ("deepspeed/runtime/zero/stage3.py", "_create_fp32_partitions", "pinned = tensor.pin_memory()"),
            error="RuntimeError: cudaHostAlloc(&ptr, size) failed: out of memory",
        ),
        "deepspeed",
        "host",
        "host memory",
    ),
    Report(
        "a data loader's shared memory",
        "ERROR: Unexpected bus error encountered in worker. This might be caused by insufficient shared memory (shm).\n"
        "RuntimeError: DataLoader worker (pid 4211) is killed by signal: Bus error. It is possible that dataloader's "
        "workers are "
        "out of shared memory. Please try to raise your shared memory limit.",
        "host",
        "host",
        "shared memory",
    ),
    Report(
        "NCCL's shared memory",
        "ubuntu:9621:9691 [6] misc/shmutils.cc:71 NCCL WARN Error: failed to extend /dev/shm/nccl-fjwOOB to 5967876 "
        "bytes",
        "host",
        "host",
        "shared memory",
    ),
    Report(
        "Ray",
        "(raylet) 1 Workers (tasks / actors) killed due to memory pressure (OOM)\nray.exceptions.OutOfMemoryError: "
        "Task was "
        "killed due to the node running low on memory.",
        "host",
        "host",
        "host memory",
    ),
    # ---- others
    Report(
        "a checkpoint that cannot be mapped",
        "RuntimeError: unable to mmap 9976576152 bytes from file </models/model-00001.safetensors>: Cannot allocate "
        "memory (12)",
        "host",
        "host",
        "host memory",
    ),
    Report(
        "a data loader's file in shared memory",
        "RuntimeError: unable to mmap 512 bytes from file </torch_4711_12>: Cannot allocate memory (12)",
        "host",
        "host",
        "shared memory",
    ),
    Report(
        "Windows",
        "OSError: [WinError 1455] The paging file is too small for this operation to complete.",
        "host",
        "host",
        "host memory",
    ),
    Report(
        "DeepSpeed's launcher",
        "[launch.py:325:sigkill_handler] [...] exits with return code = -9",
        "host",
        "host",
        "host memory",
    ),
    Report(
        "Lightning on a cluster",
        "Process finished with exit code 137 (interrupted by signal 9: SIGKILL)",
        "host",
        "host",
        "host memory",
    ),
    Report(
        "bitsandbytes: no room on the GPU",
        "ValueError: Some modules are dispatched on the CPU or the disk. Make sure you have enough GPU RAM to fit "
        "the quantized "
        'model.\n  File "/opt/venv/transformers/quantizers/quantizer_bnb_4bit.py"',
        "pytorch",
        "loading weights",
        "weights",
    ),
    Report(
        "bitsandbytes: a paged optimizer",
        "Error out of memory at line 380 in file /src/csrc/pythonInterface.cpp",
        "pytorch",
        "unknown",
        "unknown",
    ),
    Report(
        "TensorRT",
        "[TRT-LLM] [E] Requested amount of GPU memory (8589934592 bytes) could not be allocated.",
        "tensorrt-llm",
        "loading weights",
        "weights",
    ),
    Report(
        "TGI",
        "RuntimeError: Not enough memory to handle 4096 prefill tokens. You need to decrease "
        "`--max-batch-prefill-tokens`",
        "tgi",
        "profiling",
        "activations",
    ),
    Report(
        "JAX on a GPU",
        "jaxlib.xla_extension.XlaRuntimeError: RESOURCE_EXHAUSTED: Out of memory while trying to allocate "
        "17179869184 bytes.",
        "jax",
        "unknown",
        "unknown",
    ),
    Report(
        "JAX on a TPU",
        "RESOURCE_EXHAUSTED: Ran out of memory in memory space hbm. Used 18.31G of 15.75G hbm. Exceeded hbm capacity "
        "by 2.56G.",
        "jax",
        "forward",
        "activations",
    ),
    Report(
        "a traceback of rich, as torchtune and Lightning print it",
        "╭───────────────── Traceback (most recent call last) ──────────────────╮\n"
        "│ /opt/venv/lib/python3.11/site-packages/torchtune/training/x.py:31 in │\n"
        "│ train                                                                │\n"
        "│ ❱ 818 │   current_loss.backward()                                    │\n"
        "│ /opt/venv/lib/python3.11/site-packages/torch/_tensor.py:522 in       │\n"
        "│ backward                                                             │\n"
        "╰──────────────────────────────────────────────────────────────────────╯\n" + torch_oom(),
        "torchtune",
        "backward",
        "activations",
    ),
    Report(
        "all ranks on one GPU",
        "[09/17/2025-21:24:19] [TRT-LLM] [RANK 2] [E] Error executing load_single_module with args "
        "('model.layers.9', Linear()): "
        + torch_oom(
            this="1.12 GiB",
            allocated="880.00 MiB",
            total="22.07 GiB",
            free="20.62 MiB",
            others="Process 451 has 1.16 GiB memory in use. Process 450 has 19.69 GiB memory in use. ",
        ),
        "tensorrt-llm",
        "loading weights",
        "another process",
    ),
    Report(
        "Megatron of 2021, a line of its traceback",
        '  File "/data/megatron/model/gpt_model.py", line 60, in post_language_model_processing\n'
        "    loss = mpu.vocab_parallel_cross_entropy(output.float(), labels)\n"
        + old_oom("9.33 GiB", "5.17 GiB", "4.48 GiB", "5.28 GiB", "10.76 GiB"),
        "megatron",
        "loss",
        "logits",
    ),
]
