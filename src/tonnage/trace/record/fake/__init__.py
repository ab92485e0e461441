"""What stands for the GPU and the other ranks while a program is recorded: fake tensors, streams, kernels, process
groups.
"""
