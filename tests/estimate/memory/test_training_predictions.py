"""Multi-token prediction of Megatron-core: what the last stage holds for it, and who else has it."""

import numpy as np
import pytest

from tonnage import read, train
from tonnage.architectures import style_of
from tonnage.estimate.memory import Step, training_memory
from tonnage.estimate.plan_columns import needed_bytes
from tonnage.kernel.errors import InvalidPlan
from tonnage.runtimes.parts.megatron import prediction
from tonnage.runtimes.parts.megatron.layers import MegatronLayers
from tonnage.spec import TrainingPlan
from tonnage.tape import Key, layer
from tonnage.tape.megatron import GATHERED, MegatronSetting

H, V = 7168, 129280  # DeepSeek-V3
LLAMA = {"h": 4096, "q": 4096, "kv": 1024, "f": 14336, "a": 32, "vocabulary": 128256}


def plan(**fields):
    return TrainingPlan.of_fields(**{"sequence_length": 4096, "runtime": "megatron", "zero_stage": 1, **fields})


def last(model, **fields):
    return training_memory(read(model), plan(**fields)).ranks[-1].stage


def setting(model, **fields):
    return MegatronSetting(code="megatron", style=style_of(model), **fields)


def kept(model, **fields):
    """Bytes a token that one prediction layer keeps, by what cuts them."""
    code = MegatronLayers(setting(model, **fields))
    made = layer(code, lambda x: prediction.predict(code, prediction.prediction(model), x), model.hidden_size, 2)
    found = {}
    for each in made.kept:
        found[each.key.extent] = found.get(each.key.extent, 0) + each.bytes
    return found


def decoder_layer(h, q, kv, f, a, **_):
    return 8 * h + 4 * q + 4 * kv + 4 * a + 6 * f + 8


def test_the_module_of_deepseek_v3_has_its_published_eleven_and_a_half_billion_parameters():
    """README_WEIGHTS.md of deepseek-ai/DeepSeek-V3: 11.5B unique parameters, beside the shared 0.9B of the table and
    0.9B of the head.
    """
    model = read("deepseek-v3")
    more = last("deepseek-v3", mtp_layers=1).whole.value - last("deepseek-v3").whole.value
    sparse = sum(weight.num_parameters for weight in model.decoder.blocks[-1].weights())
    assert more == sparse + 3 * H + 2 * H * H
    assert more == pytest.approx(11.5e9, rel=0.01)  # the layer alone is 11.51, the projection 0.10
    drafts = model.num_parameters(drafts=True) - model.num_parameters()
    assert more == drafts - 2 * V * H


@pytest.mark.parametrize("depths", [1, 2, 3])
def test_the_last_of_several_stages_holds_a_copy_of_the_table_once(depths):
    plain = last("deepseek-v3", pipeline_parallel_size=4)
    told = last("deepseek-v3", pipeline_parallel_size=4, mtp_layers=depths)
    alone = last("deepseek-v3", mtp_layers=depths).whole.value - last("deepseek-v3").whole.value
    more = told.whole.value - plain.whole.value
    assert more == alone + V * H
    assert told.weights.value - plain.weights.value == 2 * more
    assert told.everything.value - plain.everything.value == 4 * more
    assert told.optimizer.value - plain.optimizer.value == 12 * more


def test_the_projection_is_cut_over_tensor_ranks():
    one, two = (
        last("llama-3.1-8b", tensor_parallel_size=size, mtp_layers=1).whole.value
        - last("llama-3.1-8b", tensor_parallel_size=size).whole.value
        for size in (1, 2)
    )
    h = LLAMA["h"]
    assert one - two == (one - 5 * h) / 2  # three norms of its own, two of its layer


def test_other_stages_hold_what_they_held():
    plain, told = (
        training_memory(read("deepseek-v3"), plan(pipeline_parallel_size=4, mtp_layers=count)) for count in (0, 1)
    )
    assert [rank.needed for rank in plain.ranks[:-1]] == [rank.needed for rank in told.ranks[:-1]]


def test_a_prediction_layer_keeps_two_inputs_of_norms_what_they_make_together_and_its_layer_and_last_norm():
    """Of norms with 4 bytes a token each; the projection's product is the layer's input."""
    found = kept(read("llama-3.1-8b"))
    h = LLAMA["h"]
    assert sum(found.values()) == 2 * (2 * h + 4) + 4 * h + decoder_layer(**LLAMA) + 2 * h + 4


def test_sequence_parallel_ranks_keep_the_whole_projection_of_which_their_tokens_are_a_view():
    found = kept(read("llama-3.1-8b"), tensor_parallel=True, sequence_parallel=True)
    assert found[GATHERED] == 2 * LLAMA["h"]
    assert GATHERED not in kept(read("llama-3.1-8b"))


def test_full_recomputation_keeps_the_stream_and_the_embedded_tokens():
    assert sum(kept(read("llama-3.1-8b"), recompute="full").values()) == 4 * LLAMA["h"]


