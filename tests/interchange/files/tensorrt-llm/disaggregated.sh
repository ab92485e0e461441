trtllm-serve disaggregated -c disagg.yaml -t 600
