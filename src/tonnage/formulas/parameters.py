"""How many numbers a model is made of."""

from tonnage.kernel.formula import formula


@formula(unit="parameters", source="Vaswani2017, sec. 3.2.2 and 3.3")
def tensor_parameters(n_out, n_in, n_copies):
    """Numbers in `n_copies` tensors of n_out x n_in; a vector has n_in = 1."""
    return n_out * n_in * n_copies


@formula(unit="parameters", source="Vaswani2017, sec. 3.1")
def repeated_parameters(N, L):
    """A layer's parameters, as often as the layer is repeated."""
    return N * L
