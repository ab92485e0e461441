#!/bin/bash
# Mixtral 8x7B with experts spread over a node
GPUS_PER_NODE=8
NNODES=${SLURM_NNODES:-"4"}

DISTRIBUTED_ARGS="--nproc_per_node $GPUS_PER_NODE --nnodes $NNODES --rdzv_backend c10d"

GPT_ARGS="
    --disable-bias-linear \
    --seq-length 4096 \
    --max-position-embeddings 32768 \
    --num-layers 32 \
    --hidden-size 4096 \
    --ffn-hidden-size 14336 \
    --num-attention-heads 32 \
    --attention-dropout 0.0 \
    --hidden-dropout 0.0 \
    --normalization RMSNorm \
    --position-embedding-type rope \
    --swiglu \
    --untie-embeddings-and-output-weights \
    --group-query-attention \
    --num-query-groups 8 \
    --no-masked-softmax-fusion
"
MOE_ARGS="--num-experts 8 --moe-router-topk 2 --moe-router-load-balancing-type aux_loss
    --moe-aux-loss-coeff 1e-2 --moe-grouped-gemm --moe-token-dispatcher-type alltoall
    --overlap-param-gather --overlap-grad-reduce"

torchrun $DISTRIBUTED_ARGS pretrain_gpt.py \
    $GPT_ARGS $MOE_ARGS \
    --tokenizer-type Llama2Tokenizer --tokenizer-model ${TOKENIZER_MODEL} --data-path $DATA_PATH \
    --micro-batch-size 1 --global-batch-size 256 --lr 1e-4 --train-iters 500000 --bf16 \
    --tensor-model-parallel-size 1 --pipeline-model-parallel-size 4 --num-layers-per-virtual-pipeline-stage 8 \
    --expert-model-parallel-size 8 --use-distributed-optimizer --sequence-parallel
