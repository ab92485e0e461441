"""A config with one wrong number is a model or a clear error: no exception of ours, no estimate below zero or
without end.
"""

import math
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from odd_configs import changed, configs, odd_configs

from tonnage.catalogue import cluster
from tonnage.estimate.answer.answers import serve, train
from tonnage.estimate.plan.training_options import TrainingOptions
from tonnage.estimate.serving.options import ServingOptions
from tonnage.kernel.encoding import encode
from tonnage.kernel.errors import InvalidInput, TonnageError
from tonnage.models import read

MACHINE = "8xH100-SXM-80GB"
NAMES = dict(configs())


def asked(config: dict[str, Any]) -> None:
    """Memory and time of training and serving, each a document of finite numbers or an error for users."""
    machine = cluster(MACHINE)
    for ask, options in (
        (train, TrainingOptions(micro_batch_size=1)),
        (serve, ServingOptions(engine="vllm", context=4096)),
    ):
        try:
            found = ask(read(config), machine, options, advise=False)  # type: ignore[operator]
        except TonnageError as error:
            assert str(error)
            continue
        encode(found.to_dict())
        assert math.isfinite(found.needed_bytes) and found.needed_bytes > 0
        waiting = [found.memory]
        while waiting:
            term = waiting.pop()
            assert math.isfinite(float(term.value)) and (float(term.value) >= 0 or "saved" in term.name), term.name
            waiting.extend(term.children)


@settings(max_examples=15, deadline=None)
@given(seed=st.integers(0, 2**32))
def test_a_config_with_a_wrong_number_is_estimated_or_refused(seed):
    for name, path, value, config in odd_configs(seed, 1, 8):
        try:
            asked(config)
        except Exception as error:
            raise AssertionError(f"{name}: {path} = {value!r}") from error


@pytest.mark.soak
@pytest.mark.parametrize("name", NAMES)
def test_every_number_of_every_architecture_with_odd_values_is_estimated_or_refused(name):
    for _, path, value, config in odd_configs(0, 4, only=name):
        try:
            asked(config)
        except Exception as error:
            raise AssertionError(f"{name}: {path} = {value!r}") from error


@pytest.mark.parametrize(
    ("name", "path", "value"),
    [
        ("glm-4.5", ("partial_rotary_factor",), 1e308),  # it was an OverflowError of the error bands
        ("glm-4.5", ("partial_rotary_factor",), -1),
        ("glm-4.5", ("rope_scaling", "factor"), 1e300),
        ("llama-3.1-8b", ("max_position_embeddings",), 2**63),
        ("llama-3.1-8b", ("rope_scaling", "factor"), 0),
        ("llama-3.1-8b", ("anything", "nested"), 1e308),
        ("llama-3.1-8b", ("anything",), [10**40]),
        ("gemma-3-4b-pt", ("vision_config", "image_size"), 2**40),
        ("gemma-3-4b-pt", ("mm_tokens_per_image",), -1),
    ],
)
def test_a_number_that_no_model_has_is_refused_with_its_field(name, path, value):
    with pytest.raises(InvalidInput, match=str(path[-1])):
        read(changed(read(name).config, path, value))
    asked(changed(read(name).config, path, 1))


def test_what_published_configs_hold_is_no_fault():
    config = dict(read("llama-3.1-8b").config)
    for path, value in (
        (("model_max_length",), 1000000000000000019884624838656),
        (("time_step_limit",), [0.0, float("inf")]),
        (("eos_token_id",), -1),
    ):
        assert read(changed(config, path, value)).num_parameters() == 8_030_261_248
