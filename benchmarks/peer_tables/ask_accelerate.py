"""Runs in the environment of accelerate alone: what its estimate-memory prints as "Training using Adam", of configs
instead of names.

estimate-memory takes names on the Hub and asks it. Its other steps are these functions of its own, in its order.
"""

import json
import sys

import torch
import transformers
from accelerate import init_empty_weights
from accelerate.commands.estimate import estimate_training_usage
from accelerate.utils import calculate_maximum_sizes


def training(config: dict) -> dict:
    """GiB by the type of the weights."""
    fields = {name: value for name, value in config.items() if name not in ("model_type", "architectures")}
    described = transformers.AutoConfig.for_model(config["model_type"], **fields)
    with init_empty_weights():
        model = transformers.AutoModel.from_config(described, dtype=torch.float32)
    size, _ = calculate_maximum_sizes(model)
    return {kind: max(estimate_training_usage(size, kind).values()) / 2**30 for kind in ("float16", "float32")}


if __name__ == "__main__":
    answers = {name: training(config) for name, config in json.load(sys.stdin).items()}
    print("\nANSWERS")
    json.dump(answers, sys.stdout)
