"""Of a pool of unlike machines."""

from tonnage.question.forms import number, size
from tonnage.question.option import Option
from tonnage.question.texts import word

POOL = (
    Option(
        "inventory",
        "the pool: nodes, what others hold of them, jobs; YAML, TOML or JSON (docs/commands/plan_pool.md)",
        word,
        unit="file",
    ),
    Option("serve", "MODEL is served", default="on"),
    Option("train", "MODEL is trained", default="off"),
    Option(
        "split",
        "of a served model: pipeline (its layers over unlike accelerators), replicas, or auto",
        word,
        unit="name",
        default="auto: replicas where one node holds it",
    ),
    Option(
        "goal",
        "of a pipeline that serves: throughput (to the users asked about) or latency (the shortest token of one user "
        "alone)",
        word,
        unit="name",
        default="throughput",
    ),
    Option("stages", "stages of the pipeline", size, unit="stages", default="searched"),
    Option("offload", "host memory may be used, at the time that it takes", default="off"),
    Option("leave", "nodes or groups that leave the pool, commas between: what moves where?", word, unit="names"),
    Option("join", "spare groups of the inventory that join it, commas between", word, unit="names"),
    Option("time_limit", "how long may be searched", number, unit="seconds", default="60"),
    Option("gap", "share of the value that may be left unproven", number, unit="0 to 1", default="0"),
)
