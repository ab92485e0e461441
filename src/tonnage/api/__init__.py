"""The Python face: the same questions and documents as the command line, with plain arguments. `import tonnage` has
all of it.
"""
