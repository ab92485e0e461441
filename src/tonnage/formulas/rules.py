"""The rules of thumb of the five source documents, as they state them. What is wrong in them is put right beside
them.
"""

from tonnage.kernel.formula import ceil_div, formula


@formula(unit="bytes", source="DocumentA, section on model weights", basis="rule")
def weights_rule(N, w):
    """Weights: bytes of one number times parameters."""
    return w * N


@formula(unit="bytes", source="DocumentA, section on total inference memory", basis="rule")
def overhead_rule(M, rho):
    """Something, and a fifth of it on top."""
    return rho * M


@formula(unit="bytes", source="DocumentA, section on total inference memory", basis="rule")
def overhead_share_rule(M, rho):
    """Something that leaves the share rho of the total to everything else."""
    return M / (1 - rho)


@formula(unit="bytes", source="DocumentA, section on optimizer states", basis="rule")
def optimizer_rule(N, w):
    """Optimizer states with the master copy: AdamW 12, 8-bit Adam 6, SGD with momentum 8 bytes a parameter."""
    return w * N


@formula(unit="bytes", source="DocumentA, section on gradients", basis="rule")
def gradients_rule(N, w):
    """Gradients: as many as parameters."""
    return w * N


@formula(
    unit="bytes",
    source="DocumentA, section on activations; Korthikanti2022, table 2",
    basis="rule",
    assumes="16 bit, GPT layer, no sequence parallelism",
)
def selective_activation_rule(L, s, b, h, t):
    """Activations when the core of attention is recomputed."""
    return s * b * h * L * (10 + 24 / t)


@formula(
    unit="bytes", source="DocumentA, summary", basis="rule", assumes="AdamW, mixed precision, selective recomputation"
)
def training_rule(N, L, s, b, h, t):
    """Weights, optimizer, gradients and activations."""
    return 2 * N + 12 * N + 2 * N + s * b * h * L * (10 + 24 / t)


@formula(unit="bytes", source="DocumentA, summary", basis="rule")
def machine_memory_rule(n, U):
    """Memory of n cores together."""
    return n * U


@formula(unit="parameters", source="DocumentB, section 1", basis="rule", assumes="large h; a feed-forward layer of 4 h")
def short_parameters_rule(L, h):
    """Parameters of L layers, first order left out."""
    return 12 * L * h**2


@formula(
    unit="parameters",
    source="DocumentB, section 1",
    basis="rule",
    assumes="a feed-forward layer of 4 h, biases, tied head",
)
def parameters_rule(L, h, V):
    """Parameters of L layers and the token table."""
    return L * (12 * h**2 + 13 * h) + V * h


@formula(unit="FLOP/s", source="DocumentB, sections 3 and 4", basis="rule")
def achieved_rule(P, u):
    """What an accelerator achieves of its peak."""
    return P * u


@formula(unit="FLOP", source="DocumentB, section 2", basis="rule", assumes="attention left out")
def compute_rule(N, D):
    """Training compute: 2 FLOP a parameter and token forward, 4 backward."""
    return 6 * N * D


@formula(
    unit="FLOP", source="DocumentB, section 2", basis="rule", assumes="attention left out; every activation recomputed"
)
def recompute_rule(N, D):
    """Training compute with one more forward pass for recomputation."""
    return 8 * N * D


@formula(unit="seconds", source="DocumentB, section 3; Narayanan2021, eq. 4", basis="rule")
def time_rule(N, D, n, P, u):
    """Training time with recomputation."""
    return 8 * N * D / (n * P * u)


@formula(unit="accelerators", source="DocumentB, section 4", basis="rule")
def accelerators_for_time_rule(N, D, tau, P, u):
    """Accelerators that make the deadline, rounded up."""
    return ceil_div(8 * N * D, tau * P * u)


@formula(unit="bytes", source="DocumentB, section 5", basis="rule")
def inference_rule(N, w, rho):
    """Inference memory: the weights and a fifth."""
    return rho * N * w


@formula(
    unit="bytes",
    source="DocumentB, section 5",
    basis="rule",
    assumes="AdamW, mixed precision, two copies of weights and gradients",
)
def mixed_training_rule(N):
    """Training memory without activations: (2+4) weights, (2+4) gradients, (4+4) states."""
    return (2 + 4 + 2 + 4 + 4 + 4) * N


@formula(unit="accelerators", source="DocumentB, section 5; DocumentC, formula", basis="rule")
def accelerators_for_memory_rule(M, U):
    """Accelerators whose memory together holds M bytes, rounded up."""
    return ceil_div(M, U)


@formula(unit="tokens", source="DocumentB, section on data; Hoffmann2022, table A3", basis="rule")
def chinchilla_tokens_rule(N):
    """Tokens that train a model of N parameters well: twenty a parameter."""
    return 20 * N


@formula(unit="seconds", source="DocumentB, section on the compute bottleneck", basis="rule")
def compute_time_rule(C, n, P):
    """Time of C FLOP on n accelerators at their full peak."""
    return C / (n * P)


@formula(unit="seconds", source="DocumentB, section on the communication bottleneck", basis="rule")
def communication_time_rule(M, W):
    """Time to move M bytes at W bytes a second."""
    return M / W


@formula(unit="bytes", source="DocumentC, formula", basis="rule", assumes="Q bits a weight of 32")
def serving_rule(N, Q, rho):
    """Serving memory: four bytes a parameter, divided by how many of Q bits fit into 32, and a fifth."""
    return N * 4 / (32 / Q) * rho


