"""Jobs and manifests that are written: what is read of them is what was asked, and shells and clusters take them."""

import json
import re
import shutil
import subprocess

import pytest
import yaml
from toy import toy

from every_row import every_row
from tonnage.interchange.check import understood
from tonnage.interchange.export import export
from tonnage.interchange.formats import format_of
from tonnage.interchange.reading import Asker
from tonnage.interchange.source import text_source
from tonnage.kernel.errors import InvalidInput

WRITTEN = ("sbatch", "kubernetes", "skypilot", "kserve")
ENDINGS = {"sbatch": ".sbatch", "kubernetes": ".yaml", "skypilot": ".yaml", "kserve": ".yaml"}
SERVED = [
    {"model": "qwen3-8b", "on": "h100"},
    {"model": "llama-3.1-70b", "on": "4xh100", "tensor_parallel_size": 4, "context": 8192},
    {"model": "llama-3.1-70b", "on": "2x8xh100", "tensor_parallel_size": 8, "pipeline_parallel_size": 2},
    {"model": "llama-3.1-8b", "on": "8xl40s", "tensor_parallel_size": 1, "context": 4096},
    {"model": "qwen3-8b", "on": "2xp5.48xlarge", "tensor_parallel_size": 8},
    {"model": "qwen3-0.6b", "on": "a100-80gb:2g.20gb", "context": 4096},
    {"model": "qwen3-8b", "on": "mi300x", "context": 4096},
    {"model": "qwen3-8b", "on": "a100-40gb", "context": 4096},
]


READS_ALL = bool(tuple(format_of("vllm").known()))  # the format of vLLM reads all of its command


def figures(verb, answer):
    """The bytes that are needed, and the time of a step or a token."""
    return answer.memory.value, answer.serving.tpot_seconds if verb == "serve" else answer.step_time.value


def read_back(form, question):
    """Whether the inner format can read all that is said."""
    is_whole = not {"pipeline_parallel_size"} & set(question) and question.get("tensor_parallel_size") != 1
    return (is_whole or READS_ALL) and not (form == "skypilot" and ":" in question["on"])


@every_row(
    ("form", "question"),
    [(form, question) for form in WRITTEN for question in SERVED if read_back(form, question)],
    at_least=20,
)
def test_what_is_written_asks_the_same_question(form, question):
    text = export(form, "serve", question).text
    found = understood(text_source(text, f"file{ENDINGS[form]}"))
    assert found.verb == "serve"
    own, read = asked("serve", {**question, "engine": "vllm"}), asked("serve", found.question)
    for name in ("context", "tensor_parallel_size", "pipeline_parallel_size", "on"):
        if name in question:
            assert read.question[name].value == own.question[name].value, name
    assert figures("serve", read) == figures("serve", own)


def asked(verb, question):
    from importlib import import_module

    from tonnage.question.read import in_fields
    from tonnage.question.read import read as read_question

    parsed = read_question(verb, {**question, "advice": False, "as_is": True})
    with in_fields(parsed):
        return import_module(f"tonnage.verbs.{verb}").answer(parsed.given)


TRAINED = [
    {"model": "llama-3.1-8b", "on": "2x8xh100"},
    {"model": "llama-3.1-8b", "on": "8xh100", "runtime": "megatron", "tensor_parallel_size": 2},
    {"model": "qwen3-0.6b", "on": "2x8xa100-80gb", "runtime": "ddp"},
    {"model": "llama-3.1-8b", "on": "2x8xh100", "method": "lora", "runtime": "fsdp2"},
]


@every_row(("form", "question"), [(form, one) for form in WRITTEN[:3] for one in TRAINED], at_least=12)
def test_a_job_that_trains_starts_a_process_on_each_accelerator(form, question):
    text = export(form, "train", question).text
    nodes = 2 if question["on"].startswith("2x8") else 1
    if "trl sft" in text:
        assert f"--num_processes {8 * nodes}" in text
        assert "--num_machines 2" in text
    else:
        words = re.sub(r"\n *- |[_=]", " ", text).replace('"', "").replace("nproc-per-node", "nproc per node")
        assert f"--nnodes {nodes}" in words or (nodes == 1 and "--nnodes" not in words)
        assert "--nproc per node 8" in words
        assert ("FIRST_NODE" in text or ".train" in text) or nodes == 1
    assert "FIRST-NODE" not in text
    assert "HEAD_NODE" not in text
    assert "NODE-RANK" not in text
    assert "# tonnage: train" in text


