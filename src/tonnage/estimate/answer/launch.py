"""The command that starts an engine as a plan has it."""

from collections.abc import Callable, Mapping
from json import dumps
from shlex import quote

from msgspec import Struct

from tonnage.architectures import Model
from tonnage.estimate.answer.launch_model import HUB, draft_place, file_name, loaded, place, to_be_named
from tonnage.estimate.answer.launch_nodes import Spread, elsewhere, mpi, sglang_nodes, spread, vllm_nodes
from tonnage.kernel.units import GIB
from tonnage.runtimes import serving_runtime
from tonnage.spec import Cluster, ServingPlan

Words = list[str]


class Start(Struct, frozen=True, kw_only=True):
    """What is started: `name` of the checkpoint, `words` with which its weights are loaded, where it runs. `notes`: what the writer has to tell besides."""

    model: Model
    plan: ServingPlan
    cluster: Cluster
    name: str
    words: Words
    spread: Spread
    notes: Words

    @property
    def draft(self) -> str:
        return draft_place(self.plan)

    @property
    def predicts(self) -> bool:
        """Whether the model has layers of its own that draft."""
        return any(branch.kind == "draft" for branch in self.model.branches)


def launch_command(model: Model, plan: ServingPlan, cluster: Cluster) -> str:
    """One line for a shell, or several where the engine is told by its environment and a file, and comments on what it leaves to the user.
    What the engine's default is, is not said."""
    found = loaded(model, plan, cluster.accelerator)
    start = Start(model=model, plan=plan, cluster=cluster, name=found.name, words=list(found.words), spread=spread(model, plan, cluster),
                  notes=list(found.notes))  # fmt: skip
    variable = (
        serving_runtime(plan.engine, plan.engine_version).longer_variable
        if plan.context > (model.context or plan.context)
        else ""
    )
    command = f"{variable} {WRITERS[plan.engine](start)}".lstrip()
    notes = [*start.notes, *to_be_named(plan.engine, start.name, start.draft if start.draft in command else "")]
    return "\n".join([command, *(f"# {note}" for note in notes)])


def _vllm(start: Start) -> str:
    plan = start.plan
    words = [
        "vllm serve",
        quote(start.name),
        *_sizes("--tensor-parallel-size", "--pipeline-parallel-size", plan),
        f"--max-model-len {plan.context}",
    ]
    groups = plan.attention_data_parallel_size * start.spread.copies
    words += [f"--data-parallel-size {groups}"] if groups > 1 else []
    nodes, notes = vllm_nodes(plan, start.spread, int(groups))
    start.notes.extend(notes)
    words += nodes
    words += ["--enable-expert-parallel"] if plan.expert_parallel_size > 1 else []
    words += _said(plan, {"kv_cache": "--kv-cache-dtype", "max_num_batched_tokens": "--max-num-batched-tokens", "max_num_seqs": "--max-num-seqs",
                          "gpu_memory_utilization": "--gpu-memory-utilization"}, KV_WORDS)  # fmt: skip
    words += ["--enforce-eager"] if plan.enforce_eager else []
    words += start.words
    words += _offload(plan)
    if plan.lora_adapters:
        words += ["--enable-lora", f"--max-loras {plan.lora_adapters}", f"--max-lora-rank {plan.lora_rank}"]
    if plan.draft_tokens:
        words.append(f"--speculative-config {quote(_vllm_drafts(start))}")
    words += _switch(plan.chunked_prefill, "--enable-chunked-prefill", "--no-enable-chunked-prefill")
    words += _switch(plan.prefix_caching, "--enable-prefix-caching", "--no-enable-prefix-caching")
    return " ".join(words)


def _vllm_drafts(start: Start) -> str:
    """vllm/config/speculative.py: SpeculativeConfig."""
    said: dict[str, str | int] = (
        {"model": start.draft} if start.draft else {"method": "mtp" if start.predicts else "ngram"}
    )
    said["num_speculative_tokens"] = start.plan.draft_tokens
    if "method" in said and not start.predicts:
        said["prompt_lookup_max"] = LOOKED_UP
    return dumps(said)


