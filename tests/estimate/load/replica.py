"""Replicas for the tests: a roofline with the figures of an 8B model on one large accelerator, and a walk from pass
to pass.
"""

import numpy as np


class Roofline:
    """The larger of weights over bandwidth and arithmetic over the peak; keys are read; something is fixed."""

    def __init__(self, weights=16e9, bandwidth=2.8e12, token_flops=16e9, peak=600e12, key_bytes=131_072, fixed=1e-3):
        self.weights, self.bandwidth, self.token_flops, self.peak = weights, bandwidth, token_flops, peak
        self.key_bytes, self.fixed = key_bytes, fixed

    def seconds(self, prompt_tokens, prompt_keys, requests, keys):
        work = self.token_flops * (prompt_tokens + requests) / self.peak + 4 * 131_072 * prompt_keys / self.peak
        return np.maximum(self.weights / self.bandwidth, work) + keys * self.key_bytes / self.bandwidth + self.fixed


def walk(pass_time, policy, requests):
    """Pass by pass, with nothing clever in it: (started, first token, finished, times sent back) of each request."""
    total, block = len(requests), policy.block_size
    arrival = requests.arrival.tolist()
    prompt, answer, cached = (
        values.tolist() for values in (requests.input_tokens, requests.output_tokens, requests.cached)
    )
    started, first, finished, evicted = [None] * total, [None] * total, [None] * total, [0] * total
    made, computed = [0] * total, [0] * total  # tokens of the answer; tokens in the cache
    waiting, running = [], []
    coming = list(range(total))
    if requests.users is not None:
        waiting, coming = coming[: requests.users], coming[requests.users :]
    now = 0.0

    def held(one, tokens):
        return -(-(prompt[one] + answer[one] - 1 if policy.reserves_answer else tokens) // block)

    def used(beyond):
        return sum(
            held(one, max(prompt[one] + made[one] - 1 + beyond * decodes(one), prompt[one] + before[one]))
            for one in running
        )

    def decodes(one):
        return made[one] > before[one]

    before = [0] * total  # tokens of the answer when it was (re)computed
    while any(end is None for end in finished):
        while requests.users is None and coming and arrival[coming[0]] <= now:
            waiting.append(coming.pop(0))
        if not waiting and not running:
            now = arrival[coming[0]]
            continue

        def send_back():
            gone = False
            while used(1) > policy.blocks:
                one = running.pop()
                evicted[one] += 1
                before[one], computed[one] = made[one], 0
                waiting.insert(0, one)
                gone = True
            return gone

        full = policy.mixed and send_back()
        decoding = [one for one in running if decodes(one)]
        left = policy.max_num_batched_tokens - (len(decoding) if policy.mixed else 0)
        takes = []
        for one in running:
            if not decodes(one) and left > 0:
                take = min(prompt[one] + before[one] - max(computed[one], cached[one]), left)
                takes.append((one, take))
                left -= take
        while waiting and not full and left > 0 and len(running) < policy.max_num_seqs:
            one = waiting[0]
            todo = prompt[one] + before[one] - cached[one]
            if used(1 if policy.mixed else 0) + held(one, prompt[one] + before[one]) > policy.blocks:
                break
            if todo > left and not policy.chunked_prefill and (takes or todo <= policy.max_num_batched_tokens):
                break
            take = min(todo, left) if policy.chunked_prefill else todo
            takes.append((one, take))
            left -= take
            running.append(waiting.pop(0))
            started[one] = now if started[one] is None else started[one]
        if takes and not policy.mixed:
            decoding = []
        elif not takes and not policy.mixed:
            send_back()
            decoding = list(running)
        keys = 0
        for one, take in takes:
            begin = max(computed[one], cached[one])
            keys += sum(range(begin + 1, begin + take + 1))
            computed[one] = begin + take
        contexts = sum(prompt[one] + made[one] for one in decoding)
        now += float(pass_time.seconds(sum(take for _one, take in takes), keys, len(decoding), contexts))
        for one in [*decoding, *(one for one, _take in takes if computed[one] == prompt[one] + before[one])]:
            made[one] += 1
            first[one] = now if first[one] is None else first[one]
        # those that decoded leave in the order of the prompts' ends, which is that of the walk
        for one in [one for one in running if made[one] == answer[one]]:
            finished[one] = now
            running.remove(one)
            if requests.users is not None and coming:
                arrival[coming[0]] = now
                waiting.append(coming.pop(0))
    return np.array(arrival), np.array(started), np.array(first), np.array(finished), np.array(evicted)
