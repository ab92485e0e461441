"""The search for plans of training: its space, what a plan must hold, cheap bounds, and every plan's memory, time
and cost.
"""
