"""Whatever stands in a file that may carry a command: an answer, or an error for who wrote it, and in little time."""

import json
import os
from contextlib import suppress

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from toy import toy

from every_row import every_row
from tonnage.interchange.check import understood
from tonnage.interchange.reading import Asker
from tonnage.interchange.source import LARGEST, command_source, file_source, text_source
from tonnage.kernel.errors import InvalidInput, TonnageError

BOMB = "a: &a [x, x, x, x, x, x, x, x, x]\n" + "".join(
    f"{chr(98 + n)}: &{chr(98 + n)} [{', '.join([f'*{chr(97 + n)}'] * 9)}]\n" for n in range(9)
)
POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "p"},
    "spec": {
        "containers": [
            {
                "name": "server",
                "image": "vllm/vllm-openai",
                "args": ["--model", "qwen3-8b", "--max-model-len", "4096"],
                "env": [{"name": "A", "value": "b"}],
                "resources": {"limits": {"nvidia.com/gpu": 1}},
            }
        ],
        "nodeSelector": {"nvidia.com/gpu.product": "NVIDIA-H200"},
        "affinity": {},
    },
}
SERVICE = {
    "apiVersion": "serving.kserve.io/v1alpha2",
    "kind": "LLMInferenceService",
    "spec": {
        "model": {"uri": "hf://Qwen/Qwen3-8B", "lora": {"adapters": [{"name": "a"}]}},
        "replicas": 1,
        "parallelism": {"tensor": 1, "pipeline": 1, "data": 1, "dataLocal": 1, "expert": False},
        "template": {"containers": [{"name": "main", "resources": {"limits": {"nvidia.com/gpu": 1}}}]},
    },
}
PREDICTOR = {
    "apiVersion": "serving.kserve.io/v1beta1",
    "kind": "InferenceService",
    "spec": {
        "predictor": {
            "minReplicas": 1,
            "workerSpec": {"tensorParallelSize": 1, "pipelineParallelSize": 1},
            "model": {
                "modelFormat": {"name": "huggingface"},
                "args": ["--model_id=Qwen/Qwen3-8B"],
                "storageUri": "hf://a/b",
                "resources": {"limits": {"nvidia.com/gpu": 1}},
            },
        }
    },
}
GROUP = {
    "apiVersion": "leaderworkerset.x-k8s.io/v1",
    "kind": "LeaderWorkerSet",
    "spec": {"replicas": 1, "leaderWorkerTemplate": {"size": 2, "workerTemplate": {"spec": POD["spec"]}}},
}
TASK = {
    "name": "t",
    "num_nodes": 1,
    "resources": {"accelerators": "H100:8", "any_of": None, "instance_type": None, "memory": "64+"},
    "envs": {"A": "b"},
    "service": {"replicas": 1},
    "run": "vllm serve qwen3-8b --max-model-len 4096",
}
RAY = {
    "model_loading_config": {"model_id": "qwen3-8b", "model_source": "Qwen/Qwen3-8B"},
    "accelerator_type": "H100",
    "engine_kwargs": {"tensor_parallel_size": 1, "max_model_len": 4096, "compilation_config": {"level": 3}},
    "deployment_config": {"num_replicas": 1, "ray_actor_options": {"num_gpus": 0}},
    "placement_group_config": {"bundles": [{"GPU": 1}]},
    "lora_config": {"max_num_adapters_per_replica": 4},
    "llm_engine": "vLLM",
}
COMPOSE = {
    "services": {
        "a": {
            "image": "vllm/vllm-openai:v0.11.0",
            "command": ["--model", "qwen3-8b"],
            "environment": {"A": "b"},
            "deploy": {"replicas": 1, "resources": {"reservations": {"devices": [{"count": 1}]}}},
            "gpus": None,
        }
    }
}
TREES = {
    "kubernetes": POD,
    "group": GROUP,
    "kserve": SERVICE,
    "predictor": PREDICTOR,
    "skypilot": TASK,
    "ray-serve": RAY,
    "compose": COMPOSE,
}
ODD = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(10**20), 10**20),
    st.floats(),
    st.sampled_from(
        ["", "0", "-1", "auto", "h100:8", "8", "1e9", "a b", "$X", "${X}", "'", '"', "a" * 300, "ä\n", "hf://"]
    ),
    st.lists(st.one_of(st.text(max_size=5), st.integers(0, 9), st.none()), max_size=3),
    st.dictionaries(
        st.sampled_from(["name", "value", "a", "GPU", "count"]), st.one_of(st.text(max_size=5), st.none()), max_size=2
    ),
)


def places(tree, at=()):
    """Every place in a tree."""
    yield at
    items = tree.items() if isinstance(tree, dict) else enumerate(tree) if isinstance(tree, list) else ()
    for name, inner in items:
        yield from places(inner, (*at, name))


