"""Mixed pools: models, replicas and jobs placed on accelerators that are not alike, by mixed integer programs, each
answer checked by the estimator.
"""
