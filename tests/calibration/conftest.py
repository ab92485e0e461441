"""A data base of runs for each test, and runs that all took longer than was estimated."""

from typing import Any

import pytest
import yaml

from tonnage.estimate.site import stored


@pytest.fixture(autouse=True)
def own_runs(tmp_path, monkeypatch):
    """No test keeps anything among the runs of the user who runs it."""
    monkeypatch.setenv(stored.PLACE, str(tmp_path / "runs.db"))
    return tmp_path / "runs.db"


def training_rows(factor: float = 1.25) -> list[dict[str, Any]]:
    """Rows whose step takes so many times what is estimated."""
    import tonnage

    rows = []
    for number, (size, length) in enumerate(
        ((1, 4096), (2, 4096), (1, 8192), (1, 2048), (4, 2048), (2, 2048), (1, 1024), (2, 1024))
    ):
        question = {"model": "llama-3.1-8b", "on": "8xH100-SXM-80GB", "sequence_length": length}
        question |= {"micro_batch_size": size, "recompute": "full", "runtime": "fsdp2"}
        answer = tonnage.train(
            "llama-3.1-8b", on="8xH100-SXM-80GB", sequence_length=length, micro_batch_size=size, recompute="full",
            runtime="fsdp2", advice=False,
        )  # fmt: skip
        assert answer.step_time is not None
        seconds = answer.step_time.value * factor * (1 + 0.01 * (-1) ** number)
        rows.append(
            {
                "id": f"run-{number}", "verb": "train", "question": question,
                "measured": {"quantity": "step_time", "value": seconds, "unit": "s"},
                "source": "our cluster", "date": "2026-11-20", "completeness": "full",
            }
        )  # fmt: skip
    return rows


@pytest.fixture(scope="session")
def rows() -> list[dict[str, Any]]:
    return training_rows()


@pytest.fixture
def rows_file(tmp_path, rows):
    path = tmp_path / "rows.yaml"
    path.write_text(yaml.safe_dump(rows), encoding="utf-8")
    return path
