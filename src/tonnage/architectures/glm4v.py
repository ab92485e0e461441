"""GLM-4.1V, GLM-4.5V and GLM-4.6V with their tower (transformers 5.23, models/{glm4v,glm4v_moe,glm46v})."""

from tonnage.architectures._config import Config
from tonnage.architectures._model import Model
from tonnage.architectures._registry import architecture
from tonnage.architectures._towers import joined, language_model, tower


@architecture("Glm4vForConditionalGeneration", "Glm46VForConditionalGeneration", model_types=("glm4v", "glm46v"))
def glm4v(c: Config) -> Model:
    return joined(language_model(c, "glm4v_text"), "glm4v", tower(c, "glm4v_vision"))


@architecture("Glm4vMoeForConditionalGeneration", model_types=("glm4v_moe",))
def glm4v_moe(c: Config) -> Model:
    return joined(language_model(c, "glm4v_moe_text"), "glm4v", tower(c, "glm4v_moe_vision"))
