"""Schedules of a pipeline: what a stage waits for, and how many micro-batches it holds.

Seconds of passes are of one micro-batch through a whole rank. Where they are added up over the ranks beside the
slowest, ranks may differ; with equal ones that is p - 1 times one rank's, as the papers write it.
"""

from tonnage.kernel.formula import formula, maximum, minimum

# ---- what a stage waits for ----


@formula(
    unit="seconds",
    source="Narayanan2021, sec. 2.2: (p - 1) / v stages' worth of a micro-batch",
    assumes="1F1B, interleaved by v chunks; tau: a micro-batch through all stages, tau_step: through the slowest one",
)
def bubble_seconds(tau, tau_step, v):
    """What a stage waits while the pipeline fills and drains."""
    return (tau - tau_step) / v


@formula(
    unit="seconds",
    source="Huang2019, sec. 2.3: O(p - 1) idle steps; Narayanan2021, sec. 2.2.1",
    assumes="tau: through all stages, forward and back; tau_f, tau_b: the longest forward and backward of a stage",
)
def gpipe_bubble_seconds(tau, tau_f, tau_b, tau_step, m):
    """What a stage waits when all m micro-batches go forward before the first comes back."""
    return tau + (m - 1) * (tau_f + tau_b) - m * tau_step


@formula(
    unit="seconds",
    source="Narayanan2021, sec. 2.2.1: the order of 1F1B, followed from stage to stage; PyTorch, "
    "torch/distributed/pipelining/schedules.py: "
    "ScheduleInterleavedZeroBubble, ScheduleZBVZeroBubble, ScheduleDualPipeV",
    assumes="tau: the whole pipeline in its schedule's order, as long as the stage that is last to end needs with "
    "what it waits for; where backward is "
    "split, chunks of a rank that take equally long, and less than 2 % too long where several ranks are "
    "nearly the slowest",
)
def pipeline_wait_seconds(tau, tau_step, m):
    """Of the tau seconds of a pipeline of uneven stages those in which the slowest one has none of its m
    micro-batches to run.
    """
    return maximum(tau - m * tau_step, 0)  # sums of the same passes in another order differ by rounding


@formula(
    unit="seconds",
    source=(
        "Qi2024, sec. 2: ZB-H1, (p - 1)(T_F + T_B - T_W); PyTorch, torch/distributed/pipelining/schedules.py: "
        "ScheduleInterleavedZeroBubble"
    ),
    assumes="tau_f, tau_b, tau_w: forward, input and weight gradients, added up over the ranks beside the slowest; "
    "never less than one of the "
    "first two",
)
def zero_bubble_seconds(tau_f, tau_b, tau_w, v):
    """What a stage waits when weight gradients fill the end of the pipeline, with no more micro-batches in flight
    than 1F1B has.
    """
    return maximum(maximum(tau_f, tau_b), tau_f + tau_b - tau_w) / v


@formula(
    unit="seconds",
    source="Qi2024, sec. 2: ZB-H2, (p - 1)(T_F + T_B - 2 T_W), a rank's own from its first pass to its last",
    assumes="tau_f, tau_b, tau_w: forward, input and weight gradients, added up over the ranks beside the slowest; "
    "every rank updates its weights when its own passes are done and waits for no other (the authors' optimizer "
    "post-validation)",
)
def zero_bubble_h2_seconds(tau_f, tau_b, tau_w):
    """What a stage waits when twice the micro-batches of 1F1B are in flight, so that weight gradients fill the
    beginning too.
    """
    return maximum(maximum(tau_f + tau_b - 2 * tau_w, tau_b - tau_f), 0)


@formula(
    unit="seconds",
    source=(
        "Qi2024V, sec. 3: V-ZB; PyTorch, torch/distributed/pipelining/schedules.py: ScheduleZBVZeroBubble, its "
        "order run with these times"
    ),
    assumes="tau_f, tau_b, tau_w: forward, input and weight gradients, added up over the ranks beside the slowest; "
    "input gradients take at least "
    "as long as forward; ranks alike, and at least 2p - 1 micro-batches: else the order itself is played out",
)
def zbv_bubble_seconds(tau_f, tau_b, tau_w):
    """What a stage waits with two chunks a rank in the shape of a V: half of tau_b where the three passes take
    equally long.
    """
    return maximum(maximum(tau_f, tau_b), maximum(tau_f + tau_b - 2 * tau_w, 2 * (tau_b - tau_w))) / 2


