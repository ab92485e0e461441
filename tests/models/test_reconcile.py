"""Where config and tensors disagree, the tensors are believed, and a note tells both figures."""

from pathlib import Path

import pytest

from models.files import GGUF_LLAMA, LLAMA, LLAMA_PARAMETERS, Shapes, folder, gguf_llama_tensors, llama, write_gguf
from tonnage.api.answers import train
from tonnage.kernel.errors import InvalidInput, MissingDatum
from tonnage.models import read
from tonnage.ops import Kernels


def made(tmp_path: Path, shapes: Shapes, **changes: object):
    return read(str(folder(tmp_path / "tiny", LLAMA | changes, shapes)))


def test_a_model_whose_files_agree_has_no_notes_and_both_counts(tmp_path: Path):
    found = made(tmp_path, llama())
    assert found.notes == ()
    assert found.num_parameters() == LLAMA_PARAMETERS == found.tensors.num_parameters
    assert found.tensors.bytes_by_dtype == {"BF16": 2 * LLAMA_PARAMETERS}
    assert found.tensors.bits_per_parameter == 16
    assert found.name == "tiny"
    assert (found.family, found.dtype) == ("llama", "bfloat16")


def test_rows_of_the_embedding_beat_vocab_size(tmp_path: Path):
    found = made(tmp_path, llama(rows=128))
    assert found.vocab_size == 128
    assert found.num_parameters() == found.tensors.num_parameters
    assert found.notes == ("The config says vocab_size 96, the embedding has 128 rows. The tensors are believed.",)


def test_the_number_of_stored_layers_beats_the_config(tmp_path: Path):
    found = made(tmp_path, llama(layers=2))
    assert found.num_layers == 2
    assert found.notes == ("The config says 3 layers, the tensors have 2. The tensors are believed.",)


def test_a_head_that_is_not_stored_is_tied(tmp_path: Path):
    found = made(tmp_path, llama(head=False))
    assert found.tied
    assert found.num_parameters() == found.tensors.num_parameters
    assert "no head is stored. The tensors are believed." in found.notes[0]


def test_a_tied_head_that_is_stored_all_the_same_is_counted_once(tmp_path: Path):
    found = made(tmp_path, llama(), tie_word_embeddings=True)
    assert found.tied
    assert found.num_parameters() == LLAMA_PARAMETERS - 96 * 32
    assert found.tensors.num_parameters == LLAMA_PARAMETERS
    assert found.notes == (
        "The head is tied to the embedding and stored all the same: 3,072 parameters that loading drops.",
    )


def test_a_hidden_size_that_no_layer_can_have_is_told_and_not_taken(tmp_path: Path):
    found = made(tmp_path, llama(), hidden_size=48, intermediate_size=64)
    assert any(note.startswith("The config says hidden_size 48, the tensors have 32.") for note in found.notes)


@pytest.mark.parametrize(
    "changes", [{"hidden_size": 128}, {"num_hidden_layers": 12}, {"num_hidden_layers": 1, "vocab_size": 9}]
)
def test_tensors_far_from_the_config_are_of_another_model_and_refused_with_both_counts(tmp_path: Path, changes: dict):
    counted = read(None, overrides=LLAMA | changes).num_parameters()
    path = str(folder(tmp_path / "x", LLAMA | changes, llama()))
    with pytest.raises(InvalidInput, match=f"gives {counted:,} parameters and the tensors hold {LLAMA_PARAMETERS:,}"):
        read(path)
    assert read(path, overrides={key: LLAMA[key] for key in changes}).num_parameters() == LLAMA_PARAMETERS


