"""Names that mean many accelerators, or none, are answered with names that can be given."""

import pytest

from tonnage.catalogue import cluster
from tonnage.catalogue.offers import provider_named
from tonnage.cli import main
from tonnage.kernel.errors import TonnageError


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("macbook", "'macbook' is sold with several chips: say which, as in 'macbook m4'"),
        ("mac", "say which, as in 'mac m4'"),
        ("blackwell", "no accelerator is called 'blackwell'; Blackwell is a generation of them: take one of b100-sxm"),
        ("8xhoper", "no accelerator is called 'hoper'; Hopper is a generation of them: take one of gh200"),
        ("amd", "no accelerator is called 'amd'; AMD makes several: take one of mi100"),
        ("gpu", "'gpu' is a kind of accelerator, not a name"),
        ("toaster", "Examples: h100, 8xh100, dgx-h100, rtx-4090, local; `tonnage accelerators` lists all"),
        ("iphone-16-pro", "phones and tablets are not estimated"),
        ("wormhole", "Wormhole is a generation of them: take one of wormhole-n150, wormhole-n300-asic"),
        ("8", "a number alone names no accelerator: write 8xH100-SXM-80GB"),
        ("h100,a100", "one machine is taken here, not several: `tonnage compare` and `tonnage plan` take a list"),
    ],
)
def test_a_machine_that_cannot_be_meant_has_valid_choices(text, says):
    with pytest.raises(TonnageError) as error:
        cluster(text)
    assert says in str(error.value)


def test_a_mac_with_its_chip_is_found():
    assert cluster("macbook m4 max").accelerator.name == cluster("mac m4 max").accelerator.name


@pytest.mark.parametrize(("name", "provider"), [("amazon", "AWS"), ("GCP", "Google Cloud"), ("lambda labs", "Lambda")])
def test_a_provider_is_known_by_its_other_names(name, provider):
    assert provider_named(name) == provider


@pytest.mark.parametrize(
    ("name", "provider"), [("Amazn", "AWS"), ("googl", "Google Cloud"), ("Hyperstak", "Hyperstack")]
)
def test_a_misspelled_provider_is_answered_with_the_nearest(name, provider):
    with pytest.raises(TonnageError, match=f"Did you mean '{provider}'"):
        provider_named(name)


@pytest.mark.parametrize(
    ("line", "says"),
    [
        ("train llama-3.1-8b --on 8xhoper", "error: --on: no accelerator is called 'hoper'"),
        ("train llama-3.1-8b --on 8xh100x", "error: --on: no accelerator or node is called 'h100x'"),
        ("train claude --on h100", "Examples: llama-3.1-8b, qwen3-32b; `tonnage models` lists all"),
        ("train gpt2 --on h100 --activation-offload cpu", "Did you mean --offload-activations?"),
        ("train gpt2 --on h100 --per-device-batch 4", "Did you mean --micro-batch-size?"),
        ("train gpt2 --on h100 --alignment dpo", "Did you mean --objective?"),
        ("serve gpt2 --on h100 --arrivals poison", "Did you mean --request-rate? See `tonnage serve --help`."),
        ("serve gpt2 --on h100 --zzz 3", "See `tonnage serve --help-all`."),
    ],
)
def test_the_command_line_says_the_nearest(line, says, capsys):
    assert main(line.split()) == 64
    assert says in capsys.readouterr().err


def test_no_command_is_suggested_whose_value_the_option_does_not_take(capsys):
    main(["serve", "gpt2", "--on", "h100", "--arrivals", "poison"])
    assert "\ntry" not in capsys.readouterr().err