def with_value(tree, at, value):
    """The tree with another value at a place."""
    if not at:
        return value
    first, *rest = at
    copy = dict(tree) if isinstance(tree, dict) else list(tree)
    copy[first] = with_value(tree[first], tuple(rest), value)
    return copy


@given(st.data())
def test_an_odd_value_anywhere_in_a_manifest_is_answered_or_refused(data):
    tree = TREES[data.draw(st.sampled_from(sorted(TREES)))]
    for _ in range(data.draw(st.integers(1, 2))):
        at = data.draw(st.sampled_from(list(places(tree))))
        tree = with_value(tree, at, data.draw(ODD))
        if not isinstance(tree, dict):
            break
    with suppress(TonnageError):
        understood(text_source(yaml.safe_dump(tree, allow_unicode=True), "x.yaml"), Asker(on="h100", model="qwen3-8b"))


@given(st.data())
def test_another_name_anywhere_in_a_manifest_is_answered_or_refused(data):
    name = data.draw(st.sampled_from(sorted(TREES)))
    sections = [at for at in places(TREES[name]) if isinstance(value_at(TREES[name], at), dict)]
    at = data.draw(st.sampled_from(sections))
    section = {**value_at(TREES[name], at), "madeUpKey": data.draw(ODD)}
    tree = with_value(TREES[name], at, section)
    with suppress(TonnageError):
        understood(text_source(json.dumps(tree), "x.json"), Asker(on="h100", model="qwen3-8b"))


def value_at(tree, at):
    for name in at:
        tree = tree[name]
    return tree


@every_row(
    ("name", "at"),
    [
        ("kubernetes", ()),
        ("kubernetes", ("spec",)),
        ("kubernetes", ("spec", "containers", 0)),
        ("group", ("spec",)),
        ("group", ("spec", "leaderWorkerTemplate")),
        ("group", ("spec", "leaderWorkerTemplate", "workerTemplate")),
        ("kserve", ("spec",)),
        ("kserve", ("spec", "model")),
        ("kserve", ("spec", "parallelism")),
        ("kserve", ("spec", "template")),
        ("predictor", ("spec", "predictor")),
        ("predictor", ("spec", "predictor", "model")),
        ("skypilot", ()),
        ("skypilot", ("resources",)),
        ("ray-serve", ()),
        ("ray-serve", ("engine_kwargs",)),
        ("ray-serve", ("lora_config",)),
        ("compose", ()),
        ("compose", ("services", "a")),
    ],
    at_least=15,
)
def test_a_made_up_key_is_not_understood(name, at):
    tree = with_value(TREES[name], at, {**value_at(TREES[name], at), "madeUpKey": "x"})
    if name == "skypilot":
        tree = {**tree, "resources": {k: v for k, v in tree["resources"].items() if v is not None}}
    found = understood(text_source(json.dumps(tree), "x.yaml"), Asker(on="h100", model="qwen3-8b"))
    unclear = [key.key for key in found.document.keys if key.status == "not understood"]
    assert any(key.replace("-", "").lower().endswith(("madeupkey", "madeupkey.x")) for key in unclear), unclear


LINES = st.sampled_from(
    [
        "#SBATCH --nodes=2",
        "#SBATCH -N",
        "#SBATCH --gres=gpu",
        "#SBATCH --gres=gpu:x:",
        "#SBATCH --gpus=h100:99999999999",
        "#SBATCH --gpus-per-node=:::",
        "#SBATCH --nodes",
        "#SBATCH 'a",
        "#SBATCH --constraint=a100|h100",
        "#SBATCH --array=0-9%2",
        "#SBATCH",
        "export A=1 B='x y'",
        "srun",
        "srun --",
        "srun -n",
        "srun bash -c",
        "bash -c \"bash -c 'vllm serve qwen3-8b'\"",
        "torchrun --nproc_per_node=gpu -m",
        "torchrun --nproc-per-node 99 toytrain.py",
        "mpirun -np x python toytrain.py",
        "docker run",
        "docker run --gpus",
        "docker run --gpus all vllm/vllm-openai --model qwen3-8b",
        "apptainer exec",
        "vllm serve qwen3-8b --max-model-len 4096",
        "vllm serve",
        "python toytrain.py --model qwen3-8b",
        "if [ 1 ]; then vllm serve qwen3-8b; else",
        "cat <<EOF",
        "'",
        "\\",
        "a && b || c | d &",
        "source .",
        "./missing.sh",
    ]
)


@given(st.lists(LINES, max_size=8), st.sampled_from(["job.sbatch", "run.sh", "the text"]))
def test_any_script_is_answered_or_refused(lines, name):
    with toy(), suppress(TonnageError):
        understood(text_source("#!/bin/bash\n" + "\n".join(lines), name), Asker(on="h100", model="qwen3-8b"))


WORDS = "srun -n 2 -N torchrun --nnodes 1:x docker run bash -c -- vllm serve = - numactl uvx".split()  # noqa: SIM905


