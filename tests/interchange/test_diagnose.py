"""`diagnose`: from a log to the tool, the phase, the cause, the numbers, and fixes in the tool's own flags."""

import json
import subprocess
import sys
from contextlib import suppress
from itertools import zip_longest

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from oom_texts import ATTENTION, CALL, REPORTS, VLLM, prefixed, torch_oom, traceback

import tonnage
from every_row import every_row
from tonnage.cli import main
from tonnage.cli.diagnose import spelled
from tonnage.documents.interchange.diagnose import DiagnosisDocument
from tonnage.interchange.diagnose.diagnosis import Run, diagnosed
from tonnage.interchange.diagnose.failure import failure_of
from tonnage.interchange.diagnose.fixes import rules
from tonnage.interchange.diagnose.fixes.flags import FLAGS, flag_of
from tonnage.interchange.diagnose.fixes.words import WORDS
from tonnage.interchange.diagnose.log import LARGEST, Log, cleaned, decoded
from tonnage.interchange.diagnose.numbers import size
from tonnage.interchange.diagnose.readers import facts, failures
from tonnage.interchange.diagnose.tools import ALL
from tonnage.interchange.reading import Asker
from tonnage.kernel.errors import InvalidInput, MissingDatum, TonnageError
from tonnage.kernel.units import GIB
from tonnage.render.brief.layout import plain
from tonnage.render.interchange.diagnosed import diagnosis_text


def found(text, **asker):
    return diagnosed(Log(text), Run(asker=Asker(**asker)))


def report(name):
    return next(each for each in REPORTS if each.name == name)


# ---- the cause


@every_row("name, text, tool, phase, cause", REPORTS, ids=lambda value: value, at_least=60)
def test_each_wording_has_its_tool_phase_and_cause(name, text, tool, phase, cause):
    document = found(text)
    assert (document.tool, document.phase, document.cause) == (tool, phase, cause)


@every_row("name, text, tool, phase, cause", REPORTS, ids=lambda value: value, at_least=60)
def test_each_has_evidence_and_fixes_in_at_most_24_lines(name, text, tool, phase, cause):
    document = found(text)
    assert document.fixes
    assert document.evidence[0].failed
    for width in (80, 120):
        lines = [plain(line) for line in diagnosis_text(document, width)]
        assert lines[0].startswith("out of memory")
        assert len(lines) <= 24
        assert all(len(line) <= width for line in lines)


@every_row("name, text, tool, phase, cause", REPORTS, ids=lambda value: value, at_least=60)
def test_what_stands_around_a_report_changes_nothing(name, text, tool, phase, cause):
    colours = "\n".join(f"\x1b[31m{line}\x1b[0m" for line in text.splitlines())
    stamped = prefixed("2025-10-25T13:08:43.123456Z ", text)
    compose = prefixed("server-1  | ", text)
    crlf = "INFO starting\r\n" + text.replace("\n", "\r\n") + "\r\nbye\r\n"
    for changed in (colours, stamped, compose, crlf):
        document = found(changed)
        assert (document.tool, document.phase, document.cause) == (tool, phase, cause)


def test_numbers_of_the_allocator_are_read_also_over_broken_lines():
    text = torch_oom().replace(". ", ".\n").replace(" of which", "\nof which")
    values = {number.name: number.value for number in found(text).numbers}
    assert values["tried"] == 2 * GIB
    assert values["total"] == round(79.15 * GIB)
    assert values["free"] == round(1.02 * GIB)
    assert values["in_use_by_this_process"] == round(78.10 * GIB)
    assert values["allocated"] == round(76.20 * GIB)


def test_a_size_that_overflowed_is_no_number():
    assert size("17179869184.00 GiB") is None
    text = torch_oom(this="17179869184.00 GiB")
    assert "in_use_by_this_process" not in {number.name for number in found(text).numbers}


def test_in_a_container_the_process_that_is_listed_is_this_one():
    alone = torch_oom(this="", others="Process 47694 has 77.30 GiB memory in use. ")
    values = {number.name: number.value for number in found(alone).numbers}
    assert values["in_use_by_this_process"] == round(77.30 * GIB)
    assert found(alone).cause == "unknown"


