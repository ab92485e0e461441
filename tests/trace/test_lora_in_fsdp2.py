"""What FSDP2 does with adapters that peft keeps in fp32: the real classes, on one process and the CPU."""

import warnings

import pytest
import torch
from torch import distributed
from torch.distributed.fsdp import MixedPrecisionPolicy, fully_shard
from torch.testing._internal.distributed.fake_pg import FakeStore
from transformers import LlamaConfig, LlamaForCausalLM

SIZES = {
    "hidden_size": 64,
    "intermediate_size": 128,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 4,
    "vocab_size": 128,
}


@pytest.fixture
def one_rank():
    distributed.init_process_group("fake", store=FakeStore(), rank=0, world_size=1)
    yield distributed.device_mesh.init_device_mesh("cpu", (1,))
    distributed.destroy_process_group()


def test_adapters_in_fsdp2_are_multiplied_in_the_type_of_the_gathered_weights(one_rank):
    """So no input is cast to fp32 for them: `estimate.frameworks.fsdp2.Fsdp2.setting`."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        from peft import LoraConfig, get_peft_model

        base = LlamaForCausalLM(LlamaConfig(**SIZES)).to(torch.bfloat16)
        model = get_peft_model(base, LoraConfig(r=4, target_modules="all-linear"))
        assert {each.dtype for name, each in model.named_parameters() if "lora" in name} == {torch.float32}
        policy = MixedPrecisionPolicy(param_dtype=torch.bfloat16, reduce_dtype=torch.float32)
        for module in (*model.base_model.model.model.layers, model):
            fully_shard(module, mesh=one_rank, mp_policy=policy)
        seen = set()
        for name, module in model.named_modules():
            if name.endswith("lora_A.default"):
                module.register_forward_pre_hook(lambda module, given: seen.add((module.weight.dtype, given[0].dtype)))
        model(input_ids=torch.zeros(1, 8, dtype=torch.long))
    assert seen == {(torch.bfloat16, torch.bfloat16)}
