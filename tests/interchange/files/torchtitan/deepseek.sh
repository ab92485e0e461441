NGPU=8 ./run_train.sh --module deepseek_v3 --config deepseek_v3_16b --parallelism.tensor_parallel_degree 2 \
   --override.imports torchtitan.overrides.fused_swiglu.fused_swiglu --traning.steps 5
