"""Quantised checkpoints: the precision of each tensor, from a GGUF file type or a Hugging Face quantization_config."""

from tonnage.numerics.quantization._exllama import HEAD_BITS as HEAD_BITS
from tonnage.numerics.quantization._exllama import exllama_config as exllama_config
from tonnage.numerics.quantization._gguf import FILE_TYPES as FILE_TYPES
from tonnage.numerics.quantization._gguf import SOURCE as SOURCE
from tonnage.numerics.quantization._gguf import VALUES as VALUES
from tonnage.numerics.quantization._gguf import FileType as FileType
from tonnage.numerics.quantization._gguf import Shape as Shape
from tonnage.numerics.quantization._gguf import file_type as file_type
from tonnage.numerics.quantization._gguf import is_file_type as is_file_type
from tonnage.numerics.quantization._gguf import more_bits as more_bits
from tonnage.numerics.quantization._gguf import role as role
from tonnage.numerics.quantization._gguf import tensor_type as tensor_type
from tonnage.numerics.quantization._layout import Layout as Layout
from tonnage.numerics.quantization._layout import layout as layout
from tonnage.numerics.quantization._modules import Module as Module
from tonnage.numerics.quantization._modules import Modules as Modules
from tonnage.numerics.quantization._tool_formats import EXAMPLES as EXAMPLES
from tonnage.numerics.quantization._tool_formats import OWN_FORMATS as OWN_FORMATS
from tonnage.numerics.quantization._tool_formats import tool_layout as tool_layout
from tonnage.numerics.quantization._tool_formats import tool_precision as tool_precision
