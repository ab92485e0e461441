"""Rows of kind embed_speed: encoders of text without decoding, and speech to text, beside what was measured."""

from msgspec.structs import replace

from tonnage.architectures import Model
from tonnage.estimate.hardware.rates import Band
from tonnage.estimate.serving_time.encoding import Pass, encoder
from tonnage.estimate.serving_time.encoding_rates import EncodingRates, SpeechRates, encoding_rates
from tonnage.estimate.serving_time.speech import WINDOW_SECONDS, WINDOW_TOKENS, speech, windows_of
from tonnage.kernel.errors import MissingDatum, TonnageError
from tonnage.runtimes import serving_runtime
from tonnage.spec import Cluster, ServingPlan
from tonnage.validation.quantities import QUANTITIES, SECONDS
from tonnage.validation.rows import Measured, Prediction, Row
from tonnage.validation.serving import predict as predict_serving
from tonnage.validation.subjects import machine_of, model_of

KIND = "embed_speed"
SPOKEN = ("transcription_time", "window_time", "decode_step")
BENCH_TOKENS = 64  # mean length of the text that whisper-bench decodes: half of 128 (whisper.cpp, examples/bench)


class EncodingRow:
    """A row as a question about one pass, a server of documents, or a file of sound."""

    def __init__(self, row: Row):
        question = row.question
        self.row = row
        self.model: Model = model_of(question)
        self.cluster: Cluster = machine_of(question).cluster
        self.engine = serving_runtime(question.get("engine", "vllm"), question.get("engine_version", ""))
        self.batch = int(question.get("concurrency") or 1)
        self.length = int(question.get("input_tokens") or 1)
        self.documents_per_request = int(question.get("documents_per_request") or 1)
        self.audio_seconds = float(question.get("audio_seconds") or 0)
        self.beams = int(question.get("beams") or 1)
        self.is_fused = (row.labels.get("attention") or self.engine.speech_attention) == "fused"
        self.is_text = not any(measured.quantity in SPOKEN for measured in (row.measured, *row.also))
        self.style = row.labels.get("attention") or self.engine.encoding
        # apart: windows whose features are given, with as many tokens each
        self.is_apart = row.labels.get("windows") == "apart"
        self.advance = WINDOW_SECONDS if self.is_apart else self.engine.window_advance
        self.plan = ServingPlan.of_fields(
            context=max(self.length, 2),
            concurrency=self.batch,
            engine=self.engine.name,
            weights=question.get("weights"),
            tensor_parallel_size=question.get("tensor_parallel_size") or 1,
        )

    def measured_seconds(self, measured: Measured) -> float:
        """The figure as the time of what it is of: a batch, a document, a file, a window or a step."""
        value = float(measured.value)
        if measured.unit in SECONDS:
            return value * SECONDS[measured.unit]
        per = {"documents_per_second": 1, "embedded_tokens_per_second": self.length}[measured.quantity]
        return per / (value * QUANTITIES[measured.quantity].units[measured.unit])


Pairs = list[tuple[float, float]]


def _figures(case: EncodingRow) -> list[Measured]:
    return [one for one in (case.row.measured, *case.row.also) if QUANTITIES[one.quantity].kind == KIND]


def encoder_seconds(case: EncodingRow, rates: EncodingRates) -> Pairs:
    """Predicted and measured seconds of each figure of a row about text."""
    one = Pass(tokens=case.batch * case.length, keys=case.length)
    seconds = encoder(case.model, case.plan, case.cluster).seconds(one, rates)
    pairs = []
    for measured in _figures(case):
        documents = 1 if measured.quantity == "pass_time" else case.batch
        pairs.append((seconds / documents, case.measured_seconds(measured)))
    return pairs


def speech_seconds(case: EncodingRow, rates: SpeechRates) -> Pairs:
    """The same of a row about speech."""
    one = speech(case.model, case.plan, case.cluster)
    if case.is_fused:
        rates = rates.fused()
    if case.is_apart:
        rates = replace(rates, window=0.0, spread=0.0)
    pairs = []
    for measured in _figures(case):
        match measured.quantity:
            case "transcription_time":
                count = windows_of(case.audio_seconds, case.advance)
                batch = min(case.batch, count)
                seconds = count / batch * one.batch_seconds(batch, case.beams, WINDOW_TOKENS, rates)
            case "window_time":
                seconds = one.encode_seconds(1, rates)
            case "decode_step":
                seconds = one.step_seconds(1, 1, BENCH_TOKENS, rates)
            case _:
                raise MissingDatum("no figure of speech that is predicted")
        pairs.append((seconds, case.measured_seconds(measured)))
    return pairs


def predict(row: Row) -> list[Prediction]:
    """A prediction for the row's figure, and one for each of those under `also`: memory as of any server."""
    every = (row.measured, *row.also)
    found: list[Prediction] = predict_serving(row)
    times: list[tuple[float, float]] | str
    try:
        case = EncodingRow(row)
        times, band = _shipped(case)
    except TonnageError as error:
        times, band = str(error), None
    for place, measured in enumerate(every):
        if QUANTITIES[measured.quantity].kind != KIND:
            continue
        if measured.skipped or isinstance(times, str):
            found[place] = Prediction(skipped=measured.skipped or str(times))
            continue
        seconds, real = times.pop(0)
        ratio, value = seconds / real, float(measured.value)
        is_time = measured.unit in SECONDS
        bounds = (ratio * band.low, ratio * band.high) if band else None
        ends = sorted(value * (bound if is_time else 1 / bound) for bound in bounds) if bounds else None
        found[place] = Prediction(
            value=value * (ratio if is_time else 1 / ratio), band=(ends[0], ends[1]) if ends else None, notes=row.notes
        )
    return found


def _shipped(case: EncodingRow) -> tuple[Pairs, Band | None]:
    rates = encoding_rates()
    if case.is_text:
        return encoder_seconds(case, rates.encoders[case.style]), rates.bands.get(case.style)
    if case.engine.speech not in rates.speech:
        raise MissingDatum("no rows say how fast {engine} is at speech", engine=case.engine.name)
    spoken = rates.speech[case.engine.speech]
    return speech_seconds(case, spoken), spoken.band
