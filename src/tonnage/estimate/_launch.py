"""The command that starts an engine as a plan has it."""

from collections.abc import Callable, Mapping
from shlex import quote

from tonnage.architectures import Model
from tonnage.spec import Cluster, ServingPlan
from tonnage.units import GIB

Words = list[str]
HUB = "MODEL"  # where the model's own name is no name of a hub


def launch_command(model: Model, plan: ServingPlan, cluster: Cluster) -> str:
    """One line for a shell, or several where the engine is told by its environment and a file. What the engine's default is, is not said."""
    return WRITERS[plan.engine](_name(model), plan, cluster)


def _name(model: Model) -> str:
    """The model as a hub has it, where it was read from one."""
    return model.name if "/" in model.name else str(model.config.get("_name_or_path") or model.name or HUB)


def _vllm(name: str, plan: ServingPlan, cluster: Cluster) -> str:
    words = [
        "vllm serve",
        quote(name),
        *_sizes("--tensor-parallel-size", "--pipeline-parallel-size", plan),
        f"--max-model-len {plan.context}",
    ]
    groups = plan.attention_data_parallel_size * plan.data_parallel_size
    words += [f"--data-parallel-size {groups}"] if groups > 1 else []
    words += ["--enable-expert-parallel"] if plan.expert_parallel_size > 1 else []
    words += _said(plan, {"kv_cache": "--kv-cache-dtype", "max_num_batched_tokens": "--max-num-batched-tokens", "max_num_seqs": "--max-num-seqs",
                          "gpu_memory_utilization": "--gpu-memory-utilization"}, KV_WORDS)  # fmt: skip
    words += ["--enforce-eager"] if plan.enforce_eager else []
    words += [f"--quantization {plan.weights}"] if plan.weights in ("fp8", "awq", "gptq") else []
    words += _offload(plan)
    if plan.lora_adapters:
        words += ["--enable-lora", f"--max-loras {plan.lora_adapters}", f"--max-lora-rank {plan.lora_rank}"]
    if plan.draft_tokens:
        method = f'"model": "{plan.draft_model}"' if plan.draft_model else '"method": "mtp"'
        words.append(f"--speculative-config '{{{method}, \"num_speculative_tokens\": {plan.draft_tokens}}}'")
    words += _switch(plan.chunked_prefill, "--enable-chunked-prefill", "--no-enable-chunked-prefill")
    words += _switch(plan.prefix_caching, "--enable-prefix-caching", "--no-enable-prefix-caching")
    return " ".join(words)


def _sglang(name: str, plan: ServingPlan, cluster: Cluster) -> str:
    groups = plan.attention_data_parallel_size
    words = ["python -m sglang.launch_server", f"--model-path {quote(name)}", f"--context-length {plan.context}"]
    ranks = plan.tensor_parallel_size * groups
    words += [f"--tp-size {ranks}"] if ranks > 1 else []
    words += [f"--dp-size {groups}", "--enable-dp-attention"] if groups > 1 else []
    words += [f"--dp-size {plan.data_parallel_size}"] if groups == 1 and plan.data_parallel_size > 1 else []
    words += [f"--pp-size {plan.pipeline_parallel_size}"] if plan.pipeline_parallel_size > 1 else []
    words += [f"--ep-size {plan.expert_parallel_size}"] if plan.expert_parallel_size > 1 else []
    words += _said(plan, {"kv_cache": "--kv-cache-dtype", "max_num_batched_tokens": "--chunked-prefill-size", "max_num_seqs": "--max-running-requests",
                          "gpu_memory_utilization": "--mem-fraction-static"}, KV_WORDS)  # fmt: skip
    words += ["--disable-cuda-graph"] if plan.enforce_eager else []
    words += [f"--quantization {plan.weights}"] if plan.weights in ("fp8", "awq", "gptq") else []
    words += _offload(plan)
    if plan.lora_adapters:
        words += ["--enable-lora", f"--max-loras-per-batch {plan.lora_adapters}", f"--max-lora-rank {plan.lora_rank}"]
    if plan.draft_tokens:
        how = f"STANDALONE --speculative-draft-model-path {quote(plan.draft_model)}" if plan.draft_model else "NEXTN"
        words += [f"--speculative-algorithm {how}", f"--speculative-num-draft-tokens {plan.draft_tokens}"]
    words += ["--chunked-prefill-size -1"] if plan.chunked_prefill is False else []
    words += ["--disable-radix-cache"] if plan.prefix_caching is False else []
    return " ".join(words)


