"""The closed form beside the simulation over a grid of loads: mean errors of TTFT, TPOT and throughput.

python scripts/compare_load.py [--each]
"""

import sys
from collections import defaultdict
from pathlib import Path

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))
from estimate.load.replica import Roofline
from tonnage.estimate.load import Policy, requests_of, simulate, steady
from tonnage.spec import Load

LENGTHS = ((128, 128), (1000, 200), (1024, 1024), (8192, 1024), (500, 3000), (20_000, 200))
POLICIES = {
    "mixed": Policy(max_num_seqs=256),
    "small budget": Policy(max_num_seqs=256, max_num_batched_tokens=2048),
    "whole, alone": Policy(mixed=False, chunked_prefill=False, max_num_batched_tokens=32768),
    "cut, alone": Policy(mixed=False, max_num_batched_tokens=4096),
    "small pool": Policy(pool_tokens=100_000),
    "reserved": Policy(pool_tokens=100_000, reserves_answer=True),
}
MACHINES = {"8B": Roofline(), "70B/8": Roofline(weights=17.6e9, token_flops=17.5e9, key_bytes=41_000, fixed=3e-3)}


def closed(machine, policy, prompt, answer, spread):
    for users in (1, 4, 16, 64, 400):
        load = Load(input_tokens=prompt, output_tokens=answer, concurrency=users, spread=spread)
        rounds = max(10, 80 // users)
        found = simulate(machine, policy, requests_of(load, rounds * users))
        yield f"users {users}", found, steady(machine, policy, load, rounds=rounds)


def open_(machine, policy, prompt, answer, spread):
    load = Load(input_tokens=prompt, output_tokens=answer, spread=spread)
    most = steady(machine, policy, load).largest_rate
    for share in (0.1, 0.5, 0.7, 0.85):
        load = Load(input_tokens=prompt, output_tokens=answer, requests_per_second=most * share, spread=spread)
        found = simulate(machine, policy, requests_of(load, 2500)).after(0.25)
        yield f"rate {share}", found, steady(machine, policy, load)


def main(each: bool) -> None:
    errors = defaultdict(list)
    for machine_name, machine in MACHINES.items():
        for policy_name, policy in POLICIES.items():
            for prompt, answer in LENGTHS:
                for spread in (0, 0.2, 0.9):
                    for loop in (closed, open_):
                        for name, found, form in loop(machine, policy, prompt, answer, spread):
                            off = (
                                form.ttft / found.ttft.mean - 1,
                                form.tpot / found.tpot.mean - 1,
                                form.output_tokens_per_second / found.output_tokens_per_second - 1,
                            )
                            if each:
                                print(
                                    f"{machine_name:6} {policy_name:13} {prompt:6} {answer:5} {spread:4} {name:10} "
                                    f"ttft {found.ttft.mean:9.4f} {form.ttft:9.4f} {off[0]:+7.1%}  tpot "
                                    f"{found.tpot.mean:8.5f} {form.tpot:8.5f} {off[1]:+7.1%}  "
                                    f"rate {off[2]:+7.1%}  batch {found.mean_batch:6.1f} {form.running:6.1f} "
                                    f"back {found.preemptions}"
                                )
                            for key in (
                                (loop.__name__.strip("_"), policy_name),
                                (loop.__name__.strip("_"), f"spread {spread}"),
                                (loop.__name__.strip("_"), name),
                                (loop.__name__.strip("_"), "all"),
                            ):
                                errors[key].append(off)
    print(f"{'':28} {'loads':>6}   mean |error|: TTFT, TPOT, throughput      90th percentile")
    for (loop_name, key), rows in sorted(errors.items()):
        size = np.abs(np.array(rows))
        print(
            f"{loop_name:7} {key:20} {len(rows):6}   "
            + "  ".join(f"{value:7.1%}" for value in size.mean(0))
            + "      "
            + "  ".join(f"{value:7.1%}" for value in np.percentile(size, 90, axis=0))
        )


if __name__ == "__main__":
    main("--each" in sys.argv)
