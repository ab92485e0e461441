"""Which of Megatron-LM's arguments are not estimated, with the values that are harmless, and the names of all."""

from collections.abc import Mapping

from tonnage.interchange.parts.megatron.names import IGNORED, REINFORCEMENT, TUNING
from tonnage.interchange.parts.words import names

# ---- Not estimated, and harmless with these values; switches where they are not given. By the reason.

NOT_ESTIMATED: Mapping[str, Mapping[str, tuple[str, ...]]] = {
    "layers of this kind are not estimated from dimensions: name the model with --model": {
        "attention-output-gate": (),
        "dsa-indexer-n-heads": (),
        "encoder-num-layers": (),
        "encoder-seq-length": (),
        "experimental-attention-variant": (),
        "heterogeneous-layers-config-encoded-json": (),
        "heterogeneous-layers-config-path": (),
        "hybrid-layer-pattern": (),
        "hybrid-override-pattern": (),
        "is-hybrid-model": (),
        "linear-attention-freq": (),
        "mamba-num-heads": (),
        "moe-latent-size": (),
        "moe-shared-expert-gate": (),
        "mtp-hybrid-override-pattern": (),
        "mtp-use-repeated-layer": (),
        "qk-l2-norm": (),
        "spec": (),
        "use-legacy-models": (),
    },
    "FSDP of Megatron and of torch is not estimated: the distributed optimizer is": {
        "enable-full-sharding-in-hsdp": (),
        "fsdp-db-use-persist-buf-on-alloc-fail": (),
        "fsdp-double-buffer": (),
        "fsdp-manual-registration": (),
        "keep-fp8-transpose-cache": (),
        "megatron-fsdp-enable-fine-grained-param-gather": (),
        "megatron-fsdp-max-pool-double-buffer": (),
        "torch-fsdp2-no-reshard-after-forward": (),
        "use-torch-fsdp2": (),
    },
    "it changes what a step holds, and is not estimated": {
        "activation-offload-fraction": ("1.0", "1"),
        "cpu-offloading-num-layers": ("0",),
        "cpu-offloading-retain-pinned-cpu-buffers": (),
        "ddp-param-name-patterns-for-fp32-local-accumulation": (),
        "ddp-reduce-scatter-with-fp32-accumulation": (),
        "decrease-batch-size-if-needed": (),
        "defer-embedding-wgrad-compute": (),
        "delay-offload-until-cuda-graph": (),
        "delay-wgrad-compute": (),
        "delta-offload-bytes-across-pp-ranks": ("0",),
        "disable-jit-fuser": (),
        "disable-mamba-mem-eff-path": (),
        "disable-symmetric-registration": (),
        "distribute-saved-activations": (),
        "ep-overlap-early-attn-memory-release": (),
        "expert-tensor-parallel-num-weight-shards": ("1",),
        "fine-grained-offloading-max-inflight-offloads": (),
        "fp16-lm-cross-entropy": (),
        "fp32-residual-connection": (),
        "freeze-all-layers": (),
        "logits-load-dir": (),
        "logits-save-dir": (),
        "logits-save-top-k": (),
        "logits-save-top-p": (),
        "mamba-training-ssm-states-dtype": (),
        "mlp-chunks-for-training": ("1",),
        "moe-enable-routing-replay": (),
        "moe-expert-rank-capacity-factor": (),
        "moe-paged-stash": (),
        "moe-routing-trace-capture-hidden-states": (),
        "moe-routing-trace-capture-logits": (),
        "moe-routing-trace-dump-weights": (),
        "moe-routing-trace-path": (),
        "mtp-standalone": (),
        "muon-scalar-optimizer": ("adam",),
        "muon-tp-mode": ("blockwise",),
        "no-bias-dropout-fusion": (),
        "no-bias-gelu-fusion": (),
        "no-bias-swiglu-fusion": (),
        "no-gradient-accumulation-fusion": (),
        "no-pin-cpu-grads": (),
        "no-pin-cpu-params": (),
        "no-rope-fusion": (),
        "num-distributed-optimizer-instances": ("1",),
        "optimizer-cuda-graph": (),
        "outer-dp-sharding-strategy": ("no_shard",),
        "overlap-param-gather-with-optimizer-step": (),
        "reuse-grad-buf-for-mxfp8-param-ag": (),
        "step-batch-size-schedule": (),
        "suggested-communication-unit-size": (),
        "tensor-parallel-num-weight-shards": ("1",),
        "use-nccl-ub": (),
        "use-transformer-engine-op-fuser": (),
        "wgrad-deferral-limit": ("0",),
    },
    "its low precision is not estimated": {
        "disable-fp8-wgrad": (),
        "first-last-layers-bf16": (),
        "fp4-param-gather": (),
        "fp4-quantizer-factory": (),
        "fp8-output-proj": (),
        "fp8-quantizer-factory": (),
        "no-fp8-wgrad": (),
        "te-precision-config-file": (),
    },
    "it changes the time of a step, and is not estimated": {
        "dataloader-inter-document-masking": (),
        "deterministic-mode": (),
        "fused-residual-rmsnorm": (),
        "hierarchical-context-parallel-sizes": (),
        "hybrid-context-parallel": (),
        "max-seqlen-per-dp-cp-rank": (),
        "mla-down-proj-fusion": (),
        "moe-mlp-glu-interleave-size": (),
        "moe-ncclep-static-shape": (),
        "moe-ncclep-zero-copy": (),
        "moe-router-force-biased": (),
        "moe-shared-expert-glu-interleave-size": (),
        "moe-shared-expert-overlap": (),
        "moe-single-grouped-bias": (),
        "moe-single-grouped-weight": (),
        "no-overlap-p2p-communication": (),
        "no-scatter-gather-tensors-in-pipeline": (),
        "overlap-dispatch-backward-with-experts-wgrad": (),
        "rampup-batch-size": (),
        "use-fused-weighted-squared-relu": (),
        "use-grouped-gemm-for-dense-mlp": (),
        "use-grouped-gemm-for-shared-expert": (),
        "use-kitchen-attention": (),
        "kitchen-config-file": (),
        "kitchen-recipe-number": (),
        "use-te-activation-func": (),
    },
    "the checkpoint says it, and is not read: give the dimensions and sizes": {
        "use-checkpoint-args": (),
        "use-mp-args-from-checkpoint-args": (),
    },
}

