"""What size of model and how much data a compute budget is best spent on, and what training beyond that costs."""

from typing import Any

from msgspec import UNSET, Struct

from tonnage.architectures import Model
from tonnage.documents.run import BestModelDocument
from tonnage.formulas import rules as r
from tonnage.formulas import scaling as f
from tonnage.formulas.rules import compute_rule
from tonnage.kernel.errors import InvalidInput, shown
from tonnage.kernel.formula import Number
from tonnage.kernel.message import option_name
from tonnage.kernel.term import Term
from tonnage.spec import TrainingPlan


class Fit(Struct, frozen=True, kw_only=True):
    """Constants of Hoffmann's loss as one publication fits them: nats a token, of parameters and tokens."""

    name: str
    irreducible: float
    model_scale: float
    data_scale: float
    model_exponent: float
    data_exponent: float
    source: str

    @property
    def frontier(self) -> dict[str, Any]:
        """The letters that the best size and the best data depend on."""
        return {
            "A_N": self.model_scale,
            "B_D": self.data_scale,
            "alpha": self.model_exponent,
            "beta": self.data_exponent,
        }


# As printed they are rounded, which moves the best model for Gopher's budget from the paper's 40B to 32B parameters.
HOFFMANN_PRINTED = Fit(
    name="Hoffmann 2022, as printed",
    irreducible=1.69,
    model_scale=406.4,
    data_scale=410.7,
    model_exponent=0.34,
    data_exponent=0.28,
    source="Hoffmann2022, eq. 10",
)
HOFFMANN = Fit(
    name="Hoffmann 2022",
    irreducible=1.69337368,
    model_scale=406.401018,
    data_scale=410.722827,
    model_exponent=0.33917084,
    data_exponent=0.2849083,
    source="Hoffmann2022, eq. 10, unrounded as in its TeX source",
)
BESIROGLU = Fit(
    name="Besiroglu 2024",
    irreducible=1.8172,
    model_scale=482.01,
    data_scale=2085.43,
    model_exponent=0.3478,
    data_exponent=0.3658,
    source="Besiroglu2024, the same runs fitted again",
)
FITS = {fit.name: fit for fit in (BESIROGLU, HOFFMANN, HOFFMANN_PRINTED)}
KAPLAN = "Kaplan 2020"
LARGEST = 1e40  # FLOP: beyond any budget


class Optimum(Struct, frozen=True, kw_only=True):
    """The best model and data for a compute budget, by one fit. `loss` is None where the fit has none of both
    together.
    """

    fit: str
    parameters: Term
    tokens: Term
    loss: Term | None


class Overtraining(Struct, frozen=True, kw_only=True):
    """A model beside the best one, by one fit.

    `loss` of this model, `best_loss` of the best one for the same compute; `same_loss_compute`: what the best model for
    it needs to be as good as this one; `factor`: this model's compute over that, never below 1: the price of a smaller
    model to serve (or of one that saw too little).
    """

    fit: str
    optimum: Optimum
    loss: Term
    same_loss_compute: Term
    factor: Term

    @property
    def best_loss(self) -> Term:
        assert self.optimum.loss is not None  # of Kaplan's alone
        return self.optimum.loss


def optima(compute: Number) -> dict[str, Optimum]:
    """The best parameters and tokens for a compute budget [FLOP], by each published fit, the one to prefer first."""
    _check("compute", compute, LARGEST)
    by_fit = {name: _optimum(fit, compute) for name, fit in FITS.items()}
    by_fit[KAPLAN] = Optimum(
        fit=KAPLAN,
        parameters=Term.of("best parameters", f.kaplan_optimal_parameters, C=compute),
        tokens=Term.of("best tokens", f.kaplan_optimal_tokens, C=compute),
        loss=None,
    )
    return by_fit


def overtraining(num_parameters: Number, tokens: Number) -> dict[str, Overtraining]:
    """A dense model of so many parameters after so many tokens, by each fit: against the best one for its 6 N D."""
    _check("num_parameters", num_parameters, 1e18)
    _check("tokens", tokens, 1e18)
    work = Term.of("compute of this model", r.compute_rule, N=num_parameters, D=tokens)
    by_fit = {}
    for name, fit in FITS.items():
        same = Term.of(
            "compute of the best model that is as good",
            f.optimal_compute,
            source=fit.source,
            N=num_parameters,
            D=tokens,
            **fit.frontier,
        )
        by_fit[name] = Overtraining(
            fit=name,
            optimum=_optimum(fit, work.value),
            loss=_loss("loss of this model", fit, num_parameters, tokens),
            same_loss_compute=same,
            factor=Term.ratio("compute over that of the best model that is as good", "", work, same),
        )
    return by_fit


def _optimum(fit: Fit, compute: Number) -> Optimum:
    parameters = Term.of("best parameters", f.optimal_parameters, source=fit.source, C=compute, **fit.frontier)
    tokens = Term.of("best tokens", f.optimal_tokens, source=fit.source, C=compute, **fit.frontier)
    loss = _loss("loss of the best model", fit, parameters.value, tokens.value)
    return Optimum(fit=fit.name, parameters=parameters, tokens=tokens, loss=loss)


def _loss(name: str, fit: Fit, num_parameters: Number, tokens: Number) -> Term:
    return Term.of(
        name, f.chinchilla_loss, source=fit.source, N=num_parameters, D=tokens, E_inf=fit.irreducible, **fit.frontier
    )


def _check(name: str, value: Number, most: float) -> None:
    """A number from 1 on, or an array, which its maker has checked."""
    if getattr(value, "ndim", 0):
        return
    if not 1 <= value <= most:  # NaN is neither
        raise InvalidInput(
            "{name} must be from 1 to {most:.0e}. Got {value}.",
            name=option_name(name),
            most=most,
            value=shown(value),
        )


# ---- A run beside the best one for its compute: what parameters and data Chinchilla's and Kaplan's laws give it, and
# what training beyond costs.


def best_models(model: Model, plan: TrainingPlan, tokens: Term) -> list[BestModelDocument[Term]]:
    """By each fit the best model for the compute of a run, and with it, of a dense model, what the run costs over the
    best that is as good. None for what the laws are not of: encoders, adapters, training on preferences. They were
    fitted to dense models: experts get no cost.
    """
    kinds = {branch.kind for branch in model.branches}
    if plan.tuning.method != "full" or plan.post_training.objective != "sft" or "encoder" in kinds:
        return []
    active = model.num_active_parameters()
    decoders = [branch for branch in model.branches if branch.kind == "decoder"]
    dense = active == sum(weight.num_parameters * count for branch in decoders for weight, count in branch.weighted())
    compute = compute_rule(N=active, D=tokens.value)
    excess = overtraining(active, tokens.value) if dense else {}
    return [_best(name, optimum, excess.get(name)) for name, optimum in optima(compute).items()]


def _best(name: str, optimum: Optimum, this: Overtraining | None) -> BestModelDocument[Term]:
    return BestModelDocument(
        fit=name,
        parameters=optimum.parameters,
        tokens=optimum.tokens,
        loss=optimum.loss or UNSET,
        loss_of_this=this.loss if this else UNSET,
        same_loss_compute=this.same_loss_compute if this else UNSET,
        factor=this.factor if this else UNSET,
    )
