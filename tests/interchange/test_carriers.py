"""Files that carry a command: what each sample asks, key by key, and the machines that it says."""

from pathlib import Path

import pytest
from toy import toy

from every_row import every_row
from tonnage.interchange.check import recognised, understood
from tonnage.interchange.reading import Asker
from tonnage.interchange.source import command_source, file_source, text_source
from tonnage.kernel.errors import InvalidInput

FILES = Path(__file__).parent / "files"
L70 = {"model": "meta-llama/Llama-3.1-70B", "tensor_parallel_size": 8, "context": 8192}
L70I = {**L70, "model": "meta-llama/Llama-3.1-70B-Instruct"}
Q32 = {"model": "Qwen/Qwen3-32B", "tensor_parallel_size": 2, "context": 8192}


@pytest.fixture(autouse=True)
def _with_toy():
    with toy():
        yield


def numbers(question):
    """Values as numbers where they are: options of a command are texts. One accelerator needs no number."""
    plain = {**question, "on": str(question["on"]).removeprefix("1x")}
    return {
        name: int(value) if isinstance(value, str) and value.isdecimal() else value for name, value in plain.items()
    }


def ask(text, name="job.sbatch", **asker):
    return understood(text_source(text, name), Asker(**asker))


def statuses(found):
    return {key.key: key.status for key in found.document.keys}


# file, what the asker says, the question (the rest is the inner format's), format
SAMPLES = [
    ("sbatch/vllm_two_nodes.sbatch", "", {**L70I, "context": 16384, "on": "2x8xH100-SXM-80GB"}),
    (
        "sbatch/torchrun.sbatch",
        "",
        {
            "model": "llama-3.1-8b",
            "micro_batch_size": 2,
            "sequence_length": 8192,
            "on": "4x4xA100-SXM-80GB",
            "expandable_segments": True,
        },
    ),
    (
        "sbatch/mpirun_array.sbatch",
        "",
        {"model": "qwen3-8b", "micro_batch_size": 1, "sequence_length": 4096, "on": "8xH100-SXM-80GB"},
    ),
    ("sbatch/constraint.sbatch", "", {**Q32, "on": "2xA100-SXM-80GB"}),
    ("sbatch/ray_steps.sbatch", "h200", {**L70, "on": "2x8xh200"}),
    ("kubernetes/deployment.yaml", "", {**L70I, "tensor_parallel_size": 4, "on": "2x4xH100-SXM-80GB"}),
    (
        "kubernetes/pytorchjob.yaml",
        "b200",
        {"model": "llama-3.1-8b", "micro_batch_size": 1, "sequence_length": 4096, "on": "4x8xb200"},
    ),
    (
        "kubernetes/mpijob.yaml",
        "",
        {"model": "qwen3-8b", "micro_batch_size": 1, "sequence_length": 4096, "on": "2x8xH100-SXM-80GB"},
    ),
    ("kubernetes/lws.yaml", "h100", {**L70, "on": "4x8xh100"}),
    (
        "kubernetes/mig_pod.yaml",
        "",
        {"model": "Qwen/Qwen3-0.6B", "context": 4096, "on": "A100-SXM-80GB:2g.20gb"},
    ),
    (
        "kubernetes/jobset.json",
        "",
        {"model": "qwen3-8b", "micro_batch_size": 4, "sequence_length": 2048, "on": "2x8xH100-SXM-80GB"},
    ),
    ("kubernetes/rayservice.yaml", "", {**Q32, "tensor_parallel_size": 4, "on": "2x4xH100-SXM-80GB"}),
    (
        "kubernetes/rayjob.yaml",
        "a100-80gb",
        {"model": "qwen3-8b", "micro_batch_size": 1, "sequence_length": 4096, "on": "2x8xa100-80gb"},
    ),
    ("kserve/llmisvc.yaml", "", {"model": "Qwen/Qwen2.5-7B-Instruct", "context": 8192, "on": "3x1xL40S"}),
    ("kserve/llmisvc_two_nodes.yaml", "h100", {**L70, "on": "4x8xh100"}),
    ("kserve/isvc.yaml", "l4", {"model": "meta-llama/meta-llama-3-8b-instruct", "context": 8192, "on": "l4"}),
    ("kserve/custom.yaml", "l4", {"model": "Qwen/Qwen3-8B", "context": 4096, "on": "l4"}),
    ("skypilot/serve.yaml", "", {**L70I, "on": "2x8xH100-SXM-80GB"}),
    (
        "skypilot/train.yaml",
        "",
        {"model": "llama-3.1-8b", "micro_batch_size": 1, "sequence_length": 4096, "on": "4x8xA100-SXM-40GB"},
    ),
    ("skypilot/service.yaml", "", {"model": "Qwen/Qwen3-8B", "context": 4096, "on": "2x1xL4"}),
    ("skypilot/instance.yaml", "", {**L70, "context": 32768, "on": "8xH100-SXM-80GB"}),
    ("skypilot/any_of.yaml", "", {**L70, "on": "8xH100-SXM-80GB"}),
    ("ray_serve/app.yaml", "", {**Q32, "tensor_parallel_size": 4, "on": "4xA100-SXM-80GB"}),
    ("ray_serve/config.yaml", "", {"model": "meta-llama/Llama-3.1-8B-Instruct", "context": 4096, "on": "4xL4"}),
    ("ray_serve/named_file.yaml", "", {"model": "meta-llama/Llama-3.1-8B-Instruct", "context": 4096, "on": "4xL4"}),
    ("ray_serve/bundles.yaml", "", {**L70, "tensor_parallel_size": 4, "context": 16384, "on": "4xH100-SXM-80GB"}),
    ("ray_serve/lora.yaml", "", {"model": "meta-llama/Llama-3.1-8B", "context": 8192, "on": "A10G"}),
    ("compose/compose.yaml", "rtx-4090", {"model": "Qwen/Qwen3-8B", "context": 16384, "on": "rtx-4090"}),
    ("compose/list.yaml", "2xh100", {**Q32, "on": "2xh100"}),
    ("compose/devices.yaml", "h100", {**L70, "tensor_parallel_size": 4, "on": "8xh100"}),
    ("compose/run.sh", "h100", {**Q32, "on": "2xh100"}),
    ("compose/amd.yaml", "mi300x", {"model": "Qwen/Qwen3-8B", "context": 8192, "on": "mi300x"}),
]


