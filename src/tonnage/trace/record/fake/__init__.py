"""Stand-ins for the GPU and the other ranks during recording: fake tensors, streams, kernels, process groups."""
