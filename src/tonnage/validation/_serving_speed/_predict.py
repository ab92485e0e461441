"""Times of serving: the one place where rows meet the estimator."""

from tonnage.architectures import Model
from tonnage.errors import MissingDatum
from tonnage.spec import Cluster, Load, ServingPlan
from tonnage.validation._serving_speed._figures import Times


def predict_times(model: Model, plan: ServingPlan, load: Load, cluster: Cluster) -> Times:
    """Times of one replica under this load."""
    raise MissingDatum("time of serving is not estimated yet")
