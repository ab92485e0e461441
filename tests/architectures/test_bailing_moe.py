"""Ling 1 and 2. Counts of the catalogue are the Hub's; here: what the fields decide, and nanochat's rule of sizes."""

from tonnage.architectures import build
from tonnage.catalogue import toml_files
from tonnage.catalogue.models import load


def fields(name):
    return load(toml_files.HERE / "models" / f"{name}.toml").config


def test_ling_1t_chooses_8_of_256_experts_behind_four_dense_layers():
    """inclusionAI/Ling-1T, model card: about 50B parameters active a token."""
    made = build(fields("ling-1t"), "ling")
    assert round(made.num_active_parameters() / 1e9) == 51
    assert made.decoder.counts() == (4, 76)


def test_ling_2_normalises_heads_and_ling_1_does_not():
    new = fields("ling-mini-2.0")
    old = {**new, "use_qk_norm": False}
    assert build(new, "new").num_parameters() - build(old, "old").num_parameters() == 20 * 2 * 128


def test_norms_of_nanochat_have_no_weights():
    """karpathy/nanochat: 561M parameters at depth 20, 1.9B at depth 32."""
    d20 = fields("nanochat-d20")
    matrices = 20 * (4 * 1280 * 1280 + 2 * 1280 * 5120)
    assert build(d20, "d20").num_parameters() == matrices + 2 * 65_536 * 1280
