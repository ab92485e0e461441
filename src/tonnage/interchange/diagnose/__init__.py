"""Why a run ran out of memory, from its log: which tool, in which phase, what took the memory, and what frees it.

`log` takes a text apart into lines without colours and prefixes; `readers` has the lines of each tool, `phases` the
functions of a traceback; `tools` says whose log it is; `judged` puts them together, `fixes` has what to change, in the
tool's own flags; `asked` reads the question that the log carries; `diagnosis` is the answer.
"""
