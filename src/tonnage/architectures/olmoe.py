"""OLMoE and FlexOlmo: mixtures of experts with norms over all queries and all keys.

Structure and defaults: transformers 5.23, models/olmoe (norms before attention and experts) and models/flex_olmo (norms
after them, as in OLMo 2). intermediate_size is the width of one expert.
"""

from tonnage.architectures._config import Config
from tonnage.architectures._layers import moe
from tonnage.architectures._model import Model
from tonnage.architectures._parts import decoder, model, pre_norm
from tonnage.architectures._registry import architecture
from tonnage.architectures.olmo import attends, post_norm
from tonnage.ops import MoE


@architecture("OlmoeForCausalLM", model_types=("olmoe",))
def olmoe(c: Config) -> Model:
    c = c.with_defaults({"num_experts": 64, "num_experts_per_tok": 8})
    layer = pre_norm("mixture layer", attends(c), experts(c), c.size("hidden_size"))
    tied = c.flag("tie_word_embeddings", default=False)
    return model(c, "olmoe", decoder(c, [layer], tied=tied), tied=tied)


@architecture("FlexOlmoForCausalLM", model_types=("flex_olmo",))
def flex_olmo(c: Config) -> Model:
    c = c.with_defaults({"num_experts": 7, "num_experts_per_tok": 5})
    layer = post_norm(c, "mixture layer", attends(c), experts(c))
    tied = c.flag("tie_word_embeddings", default=False)
    return model(c, "olmoe", decoder(c, [layer], tied=tied), tied=tied)


def experts(c: Config) -> MoE:
    return moe(c, intermediate_size=c.size("intermediate_size"))
