"""Megatron-LM's arguments: what each decides, and how they are written."""
