"""Which accelerators an engine has a backend for, and what it does with formats that it cannot keep."""

import pytest

import tonnage
from tonnage.catalogue import accelerator, accelerator_names, cluster
from tonnage.estimate.answer.my_machine import my_machine
from tonnage.estimate.serving.engine_checks import runs_on
from tonnage.kernel.errors import InvalidPlan
from tonnage.models import read
from tonnage.runtimes import serving_runtime

NO_BACKEND = ("tpu-v6e", "gaudi3", "trainium2", "mlu590")


@pytest.mark.parametrize("machine", NO_BACKEND)
@pytest.mark.parametrize("engine", ["llama.cpp", "ollama"])
def test_llama_cpp_is_refused_where_it_has_no_backend(machine, engine):
    with pytest.raises(InvalidPlan, match=f"has no backend .*{accelerator(machine).name}"):
        tonnage.serve("llama-3.1-8b", on=f"1x{machine}", engine=engine, weights="q4_k_m", context=1024)


def test_gguf_files_are_refused_on_a_tpu_where_no_engine_is_named():
    with pytest.raises(InvalidPlan, match="has no backend"):
        tonnage.serve("llama-3.1-8b", on="1xtpu-v6e", weights="q4_k_m", context=1024)


def test_an_npu_that_llama_cpp_does_not_know_is_served_by_another_engine_unless_one_is_named():
    answer = tonnage.serve("llama-3.1-8b", on="1xmlu590", context=1024)
    assert answer.question["engine"].value == "transformers"


def test_llama_cpp_runs_on_every_gpu_and_processor_of_the_catalogue_and_on_ascend():
    engine = serving_runtime("llama.cpp")
    for name in accelerator_names():
        machine = accelerator(name)
        expected = machine.kind in ("gpu", "apple", "cpu") or machine.vendor == "Huawei"
        assert runs_on(engine, machine) == expected, name


@pytest.mark.parametrize("machine", ["tpu-v6e", "gaudi3"])
def test_a_machine_without_a_backend_of_llama_cpp_lists_no_gguf_files(machine):
    found = my_machine(cluster(f"1x{machine}"), [("llama-3.1-8b", "", read("llama-3.1-8b"))])
    assert found.runs
    assert not {row.engine for row in found.runs} & {"llama.cpp", "ollama"}


def test_nvfp4_under_vllm_on_amd_is_said_to_be_emulated():
    answer = tonnage.serve("llama-3.1-70b", on="2xmi300x", weights="nvfp4", context=1024)
    assert any("emulates nvfp4" in text for text in answer.warnings)
    plain = tonnage.serve("llama-3.1-70b", on="2xb200", weights="nvfp4", context=1024)
    assert not any("emulates" in text for text in plain.warnings)


@pytest.mark.parametrize(
    ("machine", "holds"), [("h100", False), ("a100", False), ("mi355x", False), ("b200", True), ("rtx-5090", True)]
)
def test_sglang_holds_its_cache_in_nvfp4_on_blackwell_alone(machine, holds):
    def ask():
        return tonnage.serve("llama-3.1-8b", on=f"1x{machine}", engine="sglang", kv_cache="nvfp4", context=1024)

    if holds:
        assert ask().question["kv_cache"].value == "nvfp4"
    else:
        with pytest.raises(InvalidPlan, match="nvfp4"):
            ask()


def test_transformers_holds_gguf_files_in_16_bits():
    stored, full = (
        tonnage.serve("qwen3-32b", on="rtx-4090", engine="transformers", weights=weights, context=1024)
        for weights in ("q4_k_m", "bf16")
    )
    assert stored.needed_bytes == full.needed_bytes > stored.usable_bytes
    assert stored.question["weights"].value == "q4_k_m"
    assert any("dequantises" in text for text in stored.warnings)
    assert stored.serving.tpot_seconds.value == full.serving.tpot_seconds.value


@pytest.mark.parametrize("engine", ["llama.cpp", "ollama", "vllm"])
def test_engines_with_kernels_for_gguf_keep_the_files_as_they_are(engine):
    stored, full = (
        tonnage.serve("llama-3.1-8b", on="rtx-4090", engine=engine, weights=weights, context=1024).needed_bytes
        for weights in ("q4_k_m", "bf16")
    )
    assert stored < full
