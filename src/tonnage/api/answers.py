"""The Python face: the same questions and documents as the command line, with plain arguments."""

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Unpack

from msgspec import structs
from msgspec.structs import replace

from tonnage import models
from tonnage.api.answer import Answer, with_text
from tonnage.api.arguments import (
    check_served,
    check_switch,
    check_text,
    check_whole,
    cluster_of,
    model_of,
    options_by_subject,
    options_from,
    public,
    reserve_of,
)
from tonnage.api.options import AnyOptions, MachineOptions, ServeOptions, TrainOptions
from tonnage.api.reports import Framed, Reported, Tabled, command_of
from tonnage.architectures import Model
from tonnage.estimate.answer import answers
from tonnage.estimate.answer import frontier as frontiers
from tonnage.estimate.answer import my_machine as machines
from tonnage.estimate.answer.frontier import POINTS
from tonnage.estimate.answer.frontier import frontier as estimate_frontier
from tonnage.estimate.load.options import LoadOptions
from tonnage.estimate.options.run_options import RunOptions
from tonnage.estimate.plan.training_options import TrainingOptions
from tonnage.estimate.serving.options import ServingOptions
from tonnage.models.catalogued import every
from tonnage.question.subjects.money import BillOptions
from tonnage.search.maximum import answer as maxima
from tonnage.spec import Cluster

if TYPE_CHECKING:
    import plotly.graph_objects


SHOWN_OF_RUNS = ("model", "weights", "engine", "needed_bytes", "longest_context", "tokens_per_second", "ttft_seconds")
read = public(models.read)


class Maximum(maxima.Maximum, Reported, frozen=True, kw_only=True, eq=False):
    """The largest value that fits: `value` in `what.unit`, None where not even the least fits; `tight_value`: the
    largest that may fit, inside the error band; `answer`: the whole answer at the value, or at the least; `found`: what
    was tried; `advice`: what would raise it; `status`: 0 found, 2 the least is tight, 3 none fits.
    """

    answer: Answer
    command: str = ""

    def text(self, *, formulas: bool = False, verbose: bool = False) -> str:
        """Return the lines that the command line prints, without colour: at most 24; with `verbose` every figure and
        every input (-v), with `formulas` the numbers put in besides (--formulas).
        """
        if not (formulas or verbose):
            from tonnage.render.brief.layout import plain_text
            from tonnage.render.brief.maximum import maximum_text

            return plain_text(lambda width: maximum_text(self, width))
        from tonnage.render.maximum import maximum_lines

        return "\n".join(maximum_lines(self.without_trees(), self.answer.memory, formulas=formulas))

    def _frame_rows(self, names: Sequence[str]) -> Sequence[Mapping[str, Any]]:
        return self.rows(*names) if names else self.answer.parts()

    def figure(self, kind: str = "ranks") -> "plotly.graph_objects.Figure":
        """Return a picture of the answer at the largest value, or at the least where none fits: as `Answer.figure`."""
        from tonnage.render.plot import figure_of

        return figure_of(self.answer, kind)

    def __str__(self) -> str:
        return self.text()


class Frontier(frontiers.Frontier, Tabled, frozen=True, kw_only=True, eq=False):
    """Configurations of a served model: `points()`, the fastest for a user first; report, rows, frame and picture."""

    command: str = ""
    listed: ClassVar[tuple[str, ...]] = ("points",)

    def plot(self, path: str | os.PathLike[str]) -> None:
        """Write its picture, as --plot. Needs the extra `plot`."""
        from tonnage.render.plot import write_plot

        write_plot(self, path)

    def figure(self, kind: str = "frontier") -> "plotly.graph_objects.Figure":
        """Return its picture as a plotly.graph_objects.Figure. Needs the extra `plot`."""
        from tonnage.render.plot import figure_of

        return figure_of(self, kind)

    def text(self) -> str:
        """Return the lines that the command line prints, without colour."""
        from tonnage.render.frontier import frontier_lines

        return "\n".join(frontier_lines(self.to_dict()))

    def __repr__(self) -> str:
        model, on = self.question["model"].value, self.question["on"].value
        return f"<Frontier {model} on {on}: {len(list(self.points()))} configurations>"

    def __str__(self) -> str:
        return self.text()