# ---- Details of parts above: where those are not used, these decide nothing.

DETAILS = names(
    """
disable-dsa-indexer-rotate-activation disable-dsa-indexer-scoring-relu dsa-indexer-head-dim
dsa-indexer-k-norm-epsilon dsa-indexer-k-norm-fp32 dsa-indexer-rope-interleaved dsa-indexer-skip-topk-offset
dsa-indexer-topk dsa-indexer-topk-freq dsa-indexer-use-sparse-loss dsa-kernel-backend kitchen-attention-backend
linear-conv-kernel-dim linear-key-head-dim linear-num-key-heads linear-num-value-heads linear-value-head-dim
logits-load-decode-threads logits-load-ignore-errors logits-load-kd-loss-alpha logits-load-msc-prefetch-depth
logits-load-prefetch-factor logits-save-dtype logits-save-top-p-min-k mamba-head-dim mamba-num-groups
mamba-state-dim megatron-fsdp-grad-comm-dtype megatron-fsdp-main-grads-dtype megatron-fsdp-main-params-dtype
moe-paged-stash-buffer-size-factor-cpu moe-paged-stash-buffer-size-factor-cuda moe-paged-stash-page-size
moe-routing-trace-max-training-iters no-dsa-indexer-rotate-activation no-dsa-indexer-scoring-relu
num-layers-at-end-in-bf16 num-layers-at-start-in-bf16
"""
)

# ---- What files call those that the command negates: name -> the argument that is its opposite.

OPPOSITES: Mapping[str, str] = {
    "add-bias-linear": "disable-bias-linear",
    "add-position-embedding": "no-position-embedding",
    "align-grad-reduce": "no-align-grad-reduce",
    "align-param-gather": "no-align-param-gather",
    "apply-rope-fusion": "no-rope-fusion",
    "barrier-with-L1-time": "no-barrier-with-level-1-timing",
    "bert-binary-head": "bert-no-binary-head",
    "bias-dropout-fusion": "no-bias-dropout-fusion",
    "bias-gelu-fusion": "no-bias-gelu-fusion",
    "bias-swiglu-fusion": "no-bias-swiglu-fusion",
    "check-for-nan-in-loss-and-grad": "no-check-for-nan-in-loss-and-grad",
    "ckpt-fully-parallel-save": "no-ckpt-fully-parallel-save",
    "ckpt-load-validate-sharding-integrity": "no-ckpt-load-validate-sharding-integrity",
    "clone-scatter-output-in-embedding": "no-clone-scatter-output-in-embedding",
    "create-attention-mask-in-dataloader": "no-create-attention-mask-in-dataloader",
    "data-sharding": "no-data-sharding",
    "dsa-indexer-rotate-activation": "no-dsa-indexer-rotate-activation",
    "dsa-indexer-scoring-relu": "no-dsa-indexer-scoring-relu",
    "enable-msc": "disable-msc",
    "enable-one-logger": "no-one-logger",
    "flight-recorder-dump-on-timeout": "no-flight-recorder-dump-on-timeout",
    "flight-recorder-extra-dump-on-exec": "no-flight-recorder-extra-dump-on-exec",
    "flight-recorder-include-only-active": "no-flight-recorder-include-only-active",
    "fp8-wgrad": "no-fp8-wgrad",
    "gradient-accumulation-fusion": "no-gradient-accumulation-fusion",
    "gradient-reduce-div-fusion": "no-gradient-reduce-div-fusion",
    "log-loss-scale-to-tensorboard": "no-log-loss-scale-to-tensorboard",
    "manual-gc-eval": "no-manual-gc-eval",
    "masked-softmax-fusion": "no-masked-softmax-fusion",
    "mmap-bin-files": "no-mmap-bin-files",
    "muon-split-qkv": "muon-no-split-qkv",
    "offset-sampling-seed-by-dp-rank": "use-same-sampling-seed-across-dp-ranks",
    "overlap-p2p-comm": "no-overlap-p2p-communication",
    "pad-vocab-size": "no-pad-vocab-size",
    "perform-initialization": "no-initialization",
    "pin-cpu-grads": "no-pin-cpu-grads",
    "pin-cpu-params": "no-pin-cpu-params",
    "scatter-gather-tensors-in-pipeline": "no-scatter-gather-tensors-in-pipeline",
    "stream-ckpt-dequant": "no-stream-ckpt-dequant",
    "strict-fsdp-dtensor-load": "no-strict-fsdp-dtensor-load",
    "tokenizer-sentencepiece-ignore-extra-whitespaces": "no-tokenizer-sentencepiece-ignore-extra-whitespaces",
    "torch-fsdp2-reshard-after-forward": "torch-fsdp2-no-reshard-after-forward",
    "tp-comm-bulk-dgrad": "no-tp-comm-bulk-dgrad",
    "tp-comm-bulk-wgrad": "no-tp-comm-bulk-wgrad",
    "tp-comm-overlap-ag": "no-tp-comm-overlap-ag",
    "tp-comm-overlap-rs": "no-tp-comm-overlap-rs",
    "tp-comm-split-ag": "no-tp-comm-split-ag",
    "tp-comm-split-rs": "no-tp-comm-split-rs",
    "use-gloo-process-groups": "disable-gloo-process-groups",
    "use-layer-wise-param-layout": "no-use-layer-wise-param-layout",
    "use-mamba-mem-eff-path": "disable-mamba-mem-eff-path",
    "use-tokenizer-model-from-checkpoint-args": "no-use-tokenizer-model-from-checkpoint-args",
    "yarn-correction-range-round-to-int": "no-yarn-correction-range-round-to-int",
}