def test_weights_packed_in_a_way_that_nobody_described_are_not_far_from_the_config(tmp_path: Path):
    ternary = {}  # four weights in each byte, as BitNet's checkpoints store them
    for name, (dtype, shape) in llama().items():
        packed = "proj" in name
        ternary[name] = ("U8", (shape[0] // 4, shape[1])) if packed else (dtype, shape)
        if packed:
            ternary[f"{name}_scale"] = ("BF16", (1,))
    wide = LLAMA | {"vocab_size": 8}
    ternary |= dict.fromkeys(("model.embed_tokens.weight", "lm_head.weight"), ("BF16", (8, 32)))
    found = read(str(folder(tmp_path / "x", wide, ternary)))
    assert 3 * found.tensors.num_parameters < found.num_parameters() == LLAMA_PARAMETERS - 2 * 88 * 32
    assert any("counts" in note for note in found.notes)


def test_a_tower_that_the_family_does_not_describe_does_not_part_tensors_and_config(tmp_path: Path):
    tower = {"vision_tower.encoder.layers.0.mlp.fc1.weight": ("BF16", (400, 400))}
    assert "of it vision: 160,000" in made(tmp_path, {**llama(), **tower}).notes[0]


def test_metadata_of_a_gguf_file_far_from_its_tensors_leave_the_tensors_alone(tmp_path: Path):
    metadata = GGUF_LLAMA | {"llama.feed_forward_length": 8192}
    found = read(str(write_gguf(tmp_path / "x.gguf", metadata, gguf_llama_tensors())))
    assert found.family == "tensors"
    assert found.num_parameters() == found.tensors.num_parameters
    assert "the tensors hold 1,443,072" in found.notes[0]


def test_tensors_that_the_family_does_not_count_are_told(tmp_path: Path):
    extra = {"vision_tower.encoder.layers.0.mlp.fc1.weight": ("BF16", (10, 10)), "model.extra.weight": ("BF16", (7,))}
    found = made(tmp_path, {**llama(), **extra})
    more = LLAMA_PARAMETERS + 107
    assert found.notes == (
        (
            f"The files hold {more:,} parameters (of it vision: 100), and the family llama counts "
            f"{LLAMA_PARAMETERS:,}: +107."
        ),
    )
    assert found.tensors.bytes_by_part["vision"] == 200


def test_scales_and_buffers_leave_the_counts_equal(tmp_path: Path):
    shapes = dict(llama())
    for name, (_, shape) in llama().items():
        if "proj" in name:
            shapes[name] = ("F8_E4M3", shape)
            shapes[f"{name}_scale_inv"] = ("F32", (1, 1))
    shapes["model.layers.0.self_attn.rotary_emb.inv_freq"] = ("F32", (4,))
    found = made(tmp_path, shapes, quantization_config={"quant_method": "fp8", "weight_block_size": [128, 128]})
    assert found.notes == ()
    assert found.num_parameters() == found.tensors.num_parameters
    assert found.tensors.scale_bytes == 4 * 21


def test_the_stored_type_beats_the_type_of_the_config(tmp_path: Path):
    found = made(tmp_path, llama(dtype="F32"))
    assert found.dtype == "float32"
    assert found.notes == ("The config says dtype bfloat16, most weights are stored as float32.",)
    silent = LLAMA | {"torch_dtype": None}
    assert read(str(folder(tmp_path / "silent", silent, llama(dtype="F16")))).dtype == "float16"


def test_a_quantised_file_whose_config_does_not_say_so_is_told(tmp_path: Path):
    shapes = {name: ("F8_E4M3" if "proj" in name else dtype, shape) for name, (dtype, shape) in llama().items()}
    assert made(tmp_path, shapes).notes == (
        "Most weights are stored as F8_E4M3, and the config names no quantization.",
    )


DEEPSEEK = {
    "architectures": ["DeepseekV3ForCausalLM"], "model_type": "deepseek_v3", "hidden_size": 32, "intermediate_size": 64,
    "moe_intermediate_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "q_lora_rank": 8, "kv_lora_rank": 8,
    "qk_nope_head_dim": 8, "qk_rope_head_dim": 4, "v_head_dim": 8, "n_routed_experts": 4, "num_experts_per_tok": 2,
    "n_shared_experts": 1, "first_k_dense_replace": 1, "vocab_size": 64, "num_nextn_predict_layers": 1,
    "tie_word_embeddings": False, "topk_method": "noaux_tc",
}  # fmt: skip


def deepseek(drafts: bool = True) -> dict[str, tuple[str, tuple[int, ...]]]:
    shapes: dict[str, tuple[int, ...]] = {
        "model.embed_tokens.weight": (64, 32),
        "lm_head.weight": (64, 32),
        "model.norm.weight": (32,),
    }
    for number in range(3 if drafts else 2):
        layer = {
            "input_layernorm": (32,),
            "post_attention_layernorm": (32,),
            "self_attn.q_a_proj": (8, 32),
            "self_attn.q_a_layernorm": (8,),
            "self_attn.q_b_proj": (24, 8),
            "self_attn.kv_a_proj_with_mqa": (12, 32),
            "self_attn.kv_a_layernorm": (8,),
            "self_attn.kv_b_proj": (32, 8),
            "self_attn.o_proj": (32, 16),
        }
        experts = ["mlp"] if number == 0 else ["mlp.shared_experts", *(f"mlp.experts.{expert}" for expert in range(4))]
        width = 64 if number == 0 else 16
        for expert in experts:
            layer |= {
                f"{expert}.gate_proj": (width, 32),
                f"{expert}.up_proj": (width, 32),
                f"{expert}.down_proj": (32, width),
            }
        if number:
            layer["mlp.gate"] = (4, 32)
            shapes[f"model.layers.{number}.mlp.gate.e_score_correction_bias"] = (4,)
        if number == 2:
            layer |= {
                "embed_tokens": (64, 32),
                "shared_head.head": (64, 32),
                "shared_head.norm": (32,),
                "enorm": (32,),
                "hnorm": (32,),
                "eh_proj": (32, 64),
            }
        shapes |= {f"model.layers.{number}.{name}.weight": shape for name, shape in layer.items()}
    return {name: ("BF16", shape) for name, shape in shapes.items()}


def test_multi_token_prediction_behind_the_last_layer_is_apart(tmp_path: Path):
    found = read(str(folder(tmp_path / "x", DEEPSEEK, deepseek())))
    assert found.notes == ()
    assert found.num_layers == 2
    assert found.num_parameters(True) == found.tensors.num_parameters
    assert found.tensors.parameters_by_part["draft"] == found.num_parameters(True) - found.num_parameters()


def test_multi_token_prediction_that_nobody_stored_is_left_out(tmp_path: Path):
    found = read(str(folder(tmp_path / "x", DEEPSEEK, deepseek(drafts=False))))
    assert found.num_parameters(True) == found.num_parameters() == found.tensors.num_parameters
    assert [branch.kind for branch in found.branches] == ["decoder"]
    assert "none are stored" in found.notes[0]
    again = read(str(tmp_path / "x"), overrides={"max_position_embeddings": 77})
    assert again.num_parameters(True) == found.num_parameters()
    assert again.tensors == found.tensors


def test_undeclared_multi_token_prediction_is_no_layer_of_the_model(tmp_path: Path):
    found = read(str(folder(tmp_path / "x", DEEPSEEK | {"num_nextn_predict_layers": 0}, deepseek())))
    assert found.num_layers == 2
    assert found.num_parameters() == found.tensors.num_parameters - found.tensors.parameters_by_part["draft"]


UNKNOWN = {
    "architectures": ["BrandNewForCausalLM"],
    "model_type": "brand_new",
    "num_experts_per_tok": 2,
    "max_position_embeddings": 64,
}


def test_an_architecture_that_nobody_knows_is_built_of_its_tensors(tmp_path: Path):
    shapes = deepseek(drafts=False)
    found = read(str(folder(tmp_path / "x", UNKNOWN, shapes)))
    assert (found.family, found.architecture) == ("tensors", "BrandNewForCausalLM")
    assert found.num_parameters() == found.tensors.num_parameters
    assert (found.num_layers, found.hidden_size, found.vocab_size, found.context) == (2, 32, 64, 64)
    assert found.decoder.layers == (0, 1)
    assert found.num_parameters() - found.num_active_parameters() == 2 * 3 * 16 * 32
    assert found.num_embedding_parameters() == 2 * 64 * 32
    assert "BrandNewForCausalLM" in found.notes[0]
    experts = [weight for weight, _ in found.weighted() if weight.part == "experts"]
    assert {(weight.copies, weight.active) for weight in experts} == {(4, 2)}


def test_what_tensors_cannot_tell_is_asked_in_vain(tmp_path: Path):
    found = read(str(folder(tmp_path / "x", None, llama(head=False))))
    op = found.decoder.blocks[0].ops[0]
    for ask in (op.caches, op.core, lambda: op.saved(Kernels())):
        with pytest.raises(MissingDatum, match="is not known"):
            ask()
    assert found.tied
    assert found.num_parameters() == found.tensors.num_parameters
    assert len(found.decoder.blocks) == 1


def test_packed_weights_of_an_unknown_architecture_count_in_full(tmp_path: Path):
    stem = "model.layers.0.mlp.up_proj"
    shapes = {
        f"{stem}.qweight": ("I32", (4, 64)),
        f"{stem}.scales": ("F16", (1, 64)),
        f"{stem}.g_idx": ("I32", (32,)),
        "vision_tower.x.weight": ("BF16", (3, 3)),
        "mtp.y.weight": ("BF16", (2, 2)),
    }
    found = read(str(folder(tmp_path / "x", None, shapes)))
    assert found.num_parameters(True) == 32 * 64 + 9 + 4
    assert found.num_parameters() == 32 * 64 + 9
    assert [branch.kind for branch in found.branches] == ["decoder", "vision", "draft"]


def test_an_unknown_architecture_without_tensors_is_a_missing_datum(tmp_path: Path):
    with pytest.raises(MissingDatum, match="BrandNewForCausalLM"):
        read(str(folder(tmp_path / "x", UNKNOWN)))


def test_overrides_change_the_model_and_leave_its_files_aside(tmp_path: Path):
    path = str(folder(tmp_path / "x", LLAMA, llama()))
    found = read(path, overrides={"num_hidden_layers": 2})
    assert found.num_layers == 2
    assert found.tensors is None
    assert "num_hidden_layers" in found.notes[0]
    assert "left aside" in found.notes[-1]
    assert read(path, overrides={"max_position_embeddings": 4096}).tensors.num_parameters == LLAMA_PARAMETERS


def test_overrides_can_give_what_the_config_lacks(tmp_path: Path):
    config = {key: value for key, value in LLAMA.items() if key != "intermediate_size"}
    path = str(folder(tmp_path / "x", config, llama()))
    with pytest.raises(InvalidInput, match="intermediate_size"):
        read(path)
    found = read(path, overrides={"intermediate_size": 64})
    assert found.num_parameters() == found.tensors.num_parameters == LLAMA_PARAMETERS


def test_overrides_of_what_only_tensors_tell_are_refused_unless_they_name_the_family(tmp_path: Path):
    path = str(folder(tmp_path / "x", UNKNOWN, llama()))
    with pytest.raises(InvalidInput, match="num_hidden_layers cannot be changed"):
        read(path, overrides={"num_hidden_layers": 2})
    assert read(path, overrides=LLAMA).family == "llama"


def test_training_a_model_of_tensors_alone_is_a_missing_datum_with_the_nearest_family_and_how_to_add_one(
    tmp_path: Path,
):
    config = UNKNOWN | {"architectures": ["NewLlamaForCausalLM"]}
    path = str(folder(tmp_path / "x", config, llama()))
    for options in ({}, {"recompute": "full"}, {"zero_stage": 0}):
        with pytest.raises(
            MissingDatum, match=r"nearest known one is 'LlamaForCausalLM'.*--family.*add a family: one file in"
        ):
            train(path, on="h100", **options)
    bare = str(folder(tmp_path / "y", None, llama()))
    with pytest.raises(MissingDatum, match=r"no config.json that names its family.*CONTRIBUTING"):
        train(bare, on="h100")
    sizes = {key: LLAMA[key] for key in LLAMA if key != "architectures"}
    assert train(read(path, overrides=sizes), on="h100").fits