@every_row("form", WRITTEN[:3])
def test_a_job_that_trains_is_read_with_its_machines(form):
    """With the program of the tests in place of the user's."""
    question = {"model": "qwen3-0.6b", "on": "2x8xa100-80gb", "runtime": "ddp"}
    text = export(form, "train", question).text.replace("TRAIN.py", "toytrain.py")
    text = re.sub(r"--model_name_or_path \S+", "--model qwen3-0.6b --seq 4096", text)
    with toy():
        found = understood(text_source(text, f"file{ENDINGS[form]}"))
    read, own = asked("train", found.question), asked("train", question)
    assert read.question["on"].value == own.question["on"].value
    assert figures("train", read) == figures("train", own)
    assert found.question["runtime"] == "ddp"


def test_a_runtime_that_nothing_is_written_of_is_refused():
    with pytest.raises(InvalidInput, match="how deepspeed is started"):
        export("sbatch", "train", {"model": "qwen3-0.6b", "on": "8xh100", "runtime": "deepspeed"})


@every_row(("verb", "question"), [("serve", one) for one in SERVED[:4]] + [("train", one) for one in TRAINED])
def test_bash_takes_the_script(verb, question):
    if shutil.which("bash") is None:
        pytest.skip("no bash")
    text = export("sbatch", verb, question).text
    done = subprocess.run(["bash", "-n"], input=text, capture_output=True, text=True, check=False)
    assert done.stderr == ""


def test_all_nodes_but_the_first_are_headless(tmp_path):
    """The script with stand-ins for Slurm and vLLM, as the node of each rank would run it."""
    if shutil.which("bash") is None:
        pytest.skip("no bash")
    text = export("sbatch", "serve", SERVED[2]).text
    for name, body in {
        "scontrol": "echo node-a; echo node-b",
        "srun": '"$@"',
        "vllm": 'echo "$@"',
    }.items():
        (tmp_path / name).write_text(f"#!/bin/bash\n{body}\n")
        (tmp_path / name).chmod(0o755)
    lines = []
    for rank in ("0", "1"):
        environment = {"PATH": f"{tmp_path}:/usr/bin:/bin", "SLURM_NODEID": rank, "SLURM_JOB_NODELIST": "node-[a-b]"}
        done = subprocess.run(
            ["bash"], input=text, env=environment, capture_output=True, text=True, check=False, cwd=tmp_path
        )
        assert done.stderr == ""
        lines.append(done.stdout)
    assert "--node-rank 0 --master-addr node-a" in lines[0]
    assert "--headless" not in lines[0]
    assert "--node-rank 1 --master-addr node-a" in lines[1]
    assert "--headless" in lines[1]


@every_row(("form", "question"), [(form, question) for form in WRITTEN[1:] for question in SERVED[:5]], at_least=15)
def test_yaml_is_what_pyyaml_reads(form, question):
    documents = list(yaml.safe_load_all(export(form, "serve", question).text))
    assert all(isinstance(document, dict) for document in documents)
    words = [word for one in documents for word in _strings(one)]
    assert all("\n" not in word or word.startswith(("FIRST_NODE", "torchrun", "trl", "vllm")) for word in words)


