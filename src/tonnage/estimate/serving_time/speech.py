"""Seconds of speech to text with Whisper: an encoder pass over each window of 30 seconds, then a decode step for each
token of its text, over all beams.
"""

from functools import lru_cache
from math import ceil, log, sqrt

from msgspec import Struct

from tonnage.architectures import Model
from tonnage.estimate.identity import ByIdentity
from tonnage.estimate.serving_time.encoding import Encoder, Pass, encoder
from tonnage.estimate.serving_time.encoding_rates import EncodingRates, SpeechRates
from tonnage.estimate.serving_time.work import Work, kv_bytes, stage_works
from tonnage.formulas.time import compute_seconds, memory_seconds
from tonnage.ops import Attention
from tonnage.spec import Cluster, ServingPlan

WINDOW_SECONDS = 30  # openai/whisper, audio.py: CHUNK_LENGTH
WINDOW_TOKENS = 100  # 150 words a minute, four tokens to three words


class Speech(Struct, frozen=True, eq=False):
    """A speech model on one replica. Bytes of a decode step: `weights` of the decoder, `cross` keys and values of a
    window's sound, `own` of a token of text. FLOP: `flops` of a token in the decoder, `once` of a frame in its products
    of keys and values of sound.
    """

    encoder: Encoder
    frames: int
    layers: int
    weights: float
    cross: float
    own: float
    flops: float
    once: float

    def encode_seconds(self, windows: float, rates: SpeechRates) -> float:
        """The encoder over some windows at once."""
        one = Pass(tokens=self.frames * windows, keys=self.frames)
        used = EncodingRates(
            products=rates.encoder,
            full_products=max(rates.encoder, rates.plain_encoder),
            plain_products=rates.plain_encoder,
            low_power=1.0,
            narrow=rates.narrow,
            passes_over_hidden=rates.passes_over_hidden,
            passes_over_scores=rates.passes_over_scores,
            kernel=0.0,
        )
        keys = compute_seconds.evaluate(C=self.once * one.tokens, n=1, P=self.encoder.peak, u=self.encoder.share(used))
        return self.encoder.seconds(one, used) + keys

    def step_parts(self, windows: float, beams: int, tokens: float, rates: SpeechRates) -> tuple[float, float]:
        """A decode step of some windows, each with `beams` sequences: launches and arithmetic; reading."""
        sequences = windows * beams
        read = self.weights + windows * self.cross + sequences * tokens / 2 * self.own
        reading = memory_seconds.evaluate(M=read, W=self.encoder.bandwidth, u=rates.reads)
        math = compute_seconds.evaluate(C=self.flops * sequences, n=1, P=self.encoder.peak, u=rates.encoder)
        more = rates.sequence * (sequences - 1) + rates.beam * (beams - 1)
        launched = rates.step + rates.layer * self.layers * (1 + more)
        launched *= rates.host(self.encoder.host)
        return launched + max(math - reading, 0.0), reading

    def parts(self, windows: float, beams: int, tokens: float, rates: SpeechRates) -> dict[str, float]:
        """Seconds of some windows at once, from sound to text, by what spends them."""
        launched, reading = self.step_parts(windows, beams, tokens, rates)
        steps = self.steps(windows, tokens, rates)
        return {
            "encoder": self.encode_seconds(windows, rates),
            "decoder: weights and caches read": steps * reading,
            "decoder: kernels and launches": steps * launched,
            "sound and text around the model": self.around_seconds(windows, rates),
        }

    def step_seconds(self, windows: float, beams: int, tokens: float, rates: SpeechRates) -> float:
        return sum(self.step_parts(windows, beams, tokens, rates))

    def batch_seconds(self, windows: float, beams: int, tokens: float, rates: SpeechRates) -> float:
        return sum(self.parts(windows, beams, tokens, rates).values())

    def steps(self, windows: float, tokens: float, rates: SpeechRates) -> float:
        """Decode steps until the longest text of some windows ends: of normal lengths about sqrt(2 ln n) deviations."""
        return tokens * (1 + rates.spread * sqrt(2 * log(windows)))

    def around_seconds(self, windows: float, rates: SpeechRates) -> float:
        """What the host does with sound and text outside of the model."""
        return windows * rates.window * rates.host(self.encoder.host)


def windows_of(audio_seconds: float, advance: float = WINDOW_SECONDS) -> int:
    """Windows of a file, each `advance` seconds after the one before: the last one is filled up."""
    return max(ceil((audio_seconds - WINDOW_SECONDS) / advance), 0) + 1


def speech(model: Model, plan: ServingPlan, cluster: Cluster) -> Speech:
    """The speech model of a plan; MissingDatum where no source gives the accelerator's peak or bandwidth."""
    return _speech(ByIdentity(model), plan, ByIdentity(cluster))


@lru_cache(maxsize=64)
def _speech(model: ByIdentity, plan: ServingPlan, cluster: ByIdentity) -> Speech:
    sound = encoder(model.thing, plan, cluster.thing, "audio")
    width = kv_bytes(plan)
    (work,) = stage_works(model.thing, plan, tuple(cluster.thing.accelerator.dense_flops), width)
    decoder = model.thing.decoder
    cross = [op for block in decoder.blocks for op in block.ops if isinstance(op, Attention) and op.memory_tokens]
    own = [op for block in decoder.blocks for op in block.ops if isinstance(op, Attention) and not op.memory_tokens]
    frames = int(cross[0].memory_tokens or 0)
    once = sum(op.hidden_size * (op.key_width + op.value_width) for op in cross) * decoder.num_layers
    per_weight = _bytes_of_weight(work)
    return Speech(
        encoder=sound,
        frames=frames,
        layers=decoder.num_layers,
        weights=float(work.dense_bytes) - once * per_weight,
        cross=sum(op.key_width + op.value_width for op in cross) * frames * decoder.num_layers * width,
        own=sum(op.key_width + op.value_width for op in own) * decoder.num_layers * width,
        flops=sum(float(product.flops) for product in (*work.products, *work.head)) - 2 * once,
        once=2 * once,
    )


def _bytes_of_weight(work: Work) -> float:
    """Of the decoder's products, mean."""
    size, flops = (sum(float(getattr(part, name)) for part in work.products) for name in ("bytes", "flops"))
    return 2 * size / flops
