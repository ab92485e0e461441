"""Routed experts that an engine keeps in host memory, where the processor multiplies them: formats, kernels, rates."""

from collections.abc import Mapping

from msgspec import Struct


class HostMethod(Struct, frozen=True, kw_only=True):
    """One format of experts in host memory, and the kernels that multiply it."""

    #: The precision; "": a GGUF file type, which is named in place of the method.
    weights: str
    #: FLOP/s of one core in large products, fitted.
    core_flops: float
    #: What the processor must have.
    needs: str
    #: Whether the accelerator multiplies the same format, so that a prompt's experts can be loaded onto it.
    is_native: bool = False
    #: Formats of checkpoints, by the start of their names, that it is taken for where nobody names a method.
    taken_for: tuple[str, ...] = ()


class HostExperts(Struct, frozen=True, kw_only=True):
    """How an engine shares routed experts between accelerators and the processor. Rates are fitted by
    scripts/fit_host_experts.py.
    """

    methods: Mapping[str, HostMethod]
    #: The method where nobody names one and the checkpoint's format has none of its own.
    default: str
    #: The method of GGUF files, and the file type where nobody names one; "": it reads none.
    of_files: str
    file_type: str
    #: Share of the host's bandwidth at which experts are read.
    bandwidth_share: float
    #: Seconds of each layer in which accelerator and processor wait for each other.
    layer_seconds: float
    #: Shares of the host's bandwidth and of the host link at which a prompt's experts are loaded onto the accelerator;
    #: 0: they never are.
    host_share: float = 0.0
    link_share: float = 0.0
    #: Whether one expert is copied while the next is written into the buffer that it is copied from; else in turn.
    overlaps_loading: bool = True
    #: Bytes a second of host memory for each core, of the machine that is assumed where nobody says the cores.
    bytes_per_core: float
    #: Measured over predicted, by ttft_seconds and tpot_seconds: between which nine in ten rows lie, of publications
    #: that the rates had not seen.
    bands: Mapping[str, tuple[float, float]] = {}
    source: str

    def method(self, name: str) -> HostMethod:
        """The method of this name, or that of GGUF files of this type."""
        return self.methods.get(name) or self.methods[self.of_files]
