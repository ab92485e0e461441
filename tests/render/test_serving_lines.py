"""What the short text of a served model says of loads of several kinds: each claim is of the load that was asked."""

import argparse
import re

import pytest

import tonnage
from tonnage.cli import main
from tonnage.render.brief.answer import shortened
from tonnage.render.brief.verdict import verdict_line


@pytest.fixture
def text(capsys, monkeypatch):
    def call(line: str, columns: int = 200) -> str:
        monkeypatch.setenv("COLUMNS", str(columns))
        main(line.split())
        return capsys.readouterr().out

    return call


def test_memory_of_arriving_requests_names_what_it_holds_and_how_many_run_at_once(text):
    answer = text("serve llama-3.1-8b --on l40s --request-rate 2 --input 1k --output 200")
    assert answer.splitlines()[0].endswith(" for 1 request of 1,224 tokens")
    assert re.search(r"; on average \d+\.\d run at once", " ".join(answer.split()))


def test_each_replica_of_arriving_requests_holds_one(text):
    words = "serve llama-3.1-8b --on 4xl40s --tp 1 --request-rate 9 --input 1k --output 200"
    assert text(words).splitlines()[0].endswith(" for 1 request of 1,224 tokens on each replica")


def test_what_the_estimate_says_is_too_much_is_tight_only_because_the_band_begins_below():
    over = tonnage.serve("llama-4-scout", on="4xh100", context=2**20, concurrency=1)
    assert over.needed_bytes > over.usable_bytes >= over.band[0]
    assert "the error band begins at" in verdict_line(over.summary())
    under = tonnage.serve("gpt-oss-120b", on="h100", concurrency=55, input_tokens=2048, output_tokens=1024)
    assert under.needed_bytes < under.usable_bytes < under.band[1]
    assert "the error band ends at" in verdict_line(under.summary())


def test_a_suggestion_for_what_is_tight_says_that_it_fits_then(text):
    assert "GiB, fits at the high end of the error band" in text(
        "serve gpt-oss-120b --on h100 --users 55 --input 2k --output 1k"
    )


def test_cached_tokens_and_accepted_drafts_stand_in_the_second_line(text):
    words = "serve llama-3.1-8b --on h100 --users 20 --input 4k --output 300 --cached-tokens 3000"
    drafts = "--draft-model llama-3.2-1b --draft-tokens 2 --acceptance 0.6"
    line = " ".join(text(f"{words} {drafts}").partition("\n\n")[0].split())
    assert line.endswith("4,096 tokens in (3,000 cached), 300 out; --draft-tokens 2, 60 % accepted")


def test_the_next_question_has_the_lengths_that_were_given(text):
    asked = "llama-3.1-8b --on l40s --users 8 --input 8192 --output 300 --cached-tokens 1000"
    lines = text(f"serve {asked} --ttft 5s").splitlines()
    following = next(line for line in lines if line.startswith("next"))
    assert "--input-tokens 8192 --output-tokens 300 --cached-tokens 1000 --ttft 5s" in following
    assert "--context" not in following
    assert main(following.split()[2:]) == 0


def test_a_plan_whose_first_machine_needs_other_weights_says_so_in_its_first_line(text):
    words = "plan llama-3.1-70b --serve --on h100,b200 --users 200 --input 1k --output 300 --ttft 1s --tpot 50ms"
    lines = text(words).splitlines()
    first = next(line for line in lines if line.startswith("1 "))
    stored = next(name for name in ("nvfp4", "fp8-e4m3", "awq-4bit-128g") if name in first)
    assert f" with {stored} weights, " in lines[0]
    same = text(f"{words} --weights bf16")
    assert "weights" not in same.splitlines()[0]


def test_more_users_than_the_engine_runs_at_once_are_said_to_wait(text):
    first = text("serve llama-3.1-70b --on 8xh100 --users 10000 --input 1k --output 300").splitlines()[0]
    assert first.startswith("fits") and first.endswith("; 1,024 of 10,000 users run at once")
    assert "at once" not in text("serve llama-3.1-70b --on 8xh100 --users 64").splitlines()[0]


