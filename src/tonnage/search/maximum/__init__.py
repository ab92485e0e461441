"""The largest of one quantity that a machine carries: found on the estimator itself, and checked at the answer and
just beyond it.
"""
