"""Other tools on the same questions (docs/peers.md).

cases.py: the runs, and what tonnage answers. figures.yaml: answers of tools that do not install from PyPI, quoted.
live.py: tools that do, asked in environments of their own; their last answers stay in answers.yaml. page.py: the tables.
"""
