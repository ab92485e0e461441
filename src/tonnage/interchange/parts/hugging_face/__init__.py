"""DeepSpeed, Accelerate, Transformers and TRL: their settings name each other's files, and are read together."""
