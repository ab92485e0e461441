"""Options of the rules of thumb, and of what is explained."""

from tonnage.kernel.units import parse_length
from tonnage.question.forms import as_written, bounded, share, whole
from tonnage.question.option import Option

size, length = bounded(whole, 2**40), bounded(parse_length, 2**40)
depth, amount = bounded(whole, 20000), bounded(whole, 10**18)
NAMES = Option(
    "names",
    "rules, such as A6 or B1b, or parts: A is all of document A; none: all",
    as_written,
    alone=True,
    many=True,
    metavar="NAME",
)
CHOSEN = (
    Option("like", 'only rules that speak of this, such as "kv cache"', as_written, metavar="WORDS"),
    Option("model", "work the rules on this model instead of the documents' own examples", as_written, metavar="MODEL"),
)
NUMBERS = (
    Option(
        "num_hidden_layers", "layers of the model, whatever it has", depth, ("--num-layers",), "layers", "the model's"
    ),
    Option("sequence_length", "tokens of a sequence; 32k is 32768", length, ("--seq",), "tokens", "the document's"),
    Option("micro_batch_size", "sequences of one forward pass", size, ("--mbs",), "sequences", "the document's"),
    Option("tokens", "tokens to train on", amount, unit="tokens", default="the document's"),
    Option("num_accelerators", "accelerators that share the work", size, unit="accelerators", default="the document's"),
    Option("utilization", "share of the peak that is reached", share, unit="share", default="the document's"),
)
NAME = Option(
    "name",
    "a formula, a letter or long name, a word of the answers such as checkpoint, an option such as power_share, a key "
    "of the bibliography, or a rule such as A6; none: list all",
    as_written,
    alone=True,
    metavar="NAME",
)
