"""Copies of experts that ranks hold beside their own: the memory of experts, which sizes are valid, and the commands.

DeepSeek-V3 has 58 mixture layers of 256 experts; an expert is three matrices of 7,168 x 2,048 in fp8 with an fp32
scale for each 128 x 128 block. Its report (arXiv 2412.19437, section 3.4) serves prompts on 32 ranks with 32 redundant
experts.
"""

import pytest

from tonnage import read
from tonnage.catalogue import cluster
from tonnage.estimate.answer.answers import serve
from tonnage.estimate.serving.options import ServingOptions
from tonnage.estimate.serving_time.times import serving_times
from tonnage.kernel.errors import InvalidPlan, NotApplicable
from tonnage.spec import Load, ServingPlan

MATRICES = 3 * 7168 * 2048
EXPERT_BYTES = MATRICES + 4 * MATRICES / 128**2
LAYERS = 58


def answer(on, model="deepseek-v3", **options):
    machine = cluster(on)
    return serve(read(model), machine, ServingOptions(**{"context": 4096, "engine": "sglang", **options}))


def weights(found):
    return found.memory.child("weights").value


def test_each_rank_holds_its_own_experts_and_its_share_of_the_copies():
    wide = {"attention_data_parallel_size": 32, "expert_parallel_size": 32}
    plain, copied = (answer("4x8xH800-SXM-80GB", redundant_experts=n, **wide) for n in (0, 32))
    assert weights(copied) - weights(plain) == pytest.approx(LAYERS * EXPERT_BYTES, rel=1e-9)


def test_copies_make_sizes_valid_that_the_experts_alone_do_not_divide_into():
    wide = {"attention_data_parallel_size": 72, "expert_parallel_size": 72}
    with pytest.raises(InvalidPlan, match="must divide"):
        answer("9x8xH100-SXM-80GB", **wide)
    assert answer("9x8xH100-SXM-80GB", redundant_experts=32, **wide).memory.value > 0
    with pytest.raises(InvalidPlan, match=r"256 experts of deepseek-v3 with .* together \(286\)"):
        answer("9x8xH100-SXM-80GB", redundant_experts=30, **wide)


def test_a_full_batch_reads_the_copies_too_and_a_pass_takes_longer():
    wide = {"attention_data_parallel_size": 32, "expert_parallel_size": 32, "concurrency": 4096}
    load = Load(input_tokens=2048, output_tokens=512, concurrency=4096)
    plain, copied = (
        serving_times(
            read("deepseek-v3"),
            ServingPlan.of_fields(context=4096, engine="sglang", redundant_experts=n, **wide),
            load,
            cluster("4x8xH800-SXM-80GB"),
        ).tpot_seconds
        for n in (0, 32)
    )
    assert plain < copied < plain * 9 / 8


def test_models_without_experts_and_ranks_that_share_none_have_no_copies():
    with pytest.raises(NotApplicable, match="has no experts"):
        answer("H100-SXM-80GB", "llama-3.1-8b", redundant_experts=2)
    with pytest.raises(InvalidPlan, match="give expert_parallel_size too"):
        answer("2x8xH100-SXM-80GB", redundant_experts=32)


@pytest.mark.parametrize(
    ("engine", "words"),
    [
        ("sglang", "--enable-eplb --ep-num-redundant-experts 16"),
        ("vllm", """--enable-eplb --eplb-config '{"num_redundant_experts": 16}'"""),
    ],
)
def test_the_launch_command_asks_the_engine_for_them(engine, words):
    options = ServingOptions(
        context=4096, engine=engine, tensor_parallel_size=16, expert_parallel_size=16, redundant_experts=16
    )
    found = serve(read("deepseek-v3"), cluster("2x8xH200-SXM-141GB"), options)
    assert words in str(found.serving.launch)