@every_row(("file", "on", "wanted"), SAMPLES, at_least=30)
def test_each_sample_asks_its_question(file, on, wanted):
    source = file_source(str(FILES / file))
    found = understood(source, Asker(on=on))
    assert {name: numbers(found.question).get(name) for name in wanted} == wanted
    assert found.verb == ("train" if "sequence_length" in wanted else "serve")
    assert file.split("/")[0].replace("_", "-") in found.document.inside


@every_row("file", sorted({file for file, _, _ in SAMPLES}), at_least=25)
def test_no_sample_is_taken_for_another_tools(file):
    assert recognised(file_source(str(FILES / file))).name == file.split("/")[0].replace("_", "-")


@every_row(("file", "on"), [(file, on) for file, on, _ in SAMPLES], at_least=25)
def test_every_key_of_a_samples_own_is_understood(file, on):
    found = understood(file_source(str(FILES / file)), Asker(on=on))
    unclear = [key.key for key in found.document.keys if key.status == "not understood"]
    assert [key for key in unclear if "." in key or "--" in key or key in ("nodes", "gpus", "array")] == []


def test_a_place_of_the_cluster_needs_the_model_beside_it():
    source = file_source(str(FILES / "kserve/isvc_multi_node.yaml"))
    with pytest.raises(InvalidInput, match="names no model"):
        understood(source, Asker(on="a10g"))
    found = understood(source, Asker(on="a10g", model="llama-3-8b"))
    assert found.question["on"] == "2x4xa10g"
    assert numbers(found.question)["tensor_parallel_size"] == 4