class ModelsForMachine(machines.ModelsForMachine, Framed, frozen=True, kw_only=True, eq=False):
    """Models that run on a machine, in `runs`: a RunsDocument for each model and precision, the best first. `widest`:
    the widest precision of each model; `usable_bytes` [bytes] of each GPU; `tried`: models that were looked at.
    """

    def rows(self) -> list[dict[str, Any]]:
        """Return a dictionary for each model and precision: model, weights, needed_bytes, tokens_per_second, ..."""
        return [structs.asdict(run) for run in self.runs]

    def text(self) -> str:
        """Return the lines that the command line prints, without colour."""
        from tonnage.render.machine import machine_lines

        return "\n".join(machine_lines(self.to_dict(), self.widest))

    def _frame_rows(self, names: Sequence[str]) -> Sequence[Mapping[str, Any]]:
        return self.rows()

    def _repr_html_(self) -> str:
        from tonnage.api.html_table import html_table

        return html_table([structs.asdict(run) for run in self.widest], SHOWN_OF_RUNS)

    def __repr__(self) -> str:
        on, models = self.question["on"].value, len({run.model for run in self.runs})
        return f"<ModelsForMachine {on}: {models} of {self.tried} models run>"

    def __str__(self) -> str:
        return self.text()


@public
def train(
    model: str | os.PathLike[str] | Model,
    on: str | Cluster,
    *,
    reserve_bytes: float = 0,
    as_is: bool = False,
    advice: bool = True,
    **options: Unpack[TrainOptions],
) -> Answer:
    """Return the answer of a training run: does it fit, how long does a step take, what does it cost, and why.

    model: a name of the catalogue (`tonnage.list_models()`), an id or URL of a model hub, a path of a config.json or a
        checkpoint, or a Model
    on: the machine: "h100", "8xh100", "4x8xH100-SXM-80GB" (4 nodes of 8), an instance, "local", or a Cluster
    reserve_bytes [bytes]: memory of each GPU to leave free (default: 0)
    as_is: keep the runtime's defaults of what is not given also where they do not fit; else the cheapest change of them
        that keeps workload and numerics is chosen, `answer.chosen` (default: False)
    advice: with suggestions and slopes, which take most of the time (default: True)

    Usual options, each None for its default, which `answer.question` explains:
      sequence_length [tokens]: tokens of a sequence; 32k is 32768 (default: the model's context, at most 4096)
      micro_batch_size [sequences]: sequences of one forward pass of one replica (default: 1)
      global_batch_size [sequences]: sequences of one step of all replicas
      method [method]: what trains: full, lora, dora, qlora (LoRA on a 4-bit base), ia3 (vectors of peft) or freeze (the
        last layers) (default: full)
      lora_rank [rank]: rank of the adapters (default: 16)
      precision [recipe]: training recipe, such as bf16-mixed, bf16, fp32, fp8-te (default: bf16-mixed)
      optimizer [name]: adamw, adamw-8bit, sgd-momentum, adafactor, lion, muon, ... (default: adamw)
      tensor_parallel_size [ranks]: ranks that share each matrix (default: 1)
      pipeline_parallel_size [ranks]: pipeline stages (default: 1)
      context_parallel_size [ranks]: ranks that share a sequence (default: 1)
      expert_parallel_size [ranks]: ranks that share a layer's experts (default: 1)
      zero_stage [stage]: what data-parallel ranks shard: 0 nothing, 1 optimizer, 2 and gradients, 3 and weights
        (default: the runtime's own)
      recompute [policy]: activations: none, selective (attention's core), selective-op (torchtitan's, by operation) or
        full are recomputed (default: none)
      offload_optimizer [place]: optimizer states, and gradients that are sharded: none, cpu or nvme (deepspeed, fsdp2,
        megatron) (default: none)
      runtime [name]: framework that trains the model; a tool such as axolotl, trl or nemo leads to its own: fsdp2,
        megatron, transformers, ddp, deepspeed, nanotron, torchtune, unsloth, litgpt, megatron-fsdp, zero-bubble,
        hai-llm (default: fsdp2; transformers on one accelerator)
      tokens [tokens]: training tokens, such as 15T; or give epochs, or max_steps
      deadline [time]: 30d, 2w, or the last day, such as 2027-01-31: how many accelerators make it?
      budget [USD]: money that may be spent, such as 100k: how many tokens does it buy?
      provider [name]: whose machines are rented, such as AWS (default: the cheapest offer known)
      price_per_accelerator_hour [USD]: price of one accelerator for one hour
    All 150 options: `print(tonnage.options("train"))`.

    Returns an Answer: `fits`; `memory` [bytes] of the fullest GPU and its parts; `step_time` [seconds]; `run` (MFU,
    tokens/s, the whole run); `bill` [USD, joules]; `advice`; `to_dict()` is the document of `--json`.
    Raises TonnageError: InvalidInput or UnknownName for an argument that cannot be, InvalidPlan for sizes that do not
    belong together, MissingDatum for a number that nobody published.

    >>> answer = tonnage.train("llama-3.1-8b", on="8xH100-SXM-80GB", sequence_length=8192, recompute="full")
    >>> answer.fits, answer.memory.unit, answer.step_time.unit
    (True, 'bytes', 'seconds')
    """
    switches = _switches(as_is, advice)
    command = command_of("train", model, on=on, reserve_bytes=reserve_of(reserve_bytes), **options, **switches)
    training, run, bill = options_by_subject(options, TrainingOptions, RunOptions, BillOptions)
    return with_text(
        answers.train(
            model_of(model),
            cluster_of(on),
            training,
            run,
            bill,
            reserve_bytes=reserve_of(reserve_bytes),
            advise=advice,
            choose=not as_is,
        ),
        command,
    )


