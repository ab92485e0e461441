"""Tests of the web server; a package, for `benchmarks/web.py` is called so too."""
