"""Checkpoints, data sets and disks."""

from tonnage.kernel.formula import ceil_div, formula


@formula(
    unit="bytes/s", source="Grattafiori2024, sec. 3.3.1", assumes="storage grows with the cluster as Llama 3's did"
)
def storage_rate(W, n):
    """What storage takes of n accelerators of which each has the share W."""
    return W * n


@formula(unit="bytes/s", source="Samsung2020, PM9A3, U.2", assumes="data is spread over all drives")
def drives_rate(drives, W):
    """Bytes a second of drives that each move W."""
    return drives * W


@formula(unit="bytes", source="DocumentD, section on training", assumes="checkpoints of one size")
def kept_bytes(M, n_copies):
    """Disk for n_copies checkpoints of M bytes."""
    return M * n_copies


@formula(
    unit="bytes",
    source="Megatron-LM, megatron/core/datasets/indexed_dataset.py: DType.optimal_dtype",
    assumes="the .bin file; the index beside it takes 20 bytes a document",
)
def token_ids_bytes(D, w):
    """A data set of D token ids of w bytes."""
    return D * w


@formula(
    unit="bytes", source="OpenAI2023, tokens", basis="rule", assumes="English; other scripts take more bytes a token"
)
def text_bytes(D, w):
    """Plain text of D tokens of w bytes each, not compressed."""
    return D * w


@formula(unit="drives", source="DocumentD, section on hardware", assumes="drives are filled to the last byte")
def drives_needed(M, cap):
    """Drives that hold M bytes."""
    return ceil_div(M, cap)