@public
def serve(
    model: str | os.PathLike[str] | Model,
    on: str | Cluster,
    *,
    reserve_bytes: float = 0,
    as_is: bool = False,
    advice: bool = True,
    **options: Unpack[ServeOptions],
) -> Answer:
    """Return the answer of a served model: does it fit, for how many requests, how fast, and at what price.

    model: a name of the catalogue (`tonnage.list_models()`), an id or URL of a model hub, a path of a config.json or a
        checkpoint, or a Model
    on: the machine: "h100", "8xh100", "4x8xH100-SXM-80GB" (4 nodes of 8), an instance, "local", or a Cluster
    reserve_bytes [bytes]: memory of each GPU to leave free (default: 0)
    as_is: as of `train` (default: False)
    advice: with suggestions, which take most of the time (default: True)

    Usual options, each None for its default, which `answer.question` explains:
      context [tokens]: tokens of a request, prompt and answer; 32k is 32768 (default: the model's own)
      concurrency [requests]: requests held at the same time, by all replicas together (default: one a replica)
      input_tokens [tokens]: tokens of a prompt (default: 1024, at most 3/4 of the context)
      output_tokens [tokens]: tokens of an answer (default: 1024, at most what the context leaves)
      request_rate [requests/s]: requests that arrive by themselves at all replicas together, instead of concurrency
      ttft [time]: highest TTFT allowed (time to first token), such as 500ms
      tpot [time]: highest TPOT allowed (time per output token), such as 30ms
      weights [precision]: how weights are stored: bf16, fp8, int8, awq, nf4, mxfp4, q4_k, ... (default: the
        checkpoint's own)
      kv_cache [precision]: how keys and values are stored: auto, or what the engine has: fp8, fp8_e5m2, nvfp4; int8,
        int4, int2 (default: as wide as activations)
      engine [name]: engine that serves the model; a tool such as lm-studio or vllm-ascend leads to its own: vllm,
        sglang, tensorrt-llm, llama.cpp, ollama, mlx, transformers, exllamav2, exllamav3, gpt-fast, openvino, lmdeploy,
        neuron, tgi, dynamo, dynamo-sglang, dynamo-trtllm, jetstream, mlc, generic, ktransformers, tei,
        sentence-transformers, infinity, faster-whisper, openai-whisper, whisper.cpp (default: vllm; llama.cpp for GGUF,
        on CPUs and Apple)
      tensor_parallel_size [ranks]: ranks that share each matrix (default: the node, as far as heads divide)
      pipeline_parallel_size [ranks]: pipeline stages (default: 1)
      expert_parallel_size [ranks]: ranks that share a layer's experts (default: 1)
      gpu_memory_utilization [0 to 1]: part of the memory that the engine takes (default: vllm's 0.92)
      max_num_seqs [requests]: requests that the engine runs at once (default: the engine's own)
      speculative [method]: how tokens are drafted (speculative decoding): eagle3, eagle, mtp, medusa, p-eagle, dflash,
        ngram, suffix, draft (default: none)
      provider [name]: whose machines are rented, such as AWS (default: the cheapest offer known)
      price_per_accelerator_hour [USD]: price of one accelerator for one hour (default: the cheapest offer known)
    All 79 options: `print(tonnage.options("serve"))`.

    Returns an Answer: `fits`; `memory` [bytes] of the fullest GPU and its parts; `serving`: ttft_seconds, tpot_seconds,
    tokens_per_second, concurrency [requests], cost_per_million_tokens [USD], each a Term; `bill`; `advice`.
    Raises TonnageError: as `train`.

    >>> answer = tonnage.serve("llama-3.1-8b", on="H100-SXM-80GB", context=8192, concurrency=16)
    >>> answer.fits, answer.serving.tpot_seconds.unit
    (True, 'seconds')
    """
    switches = _switches(as_is, advice)
    command = command_of("serve", model, on=on, reserve_bytes=reserve_of(reserve_bytes), **options, **switches)
    serving, load, bill = options_by_subject(options, ServingOptions, LoadOptions, BillOptions)
    check_served(bill)
    return with_text(
        answers.serve(
            model_of(model),
            cluster_of(on),
            serving,
            load,
            bill,
            reserve_bytes=reserve_of(reserve_bytes),
            advise=advice,
            choose=not as_is,
        ),
        command,
    )