@formula(unit="bytes per parameter", source="DocumentC, section on precision", basis="rule")
def precision_rule(Q):
    """Bytes of a weight of Q bits."""
    return Q / 8


@formula(
    unit="bytes",
    source="accelerate, accelerate/commands/estimate.py: training with Adam is four times the fp32 weights",
    basis="rule",
)
def accelerate_rule(N):
    """Training memory as `accelerate estimate-memory` prints it."""
    return 4 * (4 * N)


@formula(
    unit="bytes",
    source="DeepSpeed, deepspeed/runtime/zero/stage_1_and_2.py: estimate_zero2_model_states_mem_needs",
    basis="rule",
)
def deepspeed_zero2_rule(N, n):
    """Model states on each of n accelerators as DeepSpeed's ZeRO-2 estimator prints them."""
    return 2 * N + 18 * N / n


@formula(
    unit="bytes",
    source="DocumentC, sections on batch size and sequence length",
    basis="rule",
    assumes="keys and values of every layer",
)
def sequence_rule(L, k, dh, s, w):
    """What one more sequence of s tokens needs while serving."""
    return 2 * L * k * dh * s * w


@formula(unit="bytes", source="DocumentC, section on hardware", basis="rule")
def hardware_rule(U):
    """Memory of an accelerator as its name says."""
    return U


@formula(unit="bytes", source="DocumentD, section on training", basis="rule")
def adam_rule(N):
    """Adam's momentum and variance in fp32."""
    return 2 * 4 * N


@formula(unit="parameters", source="DocumentD, section on training", basis="rule")
def document_parameters_rule(L, h, V):
    """Parameters of L layers and the token table."""
    return 12 * L * h**2 + V * h


@formula(unit="bytes", source="DocumentD, section on training", basis="rule", assumes="one tensor a layer, fp32")
def activation_rule(L, b, s, h):
    """Activations, if each layer kept one tensor."""
    return L * b * s * h * 4


@formula(unit="bytes", source="DocumentD, section on training", basis="rule", assumes="fp32, Adam")
def fp32_training_rule(N, L, b, s, h):
    """Weights, gradients, Adam's states and one tensor a layer."""
    return 4 * N + 4 * N + 8 * N + L * b * s * h * 4


@formula(unit="bytes", source="DocumentD, section on training", basis="rule", assumes="fp32, Adam")
def checkpoint_rule(N):
    """A checkpoint: weights and optimizer states."""
    return 4 * N + 8 * N


@formula(
    unit="bytes",
    source="DocumentD, section on inference",
    basis="rule",
    assumes="16 bit, one request, M for the system",
)
def request_rule(N, s, h, L, a, dh, M):
    """Weights, one activation, keys and values of every layer, and what the system keeps."""
    return 2 * N + s * h * 2 + L * 2 * s * a * dh * 2 + M


@formula(unit="bytes", source="DocumentD, section on hardware", basis="rule")
def host_memory_rule(N, w):
    """Host memory to load a model through: one copy of its weights."""
    return N * w


@formula(
    unit="",
    source="DocumentD, section on hardware",
    basis="rule",
    assumes="mixed precision with AdamW against 16-bit weights",
)
def training_to_inference_rule(N):
    """Memory of training for each byte of inference, activations and cache left out."""
    return 16 * N / (2 * N)


@formula(
    unit="seconds",
    source="DocumentD, section on cloud and own servers",
    basis="rule",
    assumes="the machine runs all the time; nothing but power is paid for it",
)
def break_even_rule(USD_buy, USD_rent, pw, pue, USD_kwh):
    """Time after which buying is cheaper than renting."""
    return USD_buy / (USD_rent - pw * pue * USD_kwh / 3.6e6)


@formula(unit="bytes", source="DocumentE, section on components", basis="rule")
def units_rule(N, w):
    """Weights 1, gradients 1, Adam 2, in units of the weights."""
    return (1 + 1 + 2) * w * N


@formula(unit="bytes", source="DocumentE, section on precision", basis="rule")
def two_copies_rule(N):
    """Mixed precision: weights in 16 and 32 bit, gradients in 16, states in 32."""
    return (2 + 4) * N + 2 * N + 8 * N


@formula(
    unit="bytes",
    source=(
        "Rajbhandari2020, sec. 3.1; DocumentA, summary; Megatron-LM, docs/source/api-guide/dist_optimizer.md; "
        "DocumentB, section 5"
    ),
    basis="rule",
)
def convention_rule(N, w):
    """Bytes a parameter by convention: 16, 18 or 20, by the copies of weights and gradients that are counted."""
    return w * N


@formula(unit="bytes", source="DocumentE, section on weights and optimizer, titled FP64", basis="rule")
def small_model_rule(N):
    """Weights, gradients and two states in fp32."""
    return 4 * N + 3 * 4 * N


@formula(
    unit="bytes",
    source="DocumentE, section on one and many cards",
    basis="rule",
    assumes="16 bit; one activation gathered, one reduced",
)
def parallel_buffer_rule(s, b, h):
    """What tensor parallelism holds beside the activations of one layer."""
    return 2 * (2 * s * b * h)


@formula(
    unit="bytes",
    source="DocumentE, program",
    basis="rule",
    assumes="fp32 linear layers with biases; Adam; every ReLU's output kept",
)
def program_rule(L, h, b):
    """Weights, gradients and two states of L square linear layers, and their activations."""
    return 4 * (4 * L * (h**2 + h)) + 4 * L * b * h
