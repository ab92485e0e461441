"""Requests of a file: columns of several writers, and errors that name the line and the field."""

import pytest

from tonnage.estimate.load.requests import read_requests
from tonnage.kernel.errors import InvalidInput


def written(tmp_path, text, name="trace.csv"):
    path = tmp_path / name
    path.write_text(text)
    return path


def columns(requests):
    return [
        values.tolist() for values in (requests.arrival, requests.input_tokens, requests.output_tokens, requests.cached)
    ]


def test_our_own_columns_are_read_and_sorted_from_second_0(tmp_path):
    text = "arrival_seconds,input_tokens,output_tokens,cached_tokens\n12.5,100,10,0\n10,200,20,64\n"
    assert columns(read_requests(written(tmp_path, text))) == [[0, 2.5], [200, 100], [20, 10], [64, 0]]


def test_the_same_as_json_lines(tmp_path):
    text = (
        '{"arrival_seconds": 1, "input_tokens": 100, "output_tokens": 10}\n\n{"arrival_seconds": 3.5, '
        '"input_tokens": 7, "output_tokens": 1}\n'
    )
    assert columns(read_requests(written(tmp_path, text, "trace.jsonl"))) == [[0, 2.5], [100, 7], [10, 1], [0, 0]]


def test_the_columns_of_the_azure_traces_with_their_seven_digits(tmp_path):
    text = (
        "TIMESTAMP,ContextTokens,GeneratedTokens\n2023-11-16 18:15:46.6805900,374,44\n2023-11-16 "
        "18:15:50.9951690,396,109\n"
    )
    requests = read_requests(written(tmp_path, text))
    assert requests.arrival[1] == pytest.approx(4.314579, abs=1e-6)
    assert columns(requests)[1:3] == [[374, 396], [44, 109]]


def test_moments_with_a_zone_are_told_apart(tmp_path):
    text = "TIMESTAMP,ContextTokens,GeneratedTokens\n2024-05-10 00:00:00.5+00:00,1,2\n2024-05-10 01:00:01+01:00,3,4\n"
    assert read_requests(written(tmp_path, text)).arrival.tolist() == pytest.approx([0, 0.5])


def test_the_columns_of_burstgpt_without_the_requests_that_failed(tmp_path):
    text = (
        "Timestamp,Model,Request tokens,Response tokens,Total tokens,Log Type\n5,ChatGPT,472,18,490,Conversation "
        "log\n45,ChatGPT,1087,0,1087,Conversation log\n118,GPT-4,417,276,693,API log\n"
    )
    requests = read_requests(written(tmp_path, text))
    assert columns(requests)[:3] == [[0, 113], [472, 417], [18, 276]]
    assert requests.note == "1 request of BurstGPT without an answer left out, which failed"


def test_times_of_mooncake_are_milliseconds_and_ours_are_seconds(tmp_path):
    """Mooncake's traces: {"timestamp": 3000, "input_length": 6955, "output_length": 52, "hash_ids": [46, 47]}."""
    row = '{{"timestamp": {}, "input_length": 6955, "output_length": 52, "hash_ids": [46, 47]}}\n'
    theirs = read_requests(written(tmp_path, row.format(0) + row.format(3000), "mooncake.jsonl"))
    assert columns(theirs)[:3] == [[0, 3], [6955, 6955], [52, 52]]
    assert "milliseconds" in theirs.note
    ours = read_requests(written(tmp_path, "timestamp,input_tokens,output_tokens\n0,10,5\n3000,10,5\n"))
    assert columns(ours)[0] == [0, 3000] and not ours.note


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("arrival_seconds,input_tokens\n1,2\n", "line 1: no column output_tokens"),
        (
            "arrival_seconds,input_tokens,output_tokens\n1,2,3\n4,many,6\n",
            "line 3: input_tokens must be a whole number, 0 or more. Got 'many'",
        ),
        ("arrival_seconds,input_tokens,output_tokens\n1,2,-3\n", "line 2: output_tokens must be"),
        ("arrival_seconds,input_tokens,output_tokens\n1,2,1e400\n", "line 2: output_tokens must be"),
        ("arrival_seconds,input_tokens,output_tokens\n1,2.5,3\n", "line 2: input_tokens must be"),
        (
            "arrival_seconds,input_tokens,output_tokens\nnoon,2,3\n",
            "line 2: arrival_seconds must be seconds, 0 or more",
        ),
        ("arrival_seconds,input_tokens,output_tokens\nnan,2,3\n", "line 2: arrival_seconds must be seconds, 0 or more"),
        ("arrival_seconds,input_tokens,output_tokens\n1,2\n", "line 2: output_tokens is missing"),
        (
            "arrival_seconds,input_tokens,output_tokens,cached_tokens\n1,2,3,2\n",
            "line 2: cached_tokens must be fewer than input_tokens, 2. Got 2",
        ),
        (
            "arrival_seconds,input_tokens,output_tokens\n0,2,3\n-1,2,3\n",
            "line 3: arrival_seconds must be seconds, 0 or more",
        ),
        ("arrival_seconds,input_tokens,output_tokens\n0,2,3\n1,2,0\n", "line 3: output_tokens must be at least 1"),
        ("arrival_seconds,input_tokens,output_tokens\n0,0,3\n", "line 2: input_tokens must be at least 1"),
        ('{"timestamp": 0, "input_length": 2, "output_length": 0}\n', "line 1: output_tokens must be at least 1"),
        ("arrival_seconds,input_tokens,output_tokens\n", "no requests"),
        ('{"arrival_seconds": 1, "input_tokens": 2}\n', "line 1: output_tokens is missing"),
        ('{"arrival_seconds": 1,\n', "line 1 is not JSON"),
    ],
)
def test_what_is_wrong_is_named_with_its_line_and_field(tmp_path, text, said):
    with pytest.raises(InvalidInput, match=said.replace("(", r"\(")):
        read_requests(written(tmp_path, text))


def test_a_file_that_is_not_there_is_said(tmp_path):
    with pytest.raises(InvalidInput, match="No such file"):
        read_requests(tmp_path / "none.csv")
    with pytest.raises(InvalidInput, match="is not UTF-8 text"):
        path = tmp_path / "bytes.csv"
        path.write_bytes(b"\xff\xfe\x00a")
        read_requests(path)
