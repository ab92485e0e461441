"""Dynamo with workers of SGLang."""

from tonnage.runtimes import serving_runtime
from tonnage.runtimes.parts.dynamo import behind_dynamo
from tonnage.runtimes.parts.serving import SERVING_RUNTIMES
from tonnage.runtimes.parts.start import Start
from tonnage.runtimes.sglang import launch

ENGINE = serving_runtime("sglang")


def worker(start: Start) -> str:
    """components/src/dynamo/sglang/args.py: ServerArgs of SGLang, whose modes are Dynamo's too."""
    return launch(start).replace("python -m sglang.launch_server", "python -m dynamo.sglang", 1)


SERVING_RUNTIMES.add("dynamo-sglang", behind_dynamo(ENGINE, "dynamo-sglang", worker, 9, ()))
