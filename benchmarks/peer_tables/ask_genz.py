"""Runs in the environment of GenZ alone: questions come in as JSON, answers go out as JSON after a line of their
own.
"""

import contextlib
import json
import sys
import warnings

from GenZ import decode_moddeling, prefill_moddeling


def answer(asked: dict) -> list[float]:
    """Milliseconds of a prompt alone, and of a token of the whole batch halfway through the answers. Its efficiency
    is left at its own 1.
    """
    common = {
        "model": asked["model"],
        "system_name": asked["system"],
        "bits": asked["bits"],
        "tensor_parallel": asked["tp"],
    }
    common["parallelism_heirarchy"] = f"TP{{{asked['tp']}}}_EP{{1}}_PP{{1}}"  # its own spelling
    prompt = prefill_moddeling(batch_size=1, input_tokens=asked["input"], **common)
    halfway = asked["input"] + asked["output"] // 2
    token = decode_moddeling(batch_size=asked["batch"], Bb=1, input_tokens=halfway, output_tokens=0, **common)
    return [prompt["Latency"], token["Latency"]]


if __name__ == "__main__":
    warnings.simplefilter("ignore")
    with contextlib.redirect_stdout(sys.stderr):
        found = {name: answer(asked) for name, asked in json.load(sys.stdin).items()}
    print("\nANSWERS")
    json.dump(found, sys.stdout)
