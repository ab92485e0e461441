"""Options of a whole training run: how much training, until when, for how much money, and what may fail."""

from typing import Annotated

from tonnage.question.forms import amount, count, duration, last_day, number, number_of, ranged, rate, usd, word
from tonnage.question.option import RUN_AND_MONEY, Options, Usual, described, option

OF_ANY_ANSWER = ("price_per_accelerator_hour", "storage_bandwidth", "storage_read_bandwidth")  # given for a step too


def _failure_rates() -> tuple[str, ...]:
    from tonnage.catalogue.failures import failure_rates  # read when somebody asks for them

    return failure_rates()


@described
class RunOptions(Options, frozen=True, kw_only=True):
    """Options of a whole training run; None is the default, which `answer.question` names with its reason.

    One of `tokens`, `epochs` of `dataset_tokens` and `max_steps` says how much is trained, or none with a budget,
    which is then spent.
    """

    tokens: Annotated[
        int | str | None,
        option(
            "training tokens, such as 15T; or give epochs, or max_steps",
            number_of,
            unit="tokens",
            usual=Usual(RUN_AND_MONEY, "tokens to train on, such as 15T: days and cost", "TOKENS"),
        ),
    ] = None
    epochs: Annotated[float | None, option("passes over the data set", number, unit="epochs")] = None
    dataset_tokens: Annotated[int | str | None, option("tokens of the data set", number_of, unit="tokens")] = None
    max_steps: Annotated[int | str | None, option("optimizer steps", number_of, unit="steps")] = None
    deadline: Annotated[
        float | str | None,
        option(
            "30d, 2w, or the last day, such as 2027-01-31: how many accelerators make it?",
            last_day,
            unit="time",
            usual=Usual(RUN_AND_MONEY, "30d, 2w or a date: how many GPUs make it", "TIME"),
        ),
    ] = None
    budget: Annotated[
        float | str | None,
        option(
            "money that may be spent, such as 100k: how many tokens does it buy?",
            usd,
            unit="USD",
            usual=Usual(RUN_AND_MONEY, "how many tokens it buys", "USD"),
        ),
    ] = None
    budget_accelerator_hours: Annotated[
        float | str | None, option("accelerator-hours that may be spent", amount, unit="accelerator-hours")
    ] = None
    price_per_accelerator_hour: Annotated[
        float | None, option("price of one accelerator for one hour", number, unit="USD")
    ] = None
    checkpoint_seconds: Annotated[
        float | str | None,
        option(
            "time that training stands still for a checkpoint, such as 30s",
            duration,
            unit="time",
            default="its bytes / storage_bandwidth",
        ),
    ] = None
    checkpoint_interval: Annotated[
        float | str | None,
        option("training between two checkpoints, such as 30min", duration, unit="time", default="Daly's optimum"),
    ] = None
    storage_bandwidth: Annotated[
        float | str | None,
        option(
            "bytes a second that all accelerators together write, such as 20GB/s",
            rate,
            unit="bytes/s",
            default="122 MB/s an accelerator, as for Llama 3",
        ),
    ] = None
    storage_read_bandwidth: Annotated[
        float | str | None,
        option(
            "bytes a second that all accelerators together read, such as 40GB/s",
            rate,
            unit="bytes/s",
            default="storage_bandwidth",
        ),
    ] = None
    restart_seconds: Annotated[
        float | str | None,
        option(
            "time from a failure until training goes on, such as 10min",
            duration,
            unit="time",
            default="10 minutes and reading the checkpoint",
        ),
    ] = None
    accelerator_mtbf: Annotated[
        float | str | None,
        option(
            "mean time between failures of one accelerator with its share of node and network, such as 5y",
            duration,
            unit="time",
            default="as --failures says: 5.8 years of an H100, 3.4 of an A100",
        ),
    ] = None
    failures: Annotated[
        str | None,
        option(
            "published rate of failures, such as llama-3 or rsc-1",
            word,
            unit="name",
            default="of the accelerator's generation, else llama-3",
            known=_failure_rates,
        ),
    ] = None
    checkpoint_tier: Annotated[
        str | None,
        option(
            "where the checkpoint lies that a restart reads first: remote storage, local drives, or host memory with a "
            "copy on a peer",
            word,
            unit="name",
            default="remote",
            choices=("remote", "local", "memory"),
        ),
    ] = None
    spares: Annotated[
        int | None,
        option(
            "spare nodes, which are paid for; where none is left, training waits for the repair of one",
            ranged(count, "from 0 to 10,000"),
            unit="nodes",
            default="always one at hand, not paid for",
        ),
    ] = None
    repair_seconds: Annotated[
        float | str | None,
        option("with spares: time until a failed node is back, such as 8h", duration, unit="time", default="1 day"),
    ] = None
    elastic: Annotated[
        bool | None,
        option("with spares: without a spare node, go on with fewer data-parallel replicas instead of waiting"),
    ] = None

    @property
    def stray(self) -> str:
        """An option that says something of a run that nothing asks for, or nothing."""
        if self.asked:
            return ""
        return next(
            (name for name in self.__struct_fields__ if name not in OF_ANY_ANSWER and getattr(self, name) is not None),
            "",
        )

    @property
    def asked(self) -> bool:
        """Whether anything says how much is trained; without it there is no run to estimate."""
        goals = (self.tokens, self.epochs, self.max_steps, self.budget, self.budget_accelerator_hours)
        return any(goal is not None for goal in goals)
