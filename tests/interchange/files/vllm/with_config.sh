vllm serve --config server.yaml --tensor-parallel-size 4 --no-enable-expert-parallel
