"""The time of a step of reinforcement learning or of preference training: rollouts, forward passes of the models
beside, weights to the engine, updates.
"""
