"""Names of Megatron-LM's arguments, and what each is to a question: megatron-core 0.17 to 0.19, megatron/training/
arguments.py with the classes of megatron/training/config and TransformerConfig, whose fields are arguments too.

`parts/megatron/run` and `parts/megatron/model` say what the others decide.
"""

from tonnage.interchange.parts.words import names

# ---- How they are written: those without a value, and those with several.

SWITCHES = frozenset(
    names(
        """
account-for-embedding-in-pipeline-split account-for-loss-in-pipeline-split accumulate-allreduce-grads-in-fp32
add-qkv-bias adlr-autoresume allow-ambiguous-pad-tokens apply-layernorm-1p apply-query-key-layer-scaling
apply-residual-connection-post-layernorm apply-wd-to-qk-layernorm async-ckpt-use-cpu-shm async-save
attention-output-gate attention-softmax-in-fp32 auto-detect-ckpt-format batch-invariant-mode bert-no-binary-head
bf16 biencoder-shared-query-context-model cache-mla-latents calc-ft-timeouts calculate-per-token-loss
check-for-large-grads check-for-spiky-loss checkpoint-activations ckpt-assume-constant-structure
ckpt-convert-update-legacy-dist-opt-format ckpt-fully-parallel-load ckpt-fully-parallel-save
cpu-offloading-retain-pinned-cpu-buffers create-all-gather-group cross-entropy-loss-fusion data-parallel-random-init
dataloader-defer-npy-index-mmap dataloader-fast-cache-load dataloader-inter-document-masking
ddp-average-in-collective ddp-pad-buckets-for-high-nccl-busbw ddp-reduce-scatter-with-fp32-accumulation
decode-only-cuda-graphs decrease-batch-size-if-needed defer-embedding-wgrad-compute delay-offload-until-cuda-graph
delay-wgrad-compute deterministic-mode dino-norm-last-layer disable-align-grad-reduce
disable-bf16-reduced-precision-matmul disable-bias-linear disable-ckpt-load-validate-sharding-integrity
disable-clone-scatter-output-in-embedding disable-dsa-indexer-rotate-activation disable-dsa-indexer-scoring-relu
disable-flight-recorder-dump-on-timeout disable-flight-recorder-extra-dump-on-exec
disable-flight-recorder-include-only-active disable-fp8-wgrad disable-gloo-process-groups disable-jit-fuser
disable-log-loss-scale-to-tensorboard disable-mamba-mem-eff-path disable-manual-gc-eval disable-msc
disable-pad-vocab-size disable-straggler-on-startup disable-stream-ckpt-dequant disable-strict-fsdp-dtensor-load
disable-symmetric-registration disable-tokenizer-sentencepiece-ignore-extra-whitespaces disable-tp-comm-bulk-dgrad
disable-tp-comm-bulk-wgrad disable-tp-comm-overlap-ag disable-tp-comm-overlap-rs disable-tp-comm-split-ag
disable-tp-comm-split-rs disable-use-tokenizer-model-from-checkpoint-args dist-ckpt-optim-fully-reshardable
dist-ckpt-save-pre-mcore-014 distrib-optim-fully-reshardable-mem-efficient distribute-saved-activations
dsa-indexer-k-norm-fp32 dsa-indexer-rope-interleaved dsa-indexer-use-sparse-loss enable-chunked-prefill
enable-cuda-graph enable-experimental enable-ft-package enable-full-sharding-in-hsdp enable-msc eod-mask-loss
ep-overlap-early-attn-memory-release exit-on-missing-checkpoint exit-signal-handler
exit-signal-handler-for-dataloader exit-signal-handler-for-training external-cuda-graph fake-process-group fim-data
fine-grained-activation-offloading finetune first-last-layers-bf16 flash-decode flight-recorder-include-stack-trace
fp16 fp16-lm-cross-entropy fp32-residual-connection fp4-param-gather fp8-output-proj fp8-param-gather
freeze-all-layers fsdp-db-use-persist-buf-on-alloc-fail fsdp-double-buffer fsdp-manual-registration full-validation
fused-residual-rmsnorm grad-reduce-in-bf16 group-query-attention grpo-filter-groups-with-same-reward
high-priority-a2a-comm-stream hybrid-context-parallel inference-cuda-graph-all-prefills
inference-disable-ep-consensus inference-disable-triton-nvls-kernels inference-dynamic-batching
inference-dynamic-batching-prefix-caching inference-dynamic-batching-track-generated-token-events
inference-dynamic-batching-track-paused-request-events inference-fuse-tp-communication
inference-moe-disable-fused-quant-kernels inference-rng-tracker inference-text-gen-server-logging
inference-use-synchronous-zmq-collectives inference-wandb-logging init-method-xavier-uniform
init-model-with-meta-device inprocess-empty-cuda-cache inprocess-restart is-hybrid-model keep-fp8-transpose-cache
lazy-mpu-init load-main-params-from-ckpt log-device-memory-used log-energy log-max-attention-logit
log-memory-to-tensorboard log-num-zeros-in-grad log-params-norm log-progress log-straggler log-throughput
log-timers-to-tensorboard log-validation-ppl-to-tensorboard log-world-size-to-tensorboard logits-load-ignore-errors
manual-gc megatron-fsdp-enable-fine-grained-param-gather megatron-fsdp-max-pool-double-buffer mla-down-proj-fusion
mock-data moe-apply-probs-on-input moe-enable-deepep moe-enable-routing-replay moe-grouped-gemm
moe-hybridep-pad-uneven-dispatch-inputs moe-layer-recompute moe-ncclep-static-shape moe-ncclep-zero-copy
moe-pad-expert-input-to-capacity moe-pad-experts-for-cuda-graph-inference moe-paged-stash moe-per-layer-logging
moe-permute-fusion moe-permute-fusion-into-hybridep moe-router-enable-expert-bias moe-router-force-load-balancing
moe-router-fusion moe-router-padding-for-fp8 moe-router-padding-for-quantization moe-router-pre-softmax
moe-routing-trace-capture-hidden-states moe-routing-trace-capture-logits moe-routing-trace-dump-weights
moe-shared-expert-gate moe-shared-expert-overlap moe-single-grouped-bias moe-single-grouped-weight moe-use-upcycling
mtp-detach-heads mtp-standalone mtp-use-repeated-layer multi-latent-attention multiple-validation-sets muon-nesterov
muon-no-split-qkv muon-use-nesterov nccl-all-reduce-for-prefill no-align-grad-reduce no-align-param-gather
no-barrier-with-level-1-timing no-bias-dropout-fusion no-bias-gelu-fusion no-bias-swiglu-fusion
no-check-for-nan-in-loss-and-grad no-ckpt-fully-parallel-save no-ckpt-load-validate-sharding-integrity
no-clone-scatter-output-in-embedding no-create-attention-mask-in-dataloader no-data-sharding
no-dsa-indexer-rotate-activation no-dsa-indexer-scoring-relu no-flight-recorder-dump-on-timeout
no-flight-recorder-extra-dump-on-exec no-flight-recorder-include-only-active no-fp8-wgrad
no-gradient-accumulation-fusion no-gradient-reduce-div-fusion no-inference-disable-ep-consensus
no-inference-dynamic-batching-prefix-caching no-inference-text-gen-server-logging
no-inference-use-synchronous-zmq-collectives no-inference-wandb-logging no-initialization no-load-optim no-load-rng
no-log-loss-scale-to-tensorboard no-manual-gc-eval no-masked-softmax-fusion no-mmap-bin-files no-one-logger
no-overlap-p2p-communication no-pad-vocab-size no-persist-layer-norm no-pin-cpu-grads no-pin-cpu-params
no-position-embedding no-rl-inference-logprobs-is-correction no-rl-offload-inference-model-weights-when-idle
no-rl-partial-rollouts no-rl-persist-cuda-graphs no-rl-skip-bos-token no-rl-training-cuda-graphs
no-rl-use-sequence-packing no-rl-verify-model-weights-swap no-rope-fusion no-save-optim no-save-rng
no-scatter-gather-tensors-in-pipeline no-stream-ckpt-dequant no-strict-fsdp-dtensor-load
no-tokenizer-sentencepiece-ignore-extra-whitespaces no-tp-comm-bulk-dgrad no-tp-comm-bulk-wgrad
no-tp-comm-overlap-ag no-tp-comm-overlap-rs no-tp-comm-split-ag no-tp-comm-split-rs no-use-layer-wise-param-layout
no-use-tokenizer-model-from-checkpoint-args no-yarn-correction-range-round-to-int nvtx-ranges one-logger-async
openai-gelu optimizer-cpu-offload optimizer-cuda-graph output-bert-embeddings overlap-cpu-optimizer-d2h-h2d
overlap-dispatch-backward-with-experts-wgrad overlap-grad-reduce overlap-moe-expert-parallel-comm
overlap-p2p-communication-warmup-flush overlap-param-gather overlap-param-gather-with-optimizer-step
override-opt-param-scheduler perform-rl-step profile pytorch-profiler-collect-callstack
pytorch-profiler-collect-chakra pytorch-profiler-collect-shapes qk-clip qk-l2-norm qk-layernorm quick-geglu
recompute-activations record-memory-history record-shapes replication reset-attention-mask reset-position-ids
retriever-score-scaling reuse-grad-buf-for-mxfp8-param-ag rl-inference-logprobs-is-correction
rl-offload-inference-model-weights-when-idle rl-offload-optimizer-during-inference rl-partial-rollouts
rl-persist-cuda-graphs rl-profile rl-skip-bos-token rl-training-cuda-graphs rl-use-sequence-packing
rl-verify-model-weights-swap rotary-interleaved run-workload-inspector-server sequence-parallel sft skip-train
squared-relu swiglu te-rng-tracker test-mode tokenizer-hf-include-special-tokens
tokenizer-hf-no-include-special-tokens tokenizer-hf-no-use-fast tokenizer-hf-use-fast tokenizer-sentencepiece-legacy
torch-fsdp2-no-reshard-after-forward tp-comm-overlap tp-comm-overlap-rs-dgrad trust-remote-code
untie-embeddings-and-output-weights use-checkpoint-args use-checkpoint-opt-param-scheduler use-cpu-initialization
use-dist-ckpt use-distributed-optimizer use-flash-attn use-fused-weighted-squared-relu
use-grouped-gemm-for-dense-mlp use-grouped-gemm-for-shared-expert use-kitchen-attention use-legacy-models
use-legacy-static-engine use-mcore-models use-megatron-fsdp use-mp-args-from-checkpoint-args use-mup use-nccl-ub
use-one-sent-docs use-persistent-ckpt-worker use-precision-aware-optimizer use-pytorch-profiler
use-ring-exchange-p2p use-rope-scaling use-rotary-position-embeddings use-same-sampling-seed-across-dp-ranks
use-sharp use-te-activation-func use-torch-fsdp2 use-torch-optimizer-for-cpu-offload use-tp-pp-dp-mapping
use-transformer-engine-op-fuser verify-integrity vision-pretraining yarn-correction-range-round-to-int
"""
    )
)
SEVERAL = frozenset(
    names(
        """
cp-comm-type cuda-graph-modules cuda-graph-scope data-path ddp-param-name-patterns-for-fp32-local-accumulation
hierarchical-context-parallel-sizes high-priority-stream-groups iterations-to-skip moe-aux-loss-coeff
moe-router-load-balancing-type mrope-section offload-modules profile-ranks rampup-batch-size recompute-modules
retriever-report-topk-accuracies rl-inference-parsers spec test-data-path tiktoken-special-tokens
tokenizer-special-tokens train-data-path valid-data-path validation-set-names
"""
    )
)

