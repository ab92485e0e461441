"""Hardware plugins of vLLM: packages of other makers with which it runs on accelerators that it has no kernels for."""

from msgspec import Struct

from tonnage.spec import Accelerator


class Plugin(Struct, frozen=True, kw_only=True):
    """A package that an engine needs on some accelerators.

    package: what is installed
    vendor, kind: of the accelerators
    graphs: what it calls captured graphs; "" where it captures none
    graph_share: part of the memory that is left for the cache that it reserves for them; None: not known
    source: where it says so
    """

    package: str
    vendor: str
    kind: str
    graphs: str = ""
    graph_share: float | None = None
    source: str


VLLM = (
    Plugin(
        package="vllm-ascend",
        vendor="Huawei",
        kind="npu",
        graphs="ACL graphs",
        source="vLLM, docs/getting_started/installation/README.md: hardware plugins",
    ),
    Plugin(
        package="vllm-gaudi",
        vendor="Intel",
        kind="npu",
        graphs="HPU graphs",
        graph_share=0.1,
        source="vllm-gaudi, vllm_gaudi/v1/worker/hpu_worker.py: VLLM_GRAPH_RESERVED_MEM",
    ),
    Plugin(
        package="vllm-tpu",
        vendor="Google",
        kind="tpu",
        source="vLLM, docs/getting_started/installation/README.md: hardware plugins",
    ),
    Plugin(
        package="tt-vllm-plugin",
        vendor="Tenstorrent",
        kind="npu",
        source="tt-inference-server, tt-vllm-plugin/pyproject.toml",
    ),
)


def plugin_for(plugins: tuple[Plugin, ...], chip: Accelerator | None) -> Plugin | None:
    """The plugin with which an engine runs on this accelerator; None where it needs none."""
    if chip is None:
        return None
    return next((plugin for plugin in plugins if (plugin.vendor, plugin.kind) == (chip.vendor, chip.kind)), None)
