"""Optimizer states, counted tensor by tensor."""

import numpy as np
import pytest

from tonnage.kernel.errors import MissingDatum, UnknownName
from tonnage.numerics.optimizers import ALIASES, OPTIMIZERS, optimizer, role_of


@pytest.mark.parametrize(
    ("name", "width"),
    [
        ("sgd", 0),
        ("sgd-momentum", 4),
        ("adam", 8),
        ("adamw", 8),
        ("adamw-fp32", 8),
        ("adamw-bf16", 4),
        ("amsgrad", 12),
        ("paged-adamw", 8),
        ("lion", 4),
        ("muon", 4),
        ("sophia", 8),
        ("adagrad", 4),
        ("lamb", 8),
        ("ademamix", 12),
        ("adafactor", 0),
        ("adafactor-momentum", 4),
        ("adam-mini", 4),
        ("came", 4),
        ("adamw-8bit", 2 + 8 / 256),
        ("lion-8bit", 1 + 4 / 256),
        ("adamw-4bit-torchao", 1 + 8 / 128),
    ],
)
def test_bytes_per_parameter_of_a_large_matrix(name, width):
    assert OPTIMIZERS[name].bytes_per_parameter() == width
    assert OPTIMIZERS[name].total_bytes(65536, 65536, rank=128) / 65536**2 == pytest.approx(width, abs=5e-4)


# Measured once with the libraries themselves on a CPU: bitsandbytes 0.50.2, galore-torch 1.0, apollo-torch 1.0.3,
# adam-mini 1.1.1, torchao 0.18.0, pytorch-optimizer 4.1.0; fp32 weights unless said, step counters left out.
@pytest.mark.parametrize(
    ("name", "shape", "how", "size"),
    [
        ("adamw-8bit", (512, 256), {}, 266_240),
        ("adamw-8bit", (96, 200), {}, 39_000),
        ("adamw-8bit", (64, 64), {}, 8_320),
        ("adamw-8bit", (300,), {}, 2_400),
        ("lion-8bit", (512, 256), {}, 133_120),
        ("lion-8bit", (300,), {}, 1_200),
        ("paged-adamw", (512, 256), {"update_bytes": 2}, 1_048_576),
        ("paged-adamw", (300,), {"update_bytes": 2}, 2_400),
        ("adamw-8bit-torchao", (96, 200), {}, 39_000),
        ("adamw-8bit-torchao", (300,), {}, 2_400),
        ("adamw-4bit-torchao", (512, 256), {}, 139_264),
        ("adamw-4bit-torchao", (300,), {}, 2_400),
        ("adamw-fp8-torchao", (512, 256), {}, 266_240),
        ("galore-adamw", (512, 256), {"rank": 32}, 163_840),
        ("galore-adamw", (96, 200), {"rank": 32}, 63_488),
        ("galore-adamw", (512, 256), {"rank": 32, "update_bytes": 2}, 81_920),
        ("apollo", (96, 200), {"rank": 32}, 63_488),
        ("apollo-mini", (512, 256), {}, 5_120),
        ("apollo-mini", (96, 200), {}, 1_984),
        ("adam-mini", (512, 256), {}, 526_336),
        ("adam-mini", (256, 256), {"heads": 8}, 262_176),
        ("adam-mini", (300,), {}, 1_204),
        ("lion", (512, 256), {}, 524_288),
        ("ademamix", (96, 200), {}, 230_400),
        ("soap", (512, 256), {}, 3_670_016),
        ("soap", (96, 200), {}, 547_328),
        ("soap", (300,), {}, 2_400),
        ("came", (96, 200), {}, 79_168),
    ],
)
def test_states_have_the_bytes_that_the_library_allocates(name, shape, how, size):
    assert OPTIMIZERS[name].total_bytes(*shape, **how) == size


def test_states_follow_the_width_of_the_weights_that_are_updated():
    assert OPTIMIZERS["adamw"].bytes_per_parameter(update_bytes=2) == 4
    assert OPTIMIZERS["adamw-fp32"].bytes_per_parameter(update_bytes=2) == 8
    assert OPTIMIZERS["adamw"].states(10, 10, update_bytes=2) == {"first moment": 200, "second moment": 200}


