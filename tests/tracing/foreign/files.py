"""Memory files in the forms that other programs write, made in code."""

import gzip
import json
import pickle
import sqlite3
from pathlib import Path

KIB, MIB = 2**10, 2**20
BASE = 0x7F00_0000_0000


def frame(name: str, filename: str = "/home/me/train.py", line: int = 1) -> dict:
    return {"filename": filename, "line": line, "name": name}


FORWARD = [frame("linear", "/x/torch/nn/functional.py", 9), frame("forward", "/home/me/model.py", 7), frame("<module>")]
ENGINE = [
    frame("at::_ops::mm::call(at::Tensor const&)", "??", 0),
    frame("torch::autograd::Engine::thread_main", "??", 0),
]
STEP = [
    frame("_init_group", "/x/torch/optim/adam.py", 3),
    frame("step", "/x/torch/optim/adam.py", 5),
    frame("<module>"),
]
ZERO = [frame("zero_grad", "/x/torch/optim/optimizer.py", 3), frame("<module>")]
LOAD = [frame("_apply", "/x/torch/nn/modules/module.py", 3), frame("<module>")]


class Trace:
    """Entries of one device, in order; `time_us` counts them."""

    def __init__(self) -> None:
        self.entries: list[dict] = []

    def add(self, action: str, address: int, size: int, frames: list | None = None, **more) -> "Trace":
        key = "device_free" if action == "oom" else "addr"
        self.entries.append(
            {
                "action": action,
                key: address,
                "size": size,
                "stream": 0,
                "time_us": len(self.entries),
                "frames": frames or [],
                **more,
            }
        )
        return self

    def alloc(self, address: int, size: int, frames: list | None = None, **more) -> "Trace":
        return self.add("alloc", address, size, frames, **more)

    def free(self, address: int, size: int, frames: list | None = None) -> "Trace":
        return self.add("free_requested", address, size, frames).add("free_completed", address, size, frames)


def block(
    address: int, size: int, requested: int | None = None, state: str = "active_allocated", frames: list | None = None
) -> dict:
    return {
        "address": address,
        "size": size,
        "requested_size": requested or size,
        "state": state,
        "frames": frames or [],
    }


def segment(address: int, blocks: list[dict], **more) -> dict:
    used = sum(each["size"] for each in blocks if each["state"] == "active_allocated")
    return {
        "device": 0,
        "address": address,
        "total_size": sum(each["size"] for each in blocks),
        "allocated_size": used,
        "active_size": used,
        "requested_size": used,
        "stream": 0,
        "segment_type": "large",
        "segment_pool_id": (0, 0),
        "is_expandable": False,
        "frames": [],
        "blocks": blocks,
        **more,
    }


def snapshot(trace: Trace | list[Trace], segments: list[dict] = (), **more) -> dict:
    traces = trace if isinstance(trace, list) else [trace]
    return {
        "segments": list(segments),
        "device_traces": [each.entries for each in traces],
        "allocator_settings": {"PYTORCH_CUDA_ALLOC_CONF": "", "max_split_size": -1},
        "external_annotations": [],
        **more,
    }


def as_pickle(path: Path, data: object, protocol: int = 4) -> Path:
    path.write_bytes(pickle.dumps(data, protocol))
    return path


def as_json(path: Path, data: object, packed: bool = False) -> Path:
    text = json.dumps(data).encode()
    path.write_bytes(gzip.compress(text) if packed else text)
    return path


def database(path: Path, tables: dict[str, tuple[str, list[tuple]]]) -> Path:
    """Tables by name, as (columns, rows)."""
    connection = sqlite3.connect(path)
    for name, (columns, rows) in tables.items():
        connection.execute(f"CREATE TABLE {name} ({columns})")
        for row in rows:
            connection.execute(f"INSERT INTO {name} VALUES ({','.join('?' * len(row))})", row)
    connection.commit()
    connection.close()
    return path
