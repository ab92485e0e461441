"""Names of OpenRLHF's arguments: openrlhf 0.11.2, openrlhf/cli/train_{ppo_ray,sft,dpo,rm}.py."""

from tonnage.interchange.parts.words import names

KNOWN = frozenset(
    names(
        """
    actor.adam.betas actor.adam.eps actor.adam.lr actor.adam.weight-decay actor.aux-loss-coef actor.dual-clip
    actor.entropy-coef actor.eps-clip actor.eps-clip-low-high actor.freeze-visual-encoder
    actor.gradient-checkpointing-enable actor.gradient-checkpointing-reentrant actor.loss-agg-mode
    actor.lr-scheduler actor.lr-warmup-ratio actor.max-norm actor.min-lr-ratio actor.model-name-or-path
    actor.muon.lr actor.muon.momentum actor.muon.nesterov actor.muon.no-nesterov actor.muon.ns-steps
    actor.num-gpus-per-node actor.num-nodes actor.optim actor.policy-loss-type adam.betas adam.eps adam.lr
    adam.weight-decay algo.advantage.estimator algo.advantage.gamma algo.advantage.is-correction-gating
    algo.advantage.is-correction-level algo.advantage.is-correction-mode algo.advantage.is-correction-threshold
    algo.advantage.lambd algo.advantage.no-std-norm algo.dynamic-filtering-enable algo.dynamic-filtering-range
    algo.kl.estimator algo.kl.horizon algo.kl.init-coef algo.kl.target algo.kl.unbiased-gradient algo.kl.use-loss
    ckpt.best-metric-key ckpt.disable-ds ckpt.load-enable ckpt.max-mem ckpt.max-num ckpt.output-dir ckpt.path
    ckpt.save-hf ckpt.save-steps critic.adam.betas critic.adam.eps critic.adam.lr critic.adam.weight-decay
    critic.freezing-steps critic.lr-scheduler critic.lr-warmup-ratio critic.max-norm critic.min-lr-ratio
    critic.model-name-or-path critic.muon.lr critic.muon.momentum critic.muon.nesterov critic.muon.no-nesterov
    critic.muon.ns-steps critic.num-gpus-per-node critic.num-nodes critic.optim critic.save-value-network
    critic.value-clip data.apply-chat-template data.chosen-key data.dataloader-num-workers data.dataset
    data.dataset-probs data.dataset-split data.disable-fast-tokenizer data.image-key data.input-key
    data.input-template data.label-key data.max-images-per-prompt data.max-len data.max-samples data.multiturn
    data.output-key data.prompt-dataset data.prompt-key data.prompt-probs data.prompt-split data.rejected-key
    data.tokenizer-chat-template ds.adam-offload ds.attn-implementation ds.deepcompile ds.enable-sleep
    ds.experts-implementation ds.grad-accum-dtype ds.load-in-4bit ds.lora.alpha ds.lora.dropout ds.lora.rank
    ds.lora.target-modules ds.overlap-comm ds.packing-samples ds.param-dtype ds.ring-attn-head-stride
    ds.ring-attn-size ds.tensor-parallel-size ds.use-liger-kernel ds.use-universal-ckpt ds.value-head-prefix
    ds.zero-stage ds.zpg eval.dataset eval.n-samples-per-prompt eval.split eval.steps eval.temperature local-rank
    logger.logging-steps logger.tensorboard-dir logger.wandb.group logger.wandb.key logger.wandb.org
    logger.wandb.project logger.wandb.run-name lr-scheduler lr-warmup-ratio max-norm min-lr-ratio
    model.aux-loss-coef model.beta model.compute-fp32-loss-enable model.gradient-checkpointing-enable
    model.gradient-checkpointing-reentrant model.ipo-enable model.label-smoothing model.loss-type
    model.margin-loss-enable model.model-name-or-path model.nll-loss-coef model.pretrain-mode-enable muon.lr
    muon.momentum muon.nesterov muon.no-nesterov muon.ns-steps optim ref.model-name-or-path ref.num-gpus-per-node
    ref.num-nodes ref.offload reward.clip-range reward.model-name-or-path reward.normalize-enable
    reward.num-gpus-per-node reward.num-nodes reward.offload reward.overlong-buffer-len
    reward.overlong-penalty-factor reward.remote-url reward.stop-properly-penalty-coef rollout.batch-size
    rollout.max-new-tokens rollout.max-tokens-per-gpu rollout.micro-batch-size rollout.n-samples-per-prompt
    rollout.temperature rollout.top-p rollout.vllm-generate-batch-size train.agent-func-path train.async-enable
    train.async-queue-size train.batch-size train.colocate-actor-ref train.colocate-all
    train.colocate-critic-reward train.dynamic-batch-enable train.ema-beta train.enable-ema
    train.full-determinism-enable train.max-epochs train.max-tokens-per-gpu train.micro-batch-size
    train.num-episodes train.partial-rollout-enable train.seed use-ms vllm.enable-prefix-caching vllm.enable-sleep
    vllm.enforce-eager vllm.gpu-memory-utilization vllm.num-engines vllm.sync-backend vllm.sync-with-ray
    vllm.tensor-parallel-size
        """
    )
)
SWITCHES = frozenset(
    names(
        """
    actor.freeze-visual-encoder actor.gradient-checkpointing-enable actor.gradient-checkpointing-reentrant
    actor.muon.nesterov actor.muon.no-nesterov algo.advantage.no-std-norm algo.dynamic-filtering-enable
    algo.kl.unbiased-gradient algo.kl.use-loss ckpt.disable-ds ckpt.load-enable ckpt.save-hf critic.muon.nesterov
    critic.muon.no-nesterov critic.save-value-network data.apply-chat-template data.disable-fast-tokenizer
    data.multiturn ds.adam-offload ds.deepcompile ds.enable-sleep ds.load-in-4bit ds.overlap-comm
    ds.packing-samples ds.use-liger-kernel ds.use-universal-ckpt model.compute-fp32-loss-enable
    model.gradient-checkpointing-enable model.gradient-checkpointing-reentrant model.ipo-enable
    model.margin-loss-enable model.pretrain-mode-enable muon.nesterov muon.no-nesterov ref.offload
    reward.normalize-enable reward.offload train.async-enable train.colocate-actor-ref train.colocate-all
    train.colocate-critic-reward train.dynamic-batch-enable train.enable-ema train.full-determinism-enable
    train.partial-rollout-enable use-ms vllm.enable-prefix-caching vllm.enable-sleep vllm.enforce-eager
    vllm.sync-with-ray
        """
    )
)
SEVERAL = frozenset(
    names(
        """
    actor.adam.betas actor.eps-clip-low-high adam.betas algo.advantage.is-correction-threshold
    algo.dynamic-filtering-range critic.adam.betas ds.lora.target-modules reward.clip-range
        """
    )
)
