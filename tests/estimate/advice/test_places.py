"""Users who wait because the engine runs fewer requests at once: letting it run all of them is a move of its own."""

import tonnage

LOAD = {"on": "h100", "concurrency": 64, "input_tokens": 1024, "output_tokens": 300}


def moves(**more: object) -> list[dict]:
    return [dict(move.change) for move in tonnage.serve("llama-3.1-8b", **{**LOAD, **more}).advice]


def test_a_limit_of_requests_below_the_users_is_raised_to_them():
    answer = tonnage.serve("llama-3.1-8b", **LOAD, max_num_seqs=16, ttft=1.0)
    first = answer.advice[0]
    assert dict(first.change) == {"max_num_seqs": 64} and first.serves and first.changes == "nothing"
    assert tonnage.serve("llama-3.1-8b", **LOAD, max_num_seqs=64, ttft=1.0).serving.service_level.met


def test_a_limit_that_nobody_waits_for_is_left_as_it_is():
    assert all("max_num_seqs" not in change for change in moves(max_num_seqs=64) + moves())


def test_arriving_requests_have_no_number_of_users_to_raise_it_to():
    assert all("max_num_seqs" not in change for change in moves(concurrency=None, request_rate=5.0, max_num_seqs=16))
