"""One model as a pipeline over unlike accelerators: costs of stages, the programs that choose them, the search over
both.
"""
