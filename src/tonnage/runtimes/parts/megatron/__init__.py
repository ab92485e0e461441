"""How Megatron-core runs layers, head and loss, pipelines and states."""
