"""Options about a whole run, for the verbs that estimate one."""

from tonnage.cli._options import Option, number, whole, word
from tonnage.units import parse_bytes, parse_count, parse_seconds

RUN_OPTIONS = (
    Option("tokens", "training tokens, such as 15T; or give epochs, or max_steps", parse_count, unit="tokens"),
    Option("epochs", "passes over the data set", number, unit="epochs"),
    Option("dataset_tokens", "tokens of the data set", parse_count, unit="tokens"),
    Option("max_steps", "optimizer steps", whole, unit="steps"),
    Option("deadline", "30d, 2w, or the last day, such as 2027-01-31: how many accelerators make it?", word, unit="time"),
    Option("budget", "money that may be spent, such as 100k: how many tokens does it buy?", word, unit="USD"),
    Option("budget_accelerator_hours", "accelerator-hours that may be spent", parse_count, unit="accelerator-hours"),
    Option("price_per_accelerator_hour", "price of one accelerator for one hour", number, unit="USD"),
    Option("checkpoint_seconds", "time that training stands still for a checkpoint, such as 30s", parse_seconds, unit="time", default="its bytes / storage_bandwidth"),
    Option("checkpoint_interval", "training between two checkpoints, such as 30min", parse_seconds, unit="time", default="Daly's optimum"),
    Option("storage_bandwidth", "bytes a second that all accelerators together write, such as 20GB", parse_bytes, unit="bytes/s", default="122 MB/s an accelerator, as for Llama 3"),
    Option("storage_read_bandwidth", "bytes a second that all accelerators together read, such as 40GB", parse_bytes, unit="bytes/s", default="storage_bandwidth"),
    Option("restart_seconds", "time from a failure until training goes on, such as 10min", parse_seconds, unit="time", default="10 minutes and reading the checkpoint"),
    Option("accelerator_mtbf", "mean time between failures of one accelerator with its share of node and network, such as 5y", parse_seconds, unit="time", default="5.8 years, as Llama 3's H100"),
)  # fmt: skip
