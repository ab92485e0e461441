accelerate launch --config_file ../accelerate/ddp.yaml trl/scripts/dpo.py --model_name_or_path meta-llama/Llama-3.1-8B-Instruct \
    --dataset_name trl-lib/ultrafeedback_binarized --per_device_train_batch_size 2 --gradient_accumulation_steps 8 \
    --dtype bfloat16 --use_peft --load_in_4bit --use_bnb_nested_quant --lora_target_modules q_proj k_proj v_proj o_proj --max_length 2048
