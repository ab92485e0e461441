"""The same answers for assistants: tools of the Model Context Protocol. Each takes a question's fields and gives the
document of `--json`.
"""
