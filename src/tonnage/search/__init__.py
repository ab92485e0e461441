"""The estimators turned round: which plan, which machine, how much of it. Plans are columns of arrays; every answer
is estimated again.
"""
