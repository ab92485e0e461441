"""Quantities are read as people write them, and printed as engineers say them."""

import pytest

from tonnage.kernel.errors import InvalidInput
from tonnage.kernel.units import (
    GIB,
    counted,
    human,
    parse_bytes,
    parse_count,
    parse_length,
    parse_link_rate,
    parse_seconds,
    parse_usd,
)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("7B", 7_000_000_000),
        ("1T", 10**12),
        ("15e12", 15 * 10**12),
        ("32000", 32000),
        ("1,000,000", 10**6),
        ("1_000", 1000),
        ("0.5b", 500_000_000),
        ("70亿", 7 * 10**9),
        ("1.5万亿", 15 * 10**11),
        ("3千亿", 3 * 10**11),
        ("百亿", None),
        ("2万", 20000),
    ],
)
def test_counts_are_read_in_english_and_chinese(text, value):
    if value is None:
        with pytest.raises(InvalidInput, match="must be a number"):
            parse_count(text, "tokens")
    else:
        assert parse_count(text, "tokens") == value


def test_k_is_1024_in_a_context_and_1000_in_a_count():
    assert parse_length("32k", "sequence_length") == 32768
    assert parse_count("32k", "num_tokens") == 32000


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("80GB", 80 * 10**9),
        ("80GiB", 80 * GIB),
        ("80 GiB", 80 * GIB),
        ("512mib", 2**29),
        ("1.5TB", 15 * 10**11),
        ("7", 7),
    ],
)
def test_gigabytes_and_gibibytes_are_told_apart(text, value):
    assert parse_bytes(text, "reserve") == value


def test_times_are_read_with_their_unit():
    assert parse_seconds("30d", "deadline") == 30 * 86400
    assert parse_seconds("500ms", "ttft") == 0.5
    assert parse_seconds("2 天", "deadline") == 2 * 86400
    assert parse_seconds("2w", "deadline") == 14 * 86400
    assert parse_seconds("5 years", "mtbf") == 5 * 365 * 86400


@pytest.mark.parametrize(
    ("text", "value"),
    [("100k", 1e5), ("$1.5M", 1.5e6), ("250000 USD", 250000), ("99.5", 99.5), ("100kusd", 1e5), ("10万", 1e5)],
)
def test_money_is_read_with_and_without_its_sign(text, value):
    assert parse_usd(text, "budget") == value


@pytest.mark.parametrize(
    "text", ["", "abc", "nan", "inf", "-1", "1e99", "12 parsecs", "0x10", "1..2", "--", "1e999999999"]
)
def test_what_is_not_a_size_is_refused_by_name_and_value(text):
    for parse in (parse_count, parse_length, parse_bytes, parse_seconds, parse_usd):
        with pytest.raises(InvalidInput, match="batch"):
            parse(text, "batch")


def test_a_count_of_half_a_thing_is_refused():
    with pytest.raises(InvalidInput, match="whole number"):
        parse_count("1.5", "num_layers")


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (85_899_345_920, "bytes", "80.00 GiB"),
        (512, "bytes", "512 B"),
        (8_030_261_248, "parameters", "8.03 B parameters"),
        (3.1428e23, "FLOP", "314.28 ZFLOP"),
        (989.4e12, "FLOP/s", "989.40 TFLOP/s"),
        (3.35e12, "bytes/s", "3.35 TB/s"),
        (2_921_340, "seconds", "33.81 d"),
        (0.004, "seconds", "4.00 ms"),
        (700, "watts", "700.00 W"),
        (12.5, "USD", "12.50 USD"),
        (1_022_362, "accelerator-hours", "1.02 M accelerator-hours"),
        (12_345.6, "accelerator-hours", "12,346 accelerator-hours"),
        (0.25, "accelerator-hours", "0.25 accelerator-hours"),
        (1, "accelerator-hours", "1 accelerator-hour"),
        (8, "layers", "8 layers"),
        (0, "bytes", "0 bytes"),
    ],
)
def test_base_units_are_printed_as_engineers_say_them(value, unit, text):
    assert human(value, unit) == text


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (1, "micro-batches", "1 micro-batch"),
        (2, "micro-batches", "2 micro-batches"),
        (1, "layers", "1 layer"),
        (0, "layers", "0 layers"),
        (1.0, "requests", "1 request"),
        (1, "parameters", "1 parameter"),
        (1, "tokens", "1 token"),
        (1, "bytes per parameter", "1 byte per parameter"),
        (2, "bytes per parameter", "2 bytes per parameter"),
        (1, "accelerators", "1 accelerator"),
        (1, "", "1"),
        (1500, "layers", "1,500 layers"),
    ],
)
def test_one_thing_is_not_a_plural(value, unit, text):
    assert human(value, unit) == counted(value, unit) == text


@pytest.mark.parametrize(
    ("joules", "text"), [(0, "0 Wh"), (35, "0.00972 Wh"), (3000, "0.833 Wh"), (20_088, "5.58 Wh"), (3.6e9, "1.00 MWh")]
)
def test_energy_is_in_watt_hours_however_small(joules, text):
    assert human(joules, "joules") == text


@pytest.mark.parametrize(
    ("text", "size"), [("1,024", 1024), ("12,345,678", 12345678), ("1,024k", 1024 * 1024), ("1，024", 1024)]
)
def test_commas_part_groups_of_three_digits(text, size):
    assert parse_length(text, "context") == size


@pytest.mark.parametrize("text", ["1,2", "8,32", "1,2,3", "1,0000", "1,024,5", "0,123", ",1", "1,5B"])
def test_a_list_is_no_number(text):
    with pytest.raises(InvalidInput, match=r"context takes one value, .* `tonnage compare` takes lists"):
        parse_count(text, "context")


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("400Gbps", 50e9),
        ("3200 Gb/s", 400e9),
        ("1.6Tbps", 200e9),
        ("400 Gbit/s", 50e9),
        ("50GB/s", 50e9),
        ("450e9", 450e9),
        ("50 GiB/s", 50 * 2**30),
    ],
)
def test_a_link_is_stated_in_bits_or_in_bytes(text, expected):
    assert parse_link_rate(text, "inter_node_bandwidth") == expected


@pytest.mark.parametrize("text", ["", "fast", "400Gbpss", "Gbps", "-1Gbps", "1.2.3Gbps"])
def test_what_is_no_rate_of_a_link_is_refused(text):
    with pytest.raises(InvalidInput):
        parse_link_rate(text, "inter_node_bandwidth")
