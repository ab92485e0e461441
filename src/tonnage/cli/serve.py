"""tonnage serve: memory of a serving replica, how fast it answers, and at what price."""

import argparse

from msgspec.structs import replace

from tonnage.cli import _options as o
from tonnage.cli._bill_options import BILL_OPTIONS
from tonnage.cli._options import Option, count, length, number, ranged, size, word
from tonnage.cli._run_options import timed
from tonnage.kernel.units import parse_bytes, parse_rate

HELP = "does this model serve these requests, how many would fit, how fast is each answered, and at what price?"
OPTIONS = (
    Option("context", "tokens of a request, prompt and answer; 32k is 32768", length, ("--ctx",), "tokens", "the model's own"),
    Option("concurrency", "requests held at the same time, by all replicas together", size, ("--users", "--max-concurrency"), "requests", "one a replica"),
    Option("weights", "how weights are stored: bf16, fp8, int8, awq, nf4, mxfp4, q4_k, ...", word, ("--quantization",), "precision", "the checkpoint's own"),
    Option("kv_cache", "how keys and values are stored: auto, or what the engine has: fp8, fp8_e5m2, nvfp4; int8, int4, int2", word, unit="precision", default="as wide as activations"),
    Option("tensor_parallel_size", "ranks that share each matrix", size, ("--tp",), "ranks", "the node, as far as heads divide"),
    Option("pipeline_parallel_size", "pipeline stages", size, ("--pp",), "ranks", "1"),
    Option("expert_parallel_size", "ranks that share a layer's experts", size, ("--ep",), "ranks", "1"),
    Option("max_num_batched_tokens", "tokens of one forward pass", length, ("--batched-tokens",), "tokens", "the engine's own"),
    Option("max_num_seqs", "requests that the engine runs at once", size, (), "requests", "the engine's own"),
    Option("gpu_memory_utilization", "part of the memory that the engine takes", number, (), "0 to 1", "vllm's 0.92"),
    Option("enforce_eager", "without captured graphs (vllm, sglang)"),
    Option("engine", "vllm, sglang, tensorrt-llm, llama.cpp, ollama, transformers, gpt-fast, neuron, jetstream or generic", word, unit="name", default="vllm; llama.cpp for GGUF, on CPUs and Apple"),
    Option("engine_version", "an earlier version of the engine, whose rules differ: 0.5.5 of sglang, b4000 of llama.cpp", word, unit="version", default="the newest"),
    Option("attention_data_parallel_size", "groups of ranks that each keep the attention for their own requests and share the experts", size, ("--dp-attention",), "groups", "1"),
    Option("layers_on_accelerator", "layers, the head counted as one, that are on the accelerator (llama.cpp)", count, ("--n-gpu-layers", "-ngl"), "layers", "all"),
    Option("expert_layers_on_host", "layers whose experts stay in host memory (llama.cpp)", size, ("--n-cpu-moe",), "layers", "none"),
    Option("weights_on_host", "weights of each rank that stay in host memory (vllm, sglang)", parse_bytes, (), "bytes", "none"),
    Option("draft_model", "the model that drafts (speculative decoding)", word, ("--spec-draft-model",), "name", "the model's own prediction layers"),
    Option("draft_tokens", "tokens guessed ahead in each step", size, ("--num-speculative-tokens",), "tokens", "none"),
    Option("acceptance", "probability that a guessed token is taken", number, (), "0 to 1", "0"),
    Option("lora_adapters", "adapters held at the same time", size, ("--max-loras",), "adapters", "none"),
    Option("lora_rank", "rank of the adapters", size, ("--max-lora-rank",), "rank", "16"),
    Option("storage_read_bandwidth", "bytes a second that a node reads weights at, such as 6GB/s", parse_rate, (), "bytes/s", "its own drives"),
    Option("host_bandwidth", "bytes a second of the host's memory, such as 89.6GB/s: the time of layers that stay there", parse_rate, (), "bytes/s"),
)  # fmt: skip