def _strings(value):
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for inner in value.values():
            yield from _strings(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _strings(inner)


def test_a_server_over_nodes_is_a_group_of_pods():
    document = yaml.safe_load(export("kubernetes", "serve", SERVED[2]).text)
    assert document["kind"] == "LeaderWorkerSet"
    group = document["spec"]["leaderWorkerTemplate"]
    assert group["size"] == 2
    leader, worker = (group[name]["spec"]["containers"][0] for name in ("leaderTemplate", "workerTemplate"))
    assert leader["resources"]["limits"] == {"nvidia.com/gpu": 8}
    assert (leader.get("command") or leader["args"])[-2:] == ["--master-addr", "$(LWS_LEADER_ADDRESS)"]
    assert (worker.get("command") or worker["args"])[-1] == "--headless"


def test_a_training_over_nodes_is_an_indexed_job_that_finds_its_first_pod():
    service, job = yaml.safe_load_all(export("kubernetes", "train", TRAINED[0]).text)
    name = job["metadata"]["name"]
    assert (service["kind"], service["spec"]["clusterIP"], service["metadata"]["name"]) == ("Service", "None", name)
    assert job["spec"]["completionMode"] == "Indexed"
    assert (job["spec"]["completions"], job["spec"]["parallelism"]) == (2, 2)
    pod = job["spec"]["template"]["spec"]
    assert pod["subdomain"] == name
    container = pod["containers"][0]
    assert f"{name}-0.{name}" in " ".join(container.get("command", []) + container.get("args", []))


def test_a_slice_is_asked_for_as_one():
    document = yaml.safe_load(export("kubernetes", "serve", SERVED[5]).text)
    container = document["spec"]["template"]["spec"]["containers"][0]
    assert container["resources"]["limits"] == {"nvidia.com/mig-2g.20gb": 1}


def test_an_image_is_of_the_engines_release():
    text = export("kubernetes", "serve", {**SERVED[0], "engine_version": "0.11"}).text
    assert "vllm/vllm-openai:v0.11.0" in text
    assert understood(text_source(text, "x.yaml")).document.version == "0.11.0"


def test_kserve_has_words_of_its_own_for_how_a_model_is_spread():
    spec = yaml.safe_load(export("kserve", "serve", SERVED[2]).text)["spec"]
    assert spec["parallelism"] == {"tensor": 8, "pipeline": 2}
    assert spec["model"]["uri"] == "hf://meta-llama/Llama-3.1-70B"
    assert "worker" in spec
    assert "parallel" not in json.dumps(spec["template"])


def test_skypilot_has_no_slices():
    with pytest.raises(InvalidInput, match="whole accelerators"):
        export("skypilot", "serve", SERVED[5])


def test_kserve_serves():
    with pytest.raises(InvalidInput, match="format of serve"):
        export("kserve", "train", TRAINED[0])
    with pytest.raises(InvalidInput, match="starts vllm"):
        export("kserve", "serve", {**SERVED[0], "engine": "sglang"})


@every_row("form", WRITTEN[:3])
def test_who_changes_the_machines_in_the_file_is_asked_about_those(form):
    text = export(form, "serve", SERVED[1]).text
    for before, after in (("gpus-per-node=4", "gpus-per-node=8"), ("gpu: 4", "gpu: 8"), ("H100:4", "H100:8")):
        text = text.replace(before, after)
    assert understood(text_source(text, f"file{ENDINGS[form]}")).question["on"] in (
        "8xH100-SXM-80GB",
        "1x8xH100-SXM-80GB",
    )


def test_the_asker_is_stronger_than_the_comment():
    text = export("sbatch", "serve", SERVED[3]).text
    assert understood(text_source(text, "x.sbatch"), Asker(on="h200")).question["on"] == "8xh200"


def test_several_engines_are_written_for_a_cluster():
    for engine, image in (("sglang", "lmsysorg/sglang:v0.5"), ("llama.cpp", "ghcr.io/ggml-org/llama.cpp:server")):
        document = yaml.safe_load(export("kubernetes", "serve", {**SERVED[0], "engine": engine}).text)
        container = document["spec"]["template"]["spec"]["containers"][0]
        assert container["image"].startswith(image)
        assert (container.get("command") or container["args"])[0] in ("python", "-m")


APART = {"model": "deepseek-v3", "on": "4x8xh200", "tensor_parallel_size": 8, "prefill_replicas": 1}


@pytest.mark.parametrize(
    ("engine", "program"), [("sglang", "python"), ("vllm", "vllm"), ("tensorrt-llm", "trtllm-serve")]
)
def test_each_task_of_an_array_starts_the_server_of_its_own_role_and_no_other(tmp_path, engine, program):
    """One prefill and three decode servers are tasks 0 to 3; the router is left to who knows the nodes."""
    if shutil.which("bash") is None:
        pytest.skip("no bash")
    text = export("sbatch", "serve", {**APART, "engine": engine}).text
    assert "#SBATCH --array=0-3\n" in text
    stub = tmp_path / program
    stub.write_text('#!/bin/bash\necho "$@"\n')
    stub.chmod(0o755)
    roles = []
    for task in range(4):
        done = subprocess.run(
            ["bash", "-s"],
            input=text,
            capture_output=True,
            text=True,
            check=True,
            cwd=tmp_path,
            env={"PATH": f"{tmp_path}:/usr/bin:/bin", "SLURM_ARRAY_TASK_ID": str(task)},
        )
        (started,) = done.stdout.splitlines()
        roles.append("prefill" if re.search(r"mode prefill|kv_producer|prefill\.yml", started) else "decode")
    assert roles == ["prefill", "decode", "decode", "decode"]
    assert not re.search(r"^[^#\n].*(router|disaggregated)", text, re.MULTILINE)


def test_what_slurm_starts_apart_is_read_as_one_plan():
    text = export("sbatch", "serve", {**APART, "engine": "sglang"}).text
    question = understood(text_source(text, "x.sbatch")).question
    assert question["prefill_replicas"] == 1 and question["on"] == "4x8xh200"
    over_nodes = export("sbatch", "serve", {**APART, "engine": "sglang", "on": "8x8xh100", "tensor_parallel_size": 16})
    assert "--nodes=2\n" in over_nodes.text and over_nodes.text.count("srun bash -c") == 2


@pytest.mark.parametrize("form", ["kubernetes", "kserve", "skypilot"])
def test_what_starts_one_command_refuses_roles_and_names_what_starts_them(form):
    with pytest.raises(InvalidInput, match=f"{form} starts one. Export dynamo for Kubernetes"):
        export(form, "serve", APART)
