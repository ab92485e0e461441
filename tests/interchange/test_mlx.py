"""`tonnage check` of mlx-lm's commands, which the engine mlx answers."""

from engine_cases import Golden, check_golden, keys, odd_words, read_command, signs_of

from every_row import every_row
from tonnage.interchange.formats import format_of
from tonnage.interchange.source import command_source

MAC = "apple-m2-ultra-128gb"
QWEN = {"model": "mlx-community/Qwen3-8B-4bit", "engine": "mlx", "on": MAC}
GOLDEN = {
    "server.sh": Golden(on=MAC, question=QWEN),
    "module.sh": Golden(on=MAC, question={**QWEN, "model": "mlx-community/Llama-3.2-3B-Instruct-4bit"}),
    "generate.sh": Golden(on=MAC, question=QWEN, unclear="kv-bits|max-kv-size"),
    "draft.sh": Golden(on=MAC, question={**QWEN, "draft_model": "Qwen/Qwen3-0.6B", "draft_tokens": 4}),
    "adapter.sh": Golden(on=MAC, question=QWEN, unclear="adapter-path"),
}


@every_row(("name", "golden"), GOLDEN.items(), at_least=5)
def test_a_file_asks_exactly_its_question(name, golden):
    check_golden("mlx", name, golden)


def test_the_step_of_a_prompt_is_that_of_the_command():
    found = read_command("mlx_lm.server --model mlx-community/Qwen3-8B-4bit --prefill-step-size 512", on=MAC)
    assert found.question["max_num_batched_tokens"] == 512
    assert not keys(found, "unclear")


def test_what_is_drafted_by_default_is_assumed():
    found = read_command("mlx_lm.server --model mlx-community/Qwen3-8B-4bit --draft-model Qwen/Qwen3-0.6B", on=MAC)
    assert found.question["draft_tokens"] == 3
    assert keys(found, "assumed") == {"num-draft-tokens"}


@every_row("words", ["mlx_lm.server --model a", "python -m mlx_lm.server --model a", "mlx_lm generate --model a"])
def test_it_is_recognised_by_its_program(words):
    assert set(signs_of(command_source([words], None))) == {"mlx"}


def test_other_commands_are_not_taken_for_a_server():
    assert not signs_of(command_source(["mlx_lm.convert --hf-path a -q"], None))
    assert format_of("mlx").write is None


test_any_words_are_understood_or_refused = odd_words("mlx_lm.server", format_of("mlx").known())