def test_users_that_wait_for_a_prefill_replica_are_said_in_the_first_line(text):
    words = "serve llama-3.1-8b --on 2x8xh100 --tp 1 --prefill-replicas 4 --input-tokens 4k --output-tokens 500"
    full = " ".join(text(f"{words} --users 1000").split())
    assert re.search(r"; \d+ of 1,000 users run at once, the others wait for a prefill replica llama-3.1-8b", full)
    assert "at once" not in text(f"{words} --users 64")


def test_the_cost_of_replicas_with_roles_outlasts_what_was_chosen_and_how_the_router_starts(text):
    lines = text("serve deepseek-v3 --on 32x8xh100 --tp 8 --ep 8 --prefill-replicas 8 --users 4096", 80).splitlines()
    assert len(lines) <= 24
    assert any(line.startswith("cost") and "USD per million tokens" in line for line in lines)


def test_targets_of_what_has_no_room_by_the_estimate_are_said_not_to_be_judged(text):
    lines = text("serve llama-3.1-8b --on l4 --users 1 --input 30k --output 1k --ttft 5s").splitlines()
    assert lines[0].endswith("; TTFT not judged: no room for one request by the estimate")
    assert "--input-tokens 30720 --output-tokens 1024 --ttft 5s" in lines[-2], "the next question keeps the load"


def test_a_comparison_with_targets_counts_those_that_meet_them(text):
    words = "compare llama-3.1-70b --serve --on 8xh100 --weights bf16,fp8 --users 64 --input 2k --output 300"
    assert text(f"{words} --tpot 40ms").startswith("1 of 2 fit and meet the targets; ")
    assert text(words).startswith("both fit; ")


def test_weights_that_stay_in_host_memory_are_said_with_their_size(text):
    words = "serve gpt-oss-120b --on 4090 --engine llama.cpp --expert-layers-on-host 30 --context 8k"
    assert " GiB in host memory" in " ".join(text(words).split())


def test_the_cause_of_a_missed_tpot_with_drafts_divides_a_pass_by_its_tokens(text):
    drafts = "--draft-model llama-3.2-1b --draft-tokens 3 --acceptance 0.7"
    answer = text(f"serve llama-3.1-70b --on 8xh100 --users 64 --input 2k --output 300 {drafts} --tpot 20ms")
    assert " ms per pass / 2.53 tokens" in answer and "tokens of a pass" not in answer


def test_percentiles_that_were_simulated_stand_beside_the_speed(text):
    answer = " ".join(text("serve llama-3.1-8b --on h100 --users 8 --input 1k --output 50 --simulate").split())
    assert "simulated: TTFT p50 " in answer and ", p99 " in answer
    assert "simulated" not in text("serve llama-3.1-8b --on h100 --users 8 --input 1k --output 50")


def test_an_overload_is_said_in_requests_a_second_with_targets_and_without(text):
    words = "serve llama-3.1-8b --on a10g --request-rate 3 --input 1k --output 200"
    said = r"3 requests/s come, 1\.\d\d are answered at most"
    assert re.match(f"overloaded: {said}; memory fits", text(words))
    assert re.match(f"misses TTFT: {said}; ", text(f"{words} --ttft 1s"))


def test_a_way_to_fit_that_keeps_a_target_only_inside_the_band_says_so(text):
    words = "serve llama-3.1-70b --on 4xh100 --users 64 --input 8k --output 300 --ttft 2s --tpot"
    first = " ".join(text(f"{words} 50ms").split()).partition(" llama-3.1-70b bf16")[0]
    assert first.endswith(", a target inside the error band")
    sure = text(f"{words} 5s".replace("--ttft 2s", "--ttft 60s"))
    assert "error band" not in sure.partition("llama-3.1-70b bf16")[0]


def test_users_that_run_at_once_are_a_mean_beside_the_room_for_whole_requests(text):
    answer = " ".join(text("serve llama-3.1-70b --on 4xh100 --users 64 --input 8k --output 300").split())
    assert "52 requests of 8,492 tokens" in answer
    assert "on average 53.1 of 64 users of a replica run at once" in answer


