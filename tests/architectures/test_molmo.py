"""Molmo, MiniCPM-V and DeepSeek-VL2 as the code of their repositories builds them."""

import pytest

from architectures.seeing import of_kind, size
from tonnage.architectures import build
from tonnage.catalogue import toml_files
from tonnage.catalogue.models import load
from tonnage.kernel.errors import MissingDatum


def fields(name):
    return load(toml_files.HERE / "models" / f"{name}.toml").config


def test_molmos_language_model_is_qwen2_with_128_more_rows_of_its_table():
    made, text = build(fields("molmo-7b-d-0924"), "molmo"), build(fields("qwen2-7b"), "qwen2")
    assert size(made.decoder) == text.num_parameters() + 128 * 3584


def test_molmo_2_leaves_out_the_last_two_layers_of_siglip():
    assert of_kind(build(fields("molmo2-8b"), "molmo2"), "vision").num_layers == 25


def test_minicpm_v_is_refused_in_a_version_that_is_not_described():
    with pytest.raises(MissingDatum, match=r"version 3.1 of MiniCPM-V"):
        build({**fields("minicpm-v-4"), "version": "3.1"}, "minicpm")


def test_deepseek_vl2_small_has_the_language_model_of_v2_lite():
    made = build(fields("deepseek-vl2-small"), "vl2")
    assert size(made.decoder) == build(fields("deepseek-v2-lite"), "lite").num_parameters()