# ---- Neither memory nor time: paths, logs, checkpoints, learning rates, seeds, evaluation, inference in the trainer.

IGNORED = names(
    """
adam-beta1 adam-beta2 adam-eps adlr-autoresume adlr-autoresume-interval allow-ambiguous-pad-tokens app-tag-run-name
app-tag-run-version apply-layernorm-1p apply-wd-to-qk-layernorm async-ckpt-cpu-priority async-ckpt-io-priority
async-ckpt-use-cpu-shm async-save async-strategy auto-detect-ckpt-format batch-invariant-mode bert-embedder-type
bert-load bert-no-binary-head biencoder-projection-dim biencoder-shared-query-context-model block-data-path
cache-mla-latents calc-ft-timeouts calculate-per-token-loss chat-template check-for-large-grads check-for-spiky-loss
check-weight-hash-across-dp-replicas-interval ckpt-assume-constant-structure ckpt-convert-format ckpt-convert-save
ckpt-convert-update-legacy-dist-opt-format ckpt-format ckpt-fully-parallel-load
ckpt-fully-parallel-load-exchange-algo ckpt-fully-parallel-load-process-group ckpt-fully-parallel-save
ckpt-fully-parallel-save-process-group ckpt-step classes-fraction clip-grad config-logger-dir
cuda-graph-warmup-steps data-args-path data-cache-path data-parallel-random-init data-path data-per-class-fraction
dataloader-defer-npy-index-mmap dataloader-fast-cache-load dataloader-type decode-only-cuda-graphs decoupled-lr
decoupled-min-lr dino-bottleneck-size dino-freeze-last-layer dino-head-hidden-size dino-local-crops-number
dino-local-img-size dino-norm-last-layer dino-teacher-temp dino-warmup-teacher-temp dino-warmup-teacher-temp-epochs
disable-ckpt-load-validate-sharding-integrity disable-flight-recorder-dump-on-timeout
disable-flight-recorder-extra-dump-on-exec disable-flight-recorder-include-only-active disable-gloo-process-groups
disable-log-loss-scale-to-tensorboard disable-manual-gc-eval disable-msc disable-straggler-on-startup
disable-stream-ckpt-dequant disable-strict-fsdp-dtensor-load
disable-tokenizer-sentencepiece-ignore-extra-whitespaces disable-use-tokenizer-model-from-checkpoint-args
dist-ckpt-format dist-ckpt-optim-fully-reshardable dist-ckpt-save-pre-mcore-014 dist-ckpt-strictness
dist-ckpt-workers distrib-optim-fully-reshardable-mem-efficient distributed-backend distributed-timeout-minutes
distributed-timeout-seconds-after-init dsa-indexer-loss-coeff dump-param-to-param-group-map
embedding-init-method-std embedding-path enable-chunked-prefill enable-experimental enable-ft-package enable-msc
end-weight-decay eod-mask-loss error-injection-rate error-injection-type eval-global-batch-size eval-interval
eval-iters eval-micro-batch-size evidence-data-path exit-duration-in-mins exit-interval exit-on-missing-checkpoint
exit-signal exit-signal-handler exit-signal-handler-for-dataloader exit-signal-handler-for-training
fake-process-group fault-injector-delay-start-iteration fault-injector-fault-delay
fault-injector-fault-probabilities fault-injector-fault-types fault-injector-mtti-seconds fault-injector-num-ranks
fault-injector-offset-seconds fault-injector-ranks fault-injector-seed fim-data fim-eod-token fim-fragment-rate
fim-middle-token fim-no-prefix fim-pad-token fim-prefix-token fim-rate fim-split-sample fim-spm-rate
fim-suffix-token finetune flash-decode flight-recorder-dump-path flight-recorder-include-stack-trace
flight-recorder-trace-buffer-size fp8-amax-compute-algo fp8-amax-history-len fp8-interval fp8-margin
ft-num-warmup-iters full-validation glu-linear-offset gpu-sniff-test-interval head-lr-mult hysteresis ict-head-size
ict-load img-h img-w indexer-batch-size indexer-log-interval inference-batch-times-seqlen-threshold
inference-coordinator-port inference-cuda-graph-all-prefills inference-cuda-graph-max-tokens
inference-cuda-graph-scope inference-disable-ep-consensus inference-disable-triton-nvls-kernels
inference-dynamic-batching inference-dynamic-batching-async-sched-mode inference-dynamic-batching-block-size
inference-dynamic-batching-buffer-size-gb inference-dynamic-batching-cuda-graph-max-tokens
inference-dynamic-batching-cuda-graph-mixed-prefill-count inference-dynamic-batching-cuda-graph-sizing-distribution
inference-dynamic-batching-logprobs-mode inference-dynamic-batching-mamba-memory-ratio
inference-dynamic-batching-max-requests inference-dynamic-batching-max-tokens
inference-dynamic-batching-num-cuda-graphs inference-dynamic-batching-paused-buffer-size-gb
inference-dynamic-batching-prefix-caching inference-dynamic-batching-prefix-caching-coordinator-policy
inference-dynamic-batching-prefix-caching-eviction-policy inference-dynamic-batching-prefix-caching-mamba-gb
inference-dynamic-batching-prefix-caching-routing-alpha inference-dynamic-batching-sampling-backend
inference-dynamic-batching-track-generated-token-events inference-dynamic-batching-track-paused-request-events
inference-dynamic-batching-unified-memory-level inference-fuse-tp-communication inference-grouped-gemm-backend
inference-logging-step-interval inference-max-requests inference-max-seq-length
inference-moe-disable-fused-quant-kernels inference-moe-token-dispatcher-type inference-rng-tracker inference-shards
inference-text-gen-server-logging inference-use-synchronous-zmq-collectives inference-wandb-logging init-method-std
init-method-xavier-uniform init-model-with-meta-device initial-loss-scale inprocess-active-world-size
inprocess-barrier-timeout inprocess-completion-timeout inprocess-empty-cuda-cache inprocess-granularity
inprocess-hard-timeout inprocess-heartbeat-interval inprocess-heartbeat-timeout inprocess-last-call-wait
inprocess-max-iterations inprocess-monitor-process-interval inprocess-monitor-thread-interval
inprocess-progress-watchdog-interval inprocess-restart inprocess-soft-timeout inprocess-termination-grace-time
iter-per-epoch iterations-to-skip lazy-mpu-init lion-beta1 lion-beta2 load load-main-params-from-ckpt local-rank
log-device-memory-used log-energy log-interval log-max-attention-logit log-memory-interval log-memory-to-tensorboard
log-num-zeros-in-grad log-params-norm log-progress log-straggler log-throughput log-timers-to-tensorboard
log-validation-ppl-to-tensorboard log-world-size-to-tensorboard logging-level loss-scale loss-scale-window lr
lr-decay-iters lr-decay-samples lr-decay-style lr-warmup-fraction lr-warmup-init lr-warmup-iters lr-warmup-samples
lr-wsd-decay-iters lr-wsd-decay-samples lr-wsd-decay-style mamba-inference-conv-states-dtype
mamba-inference-ssm-states-dtype manual-gc manual-gc-interval mask-factor mask-prob mask-type max-tokens-to-oom
memory-snapshot-path merge-file mid-level-dataset-surplus min-loss-scale min-lr mlp-chunks-for-prefill mock-data
moe-aux-loss-coeff moe-input-jitter-eps moe-pad-experts-for-cuda-graph-inference moe-per-layer-logging
moe-router-bias-update-rate moe-router-dtype moe-router-force-load-balancing moe-router-load-balancing-type
moe-router-quantile-balancing-ema moe-router-score-function moe-router-topk-scaling-factor moe-upcycling-granularity
moe-use-upcycling moe-z-loss-coeff mscale mscale-all-dim mtp-detach-heads mtp-loss-scaling-factor
multiple-validation-sets muon-coefficient-type muon-extra-scale-factor muon-fp32-matmul-prec muon-momentum
muon-nesterov muon-no-split-qkv muon-num-ns-steps muon-scale-mode muon-use-nesterov mup-attn-scale-power
mup-base-head-dim mup-base-hidden-size mup-embedding-mult mup-output-mult mup-width-mult nccl-all-reduce-for-prefill
nccl-communicator-config-path no-barrier-with-level-1-timing no-check-for-nan-in-loss-and-grad
no-ckpt-fully-parallel-save no-ckpt-load-validate-sharding-integrity no-create-attention-mask-in-dataloader
no-data-sharding no-flight-recorder-dump-on-timeout no-flight-recorder-extra-dump-on-exec
no-flight-recorder-include-only-active no-inference-disable-ep-consensus
no-inference-dynamic-batching-prefix-caching no-inference-text-gen-server-logging
no-inference-use-synchronous-zmq-collectives no-inference-wandb-logging no-initialization no-load-optim no-load-rng
no-log-loss-scale-to-tensorboard no-manual-gc-eval no-mmap-bin-files no-one-logger no-save-optim no-save-rng
no-stream-ckpt-dequant no-strict-fsdp-dtensor-load no-tokenizer-sentencepiece-ignore-extra-whitespaces
no-use-tokenizer-model-from-checkpoint-args no-weight-decay-cond-type no-yarn-correction-range-round-to-int
non-persistent-ckpt-type non-persistent-global-ckpt-dir non-persistent-local-ckpt-algo non-persistent-local-ckpt-dir
non-persistent-save-interval norm-epsilon null-tokenizer-eod-id null-tokenizer-pad-id num-channels num-classes
num-dataset-builder-threads num-speculative-tokens nvtx-ranges object-storage-cache-path one-logger-async
one-logger-project one-logger-run-name onnx-safe output-bert-embeddings override-ckpt-iteration
override-opt-param-scheduler patch-dim per-dataset-sequences-path per-split-data-args-path persistent-save-interval
phase-transition-iterations pipeline-model-parallel-comm-backend pretrained-checkpoint profile profile-ranks
profile-step-end profile-step-start pytorch-profiler-collect-callstack pytorch-profiler-collect-chakra
pytorch-profiler-collect-shapes qk-clip-alpha qk-clip-threshold query-in-block-prob record-memory-history
record-shapes refit-method relative-attention-max-distance replication replication-factor replication-jump
rerun-mode reset-attention-mask reset-position-ids result-rejected-tracker-filename retriever-report-topk-accuracies
retriever-score-scaling rope-scaling-factor rope-type rotary-base rotary-interleaved rotary-percent
rotary-scaling-factor rotary-seq-len-interpolation-factor run-workload-inspector-server sample-rate save
save-activations-interval save-dgrads-interval save-interval save-params-interval save-retain-interval
save-tokens-per-expert-interval save-wgrads-interval seed sft sft-tokenizer-prompt-format sgd-momentum
short-seq-prob skip-train split start-eval-at-iter start-weight-decay straggler-ctrlr-port straggler-minmax-count
swin-backbone-type symmetric-ar-type te-rng-tracker tensorboard-dir tensorboard-log-interval tensorboard-queue-size
test-data-path test-mode tiktoken-num-special-tokens tiktoken-pattern tiktoken-special-tokens timing-log-level
timing-log-option titles-data-path tokenizer-hf-include-special-tokens tokenizer-hf-no-include-special-tokens
tokenizer-hf-no-use-fast tokenizer-hf-use-fast tokenizer-metadata tokenizer-sentencepiece-legacy
tokenizer-special-tokens tp-comm-bootstrap-backend train-data-path train-sync-interval trust-remote-code
use-checkpoint-opt-param-scheduler use-cpu-initialization use-dist-ckpt use-legacy-static-engine use-mcore-models
use-mup use-one-sent-docs use-persistent-ckpt-worker use-pytorch-profiler use-rope-scaling
use-same-sampling-seed-across-dp-ranks valid-data-path validation-set-names verify-integrity vision-backbone-type
vision-pretraining vision-pretraining-type vocab-extra-ids vocab-file wandb-entity wandb-exp-name wandb-project
wandb-save-dir warmup weight-decay weight-decay-incr-style yarn-beta-fast yarn-beta-slow
yarn-correction-range-round-to-int yarn-original-max-position-embeddings
"""
)

