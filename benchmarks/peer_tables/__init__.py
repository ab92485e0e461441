"""Other tools on the same questions (docs/peers.md).

cases.py: the runs of training, and what tonnage answers. figures.yaml: answers of tools that do not install from PyPI,
quoted. speed.py, serving.py: measured times of training and of serving. cache_sizes.py: what one request keeps.
scaling_book.py: a roofline to compare with. live.py: tools that install, asked in environments of their own (ask_*.py);
their last answers stay in answers.yaml and answers_serving.yaml. page.py: the tables.
"""