@given(st.lists(st.sampled_from(WORDS)))
def test_any_command_is_answered_or_refused(words):
    with suppress(TonnageError):
        understood(command_source([*words, "x"]), Asker(on="h100", model="qwen3-8b"))


NAMES = ("x.yaml", "x.yml", "x.json", "job.sbatch", "run.sh")


@every_row("name", NAMES)
def test_empty_files_lists_and_nothing_are_refused(name):
    for text in ("", "\n", "[]", "- a\n- b\n", "null", "---\n---\n", "3", '""'):
        with pytest.raises(InvalidInput):
            understood(text_source(text, name), Asker(on="h100"))


@every_row(
    ("text", "says"),
    [
        (BOMB + "services: {a: {image: b}}", "values|large|alias"),
        ("apiVersion: v1\nkind: Pod\nspec: !!python/object/apply:os.system [id]\n", "tag|YAML"),
        ("services: {a: {image: !secret x}}", "tag|YAML"),
        ("a: " + "[" * 200 + "]" * 200, "deep|nested|levels"),
        ("apiVersion: &a v1\nkind: *b\n", "anchor"),
        ("apiVersion: v1\napiVersion: v2\nkind: Pod\n", "twice|repeated"),
        ("kind: Pod\n\tspec: x\n", "YAML"),
    ],
    at_least=6,
)
def test_yaml_that_is_made_to_harm_is_refused(text, says):
    with pytest.raises(InvalidInput, match=says):
        understood(text_source(text, "x.yaml"), Asker(on="h100"))


@every_row("name", NAMES)
def test_files_that_are_none_are_refused(name, tmp_path_factory):
    folder = tmp_path_factory.mktemp("odd")
    place = folder / name
    place.write_bytes(b"\x7fELF\x00\xff\xfe" * 100)
    with pytest.raises(InvalidInput, match="UTF-8"):
        understood(file_source(str(place)))
    place.write_bytes(b"#" * (LARGEST + 1))
    with pytest.raises(InvalidInput, match="larger"):
        understood(file_source(str(place)))
    place.unlink()
    os.mkfifo(place)
    with pytest.raises(InvalidInput, match="pipe"):
        understood(file_source(str(place)))
    place.unlink()
    place.symlink_to("/dev/zero")
    with pytest.raises(InvalidInput, match="device"):
        understood(file_source(str(place)))
    place.unlink()
    place.mkdir()
    with pytest.raises(InvalidInput, match="folder"):
        understood(file_source(str(place)))


def test_files_that_a_job_names_are_refused_in_the_same_way(tmp_path):
    (tmp_path / "job.sbatch").write_text("#!/bin/bash\n#SBATCH --gpus-per-node=8\nbash inner.sh\n")
    (tmp_path / "inner.sh").symlink_to("/dev/zero")
    with pytest.raises(InvalidInput, match="device"):
        understood(file_source(str(tmp_path / "job.sbatch")))
    (tmp_path / "llm.yaml").write_text("llm_configs: [inner.yaml]\n")
    os.mkfifo(tmp_path / "inner.yaml")
    with pytest.raises(InvalidInput, match="pipe"):
        understood(file_source(str(tmp_path / "llm.yaml")), Asker(on="h100"))


def test_a_pasted_file_names_no_other_files(tmp_path):
    script = tmp_path / "inner.sh"
    script.write_text("vllm serve qwen3-8b\n")
    with pytest.raises(InvalidInput, match="no command"):
        understood(text_source(f"#!/bin/bash\n#SBATCH --gpus-per-node=8\nbash {script}\n", "job.sbatch"))
    with pytest.raises(InvalidInput, match="names a file"):
        understood(text_source("llm_configs: [inner.yaml]\n", "llm.yaml"), Asker(on="h100"))


@every_row(
    "text",
    [
        "#!/bin/bash\n#SBATCH --gpus-per-node=8\n" + "echo x\n" * 5_000,
        "#!/bin/bash\n#SBATCH --gpus-per-node=8\n" + "python a.py --b\n" * 3_000,
        "#!/bin/bash\n#SBATCH --gpus-per-node=8\n" + "srun " * 5_000,
        "#!/bin/bash\n" + "#SBATCH --gpus-per-node=8\n" * 5_000,
        "#!/bin/bash\n#SBATCH --gpus-per-node=8\n" + "A=$A$A\n" * 24 + "vllm serve $A\n",
    ],
)
def test_a_long_script_ends(text):
    with suppress(TonnageError):
        understood(text_source(text, "job.sbatch"), Asker(on="h100", model="qwen3-8b"))


def test_a_manifest_with_very_many_keys_ends():
    tree = {**POD, "metadata": {f"k{n}": n for n in range(60_000)}}
    with pytest.raises(InvalidInput, match="more than"):
        understood(text_source(json.dumps(tree), "x.yaml"), Asker(on="h100"))