@pytest.mark.parametrize(("loss", "width"), [("fused", 2), ("full", 4)])
def test_the_loss_of_every_depth_waits_with_its_logits_or_their_softmax(loss, width):
    """Transformer Engine keeps gradients in the place of logits, else there is an fp32 softmax."""
    model = read("llama-3.1-8b")

    def most(depths):
        step = Step(model, plan(loss=loss, mtp_layers=depths), None)
        moments = step.framework.loss(step.stages[-1]).moments
        return max(sum(size for key, size in each.live.items() if key.extent.split == "tensor") for each in moments)

    assert most(2) - most(1) == width * LLAMA["vocabulary"]
    assert most(1) - most(0) == width * LLAMA["vocabulary"]


def test_the_embedding_makes_a_gradient_of_the_whole_table():
    model = read("llama-3.1-8b")
    code = MegatronLayers(setting(model))
    made = layer(code, lambda x: prediction.predict(code, prediction.prediction(model), x), model.hidden_size, 2)
    table = [each for each in made.moments if each.name == "embed_tokens.embedding"]
    assert {each.live[Key("temporary", prediction.VOCABULARY)] for each in table} == {
        2 * LLAMA["vocabulary"] * LLAMA["h"]
    }


def test_gradients_wait_for_the_layers_that_share_them():
    """Ten layers, of which three predict, from the seventh on: hidden states' gradients, and the table's."""
    alone = [prediction.waiting(10, position, 3, with_embedding=True) for position in range(10)]
    later = [prediction.waiting(10, position, 3, with_embedding=False) for position in range(10)]
    assert [hidden for hidden, _ in alone] == [0] * 6 + [4, 4, 4, 3]
    assert [table for _, table in alone] == [1] * 9 + [0]
    assert [table for _, table in later] == [0] * 7 + [1, 1, 0]


@pytest.mark.parametrize("model", ["deepseek-v3", "llama-3.1-8b", "llama-3.2-1b"])
@pytest.mark.parametrize(
    "sizes", [{}, {"pipeline_parallel_size": 2}, {"tensor_parallel_size": 2}, {"recompute": "full"}]
)
@pytest.mark.parametrize("loss", ["full", "fused"])
def test_more_prediction_never_costs_less_and_the_tree_adds_up(model, sizes, loss):
    needed = []
    for depths in range(4):
        rank = training_memory(read(model), plan(mtp_layers=depths, loss=loss, **sizes)).ranks[-1]
        needed.append(rank.needed)
        assert rank.peak.value == pytest.approx(rank.needed, rel=1e-12)
    assert needed == sorted(needed)
    assert needed[0] < needed[1] < needed[3]


@pytest.mark.parametrize("chunks", [1, 2, 4])
def test_one_micro_batch_of_the_last_chunk_is_in_flight_however_many_chunks_there_are(chunks):
    """schedules.py, forward_backward_pipelining_with_interleaving: the warm-up of the last stage ends as its last
    chunk begins.
    """
    plain, told = (
        last(
            "llama-3.1-8b",
            pipeline_parallel_size=4,
            virtual_pipeline_size=chunks,
            num_microbatches=16,
            mtp_layers=count,
        )
        for count in (0, 1)
    )
    own = {block.name: told.kept[block].value for block in told.counts}
    assert told._layers.value - plain._layers.value == own[prediction.NAME] + own["norm"]


def test_plans_in_arrays_are_those_of_one():
    sizes = np.array([1024, 4096])
    found = needed_bytes(
        read("llama-3.1-8b"), {"sequence_length": sizes}, runtime="megatron", zero_stage=1, mtp_layers=2
    )
    assert list(found) == [
        training_memory(read("llama-3.1-8b"), plan(sequence_length=int(size), mtp_layers=2)).needed for size in sizes
    ]


def test_zero_is_what_nothing_said_is():
    said, unsaid = (
        train(
            "deepseek-v3", on="128xH100", runtime="megatron", pipeline_parallel_size=4, expert_parallel_size=8, **more
        )
        for more in ({"mtp_layers": 0}, {})
    )
    assert said.memory.value == unsaid.memory.value
    noted = unsaid.question["mtp_layers"]
    assert (noted.value, noted.why) == (0, "--mtp-num-layers is unset; the checkpoint has 1 layer")


def test_the_answer_names_the_layer():
    answer = train("llama-3.1-8b", on="8xH100", runtime="megatron", mtp_layers=1)
    assert any(prediction.NAME in term.name for _, term in answer.memory.walk())


@pytest.mark.parametrize("runtime", ["fsdp2", "deepspeed", "nanotron"])
def test_other_runtimes_refuse_it_and_name_the_one_that_has_it(runtime):
    with pytest.raises(
        InvalidPlan, match=f"runtime {runtime} has no mtp_layers: leave it out. megatron has it. Got 1."
    ):
        train("llama-3.1-8b", on="8xH100", runtime=runtime, mtp_layers=1)


@pytest.mark.parametrize(
    ("model", "count", "words"), [("gpt2", 1, "rotary positions or none"), ("llama-3.1-8b", -1, "from 0 to")]
)
def test_what_megatron_refuses_is_refused(model, count, words):
    with pytest.raises(InvalidPlan, match=words):
        train(model, on="8xH100", runtime="megatron", mtp_layers=count)
