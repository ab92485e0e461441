"""How fast tonnage answers, line by line of its goals, before and after a change, and beside other tools; called by
benchmarks/speed.py.
"""