def test_each_rank_of_an_interleaved_log_has_its_own_traceback():
    loss = traceback(CALL, ("transformers/loss/loss_utils.py", "ForCausalLMLoss", "logits = logits.float()"))
    forward = traceback(CALL, ATTENTION, CALL)
    for first, second, phase in ((loss, forward, "loss"), (forward + "\nextra", loss, "loss")):
        lines = []
        for one, two in zip_longest(first.splitlines(), second.splitlines(), fillvalue="bye"):
            lines += [f"[rank3]: {one}", f"[rank1]: {two}"]
        document = found("\n".join(lines))
        assert document.phase == phase  # whoever failed first
        assert document.ranks == ["1", "3"]


def test_the_ranks_that_ran_out_are_listed_in_their_order():
    text = "\n".join(f"[rank{rank}]: {torch_oom()}" for rank in (10, 2, 0))
    assert found(text).ranks == ["0", "2", "10"]


def test_the_line_is_the_one_that_editors_show():
    text = "a\nb\rprogress 10%\rprogress 20%\n" + torch_oom() + "\n"
    assert found(text).evidence[0].line == 3


def test_a_failure_that_was_tried_again_is_not_the_cause():
    text = (
        "ggml_backend_cuda_buffer_type_alloc_buffer: allocating 5174.72 MiB on device 1: cudaMalloc failed: out of "
        "memory\n"
        "sched_reserve: compute buffer allocation failed, retrying without pipeline parallelism\n"
        + "fine\n" * 10
        + "llama_kv_cache_init: failed to allocate buffer for kv cache\n"
    )
    assert found(text).phase == "cache allocation"


def test_a_step_that_the_log_shows_says_the_phase_where_there_is_no_traceback():
    assert found(f"Loading checkpoint shards: 10%\n{torch_oom()}").phase == "loading weights"
    assert found(f"[2025-10-22 06:31:49 TP0] Capture cuda graph begin.\n{torch_oom()}").phase == "graph capture"


def test_a_process_that_was_killed_may_have_other_reasons_and_the_answer_says_so():
    assert any("dmesg" in warning for warning in found("Killed").warnings)
    assert not any("dmesg" in warning for warning in found(report("the kernel").text).warnings)


# ---- fixes


def test_sglang_raises_its_share_at_start_up_and_lowers_it_at_run_time():
    start = found(report("SGLang, start-up: the share is too small").text)
    assert start.fixes[0].text == "--mem-fraction-static 0.75"
    running = found(report("SGLang, run time").text)
    assert running.fixes[0].text == "--mem-fraction-static 0.83"
    full = found(report("SGLang, the pool is full").text)
    assert full.fixes[0].text == "--mem-fraction-static 0.93"


def test_vllm_gets_the_longest_context_that_the_log_says_fits():
    texts = [fix.text for fix in found(report("vLLM 0.11, one request is too long").text).fixes]
    assert "--max-model-len 41936" in texts
    assert "--kv-cache-dtype fp8" in texts


def test_vllm_beside_another_process_gets_the_share_that_is_free():
    document = found(report("vLLM, another process at start-up").text)
    assert document.fixes[0].text == "--gpu-memory-utilization 0.38"


def test_fragmentation_is_answered_with_expandable_segments_first():
    document = found(report("fragmentation, new wording").text)
    assert document.fixes[0].text == "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True"


def test_fixes_are_in_the_flags_of_the_tool():
    assert "--use_liger_kernel true" in [fix.text for fix in found(report("transformers, logits in fp32").text).fixes]
    assert "micro_batch_size: 1" in [fix.text for fix in found(report("Axolotl").text).fixes]
    assert any("--recompute-granularity" in fix.text for fix in found(report("Megatron-LM, loss").text).fixes)
    assert any("--shm-size" in fix.text for fix in found(report("a data loader's shared memory").text).fixes)


def test_fixes_by_rule_have_no_numbers_and_say_so():
    document = found(report("TRL, GRPO").text)
    assert all(fix.basis == "rule" for fix in document.fixes)
    lines = " ".join(plain(line).strip() for line in diagnosis_text(document, 100))
    assert "fixes by rule: with --model and --on" in lines


