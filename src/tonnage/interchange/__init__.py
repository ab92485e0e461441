"""Other tools' files and commands: read as questions, and written from answers.

`source` takes a file, a text or a command apart; `formats` has a module for each tool, which says how its keys are read
and written; `reading` collects what was read, key by key; `check` answers the question that a file asks, `export`
writes the file that a question asks for.
"""
