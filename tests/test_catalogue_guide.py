"""docs/catalogue.md explains every key of the forms, and its examples load."""

import re
from pathlib import Path

import pytest

from tonnage.catalogue import accelerators, nodes, prices
from tonnage.catalogue._links import LinkForm

GUIDE = Path(__file__).parents[1] / "docs" / "catalogue.md"
TEXT = GUIDE.read_text(encoding="utf-8")
EXAMPLES = re.findall(r"```toml\n(.*?)```", TEXT, re.DOTALL)
FORMS = [
    accelerators.AcceleratorFile, accelerators._Memory, accelerators._Variant, LinkForm, nodes.NodeFile,
    prices.Price, prices.Purchase,
]  # fmt: skip


@pytest.mark.parametrize("form", FORMS, ids=lambda form: form.__name__)
def test_the_guide_explains_every_key(form):
    unexplained = [field for field in form.__struct_fields__ if f"`{field}`" not in TEXT]
    assert not unexplained


@pytest.mark.parametrize("precision", accelerators.PRECISIONS)
def test_the_guide_names_every_precision(precision):
    assert f"`{precision}`" in TEXT


def test_the_examples_of_the_guide_load(tmp_path):
    assert len(EXAMPLES) == 3
    for example, load in zip(EXAMPLES, (accelerators.load, nodes.load, prices.load), strict=True):
        path = tmp_path / "example.toml"
        path.write_text(example, encoding="utf-8")
        assert load(path)