def test_with_model_and_machine_fixes_are_estimated_and_ranked():
    text = traceback(
        ("trl/trainer/sft_trainer.py", "compute_loss", "super().compute_loss(model, inputs)"),
        ("transformers/loss/loss_utils.py", "ForCausalLMLoss", "logits = logits.float()"),
        error=torch_oom(tried="2.32 GiB", total="23.52 GiB", this="22.40 GiB", allocated="21.80 GiB"),
    )
    options = {"method": "lora", "sequence_length": 4096, "recompute": "full", "model": "qwen3-8b", "on": "rtx-4090"}
    run = Run(asker=Asker(model="qwen3-8b", on="rtx-4090"), options=lambda verb: options)
    document = diagnosed(Log(text), run)
    assert document.cause == "logits"
    assert "4,096 tokens x 151,936 entries x 4 bytes" in document.text
    assert document.estimate is not None
    estimated = [fix for fix in document.fixes if fix.basis == "estimated"]
    assert estimated[0].text == "--use_liger_kernel true"
    assert all(fix.freed_bytes > 0 and fix.needed_bytes <= document.estimate.usable_bytes for fix in estimated)


def test_the_command_in_the_log_is_the_question():
    start = "(APIServer pid=1) INFO 10-25 13:07:01 [utils.py:233] non-default args: {'model_tag': 'qwen3-32b', "
    text = (
        f"{start}'model': 'qwen3-32b', 'max_model_len': 40960}}\n" + report("vLLM 0.11, one request is too long").text
    )
    document = found(text, on="h100")
    assert document.question["context"].value == 40960
    assert document.question["context"].origin == "file"
    assert document.estimate is not None
    assert any(fix.basis == "estimated" for fix in document.fixes)
    contexts = [fix.text for fix in document.fixes if fix.text.startswith("--max-model-len")]
    assert contexts == ["--max-model-len 41936"]  # of the engine itself, not the estimate's


def test_a_machine_that_the_log_names_is_taken():
    text = (
        "$ vllm serve qwen3-32b --max-model-len 40960\n| 0  NVIDIA GeForce RTX 4090   On |\n"
        + report("vLLM, loading").text
    )
    document = found(text)
    assert document.question["on"].value.startswith("RTX-4090")


def test_a_command_that_cannot_be_read_leaves_the_fixes_by_rule():
    text = "vllm serve no-such-model-anywhere --max-model-len 10\n" + report("vLLM, loading").text
    document = found(text, on="h100")
    assert document.estimate is None
    assert any("is not estimated" in warning for warning in document.warnings)


def test_a_run_that_fits_by_the_estimate_keeps_its_fixes_and_says_so():
    document = found(report("transformers, backward").text, model="gpt2", on="h100")
    assert document.fixes[0].basis == "rule"
    assert any("this run fits" in warning for warning in document.warnings)


# ---- what is refused


@pytest.mark.parametrize(
    "text",
    [
        "",
        "\n",
        "epoch 1 loss 2.3\nall went well\n",
        "out of memory is a phrase",
        "oom",
        "step 137, exit gate 137.2, killed 137 bugs",
        "triton.runtime.errors.OutOfResources: out of resource: shared memory, Required: 131072, Hardware limit: 101.",
    ],
)
def test_a_log_that_does_not_say_it_is_answered_with_what_was_looked_for(text):
    with pytest.raises(MissingDatum, match="Looked for: what PyTorch's allocators"):
        found(text)


@settings(max_examples=150)
@given(st.text(max_size=400))
def test_any_text_is_answered_or_refused(text):
    with suppress(TonnageError):
        assert isinstance(found(text), DiagnosisDocument)


_LINES = [line for each in REPORTS for line in each.text.splitlines()]


@settings(max_examples=150, deadline=None)
@given(st.lists(st.one_of(st.sampled_from(_LINES), st.text(max_size=60)), max_size=12), st.integers(0, 400))
def test_any_lines_of_reports_cut_anywhere_are_answered_or_refused(lines, cut):
    text = "\n".join(lines)[cut:]
    try:
        document = found(text)
    except TonnageError:
        return
    for width in (40, 80):
        assert len(diagnosis_text(document, width)) >= 3
    json.dumps([fix.text for fix in document.fixes])


