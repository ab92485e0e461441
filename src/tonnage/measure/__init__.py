"""The same training programs that are traced, measured on a real device. torch is imported only when something is
measured.

This package needs only torch and Python's library, because borrowed GPU machines have no more. Values are therefore
dataclasses, not msgspec structs.
"""