def test_factored_states_keep_a_row_and_a_column():
    assert OPTIMIZERS["adafactor"].states(4096, 1024) == {
        "second moment, rows": 4 * 4096,
        "second moment, columns": 4 * 1024,
    }
    assert OPTIMIZERS["adafactor"].states(4096) == {"second moment": 4 * 4096}


def test_muon_leaves_tables_and_vectors_to_adamw():
    muon = OPTIMIZERS["muon"]
    assert muon.total_bytes(4096, 4096) == 4 * 4096**2
    assert muon.total_bytes(32000, 4096, role="table") == 8 * 32000 * 4096
    assert muon.total_bytes(4096) == 8 * 4096
    assert role_of("head", 4096) == role_of("embedding", 4096) == "table"
    assert role_of("mlp", 4096) == "matrix"
    assert role_of("norm", 1) == "vector"


def test_galore_projects_the_shorter_side_and_never_beyond_it():
    galore = OPTIMIZERS["galore-adamw"]
    assert galore.states(4096, 11008, rank=1024) == {
        "first moment": 4 * 1024 * 11008,
        "second moment": 4 * 1024 * 11008,
        "projector": 4 * 1024 * 4096,
    }
    assert galore.total_bytes(64, 4096, rank=1024) == galore.total_bytes(64, 4096, rank=64)
    assert galore.total_bytes(4096, 11008) == galore.total_bytes(11008, 4096)


def test_a_framework_may_keep_a_tables_states_in_full():
    table = {"role": "table", "full_precision": True}
    assert OPTIMIZERS["adamw-8bit"].total_bytes(32000, 4096, **table) == 8 * 32000 * 4096


def test_tensors_of_fewer_than_4096_elements_keep_fp32_states():
    small, large = (OPTIMIZERS["adamw-8bit"].total_bytes(1, elements) for elements in (4095, 4096))
    assert small == 8 * 4095
    assert large == 2 * 4096 + 8 * 16


def test_copies_are_tensors_of_their_own():
    for name in OPTIMIZERS:
        one, many = (OPTIMIZERS[name].total_bytes(96, 200, copies=copies) for copies in (1, 128))
        assert many == 128 * one, name


def test_shapes_may_be_arrays():
    rows = np.array([16.0, 96.0, 4096.0])
    for name, kept in OPTIMIZERS.items():
        one_by_one = [kept.total_bytes(int(count), 200) for count in rows]
        assert np.asarray(kept.total_bytes(rows, 200) * np.ones(3)).tolist() == one_by_one, name


def test_more_rows_never_need_fewer_bytes_above_the_small_tensors():
    for name, kept in OPTIMIZERS.items():
        sizes = [kept.total_bytes(rows, 256) for rows in range(16, 2048, 16)]
        assert sizes == sorted(sizes), name


def test_bytes_per_parameter_of_a_low_rank_optimizer_depend_on_the_matrix():
    for name in ("galore-adamw", "galore-8bit", "apollo", "soap"):
        with pytest.raises(MissingDatum, match="shape"):
            OPTIMIZERS[name].bytes_per_parameter()


def test_only_uniform_optimizers_are_elementwise():
    assert {name for name, kept in OPTIMIZERS.items() if kept.elementwise} >= {
        "sgd",
        "adamw",
        "adamw-bf16",
        "lion",
        "sophia",
    }
    assert not any(
        OPTIMIZERS[name].elementwise for name in ("muon", "adamw-8bit", "adafactor", "galore-adamw", "adam-mini")
    )


def test_paged_optimizers_are_marked():
    assert {name for name, kept in OPTIMIZERS.items() if kept.paged} == {
        "paged-adamw",
        "paged-adamw-8bit",
        "paged-lion",
        "paged-lion-8bit",
    }


def test_names_are_found_as_frameworks_spell_them():
    assert optimizer("adamw_torch_fused").name == "adamw"
    assert optimizer("AdamW_bnb_8bit").name == "adamw-8bit"
    assert optimizer("paged_adamw_8bit").name == "paged-adamw-8bit"
    assert all(name in OPTIMIZERS for name in ALIASES.values())
    with pytest.raises(UnknownName, match="adamw"):
        optimizer("adamv")
