"""Ollama. Sources: ollama, llm/server.go and llm/memory.go (0.3 to 0.12), server/sched.go."""

from tonnage.interchange.diagnose.numbers import NUMBER, SIZE
from tonnage.interchange.diagnose.patterns import FAILED, SAYS_CAUSE, fact, failure

_N = NUMBER
OLLAMA = "ollama"

FAILURES = (
    failure(
        OLLAMA,
        "model requires more system memory",
        rf"model requires more system memory \((?P<wanted>{SIZE})\) than is available \((?P<free>{SIZE})\)",
        phase="host",
        cause="host memory",
        strength=SAYS_CAUSE,
        host=True,
        wanted="size",
        free="size",
    ),
    failure(
        OLLAMA,
        "model request too large for system",
        rf'requested="(?P<wanted>{SIZE})" available="?(?P<free>{SIZE}|\d+)',
        phase="host",
        cause="host memory",
        strength=SAYS_CAUSE,
        host=True,
        wanted="size",
        free="size",
    ),
    failure(
        OLLAMA,
        "llama runner process has terminated",
        r"terminated: (?:.{0,60}cudaMalloc failed|.{0,60}out of memory)",
        phase="loading weights",
        strength=FAILED,
    ),
    failure(
        OLLAMA,
        "llama runner process no longer running: 2",
        phase="loading weights",
        strength=FAILED,
    ),
    failure(
        OLLAMA,
        "signal: killed",
        r"llama runner process has terminated: signal: killed",
        phase="host",
        cause="host memory",
        strength=SAYS_CAUSE,
        host=True,
    ),
)

_MEMORY = (
    ("free", "memory.available", rf'memory\.available="?\[(?P<free>{SIZE})'),
    ("wanted", "memory.required.full", rf'memory\.required\.full="(?P<wanted>{SIZE})"'),
    ("kv_cache", "memory.required.kv", rf'memory\.required\.kv="(?P<kv_cache>{SIZE})"'),
    ("weights", "memory.weights.total", rf'memory\.weights\.total="(?P<weights>{SIZE})"'),
    ("activations", "memory.graph.full", rf'memory\.graph\.full="(?P<activations>{SIZE})"'),
)
FACTS = (
    *(fact(OLLAMA, hint, pattern, **{name: "size"}) for name, hint, pattern in _MEMORY),
    fact(
        OLLAMA,
        "layers.offload=",
        r"layers\.model=(?P<layers>\d+) layers\.offload=(?P<layers_on_gpu>\d+)",
        layers="layers",
        layers_on_gpu="layers",
    ),
)