def _tensorrt(name: str, plan: ServingPlan, cluster: Cluster) -> str:
    """What trtllm-serve has no option for goes into a file of settings."""
    groups = plan.attention_data_parallel_size
    words = ["trtllm-serve", quote(name), f"--max_seq_len {plan.context}"]
    ranks = plan.tensor_parallel_size * groups
    words += [f"--tp_size {ranks}"] if ranks > 1 else []
    words += [f"--pp_size {plan.pipeline_parallel_size}"] if plan.pipeline_parallel_size > 1 else []
    words += [f"--ep_size {plan.expert_parallel_size}"] if plan.expert_parallel_size > 1 else []
    words += _said(plan, {"max_num_batched_tokens": "--max_num_tokens", "max_num_seqs": "--max_batch_size",
                          "gpu_memory_utilization": "--kv_cache_free_gpu_memory_fraction"}, {})  # fmt: skip
    lines = ["enable_attention_dp: true"] if groups > 1 else []
    dtype = KV_WORDS.get(plan.kv_cache or "", "")
    lines += [f"kv_cache_config: {{dtype: {dtype.split('_')[0]}}}"] if dtype else []
    if plan.draft_tokens:
        drafts = f"decoding_type: MTP, num_nextn_predict_layers: {plan.draft_tokens}"
        if plan.draft_model:
            drafts = f"decoding_type: Draft_Target, max_draft_len: {plan.draft_tokens}, speculative_model: {plan.draft_model}"
        lines.append(f"speculative_config: {{{drafts}}}")
    lines += (
        [f"lora_config: {{max_lora_rank: {plan.lora_rank}, max_loras: {plan.lora_adapters}}}"]
        if plan.lora_adapters
        else []
    )
    lines += ["enable_chunked_prefill: true"] if plan.chunked_prefill else []
    if not lines:
        return " ".join(words)
    written = "\n".join(lines)
    return f"cat > config.yml <<EOF\n{written}\nEOF\n{' '.join(words)} --config config.yml"


def _llama_cpp(name: str, plan: ServingPlan, cluster: Cluster) -> str:
    """Slots share the context that is given: it is that of all of them."""
    layers = "all" if plan.layers_on_accelerator is None else plan.layers_on_accelerator
    words = [
        "llama-server",
        f"-m {_file(name)}",
        f"-c {plan.context * plan.concurrency}",
        f"-np {plan.concurrency}",
        f"-ngl {layers}",
    ]
    words += [f"-ub {plan.max_num_batched_tokens}"] if plan.max_num_batched_tokens else []
    words += ["-sm row"] if plan.tensor_parallel_size > 1 else []
    if plan.kv_cache and plan.kv_cache != "fp16":
        kind = GGML_WORDS.get(plan.kv_cache, plan.kv_cache)
        words.append(f"-ctk {kind} -ctv {kind}")
    words += [f"-ncmoe {plan.expert_layers_on_host}"] if plan.expert_layers_on_host else []
    words += [f"--spec-draft-model {_file(plan.draft_model)}"] if plan.draft_model else []
    words += [f"--spec-draft-n-max {plan.draft_tokens}"] if plan.draft_tokens else []
    words += ["--lora ADAPTER.gguf"] * plan.lora_adapters
    return " ".join(words)


def _ollama(name: str, plan: ServingPlan, cluster: Cluster) -> str:
    """The server's environment, and the lines of a Modelfile."""
    environment = [f"OLLAMA_CONTEXT_LENGTH={plan.context}", f"OLLAMA_NUM_PARALLEL={plan.concurrency}"]
    if plan.kv_cache and plan.kv_cache != "fp16":
        environment += ["OLLAMA_FLASH_ATTENTION=1", f"OLLAMA_KV_CACHE_TYPE={plan.kv_cache}"]
    lines = [f"FROM ./{_file(name)}", f"PARAMETER num_ctx {plan.context}"]
    lines += [f"PARAMETER num_gpu {plan.layers_on_accelerator}"] if plan.layers_on_accelerator else []
    lines += [f"PARAMETER num_batch {plan.max_num_batched_tokens}"] if plan.max_num_batched_tokens else []
    lines += ["ADAPTER ./ADAPTER.gguf"] * plan.lora_adapters
    written = "\n".join(lines)
    return f"{' '.join(environment)} ollama serve &\ncat > Modelfile <<EOF\n{written}\nEOF\nollama create tonnage -f Modelfile && ollama run tonnage"


