"""What a GPU takes and how fast it is, measured: `python benchmarks/gpu/run.py`. Needs torch; the README beside says
what each case is for.
"""
