"""POST /v1/batch: many questions at once."""

import msgspec
import pytest

from tonnage.documents.sweep import ServeBatchDocument, TrainBatchDocument
from tonnage.kernel.encoding import encode
from tonnage.kernel.errors import TonnageError
from tonnage.verbs.ask import ask
from tonnage.web.batch import MAX_ROWS, batched
from web.conftest import Client

ON = {"on": "8xH100-SXM-80GB"}


def columns_of(**body):
    """The columns of an answer, checked against its type."""
    document = encode(batched(body).document)
    kind = TrainBatchDocument if body["verb"] == "train" else ServeBatchDocument
    answer = msgspec.json.decode(document, type=kind)
    return msgspec.to_builtins(answer)["columns"]


def test_rows_are_answered_as_each_question_by_itself():
    rows = [
        {"model": "llama-3.1-8b", "sequence_length": "8k"},
        {"model": "llama-3.1-8b", "tp": 2, "micro_batch_size": 2},
        {"model": "llama-3.1-70b", "tokens": "1T", "recompute": "full"},
    ]
    columns = columns_of(verb="train", rows=rows, options=ON)
    for number, row in enumerate(rows):
        reply = ask("train", row | ON)
        assert columns["needed_bytes"][number] == reply.document.verdict.needed_bytes
        assert columns["step_seconds"][number] == pytest.approx(reply.document.step_time.value, rel=1e-9)
        assert columns["status"][number] == reply.status
    assert columns["run_seconds"][:2] == [None, None] and columns["run_seconds"][2] > 0


def test_columns_are_rows_and_an_error_names_the_field_as_it_was_typed():
    columns = columns_of(
        verb="serve",
        columns={"model": ["llama-3.1-8b"] * 3, "users": [1, 8, 8], "tp": [1, 3, None]},
        options=ON,
    )
    assert columns["status"] == [0, 64, 0] and columns["fits"] == [True, None, True]
    with pytest.raises(TonnageError) as refused:
        ask("serve", {"model": "llama-3.1-8b", "users": 8, "tp": 3, **ON})
    assert columns["error"] == [None, str(refused.value), None]


def test_kept_fields_come_back():
    reply = batched(
        {"verb": "train", "rows": [{"model": "gpt2", "id": 7}, {"model": "gpt2"}], "options": ON, "keep": ["id"]}
    )
    assert reply.document.kept == {"id": [7, None]} and reply.document.columns.status == [0, 0]


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ({"verb": "plan", "rows": []}, "train or serve"),
        ({"verb": "train"}, "one of the two"),
        ({"verb": "train", "rows": [], "columns": {}}, "one of the two"),
        ({"verb": "train", "rows": [1]}, "list of objects"),
        ({"verb": "train", "rows": {}}, "list of objects"),
        ({"verb": "train", "columns": [1]}, "object of lists"),
        ({"verb": "train", "columns": {"model": ["a"], "on": []}}, "as long as each other"),
        ({"verb": "train", "rows": [], "row": []}, "'row'"),
        ({"verb": "train", "rows": [], "options": []}, None),
        ({"verb": "train", "rows": [], "options": [1]}, "options is an object"),
        ({"verb": "train", "rows": [], "keep": "id"}, "keep is a list"),
        ({"verb": "train", "rows": [{"on": "h100"}], "options": ON}, "on is given twice"),
        ({"verb": "train", "rows": [{}] * (MAX_ROWS + 1)}, "at most 10,000 rows"),
        ({"verb": "train", "columns": {"model": ["gpt2"] * (MAX_ROWS + 1)}}, "at most 10,000 rows"),
    ],
)
def test_a_batch_that_is_none_is_refused_as_a_whole(body, words):
    if words is None:
        assert batched(body).document.rows == 0
        return
    with pytest.raises(TonnageError, match=words):
        batched(body)


def test_other_questions_of_serving_are_the_error_of_their_row():
    columns = columns_of(verb="serve", rows=[{"model": "gpt2", "frontier": True}, {"model": "gpt2"}], options=ON)
    assert columns["status"] == [64, 0] and "frontier" in columns["error"][0]


def test_the_server_answers_a_batch_with_the_document_and_says_the_limit(client: Client):
    rows = [{"model": "llama-3.1-8b", "micro_batch_size": size} for size in (1, 2, 4)]
    answer = client.post("/v1/batch", json={"verb": "train", "rows": rows, "options": ON})
    assert answer.status_code == 200, answer.text
    assert "Tonnage-Command" not in answer.headers and answer.headers["Tonnage-Status"] == "0"
    assert answer.json()["schema"] == "tonnage/2" and len(answer.json()["columns"]["fits"]) == 3
    many = client.post("/v1/batch", json={"verb": "train", "columns": {"model": ["gpt2"] * (MAX_ROWS + 1)}})
    assert many.status_code == 400 and "10,000" in many.json()["error"]["message"]
