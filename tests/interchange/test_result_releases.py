"""Results and metrics as releases of their tools write them: names of fields, units and columns differ."""

import json

import pytest

from every_row import every_row
from tonnage.interchange.logs import figures_of

SMI_LOOPED = """\
timestamp, index, name, memory.used [MiB], memory.total [MiB], utilization.gpu [%]
2026/06/01 11:27:05.177, 0, NVIDIA H100 80GB HBM3, 71202 MiB, 81559 MiB, 98 %
timestamp, index, name, memory.used [MiB], memory.total [MiB], utilization.gpu [%]
2026/06/01 11:27:06.177, 0, NVIDIA H100 80GB HBM3, 71456 MiB, 81559 MiB, 97 %
"""
SMI_NO_UNITS = """\
index, memory.total [MiB], memory.used [MiB]
0, 40960, 33012
1, 40960, [N/A]
"""
SMI_PROCESSES = """\
index, utilization.gpu [%], memory.used [MiB]
0, 75 %, 77537 MiB
gpu_uuid, pid, used_gpu_memory [MiB]
GPU-e82ab913-2d6b-1a55-89a8-9ad23a5a09cf, 2069192, 77002 MiB
GPU-e82ab913-2d6b-1a55-89a8-9ad23a5a09cf, 2680904, 518 MiB
"""
SMI_TABLE_470 = """\
| N/A   34C    P0    58W / 300W |  15109MiB / 32510MiB |      0%      Default |
|                               |                      |                  N/A |
"""
SMI_TABLE_550 = """\
| N/A   30C    P0             71W /  400W |   20310MiB /  81920MiB |      0%      Default |
|    0   N/A  N/A     86918      C   /usr/bin/python3                            20238MiB |
|    0   N/A  N/A      1203      G   /usr/lib/xorg/Xorg                              4MiB |
"""
DCGM_3 = """\
# HELP DCGM_FI_DEV_FB_USED Framebuffer memory used (in MiB).
# TYPE DCGM_FI_DEV_FB_USED gauge
DCGM_FI_DEV_FB_USED{gpu="0",UUID="GPU-aaa",pci_bus_id="00000000:03:00.0",device="nvidia0",modelName="A100"} 40000
DCGM_FI_DEV_FB_USED{gpu="1",UUID="GPU-bbb",pci_bus_id="00000000:04:00.0",device="nvidia1",modelName="A100"} 41000
"""
DCGM_2 = """\
\t\tDCGM_FI_DEV_FB_USED{gpu="0", UUID="GPU-c0b5694b",container="",namespace="",pod=""} 4210
"""
DCGM_1 = """\
dcgm_fb_used{gpu="1",device="nvidia1"} 4401.0
dcgm_fb_used{gpu="2",device="nvidia2"} 5066.0
"""
VLLM_V0 = """\
vllm:time_to_first_token_seconds_count{model_name="m"} 4.0
vllm:time_to_first_token_seconds_sum{model_name="m"} 0.5
vllm:time_per_output_token_seconds_count{model_name="m"} 100.0
vllm:time_per_output_token_seconds_sum{model_name="m"} 2.0
"""
VLLM_V1 = """\
vllm:time_to_first_token_seconds_bucket{engine="0",le="0.001",model_name="m"} 0.0
vllm:time_to_first_token_seconds_count{engine="0",model_name="m"} 4.0
vllm:time_to_first_token_seconds_sum{engine="0",model_name="m"} 0.5
vllm:inter_token_latency_seconds_count{engine="0",model_name="m"} 100.0
vllm:inter_token_latency_seconds_sum{engine="0",model_name="m"} 1.5
vllm:request_time_per_output_token_seconds_count{engine="0",model_name="m"} 4.0
vllm:request_time_per_output_token_seconds_sum{engine="0",model_name="m"} 0.08
vllm:e2e_request_latency_seconds_count{engine="0",model_name="m"} 4.0
vllm:e2e_request_latency_seconds_sum{engine="0",model_name="m"} 12.0
"""
SGLANG_OLD = """\
sglang:time_to_first_token_seconds_sum{model_name="m"} 2.3
sglang:time_to_first_token_seconds_count{model_name="m"} 10.0
sglang:time_per_output_token_seconds_sum{model_name="m"} 0.9
sglang:time_per_output_token_seconds_count{model_name="m"} 90.0
"""
SGLANG_NEW = """\
sglang:time_to_first_token_seconds_sum{engine_type="unified",model_name="m"} 2.3
sglang:time_to_first_token_seconds_count{engine_type="unified",model_name="m"} 10.0
sglang:inter_token_latency_seconds_sum{engine_type="unified",model_name="m"} 0.9
sglang:inter_token_latency_seconds_count{engine_type="unified",model_name="m"} 90.0
"""
VLLM_BENCH_0_4 = """\
============ Serving Benchmark Result ============
Successful requests:                     32
Request throughput (req/s):              0.21
Input token throughput (tok/s):          434.40
Output token throughput (tok/s):         430.00
---------------Time to First Token----------------
Mean TTFT (ms):                          7279.56
-----Time per Output Token (excl. 1st token)------
Mean TPOT (ms):                          70.14
==================================================
"""
VLLM_BENCH_0_23 = """\
============ Serving Benchmark Result ============
Successful requests:                     32
Failed requests:                         0
Request throughput (req/s):              17.13
Output token throughput (tok/s):         1096.33
Peak output token throughput (tok/s):    3494.00
Total token throughput (tok/s):          5481.66
Mean TTFT (ms):                          63.40
P50 TTFT (ms):                           65.77
Mean TPOT (ms):                          6.37
Mean ITL (ms):                           6.36
Mean E2EL (ms):                          464.68
"""
SGLANG_BENCH = json.dumps(
    {
        "backend": "sglang",
        "request_throughput": 0.25,
        "input_throughput": 152.52,
        "output_throughput": 105.24,
        "mean_e2e_latency_ms": 3998.4,
        "mean_ttft_ms": 153.0,
        "mean_tpot_ms": 9.16,
        "mean_itl_ms": 9.16,
    }
)
GENAI_PERF = {
    "request_throughput": {"unit": "requests/sec", "avg": 0.98},
    "request_latency": {"unit": "ms", "avg": 1025.9, "p99": 1106.8},
    "time_to_first_token": {"unit": "ms", "avg": 210.5, "p99": 300.0},
    "inter_token_latency": {"unit": "ms", "avg": 4.5},
    "output_token_throughput": {"unit": "tokens/sec", "avg": 250.0},
}
GENAI_PERF_NS = {"time_to_first_token": {"unit": "ns", "avg": 210_500_000.0}}
AIPERF_RECORDS = {"input_config": {}, "records": GENAI_PERF}
PERF_CSV = """\
Metric,avg,min,max,p99,p95,p90,p75,p50,p25
Time To First Token (ms),"1,146.31",249.48,"3,485.23","3,457.97","3,349.56","3,215.06","1,330.93",640.07,286.52
Request Latency (ms),"6,406.20","5,371.47","9,608.72","9,436.13","9,046.58","9,028.16","6,549.60","5,690.23","5,493.63"
Inter Token Latency (ms),30.35,27.59,35.60,35.23,33.88,32.53,31.10,30.00,29.00

Metric,Value
Output Token Throughput (tokens/sec),620.40
Request Throughput (requests/sec),3.30
"""
LLAMA_MD_2023 = """\
| model                          |       size |     params | backend    | ngl | test       |              t/s |
| ------------------------------ | ---------: | ---------: | ---------- | --: | ---------- | ---------------: |
| llama 7B mostly Q4_0           |   3.56 GiB |     6.74 B | CUDA       |  99 | pp 512     |  2368.80 ± 93.24 |
| llama 7B mostly Q4_0           |   3.56 GiB |     6.74 B | CUDA       |  99 | tg 128     |    131.42 ± 0.59 |
"""
LLAMA_MD_DEPTH = """\
| model          |       size |     params | backend | ngl |            test |                  t/s |
| -------------- | ---------: | ---------: | ------- | --: | --------------: | -------------------: |
| qwen3 8B Q4_K  |   4.68 GiB |     8.19 B | CUDA    |  99 |   pp512 @ d4096 |      4120.51 ± 12.70 |
| qwen3 8B Q4_K  |   4.68 GiB |     8.19 B | CUDA    |  99 |   tg128 @ d4096 |        97.53 ± 0.20  |
| qwen3 8B Q4_K  |   4.68 GiB |     8.19 B | CUDA    |  99 |     pp512+tg128 |       470.10 ± 1.10  |
"""
LLAMA_CSV_2024 = """\
build_commit,build_number,cuda,model_type,n_batch,n_prompt,n_gen,test_time,avg_ns,stddev_ns,avg_ts,stddev_ts
"69f7e71","1562","1","llama 7B mostly Q4_0","512","512","0","2023-11-01T00:00:00Z","216000000","1","2368.8","93.2"
"""
LLAMA_CSV_2026 = """\
build_commit,build_number,cpu_info,gpu_info,backends,n_batch,load_mode,lazy_mode,n_prompt,n_gen,n_depth,avg_ns,avg_ts
"e107984bc","10788","Intel(R) Core(TM), Ultra 7","Arc(TM) B580","SYCL","2048","auto","auto","0","64","60","1","280.25"
"""
LLAMA_JSON_DEPTH = json.dumps([{"n_prompt": 512, "n_gen": 0, "n_depth": 4096, "avg_ts": 4120.5}])

