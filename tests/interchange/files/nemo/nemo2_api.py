import torch
from megatron.core.optimizer import OptimizerConfig
from nemo import lightning as nl
from nemo.collections import llm

if __name__ == "__main__":
    seq_length = 4096
    data = llm.MockDataModule(seq_length=seq_length, global_batch_size=256, micro_batch_size=2)
    model = llm.LlamaModel(llm.Llama31Config8B(), tokenizer=data.tokenizer)
    strategy = nl.MegatronStrategy(
        tensor_model_parallel_size=2,
        pipeline_model_parallel_size=1,
        pipeline_dtype=torch.bfloat16,
        sequence_parallel=True,
    )
    trainer = nl.Trainer(
        devices=8,
        num_nodes=1,
        max_steps=50,
        accelerator="gpu",
        strategy=strategy,
        plugins=nl.MegatronMixedPrecision(precision="bf16-mixed"),
    )
    opt = nl.MegatronOptimizerModule(
        config=OptimizerConfig(optimizer="adam", lr=6e-4, bf16=True, use_distributed_optimizer=True)
    )
    llm.train(model=model, data=data, trainer=trainer, optim=opt)
