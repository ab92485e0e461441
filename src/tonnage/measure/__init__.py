"""The same training programs that are traced, measured on a real device. torch is imported only when something is
measured.

What lies here needs torch and nothing else that is not in Python's library: a GPU that comes by has no more. Values are
therefore dataclasses, not msgspec structs.
"""
