"""What frees memory: by rule from the cause (`rules`), or as the estimate of the run has it (`estimated`), in the
flags of the tool (`flags`).
"""
