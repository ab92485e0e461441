"""The simulation: from one event to the next, not from one pass to the next.

Between two events (a request arrives, its prompt ends, its answer ends, the cache is full) every pass has the same
requests, and its time grows evenly with their contexts: a run of passes is one sum. All that decode advance together,
so a request that begins at pass c with m of its tokens made ends at pass c + output - m: a heap of these numbers says
who ends next.
"""

from bisect import bisect_right
from collections import deque
from heapq import heappop, heappush
from math import sqrt

from tonnage.estimate.load.requests import Requests
from tonnage.estimate.load.shape import PassTime, Policy
from tonnage.kernel.errors import InvalidPlan

# ---- The time of a pass in which every request decodes one token, looked up instead of computed: a simulation asks a
# million times.

# from one context of the table to the next: where a straight line has a bend, it is at most 2 % off for an instant
_STEP = 1.08


class Decoding:
    """Seconds of a decoding pass by requests and keys: a row for each number of requests, straight between its
    contexts.

    Exact where a pass takes longer in proportion to the keys it reads, as attention does.
    """

    def __init__(self, pass_time: PassTime, longest: int) -> None:
        import numpy as np

        steps = int(np.ceil(np.log(max(longest, 2)) / np.log(_STEP))) + 1
        self._contexts = np.unique(np.rint(np.geomspace(1, max(longest, 2), steps)))
        self._points = self._contexts.tolist()
        self._last = len(self._points) - 2
        self._rows: dict[int, list[float]] = {}
        self._pass_time = pass_time

    def seconds(self, requests: int, keys: int) -> float:
        row = self._rows.get(requests)
        if row is None:
            seconds = self._pass_time.seconds(0, 0, requests, requests * self._contexts)
            row = self._rows[requests] = (seconds + 0 * self._contexts).tolist()
        context = keys / requests
        at = min(bisect_right(self._points, context) - 1, self._last)
        low, points = row[at], self._points
        return low + (row[at + 1] - low) * (context - points[at]) / (points[at + 1] - points[at])


_SHORTEST_RUN = 16
_GROWTH = (
    4  # a run ends when contexts have grown by a quarter, so that a bend in the time of a pass is not drawn straight
)


