"""Logs, metrics and results: each figure with its quantity and unit, whatever stands around it."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from every_row import every_row
from tonnage.interchange.logs import figures_of, readers
from tonnage.validation.quantities import QUANTITIES

LOGS = Path(__file__).parent / "logs"  # in the form of each tool's own lines
MIB = 2**20
RUNS = [
    (
        "Megatron-LM",
        "megatron.log",
        {
            "step_time": 4550.5,
            "flops_per_second": 403.1,
            "allocated_memory": 61000.25,
            "reserved_memory": 64500.0,
        },
    ),
    ("torchtitan", "torchtitan.log", {"reserved_memory": 47.21, "tokens_per_second": 5776.0, "mfu": 33.74}),
    ("transformers Trainer", "trainer.log", {"step_time": 2.0, "samples_per_second": 16.0}),
    (
        "DeepSpeed",
        "deepspeed.log",
        {"allocated_memory": 15.6, "reserved_memory": 17.0, "samples_per_second": 34.1},
    ),
    ("PyTorch", "memory_summary.txt", {"allocated_memory": 2048 * MIB, "reserved_memory": 3072 * MIB}),
    (
        "vLLM",
        "vllm.log",
        {
            "weights": 14.99,
            "activations": 1.23,
            "outside_torch": 0.19,
            "cuda_graphs": 0.55,
            "kv_cache": 56.12,
            "kv_cache_tokens": 459424,
            "concurrency": 56.08,
        },
    ),
    (
        "SGLang",
        "sglang.log",
        {"weights": 14.98, "kv_cache_tokens": 423434, "kv_cache": 51.68, "cuda_graphs": 0.58},
    ),
    ("vLLM", "vllm_0_7.log", {"weights": 14.9595, "kv_cache_blocks": 27890}),
    ("llama.cpp", "llama_2024.log", {"kv_buffer": 1024.0}),
    ("llama.cpp", "llama.log", {"tensor_bytes": 4685.3, "kv_buffer": 1024.0}),
    ("/metrics", "metrics.txt", {"ttft": 0.125, "tpot": 0.02}),
    (
        "vllm bench serve",
        "bench_serve.txt",
        {"ttft": 210.55, "tpot": 22.15, "output_tokens_per_second": 1802.11, "requests_per_second": 3.52},
    ),
    ("vllm bench serve", "bench_serve.json", {"ttft": 210.5, "tpot": 22.1, "output_tokens_per_second": 1802.0}),
    ("AIPerf", "aiperf.json", {"ttft": 210.5, "output_tokens_per_second": 9.5}),
    (
        "llama-bench",
        "llama_bench.md",
        {"prefill_tokens_per_second": 4961.97, "decode_tokens_per_second": 127.38},
    ),
    ("llama-bench", "llama_bench.json", {"prefill_tokens_per_second": 4961.0}),
    ("nvidia-smi", "nvidia_smi.csv", {"process_memory": 71456.0}),
    ("DCGM", "dcgm.txt", {"process_memory": 71456.0}),
]


def found_in(file):
    return figures_of((LOGS / file).read_text())


@every_row(("tool", "file", "figures"), RUNS, ids=str, at_least=18)
def test_the_figures_of_a_tool_are_found(tool, file, figures):
    found = found_in(file)
    assert list(found) == [tool]
    assert {one.quantity: pytest.approx(one.value) for one in found[tool] if not one.skipped} == figures


@every_row(("tool", "file", "figures"), RUNS, ids=str, at_least=18)
def test_every_figure_is_a_quantity_of_rows_with_a_unit_that_it_has(tool, file, figures):
    verbs = {reader.tool: reader.verbs for reader in readers()}
    for one in (one for one in found_in(file)[tool] if not one.skipped):
        quantity = QUANTITIES[one.quantity]
        assert quantity.verb in verbs[tool]
        assert one.unit in quantity.units


def test_the_first_step_warms_up_and_does_not_count():
    (step,) = (one for one in found_in("megatron.log")["Megatron-LM"] if one.quantity == "step_time")
    assert (step.value, step.count) == (4550.5, 2)


def test_a_test_of_llama_bench_says_the_tokens_of_its_question():
    prompt, written = found_in("llama_bench.md")["llama-bench"]
    assert prompt.inputs == {"concurrency": 1, "input_tokens": 512}
    assert written.inputs == {"concurrency": 1, "output_tokens": 128}


@given(st.text(max_size=500))
def test_any_text_has_some_figures_or_none(text):
    assert all(one.value > 0 for figures in figures_of(text).values() for one in figures)
