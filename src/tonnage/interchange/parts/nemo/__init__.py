"""Recipes and configs of NeMo: on Megatron, and Automodel's."""
