"""A site's own runs: what they measured over what was estimated, and the correction that follows for another run.

`cases.py` says what a run is by what its error depends on; `corrections.py` makes the correction and its band;
`stored.py` reads the runs that `tonnage reconcile --keep` and `tonnage calibrate` kept. Only a question that asks for
it (`calibrated`) is corrected.
"""