class Engine:
    """One replica, and all that happens to its requests. `run` fills the lists; times are seconds from the start."""

    def __init__(self, pass_time: PassTime, policy: Policy, requests: Requests) -> None:
        self.inputs: list[int] = requests.input_tokens.tolist()
        self.outputs: list[int] = requests.output_tokens.tolist()
        self.cached: list[int] = requests.cached.tolist()
        self.arrival: list[float] = requests.arrival.tolist()
        self.total = len(self.inputs)
        self.users = requests.users
        self.pass_time, self.policy = pass_time, policy
        self.block, self.blocks, self.budget = policy.block_size, policy.blocks, policy.max_num_batched_tokens
        self._refuse_too_long()
        self.decoding = Decoding(pass_time, max(map(sum, zip(self.inputs, self.outputs, strict=True))))
        self.started = [-1.0] * self.total
        self.first_token = [0.0] * self.total
        self.finished = [0.0] * self.total
        self.evicted = [0] * self.total

        self.now = 0.0
        self.next = 0 if self.users is None else min(self.users, self.total)  # the first request that has not come yet
        self.waiting = deque(range(self.next))
        self.running: dict[int, None] = {}  # in the order in which they were let in
        self.partial: int | None = None  # whose prompt is cut
        self.position = [0] * self.total  # tokens of it that are computed
        self.emitted = [0] * self.total  # tokens of the answer, as of `joined`
        self.joined = [0] * self.total  # the pass before which it decodes
        self.ends: list[tuple[int, int]] = []  # heap of (pass, request)
        self.end_of = [-1] * self.total
        self.counter = 0  # passes that decoded
        self.decoders = 0
        self.keys = 0  # contexts of all that decode, in the next pass
        self.used = 0  # blocks
        self.crossing = [0] * self.block  # how many need a new block, by the pass modulo the block
        self.done = 0

        self.busy = self.running_seconds = self.stall = 0.0
        self.passes = self.decoded = self.prompt_tokens = 0
        self.gaps: list[float] = []  # seconds between two tokens ...
        self.gap_counts: list[int] = []  # ... and of how many tokens

    def run(self) -> "Engine":
        while self.done < self.total:
            self._arrive()
            full = self.policy.mixed and self._make_room()
            if prompts := self._prompts(full):
                self._prompt_pass(prompts)
            elif self.decoders:
                self._decode_passes()
            else:
                self.now = self.arrival[self.next]
        return self

    def _arrive(self) -> None:
        while self.users is None and self.next < self.total and self.arrival[self.next] <= self.now:
            self.waiting.append(self.next)
            self.next += 1

    # what is in the next pass

    def _prompts(self, full: bool) -> list[tuple[int, int]]:
        """(request, tokens of its prompt) of the next pass; those that it lets in hold their blocks from here on."""
        policy, waiting, chunks = self.policy, self.waiting, []
        left = self.budget - (self.decoders if policy.mixed else 0)
        if self.partial is not None and left > 0:
            chunks.append((self.partial, min(self._todo(self.partial), left)))
            left -= chunks[0][1]
        while waiting and left > 0 and not full and len(self.running) < policy.max_num_seqs:
            one = waiting[0]
            blocks, todo = self._blocks_of(one), self._todo(one)
            if self.used + blocks + (self.crossing[self.counter % self.block] if policy.mixed else 0) > self.blocks:
                break
            if todo > left and not policy.chunked_prefill and (chunks or todo <= self.budget):
                break
            waiting.popleft()
            self.running[one] = None
            self.used += blocks
            if self.started[one] < 0:
                self.started[one] = self.now
            take = min(todo, left) if policy.chunked_prefill else todo
            chunks.append((one, take))
            left -= take
        return chunks

    def _todo(self, one: int) -> int:
        """Tokens of a prompt that are not computed; tokens of an answer that was sent back are part of it."""
        return self.inputs[one] + self.emitted[one] - max(self.position[one], self.cached[one])

    def _blocks_of(self, one: int) -> int:
        held = self.inputs[one] + (self.outputs[one] - 1 if self.policy.reserves_answer else self.emitted[one])
        return -(-held // self.block)

    def _refuse_too_long(self) -> None:
        for one, (prompt, answer) in enumerate(zip(self.inputs, self.outputs, strict=True)):
            if -(-(prompt + answer - 1) // self.block) > self.blocks:
                raise InvalidPlan(
                    "request {one} needs {prompt:,} + {answer:,} tokens of cache; the replica holds "
                    "{pool_tokens:,} (pool_tokens).",
                    one=one,
                    prompt=prompt,
                    answer=answer,
                    pool_tokens=self.policy.pool_tokens,
                )

    def _make_room(self) -> bool:
        """Send back the last ones until each that decodes has room for its next token; whether anybody had to go."""
        gone = False
        while self.used + self.crossing[self.counter % self.block] > self.blocks:
            self._send_back(self.running.popitem()[0])
            gone = True
        return gone

    def _send_back(self, one: int) -> None:
        if one == self.partial:
            self.partial = None
            self.used -= self._blocks_of(one)
        else:
            emitted = self.emitted[one] + self.counter - self.joined[one]
            self._leave(one, emitted)
            self.emitted[one], self.end_of[one] = emitted, -1
        self.position[one] = 0
        self.evicted[one] += 1
        self.waiting.appendleft(one)

    # passes

    def _prompt_pass(self, prompts: list[tuple[int, int]]) -> None:
        tokens = keys = 0
        for one, take in prompts:
            begin = max(self.position[one], self.cached[one])
            tokens += take
            keys += take * begin + take * (take + 1) // 2
            self.position[one] = begin + take
        decoders = self.decoders if self.policy.mixed else 0
        seconds = float(self.pass_time.seconds(tokens, keys, decoders, self.keys if decoders else 0))
        self.prompt_tokens += tokens
        self._pass(1, seconds)
        if decoders:
            self._gap(seconds, decoders)
            self._advance(1)
        elif self.decoders:
            self.stall += seconds
        self.partial = None
        for one, _take in prompts:
            if self._todo(one):
                self.partial = one
            else:
                self._begin(one)

    def _decode_passes(self) -> None:
        if not self.policy.mixed:
            self._make_room()
        decoders, keys = self.decoders, self.keys
        passes = self._passes_until_an_event()
        first = self.decoding.seconds(decoders, keys)
        last = self.decoding.seconds(decoders, keys + decoders * (passes - 1)) if passes > 1 else first
        if (
            not self.waiting
            and self.users is None
            and self.next < self.total
            and len(self.running) < self.policy.max_num_seqs
        ):
            passes, last = _until(self.arrival[self.next] - self.now, first, last, passes)
        seconds = passes * (first + last) / 2
        if self.stall:
            self._gap(first + self.stall, decoders)
            self._gap((seconds - first) / max(passes - 1, 1), decoders * (passes - 1))
            self.stall = 0.0
        else:
            self._gap(seconds / passes, decoders * passes)
        self._pass(passes, seconds)
        self._advance(passes)

    def _passes_until_an_event(self) -> int:
        """How many passes the requests that decode now make together: until one ends or the cache is full."""
        while self.end_of[self.ends[0][1]] != self.ends[0][0]:  # it was sent back
            heappop(self.ends)
        most = min(self.ends[0][0] - self.counter, max(_SHORTEST_RUN, self.keys // (self.decoders * _GROWTH)))
        free = self.blocks - self.used
        if self.policy.reserves_answer or self.decoders * (most // self.block + 1) <= free:
            return most
        rounds, free = divmod(int(free), self.decoders)
        passes, at = rounds * self.block, self.counter
        while passes < most and self.crossing[at % self.block] <= free:
            free -= self.crossing[at % self.block]
            passes, at = passes + 1, at + 1
        return min(passes, most)

    def _pass(self, passes: int, seconds: float) -> None:
        self.now += seconds
        self.busy += seconds
        self.running_seconds += seconds * len(self.running)
        self.passes += passes

    def _gap(self, seconds: float, count: int) -> None:
        self.gaps.append(seconds)
        self.gap_counts.append(count)

    def _advance(self, passes: int) -> None:
        """Everybody who decodes has `passes` tokens more; those who have all leave."""
        if not self.policy.reserves_answer:
            rounds, rest = divmod(passes, self.block)
            self.used += rounds * self.decoders
            for at in range(self.counter, self.counter + rest):
                self.used += self.crossing[at % self.block]
        self.counter += passes
        self.keys += passes * self.decoders
        self.decoded += passes * self.decoders
        while self.ends and self.ends[0][0] <= self.counter:
            end, one = heappop(self.ends)
            if self.end_of[one] == end:
                self._leave(one, self.outputs[one])
                self._finish(one)

    def _begin(self, one: int) -> None:
        """A prompt is computed: its pass made a token of the answer, and the request decodes from the next pass on."""
        if not self.emitted[one]:
            self.first_token[one] = self.now
        self.emitted[one] += 1
        if self.emitted[one] == self.outputs[one]:
            self.used -= self._blocks_of_begun(one, self.emitted[one])
            self._finish(one)
            return
        self.joined[one] = self.counter
        self.end_of[one] = self.counter + self.outputs[one] - self.emitted[one]
        heappush(self.ends, (self.end_of[one], one))
        self.decoders += 1
        self.keys += self.inputs[one] + self.emitted[one]
        if not self.policy.reserves_answer:
            self.crossing[self._crossing_of(one)] += 1

    def _crossing_of(self, one: int) -> int:
        """The pass, modulo the block, in which the token that is decoded needs a new block."""
        return (self.joined[one] - self.inputs[one] - self.emitted[one] + 1) % self.block

    def _blocks_of_begun(self, one: int, emitted: int) -> int:
        """Blocks of a request that has `made` tokens of its answer; the last of them is not in the cache yet."""
        held = self.inputs[one] + (self.outputs[one] if self.policy.reserves_answer else emitted) - 1
        return -(-held // self.block)

    def _leave(self, one: int, emitted: int) -> None:
        self.decoders -= 1
        self.keys -= self.inputs[one] + emitted
        self.used -= self._blocks_of_begun(one, emitted)
        if not self.policy.reserves_answer:
            self.crossing[self._crossing_of(one)] -= 1

    def _finish(self, one: int) -> None:
        self.running.pop(one, None)
        self.end_of[one] = -1
        self.finished[one] = self.now
        self.done += 1
        if self.users is not None and self.next < self.total:
            self.arrival[self.next] = self.now
            self.waiting.append(self.next)
            self.next += 1


def _until(gap: float, first: float, last: float, passes: int) -> tuple[int, float]:
    """(passes that are begun until `gap` seconds are over, at most `passes`; the time of the last): the first takes
    `first` seconds, and each the same more than the one before it.
    """
    more = (last - first) / (passes - 1) if passes > 1 else 0.0
    slope = first - more / 2
    # n first + more n (n - 1) / 2 = gap
    root = (2 * gap) / (slope + sqrt(max(slope * slope + 2 * more * gap, 0.0))) if gap > 0 else 0.0
    begun = min(max(-int(-root // 1), 1), passes)
    return begun, first + more * (begun - 1)