def test_an_images_tag_is_the_engines_release():
    found = understood(file_source(str(FILES / "kubernetes/deployment.yaml")))
    assert found.document.version == "0.11.0"
    assert understood(file_source(str(FILES / "compose/run.sh")), Asker(on="h100")).document.version == "0.11.0"


def test_who_says_a_release_is_stronger_than_the_image():
    found = understood(file_source(str(FILES / "kubernetes/deployment.yaml")), Asker(version="0.21"))
    assert found.document.version == "0.21"


# ---- Slurm.

SERVE = "vllm serve qwen3-8b --max-model-len 4096\n"


@every_row(
    ("lines", "on"),
    [
        ("--gpus-per-node=8", "8xh100"),
        ("--gpus-per-node=h200:4", "4xh100"),
        ("--nodes=2 --gpus-per-node=8", "2x8xh100"),
        ("--nodes=2 --gres=gpu:8", "2x8xh100"),
        ("--gres=gpu", "1xh100"),
        ("--gres=gpu:2,nvme:1", "2xh100"),
        ("--gres=gpu:h100:4(S:0-1)", "4xh100"),
        ("--nodes=2 --gpus=16", "2x8xh100"),
        ("-N 2 -G 8", "2x4xh100"),
        ("--nodes=2 --ntasks-per-node=4 --gpus-per-task=1", "2x4xh100"),
        ("--ntasks=4 --gpus-per-task=1", "4xh100"),
        ("--nodes=3 --exclusive", "3x8xh100"),
        ("--nodes=2-4 --gpus-per-node=8", "2x8xh100"),
    ],
    at_least=12,
)
def test_slurm_says_the_machines_in_many_ways(lines, on):
    script = "#!/bin/bash\n" + "".join(f"#SBATCH {word}\n" for word in lines.replace(" -G", "\n-G").split("\n"))
    found = ask(script + SERVE, on="h100")
    assert found.question["on"] == on


@every_row(
    ("kind", "accelerator"),
    [
        ("h100", "H100-SXM-80GB"),
        ("nvidia_h100_80gb_hbm3", "H100-SXM-80GB"),
        ("a100-80gb", "A100-SXM-80GB"),
        ("mi300x", "MI300X"),
        ("l40s", "L40S"),
        ("tesla_v100-sxm2-32gb", "V100-SXM2-32GB"),
        ("nvidia_a100_3g.40gb", ""),
    ],
    at_least=6,
)
def test_slurms_types_are_accelerators_of_the_catalogue(kind, accelerator):
    script = f"#!/bin/bash\n#SBATCH --gpus-per-node={kind}:4\n{SERVE}"
    if not accelerator:
        with pytest.raises(InvalidInput, match="--on"):
            ask(script)
    else:
        assert ask(script).question["on"] == f"4x{accelerator}"


@every_row(
    ("script", "says"),
    [
        ("#SBATCH --nodes=0\n#SBATCH --gpus-per-node=8\n" + SERVE, "nodes"),
        ("#SBATCH --nodes=many\n" + SERVE, "nodes"),
        ("#SBATCH --nodes=3\n#SBATCH --gpus=8\n" + SERVE, "same number"),
        ("#SBATCH --gpus-per-node=4\ntorchrun --nproc-per-node 8 toytrain.py\n", "nproc-per-node asks for 8"),
        ("#SBATCH --nodes=2\n#SBATCH --gpus-per-node=8\nsrun torchrun --nnodes 4 toytrain.py\n", "nnodes asks for 4"),
        ("#SBATCH --gpus-per-node=8\npython other.py\n", "no command"),
        ("#SBATCH --gpus-per-node=8\n", "no command"),
        (
            "#SBATCH --gpus-per-node=8\npython toytrain.py --seq 1\npython toytrain.py --seq 2\n",
            "several commands",
        ),
        ("#SBATCH --gpus-per-node=8\npython toytrain.py --model a\nvllm serve b\n", "several commands"),
    ],
    at_least=8,
)
def test_a_job_that_cannot_be_says_why(script, says):
    with pytest.raises(InvalidInput, match=says):
        ask("#!/bin/bash\n" + script, on="h100", model="qwen3-8b")


