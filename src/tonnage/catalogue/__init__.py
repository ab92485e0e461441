"""Facts about models, accelerators and nodes, each with its source and date. Adding one is adding one TOML file."""

from tonnage.catalogue.accelerators import accelerator as accelerator
from tonnage.catalogue.accelerators import accelerator_names as accelerator_names
from tonnage.catalogue.clusters import cluster as cluster
from tonnage.catalogue.models import model_file as model_file
from tonnage.catalogue.models import model_names as model_names
from tonnage.catalogue.nodes import node as node
from tonnage.catalogue.nodes import node_names as node_names
from tonnage.catalogue.toml_files import aliases as aliases
