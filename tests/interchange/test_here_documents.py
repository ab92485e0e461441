"""Here-documents of job scripts, and values that a script takes from commands."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from every_row import every_row
from tonnage.interchange.check import understood
from tonnage.interchange.here_documents import parted
from tonnage.interchange.reading import Asker
from tonnage.interchange.source import text_source
from tonnage.kernel.errors import InvalidInput

HEAD = "#!/bin/bash\n#SBATCH --nodes=1\n#SBATCH --gpus-per-node=8\n"
ZERO = '{"zero_optimization": {"stage": 3}, "train_micro_batch_size_per_gpu": $MB, "bf16": {"enabled": true}}'
TRAIN = "torchrun --nproc_per_node 8 train.py --model_name_or_path Qwen/Qwen2.5-7B --deepspeed ds.json "
TRAIN += "--bf16 True --per_device_train_batch_size 4 --max_length 2048\n"


def read(script, **asked):
    return understood(text_source(script, "job.sh"), Asker(on="h100", **asked))


@every_row("start", ["cat > ds.json <<JSON", "cat <<JSON > ds.json", "cat <<-JSON >ds.json", "tee ds.json <<JSON"])
def test_a_file_that_a_here_document_writes_is_read(start):
    found = read(f"{HEAD}MB=4\n{start}\n{ZERO}\nJSON\n{TRAIN}")
    assert (found.question["zero_stage"], found.question["micro_batch_size"]) == (3, 4)


def test_variables_of_a_quoted_here_document_stay_as_they_are():
    script = "A=1\ncat > x.txt <<'EOF'\n$A\nEOF\ncat > y.txt <<EOF\n$A\nEOF\n"
    assert parted(script)[1] == {"x.txt": "$A\n", "y.txt": "1\n"}


def test_a_here_document_for_a_shell_is_a_part_of_the_script():
    found = read("sbatch <<EOT\n#SBATCH --gpus-per-node=4\nvllm serve Qwen/Qwen3-8B --tensor-parallel-size 4\nEOT\n")
    assert (found.question["tensor_parallel_size"], found.question["on"]) == (4, "4xh100")


def test_what_stands_in_a_here_document_for_another_program_is_no_command():
    script = f"{HEAD}python - <<PY\nvllm serve Qwen/Qwen3-32B\nPY\nvllm serve Qwen/Qwen3-8B\n"
    found = read(script)
    assert found.question["model"] == "Qwen/Qwen3-8B"
    assert "job.sh: the here-document of line 4 is not read." in map(str, found.notes)


def test_the_script_keeps_its_lines():
    script = "a\ncat > x <<EOF\n1\n2\nEOF\nb\nbash <<EOF\nc\nEOF\n"
    plain, files, unread = parted(script)
    assert plain.splitlines() == ["a", "cat > x ", "", "", "", "b", "", "c", ""]
    assert (files, unread) == ({"x": "1\n2\n"}, ())


@every_row("text", ["echo 1 << 2\n", "cat <<EOF\nno end\n", "# cat <<EOF\nrun\n", "cat <<< word\n"])
def test_what_is_no_here_document_stays(text):
    assert parted(text)[0].split() == text.split()


@every_row(
    "words, message",
    [
        ("--tensor-parallel-size $TP", r"Got '\$TP': line 4 sets TP by a command, which is not run here"),
        ("--tensor-parallel-size $OTHER", r"Got '\$OTHER': nothing in it sets OTHER"),
    ],
)
def test_a_value_that_is_not_known_is_refused_with_the_line_that_sets_it(words, message):
    with pytest.raises(InvalidInput, match=message):
        read(f"{HEAD}TP=$(nvidia-smi -L | wc -l)\nvllm serve Qwen/Qwen3-8B {words}\n")


def test_a_model_that_a_command_names_is_asked_for():
    script = f"{HEAD}MODEL=$(cat model.txt)\nvllm serve $MODEL --tensor-parallel-size 8\n"
    with pytest.raises(
        InvalidInput, match="line 4 sets MODEL by a command, which is not run here: say it with --model"
    ):
        read(script)
    assert read(script, model="qwen3-8b").question["model"] == "qwen3-8b"


@given(st.text(alphabet="<<EOF-'\" \n>xcat$`()#", max_size=200))
def test_any_text_is_parted_without_a_failure(text):
    assert isinstance(parted(text)[0], str)