def _switches(as_is: bool, advice: bool) -> dict[str, bool]:
    """The switches of an answer that differ from their defaults, checked."""
    switches = {"as_is": True} if check_switch("as_is", as_is) else {}
    return switches if check_switch("advice", advice) else {**switches, "advice": False}


@public
def frontier(
    model: str | os.PathLike[str] | Model,
    on: str | Cluster,
    *,
    reserve_bytes: float = 0,
    points: int = POINTS,
    **options: Unpack[ServeOptions],
) -> Frontier:
    """Return speed for a user against throughput of a GPU, over tensor sizes, precisions and users: `serve --frontier`.

    model, on, reserve_bytes: as for `serve`
    points: numbers of users that are tried for each plan (default: 24)
    options: those of `serve`; what is given is not varied

    Returns a Frontier: `points()` has a FrontierPoint for each configuration: tensor_parallel_size, weights,
    concurrency, tokens_per_second_per_user, tokens_per_second_per_gpu, ttft_seconds, tpot_seconds; also as `rows()`,
    `frame()` and `figure()`. Raises TonnageError: as `serve`.

    >>> found = tonnage.frontier("llama-3.1-8b", on="H100-SXM-80GB", points=2, context=4096)
    >>> sorted({point.tensor_parallel_size for point in found.points()})
    [1]
    """
    points = check_whole("points", points)
    shown_points = None if points == POINTS else points
    question = {"on": on, "frontier": True, "points": shown_points, **options}
    command = command_of("serve", model, reserve_bytes=reserve_of(reserve_bytes), **question)
    serving, load, bill = options_by_subject(options, ServingOptions, LoadOptions, BillOptions)
    serving_options = replace(serving, reserve_bytes=reserve_of(reserve_bytes))
    answer = estimate_frontier(model_of(model), cluster_of(on), serving_options, load, bill, points=points)
    return Frontier(**{name: getattr(answer, name) for name in answer.__struct_fields__}, command=command)