def _transformers(name: str, plan: ServingPlan, cluster: Cluster) -> str:
    return f"transformers serve {quote(name)}"


def _gpt_fast(name: str, plan: ServingPlan, cluster: Cluster) -> str:
    ranks = plan.tensor_parallel_size
    start = f"torchrun --standalone --nproc_per_node={ranks} generate.py" if ranks > 1 else "python generate.py"
    path = f"checkpoints/{name}/model{'_int8' if plan.weights == 'int8' else '_int4.g32' if plan.weights == 'int4' else ''}.pth"
    words = [start, "--compile", f"--checkpoint_path {quote(path)}"]
    words += (
        [f"--draft_checkpoint_path {quote(f'checkpoints/{plan.draft_model}/model.pth')}"] if plan.draft_model else []
    )
    words += [f"--speculate_k {plan.draft_tokens}"] if plan.draft_tokens else []
    return " ".join(words)


def _neuron(name: str, plan: ServingPlan, cluster: Cluster) -> str:
    """vLLM's plugin: the batch is compiled in."""
    words = ["vllm serve", quote(name), *_sizes("--tensor-parallel-size", "--pipeline-parallel-size", plan)]
    words += [f"--max-model-len {plan.context}", f"--max-num-seqs {plan.concurrency}"]
    return " ".join(["VLLM_NEURON_FRAMEWORK=neuronx-distributed-inference", *words])


def _jetstream(name: str, plan: ServingPlan, cluster: Cluster) -> str:
    each = plan.concurrency / plan.tensor_parallel_size
    words = [
        "python -m MaxText.maxengine_server MaxText/configs/base.yml",
        f"model_name={quote(name)}",
        f"max_target_length={plan.context}",
    ]
    words += [f"per_device_batch_size={each:g}", f"ici_tensor_parallelism={plan.tensor_parallel_size}"]
    return " ".join(words)


def _generic(name: str, plan: ServingPlan, cluster: Cluster) -> str:
    words = ["text-generation-launcher", f"--model-id {quote(name)}", f"--max-total-tokens {plan.context}"]
    words += [f"--num-shard {plan.tensor_parallel_size}"] if plan.tensor_parallel_size > 1 else []
    words += _said(plan, {"kv_cache": "--kv-cache-dtype", "max_num_batched_tokens": "--max-batch-prefill-tokens",
                          "max_num_seqs": "--max-batch-size", "gpu_memory_utilization": "--cuda-memory-fraction"}, KV_WORDS)  # fmt: skip
    return " ".join(words)


KV_WORDS: Mapping[str, str] = {"fp8-e4m3": "fp8_e4m3", "fp8-e5m2": "fp8_e5m2", "nvfp4": "nvfp4", "mxfp8": "mxfp8"}
GGML_WORDS: Mapping[str, str] = {"fp32": "f32", "fp16": "f16"}
WRITERS: Mapping[str, Callable[[str, ServingPlan, Cluster], str]] = {
    "vllm": _vllm, "sglang": _sglang, "tensorrt-llm": _tensorrt, "llama.cpp": _llama_cpp, "ollama": _ollama,
    "transformers": _transformers, "gpt-fast": _gpt_fast, "neuron": _neuron, "jetstream": _jetstream, "generic": _generic,
}  # fmt: skip


def _file(name: str) -> str:
    plain = name.rpartition("/")[2] or HUB
    return quote(plain if plain.endswith(".gguf") else f"{plain}.gguf")


def _sizes(tensor: str, pipeline: str, plan: ServingPlan) -> Words:
    words = [f"{tensor} {plan.tensor_parallel_size}"] if plan.tensor_parallel_size > 1 else []
    return words + ([f"{pipeline} {plan.pipeline_parallel_size}"] if plan.pipeline_parallel_size > 1 else [])


def _said(plan: ServingPlan, flags: Mapping[str, str], kinds: Mapping[str, str]) -> Words:
    """Settings that the plan says; types of the cache that are the engine's default are not."""
    words: Words = []
    for field, flag in flags.items():
        value = getattr(plan, field)
        if field == "kv_cache":
            value = kinds.get(value or "")
        if value is not None:
            words.append(f"{flag} {value:g}" if isinstance(value, float) else f"{flag} {value}")
    return words


def _offload(plan: ServingPlan) -> Words:
    return [f"--cpu-offload-gb {plan.weights_on_host_bytes / GIB:g}"] if plan.weights_on_host_bytes else []


def _switch(value: bool | None, on: str, off: str) -> Words:
    return [] if value is None else [on if value else off]
