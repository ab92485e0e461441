"""What axolotl, LLaMA-Factory, ms-swift and torchtitan share, and the keys of each."""
