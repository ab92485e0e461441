"""What no plan of a kind can be below, found without walking it: what a search need not look at. Tests hold that
nothing is lost by it.
"""

from msgspec.structs import replace

from tonnage.estimate.inputs import Question
from tonnage.estimate.serving.memory import serving_memory
from tonnage.estimate.serving.plans import serving_plan
from tonnage.estimate.serving_time.work import kv_bytes, stage_works
from tonnage.formulas.time import memory_seconds
from tonnage.search.serving.rows import Config
from tonnage.search.serving.space import Sizes, Space

ROUNDING_MARGIN = 1 - 1e-6  # of a bound: what rounding takes
INFINITE = float("inf")


class Bounds:
    """Lower bounds for the configurations of one search; each is computed once."""

    def __init__(self, space: Space):
        self.space = space
        o = space.options
        self.is_whole = o.layers_on_accelerator is None and not o.expert_layers_on_host and not o.weights_on_host
        self._known: dict[tuple[str, str | None, tuple[str, ...]], tuple[float, float]] = {}

    def weights_bytes(self, config: Config) -> float:
        """The weights [bytes] of the fullest GPU at least: all weights of a replica lie on its ranks."""
        return ROUNDING_MARGIN * self._weight_bytes(config)[0] / config.sizes.ranks

    def token_seconds(self, config: Config) -> float:
        """A token reads its weights once, from as many memories at once as there are tensor ranks; drafts may give
        several a pass.
        """
        rate = config.kind.machine.accelerator.memory.bytes_per_second
        if rate is None:
            return 0.0
        at_once = config.sizes.tensor * config.sizes.groups
        options = self.space.options
        is_known = not options.draft_model and not options.speculative
        tokens_at_once = (options.draft_tokens or 0) + 1 if is_known else INFINITE
        return (
            float(ROUNDING_MARGIN * memory_seconds.evaluate(M=self._weight_bytes(config)[1], W=rate, u=1))
            / at_once
            / tokens_at_once
        )

    def _weight_bytes(self, config: Config) -> tuple[float, float]:
        """Bytes of a replica's weights, and of those that a token cannot do without."""
        kind, chip = config.kind, config.kind.machine.accelerator
        key = (config.engine, kind.weights, tuple(chip.dense_flops))
        if key not in self._known:
            self._known[key] = self._read_weight_bytes(config) if self.is_whole else (0.0, 0.0)
        return self._known[key]

    def _read_weight_bytes(self, config: Config) -> tuple[float, float]:
        chip = config.kind.machine.accelerator
        alone = replace(config._replace(sizes=Sizes(1, 1, 1, 1)).options(self.space), redundant_experts=None)
        cluster = config.kind.machine.of(1, 1)
        plan = serving_plan(self.space.model, cluster, alone, Question())
        (rank,) = serving_memory(self.space.model, plan, chip).ranks
        weight_bytes = next((part.value for part in rank.memory.children if part.name == "weights"), 0.0)
        works = stage_works(self.space.model, plan, tuple(chip.dense_flops), kv_bytes(plan))
        return float(weight_bytes), float(sum(work.dense_bytes + work.chosen_bytes for work in works))
