"""A step of reinforcement learning: rollouts, forward passes without gradients, updates."""

from tonnage.kernel.formula import formula


@formula(unit="completions", source="Shao2024, sec. 4.1: of each question a group of G outputs is sampled")
def rollouts_per_step(n_prompts, G):
    """Completions of one step: G of each of n_prompts prompts."""
    return n_prompts * G


@formula(unit="", source="TRL, trl/experimental/gkd/gkd_trainer.py: training_step generates with probability lmbda")
def generated_share(lmbda):
    """Share of the micro-batches whose completions the student generates."""
    return lmbda


@formula(
    unit="updates",
    source="Ouyang2022, sec. 3.5: PPO; veRL, verl/trainer/config/ppo_trainer.yaml: ppo_epochs, ppo_mini_batch_size",
)
def updates_per_step(R, n_epochs, b, m, d):
    """Optimizer steps that go n_epochs times over R rows, m micro-batches of b rows on d replicas each."""
    return R * n_epochs / (b * m * d)


@formula(
    unit="seconds",
    source="Narayanan2021, sec. 2.2: a pipeline of p stages fills and drains",
    assumes="forward passes alone: each stage hands its micro-batch on and takes the next one",
)
def forward_only_seconds(tau_f, m, p, rho):
    """Time of m micro-batches through p stages whose slowest takes tau_f for one; rho: beyond kernels and links."""
    return rho * (m + p - 1) * tau_f


@formula(unit="seconds", source="veRL, docs/sglang_multiturn/multiturn.rst: a tool runs between two turns of a rollout")
def tool_wait_seconds(n_turns, tau):
    """Time that the longest rollout waits for tools: tau between each two of its n_turns turns."""
    return (n_turns - 1) * tau


@formula(unit="seconds", source="TRL, issue 4086: the log of an engine that falls asleep before training")
def sleep_seconds(tau):
    """What an engine takes that frees its memory once a step, tau."""
    return tau


@formula(unit="seconds", source="NeMo-RL, nemo_rl/models/policy: the refit sends tensor by tensor, as veRL does")
def tensor_by_tensor_seconds(n_tensors, tau):
    """What n_tensors tensors take beyond their bytes: each is gathered, named, sent and copied by calls of its own."""
    return n_tensors * tau


@formula(
    unit="",
    source="NeMo-RL, docs/about/performance-summary.md: phases over kernels and links (scripts/fit_rl.py)",
)
def loop_factor(kappa_loop, P, P_ref):
    """Seconds of a phase of training inside a loop of reinforcement learning over those of its kernels. What the loop
    adds is the host's, and as long on an accelerator of peak P as on that of the rows, of peak P_ref.
    """
    return 1 + (kappa_loop - 1) * P / P_ref


@formula(unit="seconds", source="veRL, docs/advance/fully_async.md: a step less its phases, of the colocated runs")
def between_phases_seconds(tau, share_gap):
    """What a step takes beside its phases of tau: rewards, advantages, data on its way between processes."""
    return tau * share_gap / (1 - share_gap)


@formula(unit="", source="Sheng2024, abstract: generation is a phase of the step")
def rollout_share(tau, tau_step):
    """Part of a step of tau_step that its rollouts take, tau."""
    return tau / tau_step


@formula(
    unit="bytes",
    source="veRL, its documentation and code: training states leave the accelerator while the engine generates",
)
def leaving_bytes(M, u, U):
    """Bytes of M training states that do not fit into memory U beside an engine that takes the part u of it."""
    return M - (1 - u) * U


@formula(
    unit="bytes",
    source="veRL, its documentation and code: training states leave the accelerator while the engine generates",
)
def staying_bytes(u, U):
    """What an engine that takes the part u of memory U leaves for training states."""
    return (1 - u) * U


@formula(unit="tokens", source="NeMo-RL, docs/about/performance-summary.md: tokens used in training in a batch")
def trained_tokens(R, s):
    """Tokens of R rows of a prompt and its completion, s tokens on average."""
    return R * s
