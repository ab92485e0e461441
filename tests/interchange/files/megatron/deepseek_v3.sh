#!/bin/bash
# DeepSeek-V3 with latent attention, experts over eight nodes, predictions of one token more
srun --ntasks-per-node=8 bash -c "python -u pretrain_gpt.py \
 --num-layers 61 --hidden-size 7168 --ffn-hidden-size 18432 --num-attention-heads 128 --kv-channels 128 \
 --multi-latent-attention --q-lora-rank 1536 --kv-lora-rank 512 --qk-head-dim 128 --qk-pos-emb-head-dim 64 \
 --v-head-dim 128 --qk-layernorm --num-experts 256 --moe-layer-freq '([0]*3+[1]*58)' --moe-ffn-hidden-size 2048 \
 --moe-shared-expert-intermediate-size 2048 --moe-router-topk 8 --moe-router-enable-expert-bias \
 --moe-router-score-function sigmoid --moe-router-num-groups 8 --moe-router-group-topk 4 \
 --moe-router-topk-scaling-factor 2.5 --moe-grouped-gemm --moe-token-dispatcher-type flex --moe-enable-deepep \
 --moe-permute-fusion --moe-router-dtype fp32 --mtp-num-layers 1 --mtp-loss-scaling-factor 0.1 \
 --swiglu --normalization RMSNorm --disable-bias-linear --position-embedding-type rope --rotary-base 10000 \
 --untie-embeddings-and-output-weights --seq-length 4096 --max-position-embeddings 4096 --vocab-size 129280 \
 --attention-dropout 0 --hidden-dropout 0 --bf16 --fp8-format e4m3 --fp8-recipe blockwise --fp8-param-gather \
 --micro-batch-size 1 --global-batch-size 8192 --train-samples 585937500 --tensor-model-parallel-size 2 \
 --pipeline-model-parallel-size 16 --pipeline-model-parallel-layout 'Et*3|(tt|)*29,m|L' --expert-model-parallel-size 64 \
 --expert-tensor-parallel-size 1 --sequence-parallel --use-distributed-optimizer --overlap-grad-reduce \
 --overlap-param-gather --recompute-granularity selective --recompute-modules mla_up_proj mlp \
 --attention-backend fused --cross-entropy-loss-fusion --cross-entropy-fusion-impl te --use-precision-aware-optimizer \
 --exp-avg-dtype bf16 --exp-avg-sq-dtype bf16 --manual-gc --save /ckpt"