def _sglang(start: Start) -> str:
    plan = start.plan
    groups = plan.attention_data_parallel_size
    words = ["python -m sglang.launch_server", f"--model-path {quote(start.name)}", f"--context-length {plan.context}"]
    ranks = plan.tensor_parallel_size * groups
    words += [f"--tp-size {ranks}"] if ranks > 1 else []
    words += [f"--dp-size {groups}", "--enable-dp-attention"] if groups > 1 else []
    words += [f"--dp-size {start.spread.copies}"] if start.spread.copies > 1 else []
    words += [f"--pp-size {plan.pipeline_parallel_size}"] if plan.pipeline_parallel_size > 1 else []
    words += [f"--ep-size {plan.expert_parallel_size}"] if plan.expert_parallel_size > 1 else []
    nodes, notes = sglang_nodes(start.spread)
    start.notes.extend(notes)
    words += nodes
    words += _said(plan, {"kv_cache": "--kv-cache-dtype", "max_num_batched_tokens": "--chunked-prefill-size", "max_num_seqs": "--max-running-requests",
                          "gpu_memory_utilization": "--mem-fraction-static"}, KV_WORDS)  # fmt: skip
    words += ["--disable-cuda-graph"] if plan.enforce_eager else []
    words += start.words
    words += _offload(plan)
    if plan.lora_adapters:
        words += ["--enable-lora", f"--max-loras-per-batch {plan.lora_adapters}", f"--max-lora-rank {plan.lora_rank}"]
    words += _sglang_drafts(start)
    words += ["--chunked-prefill-size -1"] if plan.chunked_prefill is False else []
    words += ["--disable-radix-cache"] if plan.prefix_caching is False else []
    return " ".join(words)


def _sglang_drafts(start: Start) -> Words:
    """sglang/srt/arg_groups/speculative_hook.py: a chain's steps, and one token more, which is that before the drafts."""
    tokens = start.plan.draft_tokens
    if not tokens:
        return []
    checked = f"--speculative-num-draft-tokens {tokens + 1}"
    if not start.draft and not start.predicts:
        return ["--speculative-algorithm NGRAM", checked, "--speculative-ngram-max-bfs-breadth 1"]
    model = f"STANDALONE --speculative-draft-model-path {quote(start.draft)}" if start.draft else "NEXTN"
    return [
        f"--speculative-algorithm {model}", f"--speculative-num-steps {tokens}", "--speculative-eagle-topk 1", checked,
    ]  # fmt: skip


def _tensorrt(start: Start) -> str:
    """What trtllm-serve has no option for goes into a file of settings."""
    plan = start.plan
    groups = plan.attention_data_parallel_size
    before, nodes, notes = mpi(start.spread, start.cluster)
    start.notes.extend(notes)
    words = [f"{before}trtllm-serve", quote(start.name), f"--max_seq_len {plan.context}", *nodes]
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
        lines.append(f"speculative_config: {{{_tensorrt_drafts(start)}}}")
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


def _tensorrt_drafts(start: Start) -> str:
    tokens = start.plan.draft_tokens
    if start.draft:
        return f"decoding_type: Draft_Target, max_draft_len: {tokens}, speculative_model: {start.draft}"
    return (
        f"decoding_type: MTP, num_nextn_predict_layers: {tokens}"
        if start.predicts
        else f"decoding_type: NGram, max_draft_len: {tokens}"
    )


