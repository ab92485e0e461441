import nemo_run as run
from nemo.collections import llm


def configure_recipe(nodes: int = 2, gpus_per_node: int = 8):
    recipe = llm.llama3_8b.pretrain_recipe(
        dir="/checkpoints/llama3",
        name="llama3_pretraining",
        num_nodes=2,
        num_gpus_per_node=8,
    )
    recipe.trainer.strategy.tensor_model_parallel_size = 2
    recipe.trainer.strategy.context_parallel_size = 2
    recipe.trainer.strategy.sequence_parallel = True
    recipe.trainer.max_steps = 1000
    recipe.trainer.val_check_interval = 100
    recipe.data.global_batch_size = 128
    recipe.data.micro_batch_size = 1
    recipe.data.seq_length = 8192
    recipe.optim.config.lr = 3e-4
    recipe.log.ckpt.save_top_k = 1
    return recipe


if __name__ == "__main__":
    run.run(configure_recipe(), executor=run.LocalExecutor(ntasks_per_node=8, launcher="torchrun"))