def test_a_misspelled_option_of_slurm_is_not_understood_and_gets_its_neighbour():
    found = ask("#!/bin/bash\n#SBATCH --gpus-per-node=8\n#SBATCH --gpu-per-nodes=8\n" + SERVE, on="h100")
    key = next(key for key in found.document.keys if key.key == "gpu-per-nodes")
    assert key.status == "not understood"
    assert "gpus-per-node" in str(key.why)


def test_a_transport_that_is_switched_off_leaves_the_verdict_unsure():
    found = ask("#!/bin/bash\n#SBATCH --gpus-per-node=8\nexport NCCL_P2P_DISABLE=1\n" + SERVE, on="h100")
    assert statuses(found)["NCCL_P2P_DISABLE"] == "not understood"
    assert not found.document.is_sure


def test_a_script_that_the_job_runs_is_read_beside_it(tmp_path):
    (tmp_path / "inner.sh").write_text("exec python toytrain.py --model qwen3-8b --micro 3 --seq $LENGTH\n")
    (tmp_path / "job.sbatch").write_text(
        "#!/bin/bash\n#SBATCH --gpus-per-node=h100:8\nexport LENGTH=512\nsrun bash inner.sh\n"
    )
    found = understood(file_source(str(tmp_path / "job.sbatch")))
    assert (found.question["micro_batch_size"], found.question["sequence_length"]) == (3, 512)


def test_a_condition_in_one_line_is_read_as_one_over_several():
    line = 'if [ "$SLURM_NODEID" = 0 ]; then vllm serve qwen3-8b --max-model-len 512; else sleep 1; fi; date\n'
    assert numbers(ask("#!/bin/bash\n#SBATCH --gpus-per-node=8\n" + line, on="h100").question)["context"] == 512


def test_scripts_that_run_each_other_end(tmp_path):
    (tmp_path / "a.sh").write_text("bash b.sh\n")
    (tmp_path / "b.sh").write_text("bash a.sh\n")
    (tmp_path / "job.sbatch").write_text("#!/bin/bash\n#SBATCH --gpus-per-node=8\nbash a.sh\n")
    with pytest.raises(InvalidInput, match="no command"):
        understood(file_source(str(tmp_path / "job.sbatch")))


# ---- Launchers.


@every_row(
    ("command", "on"),
    [
        ("python toytrain.py", "h100"),
        ("uv run --with torch --no-sync toytrain.py", "h100"),
        ("uv run --extra gpu python toytrain.py", "h100"),
        ("torchrun --standalone --nproc_per_node=8 toytrain.py", "8xh100"),
        ("torchrun --nnodes 1:4 --nproc-per-node 8 --rdzv-id 1 toytrain.py", "4x8xh100"),
        ("python -m torch.distributed.run --nproc_per_node 2 toytrain.py", "2xh100"),
        ("bash -c 'deepspeed --num_nodes 2 --num_gpus 8 toytrain.py --model qwen3-8b'", "2x8xh100"),
        ("mpirun -np 16 -x LD_LIBRARY_PATH --mca btl ^openib python toytrain.py", "16xh100"),
        ("mpiexec -n 4 -ppn 4 python toytrain.py", "4xh100"),
        ("srun -N2 --gpus-per-node 4 python toytrain.py", "2x4xh100"),
        (
            "srun --container-image=nvcr.io/nvidia/pytorch:26.10-py3 -n8 --ntasks-per-node=8 python toytrain.py",
            "8xh100",
        ),
        ("numactl --cpunodebind=0 --membind 0 python toytrain.py", "h100"),
        ("apptainer exec --nv -B /a:/b --env X=1 image.sif python toytrain.py", "h100"),
        ("singularity exec --nv image.sif torchrun --nproc-per-node 4 toytrain.py", "4xh100"),
        ("bash -lc 'cd /work && torchrun --nproc-per-node 4 toytrain.py --model qwen3-8b'", "4xh100"),
        ("conda run -n env --no-capture-output python toytrain.py", "h100"),
        ("nohup nice -n 5 timeout 1h python toytrain.py", "h100"),
        ("bash -c 'CUDA_VISIBLE_DEVICES=0,1,2 python toytrain.py --model qwen3-8b'", "3xh100"),
        ("ray job submit --working-dir . -- python toytrain.py", "h100"),
        ("docker run --gpus 4 example/image:1 python toytrain.py", "4xh100"),
        ("srun -n1 docker run --rm --gpus=2 --entrypoint python example/image toytrain.py", "2xh100"),
    ],
    at_least=20,
)
def test_launchers_are_looked_through_and_counted(command, on):
    whole = command if "--model" in command else f"{command} --model qwen3-8b"
    found = understood(command_source([whole]), Asker(on="h100"))
    assert (found.question["model"], found.question["on"]) == ("qwen3-8b", on)


