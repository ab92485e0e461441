"""Why a run ran out of memory, from its log: which tool, in which phase, what took the memory, and what frees it.

`log` takes a text apart into lines without colours and prefixes. `patterns` says what a line means, `readers` has those
of each tool, `phases` the functions of a traceback. `tools` says whose log it is, `failure` puts all of it together.
`fixes` has what to change, in the tool's own flags. `run_command` reads the question of the log; `diagnosis` is the
answer.
"""