# ---- All of them.

DECIDING = names(
    """
account-for-embedding-in-pipeline-split account-for-loss-in-pipeline-split accumulate-allreduce-grads-in-fp32
add-qkv-bias attention-backend attention-dropout batch-size bf16 checkpoint-activations context-parallel-size
cp-comm-type cross-entropy-fusion-impl cross-entropy-loss-fusion cuda-graph-impl cuda-graph-modules cuda-graph-scope
data-parallel-sharding-strategy decoder-first-pipeline-num-layers decoder-last-pipeline-num-layers
decoder-num-layers decoder-seq-length disable-bias-linear disable-pad-vocab-size enable-cuda-graph exp-avg-dtype
exp-avg-sq-dtype expert-model-parallel-size expert-tensor-parallel-size external-cuda-graph ffn-hidden-size
fine-grained-activation-offloading fp16 fp4-format fp4-recipe fp8-format fp8-param-gather fp8-recipe
global-batch-size grad-reduce-in-bf16 group-query-attention hidden-dropout hidden-size kv-channels kv-lora-rank
main-grads-dtype main-params-dtype make-vocab-size-divisible-by max-position-embeddings micro-batch-size
model-parallel-size moe-enable-deepep moe-expert-capacity-factor moe-ffn-hidden-size moe-flex-dispatcher-backend
moe-grouped-gemm moe-layer-freq moe-layer-recompute moe-pad-expert-input-to-capacity moe-router-enable-expert-bias
moe-router-topk moe-shared-expert-intermediate-size moe-token-dispatcher-type mtp-num-layers multi-latent-attention
no-masked-softmax-fusion no-pad-vocab-size no-position-embedding normalization num-attention-heads num-experts
num-layers num-layers-per-virtual-pipeline-stage num-query-groups num-virtual-stages-per-pipeline-rank num-workers
offload-modules openai-gelu optimizer optimizer-cpu-offload optimizer-offload-fraction overlap-grad-reduce
overlap-moe-expert-parallel-comm overlap-param-gather padded-vocab-size perform-rl-step
pipeline-model-parallel-layout pipeline-model-parallel-size position-embedding-type q-lora-rank qk-head-dim
qk-layernorm qk-pos-emb-head-dim quick-geglu recompute-activations recompute-granularity recompute-method
recompute-modules recompute-num-layers relative-attention-num-buckets seq-length sequence-parallel squared-relu
swiglu tensor-model-parallel-size tokenizer-model tokenizer-type tp-comm-overlap train-iters train-samples
transformer-impl untie-embeddings-and-output-weights use-distributed-optimizer use-flash-attn use-megatron-fsdp
use-precision-aware-optimizer use-rotary-position-embeddings v-head-dim vocab-size window-attn-skip-freq window-size
yaml-cfg
"""
)
KNOWN = frozenset(
    (
        *DECIDING,
        *IGNORED,
        *TUNING,
        *REINFORCEMENT,
        *DETAILS,
        *(name for group in NOT_ESTIMATED.values() for name in group),
    )
)