@formula(
    unit="seconds",
    source="DualPipe, README.md: (PP/2 - 1)(F&B + B - 3W) with PP = 2p stages on p ranks, B = tau_b + tau_w",
    assumes="tau_f, tau_b, tau_w: forward, input and weight gradients, added up over the ranks beside the slowest; "
    "F&B takes F + B, as "
    "torch runs them; never less than what its order takes in the first pairs; ranks alike: else the order "
    "itself is played out",
)
def dualpipev_bubble_seconds(tau_f, tau_b, tau_w):
    """What a stage waits under DualPipeV: two chunks a rank in the shape of a V, forward of one beside backward of
    the other.
    """
    return maximum(2 * tau_f + maximum(tau_b - tau_w, 0), tau_f + 2 * tau_b - tau_w) / 2


@formula(
    unit="seconds",
    source="DeepSeek2024V3, table 2; DualPipe, README.md",
    assumes="B = tau_b + tau_w; F&B, the two run together, takes F + B; every rank holds two stages' parameters",
)
def dualpipe_bubble_seconds(p, tau_f, tau_b, tau_w):
    """What a rank waits under DualPipe: micro-batches enter at both ends of p stages."""
    return (p / 2 - 1) * (tau_f + 2 * tau_b - tau_w)


# ---- what a stage holds ----


@formula(unit="micro-batches", source="Huang2019, sec. 2.3")
def gpipe_microbatches_in_flight(m):
    """All micro-batches go forward before the first comes back."""
    return m


@formula(
    unit="micro-batches",
    source="Qi2024, sec. 2 and 6: ZB-H1, ZB-V; Qi2024V, sec. 3; PyTorch, torch/distributed/pipelining/schedules.py: "
    "forward passes less weight "
    "gradients",
)
def zero_bubble_microbatches_in_flight(p, m):
    """Micro-batches' worth of a rank's layers that wait for their weight gradients: as many on every rank as 1F1B
    has on the first.
    """
    return minimum(p, m)


@formula(unit="micro-batches", source="Qi2024, sec. 2: ZB-H2, (2p - 1) M_B on every stage")
def zero_bubble_h2_microbatches_in_flight(p, m):
    """Micro-batches' worth of a rank's layers that wait for their weight gradients, as many on every rank."""
    return minimum(2 * p - 1, m)


@formula(
    unit="micro-batches",
    source=(
        "DualPipe, README.md: PP + 1 stages' activations, PP = 2p; PyTorch, "
        "torch/distributed/pipelining/schedules.py: ScheduleDualPipeV"
    ),
    assumes="m at least 2p",
)
def dualpipev_microbatches_in_flight(p):
    """Micro-batches' worth of a rank's two chunks that wait for their weight gradients."""
    return p + 1 / 2


@formula(
    unit="micro-batches",
    source=(
        "PyTorch, torch/distributed/pipelining/schedules.py: ScheduleInterleavedZeroBubble, input gradients less "
        "weight gradients"
    ),
)
def weight_gradients_waiting(i, v):
    """Micro-batches' worth of a rank's layers whose input gradients are made and whose weight gradients are not."""
    return (i + 1) / v


@formula(
    unit="micro-batches",
    source="Qi2024, sec. 2: what the 2p - 1 micro-batches of ZB-H2 leave beside the forward passes ahead",
)
def zero_bubble_h2_weights_waiting(i):
    """Micro-batches' worth of a rank's layers whose input gradients are made and whose weight gradients are not."""
    return 2 * i + 1


@formula(
    unit="micro-batches",
    source=(
        "PyTorch, torch/distributed/pipelining/schedules.py: ScheduleZBVZeroBubble, input gradients less weight "
        "gradients"
    ),
    assumes=(
        "the most of them meets the most micro-batches in flight: at most half a micro-batch too many on the last rank"
    ),
)
def zbv_weight_gradients_waiting(i):
    """Micro-batches' worth of a rank's two chunks whose input gradients are made and whose weight gradients are not."""
    return i + 1 / 2


@formula(
    unit="micro-batches",
    source=(
        "PyTorch, torch/distributed/pipelining/schedules.py: ScheduleDualPipeV, input gradients less weight gradients"
    ),
    assumes="while most micro-batches are in flight",
)
def one_chunk_of_two(x):
    """x of the two chunks of a rank, as micro-batches' worth of its layers."""
    return x / 2