def shown(line: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> list[str]:
    monkeypatch.setenv("COLUMNS", "80")
    main(line.split())
    return capsys.readouterr().out.splitlines()


SPLIT = "serve llama-3.1-8b --on 4xh100 --tp 1 --users 150 --input 2k --output 500 --prefill-replicas 3"


def test_the_launch_line_of_the_router_outlasts_notes_and_suggestions(capsys, monkeypatch):
    lines = shown(SPLIT, capsys, monkeypatch)
    assert len(lines) <= 24 and any("vllm-router" in line for line in lines)


def test_lines_that_are_left_out_are_counted_beside_the_option_that_has_them(capsys, monkeypatch):
    last = shown(SPLIT, capsys, monkeypatch)[-1]
    assert re.search(r"-v all figures, \+\d+ lines", last)


def test_an_assumed_acceptance_is_the_first_note_and_outlasts_assumptions(capsys, monkeypatch):
    words = "serve qwen3-8b --on h100 --users 16 --input 1k --output 500 --speculative ngram"
    lines = shown(words, capsys, monkeypatch)
    (first,) = [line for line in lines if line.startswith("note")]
    assert first.startswith("note     acceptance 0.") and len(lines) <= 24


def test_a_tier_smaller_than_its_users_is_said_on_the_first_screen(capsys, monkeypatch):
    words = "serve llama-3.1-8b --on h100 --users 40 --input 8k --output 300 --kv-offload host --kv-offload-size 8GB"
    lines = shown(f"{words} --cache-hit-rate 0.99", capsys, monkeypatch)
    assert any("holds the cached tokens of 7 of its 40" in line for line in lines)


WIDE = (
    "serve deepseek-v3 --on 8x8xh100 --attention-data-parallel-size 8 --expert-parallel-size 8 --prefill-replicas 4 "
    "--tensor-parallel-size 1 --users 64 --input-tokens 4000 --output-tokens 500 --ttft 8s --tpot 50ms --weights awq"
)


def test_how_every_role_and_the_router_are_started_stands_on_the_first_screen_of_80_columns(text):
    lines = text(WIDE, 80).splitlines()
    assert len(lines) <= 24 and max(map(len, lines)) <= 80
    screen = " ".join(" ".join(lines).split())
    assert '"kv_role":"kv_producer"' in screen
    assert '# decode: 4 servers: the same with --all2all-backend deepep_low_latency "kv_role":"kv_consumer"' in screen
    assert "--prefill=http://PREFILL-{1..4}:8000 \\ --decode=http://DECODE-{1..4}:8000" in screen


def test_an_option_for_each_of_several_servers_is_shortened_as_a_shell_expands_it_and_the_router_reads_it():
    """vllm-project/router, py_src/vllm_router/router_args.py (SGLang's has the same): nargs and action of both."""
    long = "router --prefill http://PREFILL-1:8000 --decode http://DECODE-1:8000 --decode http://DECODE-2:8000"
    short = shortened(long)
    assert short == "router --prefill http://PREFILL-1:8000 --decode=http://DECODE-{1..2}:8000"
    parser = argparse.ArgumentParser()
    parser.add_argument("--prefill", nargs="+", action="append")
    parser.add_argument("--decode", nargs=1, action="append")
    expanded = short.replace(
        "--decode=http://DECODE-{1..2}:8000", "--decode=http://DECODE-1:8000 --decode=http://DECODE-2:8000"
    )
    assert parser.parse_args(expanded.split()[1:]) == parser.parse_args(long.split()[1:])


def test_emissions_on_a_grid_that_was_asked_for_stand_on_the_first_screen(text):
    """Patterson2021: emissions are energy times the carbon intensity of the grid."""
    assert "carbon   66.30 gCO2e per hour" in text("serve llama-3.1-8b --on h100 --users 8 --grid FR")
    assert "carbon " not in text("serve llama-3.1-8b --on h100 --users 8")
    whole = tonnage.train("llama-3.1-8b", on="8xh100", tokens=15e9, grid="FR")
    shown = text("train llama-3.1-8b --on 8xh100 --tokens 15B --grid FR")
    assert f"carbon   {whole.bill.carbon.value / 1000:.2f} kgCO2e for the run" in shown
    assert "gCO2e per step" in text("train llama-3.1-8b --on 8xh100 --grid FR")


def test_comments_beside_a_launch_command_are_chinese_in_a_chinese_answer(text):
    shown = text(f"--lang zh {WIDE} --verbose")
    assert "# 预填充：4 个服务器" in shown and "# 解码：4 个服务器" in shown and "# 路由器" in shown
    assert "同一节点上的各个服务器需要各自的加速器和端口" in shown
    assert "请给它一个按该格式存储的检查点" in shown
