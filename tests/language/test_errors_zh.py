"""Errors in Chinese: names stay as they are typed, sentences are whole, and blanks stand where they belong."""

import re
import shlex

import pytest

import tonnage
from errors_in_chinese import ENDS, ERRORS
from tonnage.cli import main
from tonnage.kernel import message
from tonnage.kernel.errors import UnknownName
from tonnage.kernel.units import counted
from tonnage.language import speaking, worded
from tonnage.language.spacing import filled, joined


def _said(command, capsys, *more):
    assert main([*shlex.split(command), *more]) == 64
    return capsys.readouterr().err.strip()


@pytest.mark.parametrize("command", ERRORS)
def test_an_error_is_a_whole_chinese_sentence(command, capsys):
    # before the verb: one that nothing follows has the language of the other
    assert main(["--lang", "zh", *shlex.split(command)]) == 64
    assert capsys.readouterr().err.strip() == f"错误：{ERRORS[command]}"


@pytest.mark.parametrize("command", ENDS)
def test_an_error_with_numbers_of_the_catalogue_is_whole_too(command, capsys):
    assert re.fullmatch(f"错误：{ENDS[command]}", _said(command, capsys, "--lang", "zh"))


@pytest.mark.parametrize("name", ["ttft", "tpot"])
def test_a_time_that_is_none_is_named_as_its_option_is_typed(name, capsys):
    assert _said(f"serve llama-3.1-8b --on h100 --{name} foo", capsys).startswith(f"error: --{name} must be")
    assert _said(f"serve llama-3.1-8b --on h100 --{name} 1e99", capsys).startswith(f"error: --{name} must be")


@pytest.mark.parametrize(
    ("command", "said"),
    [
        ("plan", "name a model, or give its dimensions: --hidden-size, --num-hidden-layers and so on."),
        ("measure", "name a model, or give its dimensions: --hidden-size, --num-hidden-layers and so on."),
    ],
)
def test_what_is_to_be_typed_has_its_dashes(command, said, capsys):
    assert _said(command, capsys).startswith(f"error: {said}")


def test_a_field_of_a_file_has_none(tmp_path, capsys):
    (tmp_path / "config.json").write_text('{"model_type": "llama", "hidden_size": 0}')
    assert "--hidden-size" not in _said(f"train --no-packing {tmp_path / 'config.json'} --on h100", capsys)


def test_a_rule_that_is_unknown_is_named_as_it_was_typed(capsys):
    assert "'zZ'" in _said("rules zZ", capsys)


def test_an_error_that_python_raises_is_english_until_it_is_shown():
    """As docs/languages.md says."""
    with speaking("zh"), pytest.raises(UnknownName) as caught:
        tonnage.train("lama-3.1-8b", on="h100")
    assert str(caught.value).startswith("no model is called 'lama-3.1-8b'. Did you mean")
    with speaking("zh"):
        assert worded(str(caught.value)).startswith("没有叫 'lama-3.1-8b' 的模型。是否指 'llama-3.1-8b'、")


@pytest.mark.parametrize(
    ("pieces", "made"),
    [
        (["用 ", "8 张加速卡", " 训练"], "用 8 张加速卡训练"),
        (["用 ", "8xH100", " 训练"], "用 8xH100 训练"),
        (["能耗是", "DGX-H100", "的"], "能耗是 DGX-H100 的"),
        (["没有叫 ", "'foo'", " 的", "模型"], "没有叫 'foo' 的模型"),
        (["（", "H100", "）"], "（H100）"),
        (["需要", "--on", "：", "集群"], "需要 --on：集群"),
        (["`", "自有", "` 表示"], "`自有` 表示"),
        (["放得下", " ", "临界"], "放得下 临界"),
        (["权重    ", "放得下"], "权重    放得下"),
    ],
)
def test_a_blank_stands_between_han_and_latin_and_none_between_han_and_han(pieces, made):
    assert joined(pieces) == made


def test_values_keep_their_forms():
    assert filled("用{tokens:,}个{{x}}{name!r}", {"tokens": 4096, "name": "a"}) == "用 4,096 个{x}'a'"


def test_the_clauses_of_a_reason_are_worded_one_by_one():
    with speaking("zh"):
        cheaper = message.Message("{times:.3g} times cheaper", times=2)
        why = message.joined("; ", [cheaper, counted(1, "fewer accelerators")])
        assert worded(why) == "便宜到 2 分之一；少用 1 张加速卡"
        assert (
            worded(message.Message("{equal}, and {words}", equal="as cheap", words="uses fewer accelerators"))
            == "同样便宜、使用的加速卡更少"
        )