@public
def for_my_machine(
    on: str | Cluster = "local",
    *,
    reserve_bytes: float = 0,
    order: str = "parameters",
    ttft: float | str | None = None,
    tpot: float | str | None = None,
    **options: Unpack[MachineOptions],
) -> ModelsForMachine:
    """Return which models of the catalogue run on a machine, in which precisions, and how fast for one user.

    on: the machine; "local" looks at this one (default)
    reserve_bytes [bytes]: memory of each GPU to leave free (default: 0)
    order: parameters, tokens_per_second, ttft_seconds, download_bytes or longest_context, the best first
    ttft, tpot [seconds, or "500ms"]: slower models are left out (default: none are)
    options: those of `serve` in the group "serving", such as context and weights

    Returns ModelsForMachine: `runs` has a RunsDocument for each model and precision, `widest` the widest precision of
    each model; also as `rows()` and `frame()`. Raises TonnageError: as `serve`.
    """
    check_text("order", order)
    serving = replace(options_from(ServingOptions, options), reserve_bytes=reserve_of(reserve_bytes))
    found = machines.my_machine(cluster_of(on), every(), serving, order=order, ttft=ttft, tpot=tpot)
    return ModelsForMachine(**{name: getattr(found, name) for name in found.__struct_fields__})


@public
def maximum(
    what: str,
    model: str | os.PathLike[str] | Model | None = None,
    *,
    on: str | Cluster,
    verb: Literal["serve", "train"] | None = None,
    reserve_bytes: float = 0,
    advice: bool = True,
    **options: Unpack[AnyOptions],
) -> Maximum:
    """Return the largest value that fits a machine, checked at the answer and just beyond it: `tonnage max`.

    what: of serving context, input, users, layers, expert-layers, adapters or model; of training sequence, micro-batch,
        lora-rank, layers or model
    model: as for `train`; left out with what="model", which looks through the catalogue
    on: the machine: "8xh100", or a Cluster
    verb: "serve" or "train", for what both have
    reserve_bytes [bytes]: memory of each GPU to leave free (default: 0)
    advice: with what would raise it (default: True)
    options: those of `serve` or of `train`

    Returns a Maximum: `value`, None where not even the least fits; `what.unit`; `answer` at that value. Raises
    TonnageError: as `train`.

    >>> tonnage.maximum("context", "llama-3.1-8b", on="H100-SXM-80GB", verb="serve").value
    131072
    """
    from tonnage.question.subjects.maximum import what_of
    from tonnage.search.maximum.ask import serving_maximum, training_maximum

    if verb is not None:
        check_text("verb", verb)
    quantity = what_of(check_text("what", what), verb)
    question: dict[str, Any] = {"on": on, **({verb: True} if verb else {}), **options}
    command = command_of(f"max {what}", model, reserve_bytes=reserve_of(reserve_bytes), **question)
    serves = quantity.verb == "serve"
    forms = (ServingOptions, LoadOptions) if serves else (TrainingOptions, RunOptions)
    chosen, other, bill = options_by_subject(options, *forms, BillOptions)
    if serves:
        check_served(bill)
    ask: Any = serving_maximum if serves else training_maximum
    about, reserve = None if model is None else model_of(model), reserve_of(reserve_bytes)
    answer = ask(quantity, about, cluster_of(on), chosen, other, bill, reserve_bytes=reserve, advise=advice)
    parts = {name: getattr(answer, name) for name in answer.__struct_fields__}
    return Maximum(**parts | {"answer": with_text(answer.answer)}, command=command)