# ---- Tuning of kernels and of communication, whose effect is smaller than the error band.

TUNING = names(
    """
activation-func-clamp-value apply-query-key-layer-scaling apply-residual-connection-post-layernorm
attention-softmax-in-fp32 create-all-gather-group ddp-average-in-collective ddp-bucket-size ddp-num-buckets
ddp-pad-buckets-for-high-nccl-busbw disable-align-grad-reduce disable-bf16-reduced-precision-matmul
disable-clone-scatter-output-in-embedding disable-tp-comm-bulk-dgrad disable-tp-comm-bulk-wgrad
disable-tp-comm-overlap-ag disable-tp-comm-overlap-rs disable-tp-comm-split-ag disable-tp-comm-split-rs
empty-unused-memory-level flash-attention-version high-priority-a2a-comm-stream high-priority-stream-groups
microbatch-group-size-per-virtual-pipeline-stage min-offloaded-tensor-size moe-apply-probs-on-input
moe-deepep-num-sms moe-flex-dispatcher-num-sms moe-hybridep-num-blocks-permute moe-hybridep-num-blocks-unpermute
moe-hybridep-num-sms moe-hybridep-num-sms-preprocessing moe-hybridep-pad-uneven-dispatch-inputs moe-permute-fusion
moe-permute-fusion-into-hybridep moe-router-fusion moe-router-group-topk moe-router-num-groups
moe-router-padding-for-fp8 moe-router-padding-for-quantization moe-router-pre-softmax moe-token-drop-policy
mrope-section no-align-grad-reduce no-align-param-gather no-clone-scatter-output-in-embedding
no-gradient-reduce-div-fusion no-persist-layer-norm no-rope-freq no-tp-comm-bulk-dgrad no-tp-comm-bulk-wgrad
no-tp-comm-overlap-ag no-tp-comm-overlap-rs no-tp-comm-split-ag no-tp-comm-split-rs no-use-layer-wise-param-layout
overlap-cpu-optimizer-d2h-h2d overlap-p2p-communication-warmup-flush qk-clip sharp-enabled-group softmax-type
tp-comm-overlap-cfg tp-comm-overlap-rs-dgrad use-ring-exchange-p2p use-sharp use-torch-optimizer-for-cpu-offload
use-tp-pp-dp-mapping
"""
)