def test_a_number_of_nodes_that_may_change_is_not_sure():
    found = understood(command_source(["srun torchrun --nnodes 1:4 toytrain.py --model qwen3-8b"]), Asker(on="h100"))
    assert statuses(found)["torchrun --nnodes"] == "not understood"


def test_an_option_that_a_launcher_has_not_is_not_understood():
    found = understood(command_source(["torchrun --nproc-per-nod=2 toytrain.py --model qwen3-8b"]), Asker(on="h100"))
    assert statuses(found)["torchrun --nproc-per-nod"] == "not understood"


@every_row(
    ("image", "args", "starts"),
    [
        ("vllm/vllm-openai:v0.11.0", [], ("vllm", "serve")),
        ("docker.io/vllm/vllm-openai@sha256:abc", [], ("vllm", "serve")),
        ("lmsysorg/sglang:v0.5.9", [], ()),
        ("ghcr.io/ggml-org/llama.cpp:server-cuda", [], ("llama-server",)),
        ("ghcr.io/ggml-org/llama.cpp:light", [], ("llama-cli",)),
        ("ollama/ollama", [], ("ollama", "serve")),
        ("ollama/ollama:0.33.2", ["run"], ("ollama",)),
        ("registry:5000/vllm/vllm-openai", [], ("vllm", "serve")),
        ("nginx:1.27", [], ()),
    ],
    at_least=8,
)
def test_images_start_their_own_program(image, args, starts):
    from tonnage.interchange.parts.launching.images import entry_point

    assert entry_point(image, args) == starts


# ---- Kubernetes.

POD = """apiVersion: v1
kind: Pod
metadata: {name: p}
spec:
  containers:
    - name: server
      image: vllm/vllm-openai
      args: [--model, qwen3-8b, --max-model-len, "4096"]
      resources: {limits: {nvidia.com/gpu: 1}}
"""


def test_one_container_of_several_counts_where_it_alone_asks_for_accelerators():
    other = POD + "    - {name: other, image: vllm/vllm-openai, args: [--model, gpt2]}\n"
    found = ask(other, "pod.yaml", on="h100")
    assert found.question["model"] == "qwen3-8b"
    with pytest.raises(InvalidInput, match=r"several containers.*other.*server"):
        ask(other.replace("      resources: {limits: {nvidia.com/gpu: 1}}\n", ""), "pod.yaml", on="h100")


