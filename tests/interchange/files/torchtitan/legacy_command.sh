export CONFIG_FILE="train_configs/llama3_70b.toml"
NGPU=8 CONFIG_FILE="train_configs/llama3_70b.toml" ./run_train.sh --training.seq_len 4096 --training.local_batch_size=2