# ---- Reinforcement learning in Megatron-LM: beside --perform-rl-step, which is not estimated, they decide nothing.

REINFORCEMENT = names(
    """
grpo-clamp-eps-lower grpo-clamp-eps-upper grpo-entropy-term-weight grpo-filter-groups-with-same-reward
grpo-group-size grpo-iterations grpo-kl-beta grpo-prompts-per-step langrl-env-config
no-rl-inference-logprobs-is-correction no-rl-offload-inference-model-weights-when-idle no-rl-partial-rollouts
no-rl-persist-cuda-graphs no-rl-skip-bos-token no-rl-training-cuda-graphs no-rl-use-sequence-packing
no-rl-verify-model-weights-swap rl-consumption-granularity rl-default-temperature rl-default-top-k rl-default-top-p
rl-generation-batch-size rl-generation-lag rl-importance-sampling-truncation-coef
rl-inference-expert-model-parallel-size rl-inference-expert-tensor-model-parallel-size
rl-inference-logprobs-is-correction rl-inference-model-unified-memory-level rl-inference-parsers
rl-inference-pipeline-model-parallel-size rl-inference-tensor-model-parallel-size rl-kv-cache-management-mode
rl-num-parallel-generation-batches rl-num-parallel-generations rl-offload-inference-model-weights-when-idle
rl-offload-optimizer-during-inference rl-parallel-generation-tasks rl-partial-rollouts rl-persist-cuda-graphs
rl-profile rl-profile-dir rl-prompts-per-eval rl-sequence-packing-algo rl-sequence-packing-max-sequences-per-bin
rl-skip-bos-token rl-submission-granularity rl-training-cuda-graphs rl-use-sequence-packing
rl-verify-model-weights-swap
"""
)