def _llama_cpp(start: Start) -> str:
    """Slots share the context that is given: it is that of all of them."""
    plan = start.plan
    start.notes.extend(elsewhere(start.spread, plan.engine))
    layers = "all" if plan.layers_on_accelerator is None else plan.layers_on_accelerator
    words = [
        "llama-server",
        f"-m {_file(start)}",
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
    if plan.draft_tokens:
        own = "--spec-type draft-mtp" if start.predicts else "--spec-type ngram-simple"
        words += [f"--spec-draft-model {quote(_gguf(start.draft))}" if start.draft else own]
        words += [f"--spec-draft-n-max {plan.draft_tokens}"]
    words += ["--lora ADAPTER.gguf"] * plan.lora_adapters
    return " ".join(words)


def _ollama(start: Start) -> str:
    """The server's environment, and the lines of a Modelfile."""
    plan = start.plan
    start.notes.extend(elsewhere(start.spread, plan.engine))
    environment = [f"OLLAMA_CONTEXT_LENGTH={plan.context}", f"OLLAMA_NUM_PARALLEL={plan.concurrency}"]
    if plan.kv_cache and plan.kv_cache != "fp16":
        environment += ["OLLAMA_FLASH_ATTENTION=1", f"OLLAMA_KV_CACHE_TYPE={plan.kv_cache}"]
    lines = [
        f"FROM {_file(start) if start.name.startswith('/') else './' + _file(start)}",
        f"PARAMETER num_ctx {plan.context}",
    ]
    lines += [f"PARAMETER num_gpu {plan.layers_on_accelerator}"] if plan.layers_on_accelerator else []
    lines += [f"PARAMETER num_batch {plan.max_num_batched_tokens}"] if plan.max_num_batched_tokens else []
    lines += ["ADAPTER ./ADAPTER.gguf"] * plan.lora_adapters
    written = "\n".join(lines)
    return f"{' '.join(environment)} ollama serve &\ncat > Modelfile <<EOF\n{written}\nEOF\nollama create tonnage -f Modelfile && ollama run tonnage"


def _transformers(start: Start) -> str:
    plan = start.plan
    start.notes.extend(elsewhere(start.spread, plan.engine))
    return " ".join(["transformers serve", quote(start.name), *start.words])


def _gpt_fast(start: Start) -> str:
    plan = start.plan
    start.notes.extend(elsewhere(start.spread, plan.engine))
    ranks = plan.tensor_parallel_size
    run = f"torchrun --standalone --nproc_per_node={ranks} generate.py" if ranks > 1 else "python generate.py"
    path = f"checkpoints/{start.name}/model{'_int8' if plan.weights == 'int8' else '_int4.g32' if plan.weights == 'int4' else ''}.pth"
    words = [run, "--compile", f"--checkpoint_path {quote(path)}"]
    words += [f"--draft_checkpoint_path {quote(f'checkpoints/{start.draft}/model.pth')}"] if plan.draft_model else []
    words += [f"--speculate_k {plan.draft_tokens}"] if plan.draft_tokens else []
    return " ".join(words)


def _neuron(start: Start) -> str:
    """vLLM's plugin: the batch is compiled in."""
    plan = start.plan
    words = ["vllm serve", quote(start.name), *_sizes("--tensor-parallel-size", "--pipeline-parallel-size", plan)]
    words += [f"--max-model-len {plan.context}", f"--max-num-seqs {plan.concurrency}"]
    start.notes.extend(elsewhere(start.spread, plan.engine))
    return " ".join(["VLLM_NEURON_FRAMEWORK=neuronx-distributed-inference", *words])


def _jetstream(start: Start) -> str:
    plan = start.plan
    each = plan.concurrency / plan.tensor_parallel_size
    words = [
        "python -m MaxText.maxengine_server MaxText/configs/base.yml",
        f"model_name={quote(HUB if place(start.model) == HUB else start.model.name)}",
        f"max_target_length={plan.context}",
    ]
    words += [f"per_device_batch_size={each:g}", f"ici_tensor_parallelism={plan.tensor_parallel_size}", *start.words]
    start.notes.append(
        f"MaxText has its own names of models, and reads a checkpoint that was converted for it: load_parameters_path=PATH, made from {start.name}."
    )
    start.notes.extend(elsewhere(start.spread, plan.engine))
    return " ".join(words)


def _generic(start: Start) -> str:
    plan = start.plan
    start.notes.extend(elsewhere(start.spread, plan.engine))
    words = [
        "text-generation-launcher",
        f"--model-id {quote(start.name)}",
        f"--max-total-tokens {plan.context}",
        *start.words,
    ]
    words += [f"--num-shard {plan.tensor_parallel_size}"] if plan.tensor_parallel_size > 1 else []
    words += _said(plan, {"kv_cache": "--kv-cache-dtype", "max_num_batched_tokens": "--max-batch-prefill-tokens",
                          "max_num_seqs": "--max-batch-size", "gpu_memory_utilization": "--cuda-memory-fraction"}, KV_WORDS)  # fmt: skip
    return " ".join(words)


KV_WORDS: Mapping[str, str] = {"fp8-e4m3": "fp8_e4m3", "fp8-e5m2": "fp8_e5m2", "nvfp4": "nvfp4", "mxfp8": "mxfp8"}
GGML_WORDS: Mapping[str, str] = {"fp32": "f32", "fp16": "f16"}
LOOKED_UP = 4  # of an n-gram: the longest that is searched for in the prompt
WRITERS: Mapping[str, Callable[[Start], str]] = {
    "vllm": _vllm, "sglang": _sglang, "tensorrt-llm": _tensorrt, "llama.cpp": _llama_cpp, "ollama": _ollama,
    "transformers": _transformers, "gpt-fast": _gpt_fast, "neuron": _neuron, "jetstream": _jetstream, "generic": _generic,
}  # fmt: skip


def _file(start: Start) -> str:
    return quote(file_name(start.name, start.model, start.plan))


def _gguf(name: str) -> str:
    return name if name.endswith(".gguf") else f"{name.rpartition('/')[2]}.gguf"


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
