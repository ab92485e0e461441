deepspeed --num_gpus 8 --module openrlhf.cli.train_rm \
   --ckpt.output_dir ./checkpoint/llama3-8b-rm \
   --train.batch_size 256 \
   --train.micro_batch_size 1 \
   --model.model_name_or_path meta-llama/Llama-3.1-8B \
   --data.max_len 8192 \
   --ds.zero_stage 3 \
   --adam.lr 9e-6 \
   --data.dataset OpenRLHF/preference_dataset \
   --model.gradient_checkpointing_enable
