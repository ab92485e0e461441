"""What answers one question, for callers that ask of training and of serving. Who asks one of them imports it from
where it stands: training needs nothing of serving.
"""

from tonnage.estimate.answer.form import Answer
from tonnage.estimate.answer.serving import serve
from tonnage.estimate.answer.training import train

__all__ = ["Answer", "serve", "train"]