@every_row(
    ("before", "after", "says"),
    [
        ("nvidia.com/gpu: 1", "nvidia.com/gpu: some", "nvidia.com/gpu must be a number"),
        ("nvidia.com/gpu: 1", "nvidia.com/gpu: -1", "nvidia.com/gpu must be a number"),
        ("[--model,", "--model [", "not YAML|list of words"),
        ('args: [--model, qwen3-8b, --max-model-len, "4096"]', "args: --model qwen3-8b", "list of words"),
        ("containers:\n    - name: server", "containers:\n      server:\n      name: x", "YAML|list of sections"),
        ("kind: Pod", "kind: Deployment", "no container"),
        ("kind: Pod", "kind: ConfigMap", "no object that runs pods"),
        ("spec:", "spec: 3\nother:", "must be a section"),
        ("image: vllm/vllm-openai", "image: nginx", "no container with a command"),
    ],
    at_least=8,
)
def test_a_manifest_that_cannot_be_says_why(before, after, says):
    with pytest.raises(InvalidInput, match=says):
        ask(POD.replace(before, after), "pod.yaml", on="h100")


@every_row(
    ("before", "after", "key"),
    [
        ("resources:", "resource:", "spec.containers.server.resource.limits.nvidia.com/gpu"),
        ("spec:", "spce: {a: 1}\nspec:", "spce.a"),
        ("spec:\n", "spec:\n  nodeSelecter: {x: y}\n", "spec.nodeSelecter.x"),
    ],
)
def test_a_misspelled_key_of_a_manifest_is_not_understood(before, after, key):
    assert statuses(ask(POD.replace(before, after), "pod.yaml", on="h100"))[key] == "not understood"


def test_several_accelerators_without_shared_memory_get_a_note():
    found = ask(POD.replace("gpu: 1", "gpu: 2"), "pod.yaml", on="h100")
    assert any("/dev/shm" in str(note) for note in found.notes)
    assert not ask(POD, "pod.yaml", on="h100").notes


@every_row(
    ("label", "accelerator"),
    [
        ("nvidia.com/gpu.product: NVIDIA-H200", "H200-SXM-141GB"),
        ("nvidia.com/gpu.product: NVIDIA-A100-SXM4-40GB", "A100-SXM-40GB"),
        ("nvidia.com/gpu.product: NVIDIA-H100-80GB-HBM3-MIG-3g.40gb", "H100-SXM-80GB:3g.40gb"),
        ("nvidia.com/gpu.product: Tesla-T4", "T4"),
        ("nvidia.com/gpu.product: NVIDIA-L40S-SHARED", "L40S"),
        ("cloud.google.com/gke-accelerator: nvidia-l4", "L4"),
        ("cloud.google.com/gke-accelerator: nvidia-tesla-a100", "A100-SXM-40GB"),
        ("amd.com/gpu.product-name: AMD_Instinct_MI300X_OAM", "MI300X"),
        ("node.kubernetes.io/instance-type: g6.12xlarge", "L4"),
        ("karpenter.k8s.aws/instance-gpu-name: h100", "H100-SXM-80GB"),
    ],
    at_least=9,
)
def test_labels_of_nodes_name_accelerators(label, accelerator):
    found = ask(POD.replace("spec:\n", f"spec:\n  nodeSelector: {{{label}}}\n"), "pod.yaml")
    assert found.question["on"] == f"1x{accelerator}"


def test_a_manifest_that_is_piped_is_read_without_a_name():
    found = understood(text_source(POD, "standard input"), Asker(on="h100"))
    assert found.document.inside == ("kubernetes",)


def test_a_node_that_the_asker_names_is_the_whole_machine():
    assert ask(POD, "pod.yaml", on="dgx-h100").question["on"] == "dgx-h100"


# ---- SkyPilot, Ray Serve, Compose.

TASK = "resources: {%s}\nrun: vllm serve qwen3-8b --max-model-len 4096 --tensor-parallel-size 1\n"


