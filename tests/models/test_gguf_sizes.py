"""Predicted sizes of GGUF files against those that their repositories list: validation/gguf_sizes.yaml."""

from pathlib import Path

import pytest

import tonnage
from every_row import every_row
from rows.source import read
from tonnage.estimate.serving.weights.storage import gguf_bytes, stored_bytes
from tonnage.numerics.quantization import file_type

ROWS = read([str(Path(__file__).parents[2] / "validation" / "sources" / "gguf_sizes.yaml")])
UNITS = {"GB": 1e9, "bytes": 1}
METADATA = 16e6  # bytes; the vocabulary and its merges: 0.7 MB of 32,000 tokens, 7.8 MB of 128,256


def size(row) -> float:
    return row.measured.value * UNITS[row.measured.unit]


def last_digit(row) -> float:
    """One unit of the last digit that the repository shows."""
    digits = str(row.measured.value).partition(".")[2]
    return 10.0 ** -len(digits) * 1e9 if row.measured.unit == "GB" else 0


def predicted(row) -> float:
    return gguf_bytes(tonnage.read(row.model["name"]), file_type(row.config["weights"]), imatrix=False)


FILES = [row for row in ROWS if row.measured.metric == "file size" and row.config["weights"] != "mmproj-F16"]
TENSORS = [row for row in ROWS if row.measured.metric == "model tensor bytes"]
OLDER = [row for row in FILES if "attn_qkv" in row.note]
SAME_RULES = [row for row in FILES if row not in OLDER]


@every_row("row", SAME_RULES, ids=lambda row: row.id, at_least=70)
def test_a_file_is_its_tensors_and_some_megabytes_of_metadata(row):
    assert -last_digit(row) <= size(row) - predicted(row) + router_bytes(row) <= last_digit(row) + METADATA


def router_bytes(row) -> float:
    """What routers take less in the files of 2024 that kept them in 16 bits."""
    if "routers in 16 bits" not in row.note:
        return 0
    model = tonnage.read(row.model["name"])
    return sum(2 * weight.num_parameters * count for weight, count in model.weighted() if weight.part == "router")


def test_predictions_are_within_0_8_percent_of_the_files_and_0_2_on_average():
    errors = [abs(predicted(row) / size(row) - 1) for row in SAME_RULES]
    assert len(errors) > 60 and max(errors) < 0.008 and sum(errors) / len(errors) < 0.002


@pytest.mark.parametrize("row", TENSORS, ids=lambda row: row.id)
def test_bytes_of_all_tensors_are_those_of_the_file(row):
    assert predicted(row) == size(row)


@pytest.mark.parametrize("row", OLDER, ids=lambda row: row.id)
def test_files_made_by_older_rules_differ_by_at_most_6_2_percent(row):
    assert predicted(row) == pytest.approx(size(row), rel=0.062)


def test_a_vision_tower_is_a_file_of_its_own_in_16_bits():
    (row,) = (row for row in ROWS if row.config["weights"] == "mmproj-F16")
    model = tonnage.read(row.model["name"])
    tower = stored_bytes(model, "Q4_K_M") - stored_bytes(model, "Q4_K_M", towers=False)
    assert tower == pytest.approx(size(row), rel=0.02)
