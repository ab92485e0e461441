#!/usr/bin/bash
# Llama 3 8B on one node, run_train.sh of 0.3
NGPU=8 MODULE=llama3 CONFIG=llama3_8b ./run_train.sh --training.seq_len 8192 --training.local_batch_size 2 \
    --training.global_batch_size 32 --compile.enable --checkpoint.enable --metrics.log_freq 10 \
    activation_checkpoint:full