@settings(max_examples=60)
@given(st.binary(max_size=300))
def test_any_bytes_are_text_or_refused(data):
    with suppress(InvalidInput):
        assert isinstance(decoded(data, "log"), str)


def test_binary_and_huge_files_are_refused_in_a_sentence(tmp_path, capsys):
    binary = tmp_path / "model.bin"
    binary.write_bytes(bytes(range(256)) * 40)
    assert main(["diagnose", str(binary)]) == 64
    assert "holds bytes that are no text" in capsys.readouterr().err
    huge = tmp_path / "huge.log"
    with huge.open("wb") as file:
        file.truncate(LARGEST + 1)
    assert main(["diagnose", str(huge)]) == 64
    assert "tail -n 50000" in capsys.readouterr().err
    assert main(["diagnose", str(tmp_path)]) == 64
    assert main(["diagnose", str(tmp_path / "nothing.log")]) == 64


def test_a_log_of_powershell_is_read():
    assert found(decoded(torch_oom().encode("utf-16"), "log")).evidence


def test_a_long_log_is_read_in_a_time_that_grows_with_its_length():
    """Lines are cleaned where a sign's characters are found, not all of them."""
    log = Log("step 1 loss 2.0\n" * 200_000 + torch_oom())
    cleaned_lines = []
    at = log.at
    log.at = lambda index: cleaned_lines.append(index) or at(index)
    assert failure_of(log) is not None
    assert len(cleaned_lines) < 2_000


# ---- the command line


def printed(capsys, *words):
    status = main(["diagnose", *words])
    out = capsys.readouterr()
    return status, out.out, out.err


def test_the_first_line_says_phase_and_cause(tmp_path, capsys):
    file = tmp_path / "run.log"
    file.write_text(report("vLLM 0.11, one request is too long").text)
    status, out, _ = printed(capsys, str(file))
    assert status == 0
    first = out.splitlines()[0]
    assert first.startswith("out of memory while allocating the KV cache: 131,072 tokens need 16.00 GiB")


def test_json_is_the_document_with_its_envelope(tmp_path, capsys):
    file = tmp_path / "run.log"
    file.write_text(report("torch 2.7, forward").text)
    status, out, _ = printed(capsys, str(file), "--json")
    document = json.loads(out)
    assert status == 0
    assert document["schema"] == "tonnage/2"
    assert document["question"]["log"]["value"] == str(file)
    assert document["warnings"] == []
    assert document["phase"] == "forward"


def test_a_log_that_does_not_say_it_is_status_4(tmp_path, capsys):
    file = tmp_path / "run.log"
    file.write_text("all went well\n")
    status, _, err = printed(capsys, str(file))
    assert status == 4
    assert "does not say that memory ran out" in err


def test_standard_input_and_options_of_the_run():
    words = ["diagnose", "-", "--model", "gpt2", "--on", "h100", "--sequence-length", "1024", "--json"]
    done = subprocess.run(
        [sys.executable, "-m", "tonnage", *words],
        input=report("transformers, backward").text,
        capture_output=True,
        text=True,
        check=False,
    )
    document = json.loads(done.stdout)
    assert done.returncode == 0
    assert document["question"]["sequence_length"]["value"] == 1024
    assert document["estimate"]["fits"] is True


def test_options_of_the_run_need_a_model_and_a_machine(tmp_path, capsys):
    file = tmp_path / "run.log"
    file.write_text(torch_oom())
    status, _, err = printed(capsys, str(file), "--sequence-length", "1024")
    assert status == 64
    assert "--model and --on" in err


def test_a_config_is_the_question(tmp_path, capsys):
    log, script = tmp_path / "run.log", tmp_path / "serve.sh"
    log.write_text(report("vLLM, loading").text)
    script.write_text("vllm serve llama-3.1-70b --max-model-len 8192\n")
    status, out, _ = printed(capsys, str(log), "--config", str(script), "--on", "h100", "--json")
    document = json.loads(out)
    assert status == 0
    assert document["read"]["tool"] == "vLLM"
    assert document["fixes"][0]["basis"] == "estimated"


