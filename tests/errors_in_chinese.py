"""Errors as the command line says them in Chinese: what can be typed is as it is typed, and every sentence is whole."""

ERRORS = {
    "max foo llama-3.1-8b --on h100": (
        "没有叫 'foo' 的最大值。已知的有 "
        "adapters、context、expert-layers、input、layers、lora-rank、micro-batch、model、sequence、users。"
    ),
    "max": "需要 WHAT，第一个词可以是 context、input、users、layers、expert-layers、adapters、model、sequence、micro-batch、lora-rank。",
    "foo": (
        "没有叫 'foo' 的动词。已知的有 "
        "accelerators、calibrate、check、compare、diagnose、explain、export、max、mcp、measure、models、plan、prices、reconcile、rules、serve、sweep、trace、train、validate、web。"
    ),
    "plan llama-3.1-8b --on 8xh100 --goal foo": "没有叫 'foo' 的目标。已知的有 cheapest、fastest、fewest。",
    "serve llama-3.1-8b --on h100 --price-kind foo": "没有叫 'foo' 的 --price-kind。已知的有 on-demand、reserved、spot。",
    "train llama-3.1-8b --on h100 --recompute foo": "没有叫 'foo' 的重计算策略。已知的有 full、none、selective、selective-op。",
    "train llama-3.1-8b --on h10": "--on：没有叫 'h10' 的加速卡或节点。是否指 'h100'、'h20'、'a10'、'z100'、'v100'？",
    "plan llama-3.1-8b --on 8xh100 --vary runtime=axolotl": (
        "axolotl 运行在其他 runtime 上：此处 --runtime 应写它所用的 transformers、ddp、deepspeed 或 fsdp2。"
    ),
    "train llama-3.1-8b --on h100 --runtime fsdp2 --float8 blockwise": (
        "runtime fsdp2 不估算 --float8 blockwise，它有 none、tensorwise、rowwise、mxfp8、nvfp4。"
        "Transformer Engine 的配方是：--runtime megatron 加 --precision fp8-blockwise-te。"
    ),
    "rules ZZ": "没有叫 'ZZ' 的法则。已知 49 个名称。",
    "serve llama-3.1-8b --on h100 --max-num-batched-token 8": (
        "无法识别的参数：--max-num-batched-token 8。是否指 --max-num-batched-tokens？参见 `tonnage serve --help`。\n"
        "试试  tonnage serve llama-3.1-8b --on h100 --max-num-batched-tokens 8"
    ),
    "train llama-3.1-8b --on h100 --lora-rank": "参数 --lora-rank：需要一个值。参见 `tonnage train --help`。",
    "train llama-3.1-8b --on 8xh100 --tensor-parallel-size 3": "--tensor-parallel-size 必须整除集群的 8 张加速卡，现为 3。最接近的取值是 2 或 4。",
    "serve llama-3.1-8b --on h100 --attention-data-parallel-size 3": "--attention-data-parallel-size 必须整除集群的 1 张加速卡，现为 3。最接近的取值是 1。",
    "serve llama-3.1-8b --on h100 --ttft foo": "--ttft 必须是 30d、12h 或 500ms 这样的数，现为 'foo'。",
    "train llama-3.1-8b --on h100 --tokens 1T --deadline foo": "--deadline 必须是 30d、2w 或 12h 这样的时长，或 2027-01-31 这样的截止日期，现为 'foo'。",
    "serve llama-3.1-8b --on h100 --context foo": "--context 必须是 8192 或 32k 这样的数，现为 'foo'。",
    "serve llama-3.1-8b --on h100 --kv-cache foo": "--kv-cache：vllm 可以把键和值存成 auto、bf16、fp16、fp8、fp8_e4m3、fp8_e5m2、nvfp4，现为 'foo'。",
    "validate nosuch.yaml": "无法读取 nosuch.yaml：没有这个文件或目录。",
    "trace nosuch.py:f": "nosuch.py：没有这个 Python 文件。",
    "train llama-3.1-8b --on h100 --sequence-length 1,2": "--sequence-length 只接受一个值，逗号只用来隔开三位一组的数字，例如 1,024，现为 '1,2'。`tonnage compare` 接受列表。",
    "plan gpt2 --train --serve": "--train 和 --serve 是两个问题：只给一个，现在两个都给了。",
    "serve gpt2 --on h100 --weights fp9": "--weights：没有叫 'fp9' 的精度或 GGUF 文件类型。是否指 'fp8'、'fp4'、'fp64'、'fp32'、'fp16'？",
    "serve gpt2 --on h100 --gpu-memory-utilization 92": "--gpu-memory-utilization 必须大于 0 且不超过 1，现为 92。",
    "serve gpt2 --on h100 --html /nonexist/x.html": "--html：'/nonexist/x.html' 无法写入：'/nonexist' 不是文件夹。",
    "serve gpt2 --on h100 --html /": "--html：HTML 报告是以 .html 或 .htm 结尾的文件，现为 '/'。",
    "serve gpt2 --on h100 --plot x.pdf": "--plot：图是以 .html、.png 或 .svg 结尾的文件，现为 'x.pdf'。",
    "compare gpt2 --on h100 --parquet /nonexist/a.parquet": "--parquet：'/nonexist/a.parquet' 无法写入：'/nonexist' 不是文件夹。",
    "serve gpt2 --on h100 --qqqq 3": "无法识别的参数：--qqqq 3。参见 `tonnage serve --help-all`。",
    "train gpt2 --on h100 --tokens 1T --epochs 3": "训练的长度由 --tokens、--epochs 和 --max-steps 之一决定，现为 tokens 1e+12 和 epochs 3。",
    "web --store mysql://x": "--store 是 SQLite 或 PostgreSQL：sqlite:///plans.db 或 postgresql://user@host/database，现为 mysql。",
    "serve llama-3.1-8b --on h100 --users 8 --rate 3": "--users 指等待回答的用户，--rate 指自行到来的请求：只能给一个，现为 8 和 3。",
    "plan": "写出模型的名称，或给出尺寸：--hidden-size、--num-hidden-layers 等。",
    "measure": "写出模型的名称，或给出尺寸：--hidden-size、--num-hidden-layers 等。",
    "train llama-3.1-8b --on 8xh100 --lang": "--lang 接受的语言是 en 或 zh。",
    "train --hidden-size 4096 --on h100": "给出的尺寸缺少 --num-hidden-layers，而它决定模型的大小。",
}
# Errors whose numbers grow with the catalogue.
ENDS = {
    "train llama-3.1-8b --on h100 --optimizer foo": r"没有叫 'foo' 的优化器。已知 \d+ 个名称。",
    "prices foo": r"没有叫 'foo' 的加速卡。已知 \d+ 个名称和 \d+ 个别名。",
    "compare llama-3.1-8b --on h100,foo": r"--on：没有叫 'foo' 的加速卡或节点。例如：h100、8xh100、dgx-h100、rtx-4090、local；`tonnage accelerators` 列出全部 \d+ 个。",
    "prices h100 --provider foo": r"没有叫 'foo' 的提供方。已知的有 AWS、.*'Google Cloud'、.*'阿里云 \(Alibaba Cloud\)'。",
}
