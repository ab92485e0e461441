"""The short text of each verb: the verdict and what decides it, in at most 24 lines of the terminal's width."""