def test_words_are_parted_into_those_of_diagnose_and_those_of_the_run():
    words = ["run.log", "--method", "lora", "--on", "h100", "--model", "gpt2", "--json", "full", "--liger"]
    parted = ["--on", "h100", "--model", "gpt2", "--json", "full", "run.log", "--", "--method", "lora", "--liger"]
    assert spelled(words) == parted


# ---- tables


def test_every_sign_has_characters_that_its_pattern_needs():
    """A hint that is no part of what the pattern matches would hide the line."""
    for pattern in (*failures(), *facts()):
        assert pattern.hint
        assert set(pattern.units) == set(pattern.regex.groupindex), pattern.hint


def test_every_rule_has_words_of_its_own():
    """A tool without a flag gets the words."""
    for table in (rules.TRAINING, rules.SERVING):
        for each in table.values():
            assert {rule.option for rule in each} <= WORDS.keys()
    assert {rule.option for rule in (*rules.LOADING, *rules.SAVING)} <= WORDS.keys()


def test_every_flag_is_of_a_known_tool_and_is_filled():
    names = {tool.name for tool in ALL}
    assert FLAGS.keys() <= names
    for tool, options in FLAGS.items():
        for option, flag in options.items():
            assert option in WORDS, option
            for value in [3] if isinstance(flag, str) else flag:
                assert "{value}" not in (flag_of(tool, option, value) or ""), (tool, option)


@pytest.mark.parametrize(
    "line, text, rank",
    [
        ("[rank3]: boom", "boom", "3"),
        ("[default7]:boom", "boom", "7"),
        ("(Worker_TP3 pid=99) ERROR 10-25 13:08:43 [core.py:708] boom", "boom", "TP3"),
        ("(EngineCore_DP0 pid=4711) ERROR 10-25 13:08:43 [core.py:708] boom", "boom", "DP0"),
        ("(RayWorkerWrapper pid=2317, ip=10.0.0.2) boom", "boom", ""),
        ("ERROR 11-18 18:07:28 engine.py:366] boom", "boom", ""),
        ("[2025-07-07 19:00:30 DP4 TP4] boom", "boom", "DP4 TP4"),
        ("[07/08/2025-19:47:15] [TRT-LLM] [RANK 1] [E] boom", "boom", "1"),
        ("[TensorRT-LLM][ERROR] boom", "boom", ""),
        ("Aug 14 16:27:00 box ollama[3110]: boom", "boom", ""),
        ("1.06.520.077 E boom", "boom", ""),
        ("12: Traceback", "Traceback", "12"),
        ("[node7:5]:boom", "boom", "5"),
        ("vllm-1  | boom", "boom", ""),
        ("[2025-09-01 10:00:00,123] [INFO] [utils.py:781] boom", "boom", ""),
        ("2025-09-01 10:00:00.123 | ERROR    | __main__:run:10 - boom", "boom", ""),
    ],
)
def test_prefixes_of_loggers_and_launchers_are_taken_off(line, text, rank):
    assert cleaned(line) == (text, rank)


def test_vllm_and_its_prefix_make_no_other_tool():
    assert found(VLLM + torch_oom()).tool == "vllm"


def test_a_message_is_read_as_it_was_pasted_and_a_name_of_no_file_stays_one(capsys):
    message = "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 1.96 GiB. GPU 0 has 23.51 GiB"
    assert main(["diagnose", message, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["tool"] == tonnage.diagnose(message).tool == "pytorch"
    assert main(["diagnose", "my log.txt"]) == 64
    assert "cannot read my log.txt" in capsys.readouterr().err


@pytest.mark.parametrize(("left", "first"), [("4.56", "on 2xRTX-4090"), ("15.20", "--gpu-memory-utilization")])
def test_a_larger_share_of_the_gpu_is_no_fix_where_the_cache_lacks_more_than_it_gives(left, first):
    """0.05 of an RTX 4090's 23.5 GiB are 1.2 GiB."""
    log = (
        "ValueError: To serve at least one request with the models's max seq len (131072), 16.00 GiB KV cache is "
        f"needed, which is larger than the available KV cache memory ({left} GiB)."
    )
    found = tonnage.diagnose(log, model="llama-3.1-8b", on="rtx-4090")
    assert found.fixes[0].text.startswith(first)
