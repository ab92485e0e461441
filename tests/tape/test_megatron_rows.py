"""Ranks put together from layers on the tape, against what was measured: SimuMax, simumax/docs, B200, Megatron-core
0.14.
"""

import pytest

from tape.megatron_rank import Run, rank_peak, setting_of

MIB = 2**20
LLAMA_70B = {"model": "llama-3.1-70b", "layers": 12}
LLAMA_405B = {"model": "llama-3.1-405b", "layers": 4, "kv_heads": 16}  # as its first config had it
DEEPSEEK_V2, DEEPSEEK_V3 = (
    {"model": "deepseek-v2", "layers": 4, "dense": 1},
    {"model": "deepseek-v3", "layers": 4, "dense": 1},
)
# max_memory_allocated in MiB of a rank of each pipeline stage
MEASURED = [
    (LLAMA_70B, {"pipeline": 2, "data": 4}, [68146.3, 64478.6]),
    (LLAMA_70B, {"tensor": 2, "data": 4}, [62136.3]),
    (LLAMA_70B, {"tensor": 4, "data": 2}, [40009.8]),
    (LLAMA_70B, {"tensor": 8}, [28965.4]),
    (LLAMA_405B, {"pipeline": 2, "data": 4}, [88688.8, 89173.1]),
    (LLAMA_405B, {"tensor": 2, "data": 4}, [81.59 * 1024]),
    (LLAMA_405B, {"tensor": 4, "data": 2}, [52.89 * 1024]),
    (LLAMA_405B, {"tensor": 8}, [39499.8]),
    (LLAMA_70B, {"tensor": 2, "context": 4, "sequence": 32768}, [70070.5]),
    (LLAMA_70B, {"context": 8, "sequence": 32768}, [107015.2]),
    (LLAMA_405B, {"tensor": 2, "context": 4, "sequence": 32768}, [89113.8]),
    (LLAMA_405B, {"context": 8, "sequence": 32768}, [142557.5]),
    (LLAMA_70B, {"tensor": 2, "context": 4, "sequence": 131072}, [115371.9]),
    (LLAMA_70B, {"context": 8, "sequence": 131072}, [151538.4]),
    (LLAMA_405B, {"tensor": 2, "context": 4, "sequence": 131072}, [120962.4]),
    (DEEPSEEK_V2, {"expert": 8, "data": 8}, [46726.2]),
    (DEEPSEEK_V2, {"expert": 4, "pipeline": 2, "data": 4}, [32342.7, 45774.6]),
    (DEEPSEEK_V3, {"expert": 8, "data": 8}, [106801.2]),
    (DEEPSEEK_V3, {"expert": 4, "pipeline": 2, "data": 4}, [72948.2, 116736.5]),
]


@pytest.mark.parametrize(("model", "sizes", "measured"), MEASURED)
def test_a_rank_needs_what_was_measured(model, sizes, measured):
    run = Run(**model, **sizes)
    setting = setting_of(
        run,
        core=(0, 14),
        engine=(2, 11),
        cross_entropy="te",
        score="softmax",
        router_pre_softmax=True,
        router_groups=True,
        capacity=True,
    )
    for rank, expected in enumerate(measured):
        found, moment = rank_peak(run, rank, setting)
        print(
            f"{model['model']} {sizes} stage {rank}: {found / MIB:.1f} of {expected:.1f} MiB "
            f"{found / MIB / expected - 1:+.3%} at {moment}"
        )
        assert found / MIB == pytest.approx(expected, rel=0.0005)