LOAD_OPTIONS = (
    Option("input_tokens", "tokens of a prompt", length, ("--input", "--input-len"), "tokens", "1024, at most 3/4 of the context"),
    Option("output_tokens", "tokens of an answer", length, ("--output", "--output-len"), "tokens", "1024, at most what the context leaves"),
    Option("request_rate", "requests that arrive by themselves at all replicas together, instead of --concurrency", number, ("--rate",), "requests/s"),
    Option("cached_tokens", "of a prompt that the engine has already (prefix caching)", ranged(count, "from 0 to 1,099,511,627,776"), ("--cached",), "tokens", "0"),
    Option("prefill_replicas", "of the replicas, those that compute prompts alone, whose caches go to the others (disaggregated)", size, (), "replicas", "all do both"),
    Option("spread", "lengths are uniform from (1 - spread) of --input-tokens and --output-tokens to these", number, unit="0 to 1", default="0, all alike"),
    Option("burstiness", "of arrivals, as of `vllm bench serve`: 1 is Poisson's, less comes in bursts, more comes evenly", number, unit="factor", default="1"),
    Option("trace", "requests of a file, CSV or JSON lines: when each came, and how long it is; they are simulated", word, unit="file"),
    Option("ttft", "the longest time to the first token that is wanted, such as 500ms", timed, unit="time"),
    Option("tpot", "the longest time of each later token that is wanted, such as 30ms", timed, unit="time"),
    Option("percentile", "of the requests that must keep within --ttft and --tpot: mean, p50, p90 or p99", word, unit="name", default="mean; others are simulated"),
    Option("simulate", "request by request, with percentiles", default="off"),
    Option("num_requests", "requests of the simulation", size, ("--num-prompts",), "requests", "ten for each user, at least 100; 10,000 that arrive by themselves"),
    Option("seed", "of the simulation's lengths and arrivals", ranged(count, "from 0 to 4,294,967,295"), unit="number", default="0"),
    Option("price_per_accelerator_hour", "price of one accelerator for one hour", number, unit="USD", default="the cheapest offer known"),
)  # fmt: skip
# Of a training run alone.
OF_TRAINING = ("keep_checkpoints", "text_bytes_per_token", "edge")
MONEY_OPTIONS = tuple(option for option in BILL_OPTIONS if option.name not in OF_TRAINING)


# Other questions about serving, each with a document of its own.
FRONTIER_OPTIONS = (
    Option("frontier", "speed for a user against throughput of an accelerator, over tensor sizes, precisions and numbers of users", default="off"),
    Option("points", "numbers of users that are tried of each plan", ranged(count, "from 2 to 100,000"), unit="configurations", default="24"),
    Option("for_my_machine", "which models of the catalogue run on --on, in which precisions, and how fast; without MODEL", default="off"),
    Option("order", "of those models: parameters, tokens_per_second, ttft_seconds, download_bytes or longest_context", word, unit="name", default="parameters"),
)  # fmt: skip


def add_arguments(parser: argparse.ArgumentParser) -> None:
    o.add_model(parser)
    o.add(parser, o.COMMON, "machine")
    o.add(parser, OPTIONS, "serving")
    o.add(parser, LOAD_OPTIONS, "load and service level")
    o.add(parser, MONEY_OPTIONS, "money and power")
    o.add(parser, FRONTIER_OPTIONS, "many configurations, many models")
    o.add(parser, o.ADVICE, "advice")
    o.add_output(parser, reports=True).add_argument(
        "--plot", metavar="FILE", help="pictures besides: FILE.html (a page that needs no network), .png or .svg"
    )


def run(arguments: argparse.Namespace) -> int:
    from tonnage.cli import _serve_many as many
    from tonnage.cli._print import plotted, print_answer, ready_to_plot
    from tonnage.cli._report import prints_report, reported
    from tonnage.estimate.answer.answers import serve
    from tonnage.estimate.load.options import LoadOptions
    from tonnage.estimate.money.bill import BillOptions
    from tonnage.estimate.serving.options import ServingOptions

    options = ServingOptions(**o.values(arguments, OPTIONS))
    load = LoadOptions(**o.values(arguments, LOAD_OPTIONS))
    money = BillOptions(**o.values(arguments, MONEY_OPTIONS))
    asked = o.values(arguments, FRONTIER_OPTIONS)
    many.check(asked, arguments)
    if asked.get("for_my_machine"):
        ready_to_plot(arguments.plot)
        return many.my_machine(arguments, options, load, asked)
    model, machine, reserve = o.model_and_machine(arguments)
    ready_to_plot(arguments.plot)
    if asked.get("frontier"):
        return many.frontier(arguments, model, machine, replace(options, reserve_bytes=reserve), load, money, asked)
    advise = o.values(arguments, o.ADVICE).get("advice", True)
    answer = serve(model, machine, options, load, money, reserve_bytes=reserve, advise=advise)
    if not prints_report(arguments, answer):
        print_answer(answer, as_json=arguments.json, formulas=arguments.formulas)
    return reported(arguments, answer, plotted(answer, arguments.plot))