@every_row(
    ("resources", "on"),
    [
        ("accelerators: H100", "1xH100-SXM-80GB"),
        ("accelerators: 'H100:2'", "2xH100-SXM-80GB"),
        ("accelerators: 'A100-80GB:4'", "4xA100-SXM-80GB"),
        ("accelerators: 'A100:4'", "4xA100-SXM-40GB"),
        ("accelerators: {L4: 2}", "2xL4"),
        ("accelerators: {L4: null}", "1xL4"),
        ("accelerators: ['H200:8', 'H100:8']", "8xH200-SXM-141GB"),
        ("ordered: [{accelerators: 'B200:8'}, {accelerators: 'H200:8'}]", "8xB200-SXM-180GB"),
        ("accelerators: 'RTX6000-Ada:1'", "1xRTX-6000-Ada"),
        ("accelerators: 'MI300X:8'", "8xMI300X"),
        ("accelerators: tpu-v6e-8", "8xTPU-v6e"),
        ("accelerators: tpu-v5p-8", "4xTPU-v5p"),
        ("instance_type: g6.12xlarge", "4xL4"),
    ],
    at_least=12,
)
def test_skypilot_names_accelerators_in_many_ways(resources, on):
    assert ask(TASK % resources, "task.yaml").question["on"] == on


@every_row(
    ("resources", "says"),
    [
        ("accelerators: '80GB+:8'", "leaves the accelerator open"),
        ("accelerators: 'NVIDIA:40GB+:8'", "leaves the accelerator open"),
        ("accelerators: {H100: 8, A100: 8}", "leaves the accelerator open"),
        ("any_of: [{accelerators: 'H100:8'}, {accelerators: 'A100:8'}]", "leaves the accelerator open"),
        ("accelerators: 'H100:1.5'", "accelerators such as"),
        ("accelerators: 'Z9000:1'", "no accelerator that is known"),
        ("accelerators: 8", "accelerators such as"),
        ("any_of: 3", "list of resources"),
        ("cpus: 8", "names no accelerators"),
    ],
    at_least=8,
)
def test_skypilot_leaves_open_what_only_the_asker_knows(resources, says):
    with pytest.raises(InvalidInput, match=says):
        ask(TASK % resources, "task.yaml")


def test_memory_of_skypilot_is_an_accelerator_that_the_asker_names():
    assert ask(TASK % "accelerators: '80GB+:8'", "task.yaml", on="h100").question["on"] == "8xh100"


@every_row(
    ("text", "says"),
    [
        ("model_loading_config: {model_id: a}\nllm_engine: other\n", "llm_engine"),
        ("model_loading_config: {model_id: a}\naccelerator_type: Z1\n", "accelerator_type"),
        ("model_loading_config: {model_id: a}\nengine_kwargs: 3\n", "engine_kwargs"),
        ("model_loading_config: {model_id: a}\nengine_kwargs: {tensor_parallel_size: x}\n", "tensor_parallel_size"),
        (
            "model_loading_config: {model_id: a}\nplacement_group_config: {bundles: [{GPU: 3}]}\n",
            "bundles has 3 GPU",
        ),
        ("llm_configs: [{model_loading_config: {model_id: a}}, {model_loading_config: {model_id: b}}]\n", "one model"),
        ("llm_configs: [{model_id: a}]\n", "needs model_loading_config"),
        ("llm_configs: [other.yaml]\n", "cannot be read|names a file"),
    ],
    at_least=7,
)
def test_a_config_of_ray_that_cannot_be_says_why(text, says):
    with pytest.raises(InvalidInput, match=says):
        ask(text, "llm.yaml")


@every_row(
    ("text", "says"),
    [
        ("services: {a: {image: vllm/vllm-openai, command: 'x \" y'}}", "no command"),
        ("services: {a: {image: vllm/vllm-openai, command: {a: b}}}", "must be a command"),
        ("services: {a: {image: nginx}}", "no command"),
        ("services: {a: {image: vllm/vllm-openai, command: --model a, environment: 3}}", "names with values"),
        (
            "services: {a: &a {image: vllm/vllm-openai, command: --model a}, b: *a}",
            "several services",
        ),
        (
            "services: {a: {image: vllm/vllm-openai, command: --model a, gpus: [{count: few}]}}",
            "count",
        ),
    ],
    at_least=5,
)
def test_services_that_cannot_be_say_why(text, says):
    with pytest.raises(InvalidInput, match=says):
        ask(text, "compose.yaml", on="h100")