FORMS = [
    ("nvidia-smi", SMI_LOOPED, {"process_memory": 71456}),
    ("nvidia-smi", SMI_NO_UNITS, {"process_memory": 33012}),
    ("nvidia-smi", SMI_PROCESSES, {"process_memory": 77002}),
    ("nvidia-smi", SMI_TABLE_470, {"process_memory": 15109}),
    ("nvidia-smi", SMI_TABLE_550, {"process_memory": 20238}),
    ("DCGM", DCGM_3, {"process_memory": 41000}),
    ("DCGM", DCGM_2, {"process_memory": 4210}),
    ("DCGM", DCGM_1, {"process_memory": 5066}),
    ("/metrics", VLLM_V0, {"ttft": 0.125, "tpot": 0.02}),
    ("/metrics", VLLM_V1, {"ttft": 0.125, "tpot": 0.02, "end_to_end": 3.0}),
    ("/metrics", SGLANG_OLD, {"ttft": 0.23, "tpot": 0.01}),
    ("/metrics", SGLANG_NEW, {"ttft": 0.23, "tpot": 0.01}),
    (
        "vllm bench serve",
        VLLM_BENCH_0_4,
        {
            "ttft": 7279.56,
            "tpot": 70.14,
            "output_tokens_per_second": 430.0,
            "input_tokens_per_second": 434.4,
            "requests_per_second": 0.21,
        },
    ),
    (
        "vllm bench serve",
        VLLM_BENCH_0_23,
        {
            "ttft": 63.4,
            "tpot": 6.37,
            "end_to_end": 464.68,
            "output_tokens_per_second": 1096.33,
            "requests_per_second": 17.13,
        },
    ),
    (
        "vllm bench serve",
        SGLANG_BENCH,
        {
            "ttft": 153.0,
            "tpot": 9.16,
            "end_to_end": 3998.4,
            "output_tokens_per_second": 105.24,
            "input_tokens_per_second": 152.52,
            "requests_per_second": 0.25,
        },
    ),
    *(
        (
            "AIPerf",
            json.dumps(form),
            {
                "ttft": 210.5,
                "tpot": 4.5,
                "end_to_end": 1025.9,
                "output_tokens_per_second": 250.0,
                "requests_per_second": 0.98,
            },
        )
        for form in (GENAI_PERF, AIPERF_RECORDS)
    ),
    ("AIPerf", json.dumps(GENAI_PERF_NS), {"ttft": 210_500}),
    (
        "AIPerf",
        PERF_CSV,
        {
            "ttft": 1146.31,
            "tpot": 30.35,
            "end_to_end": 6406.2,
            "output_tokens_per_second": 620.4,
            "requests_per_second": 3.3,
        },
    ),
    ("llama-bench", LLAMA_MD_2023, {"prefill_tokens_per_second": 2368.8, "decode_tokens_per_second": 131.42}),
    ("llama-bench", LLAMA_MD_DEPTH, {"prefill_tokens_per_second": 4120.51, "decode_tokens_per_second": 97.53}),
    ("llama-bench", LLAMA_CSV_2024, {"prefill_tokens_per_second": 2368.8}),
    ("llama-bench", LLAMA_CSV_2026, {"decode_tokens_per_second": 280.25}),
    ("llama-bench", LLAMA_JSON_DEPTH, {"prefill_tokens_per_second": 4120.5}),
]


@every_row(("tool", "text", "figures"), FORMS, at_least=22)
def test_each_form_of_a_result_is_read(tool, text, figures):
    found = figures_of(text)
    assert list(found) == [tool]
    assert {one.quantity: one.value for one in found[tool]} == pytest.approx(figures)


def test_a_test_at_a_depth_has_these_tokens_before_it():
    prompt, written = figures_of(LLAMA_MD_DEPTH)["llama-bench"]
    assert prompt.inputs == {"concurrency": 1, "input_tokens": 4608, "cached_tokens": 4096}
    assert written.inputs == {"concurrency": 1, "input_tokens": 4096, "output_tokens": 128}
    assert [each.metric for each in (prompt, written)] == ["pp512 @ d4096", "tg128 @ d4096"]


def test_the_metric_is_the_histogram_that_was_there():
    later = {one.quantity: one.metric for one in figures_of(SGLANG_NEW)["/metrics"]}
    assert later["tpot"] == "sglang:inter_token_latency_seconds"
