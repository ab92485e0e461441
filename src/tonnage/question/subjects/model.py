"""Options of the model: which one, where it is read, and its dimensions."""

from tonnage.kernel.units import parse_bytes, parse_length, parse_link_rate
from tonnage.question.forms import as_written, depth, ranged, whole, width, word
from tonnage.question.option import MODEL_AND_MACHINE, Option, Usual, option

MODEL = Option(
    "model",
    "a name from `tonnage models`, a Hugging Face or ModelScope id or URL, a folder, config.json, "
    ".safetensors or .gguf; "
    "or none, with dimensions",
    as_written,
    alone=True,
    metavar="MODEL",
    usual=Usual(MODEL_AND_MACHINE, "name, Hugging Face id, config.json, folder, .gguf", "MODEL"),
)
READING = (
    Option("revision", "branch, tag or commit on the Hub", as_written, default="main", metavar="REV"),
    Option("offline", "never ask the network", default="as HF_HUB_OFFLINE says", negatable=False),
)
READING_TITLE = "reading the model"
DIMENSIONS = (
    Option("hidden_size", "width of the residual stream", width, unit="elements"),
    Option("num_hidden_layers", "number of layers", depth, ("--num-layers",), "layers"),
    Option("num_attention_heads", "query heads", width, unit="heads"),
    Option("num_key_value_heads", "key/value heads", width, unit="heads", default="num_attention_heads"),
    Option("head_dim", "width of a head", width, unit="elements", default="hidden_size / num_attention_heads"),
    Option("intermediate_size", "width inside the feed-forward layers", width, unit="elements"),
    Option(
        "vocab_size",
        "rows of the token embedding",
        ranged(whole, "a whole number from 2 to 17179869184"),
        unit="tokens",
    ),
    Option(
        "max_position_embeddings",
        "context of the model",
        ranged(parse_length, "a whole number from 1 to 17179869184"),
        unit="tokens",
    ),
    Option("tie_word_embeddings", "the head uses the embedding's table"),
    Option("num_experts", "routed experts a layer", depth, unit="experts"),
    Option("num_experts_per_tok", "experts that a token goes to", depth, unit="experts"),
    Option("moe_intermediate_size", "width inside an expert", width, unit="elements"),
    Option("family", "model_type that the dimensions belong to", word, default="generic: Llama-like"),
)
DIMENSIONS_TITLE = "dimensions: of a model without a name, or changes to the named one"


# ---- Of the machine: which one, and what is left free of it.

ON = Option(
    "on",
    "cluster: NAME, 8xNAME, nodes x 8 x NAME, a node such as dgx-h100, a TOML file, or local",
    word,
    unit="cluster",
    usual=Usual(MODEL_AND_MACHINE, "h100, 8xh100, 4x8xh100, dgx-h100, local", "CLUSTER"),
)
RESERVE = Option(
    "reserve",
    "memory of each accelerator to leave free",
    parse_bytes,
    unit="bytes",
    default="0",
    usual=Usual(MODEL_AND_MACHINE, "memory of each GPU to leave free", "BYTES"),
)
INTER_NODE = option(
    "what all accelerators of a node together send to other nodes, such as 3200Gbps or 400GB/s",
    parse_link_rate,
    unit="bytes/s",
    default="the catalogue's",
)
INTRA_NODE = option(
    "what one accelerator sends to others of its node in one direction, such as 450GB/s",
    parse_link_rate,
    unit="bytes/s",
    default="the catalogue's",
)
MACHINE = (ON, RESERVE)
# Of a search for plans of training, and of one for plans that serve.
TO_TRAIN_ON = Option(
    "on",
    (
        "machines to compare, separated by commas: a name with a number (8xH100) is that machine, a name alone "
        "any number of it"
    ),
    word,
    unit="clusters",
    default="every GPU of the catalogue",
    usual=Usual(MODEL_AND_MACHINE, "such as h100,8xa100", "CLUSTERS"),
)
TO_SERVE_ON = Option(
    "on",
    "accelerators and clusters with commas between: of h100 the number is searched, 8xH200-SXM-141GB is as it says",
    word,
    unit="clusters",
    default="every accelerator of the catalogue",
    usual=Usual(MODEL_AND_MACHINE, "such as h100,8xh200", "CLUSTERS", "every one known"),
)


# ---- Of the suggestions of an answer.

AS_IS = Option(
    "as_is",
    (
        "choose nothing: what is not given is the runtime's own default, whether it fits or not; without it the "
        "cheapest change of what is not given that keeps workload and numerics is made where that is needed to fit"
    ),
    default="off",
    negatable=False,
)
ADVICE = Option(
    "advice",
    "the next best moves: other plans are estimated for them, which takes most of the time of an answer",
    default="on",
)
