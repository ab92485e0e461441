"""Names of accelerators: labels of Kubernetes, types of Slurm, names of clouds -> those of our catalogue, and back."""

import re

# What a label or a type has that the catalogue has not as a name of it.
NAMES = {
    "nvidia-h100-80gb": "H100-SXM-80GB",  # cloud.google.com/gke-accelerator
    "nvidia-h100-mega-80gb": "H100-SXM-80GB",
    "nvidia-h200-141gb": "H200-SXM-141GB",
    "nvidia-tesla-a100": "A100-SXM-40GB",
    "nvidia-a100-80gb": "A100-SXM-80GB",
    "nvidia-tesla-v100": "V100-SXM2-16GB",
    "nvidia-tesla-p100": "P100-SXM2-16GB",
    "nvidia-rtx-pro-6000": "RTX-PRO-6000-Blackwell-Server",
    "tpu-v4-podslice": "TPU-v4",
    "tpu-v5-lite-podslice": "TPU-v5e",
    "tpu-v5-lite-device": "TPU-v5e",
    "tpu-v5p-slice": "TPU-v5p",
    "tpu-v6e-slice": "TPU-v6e",
    "tpu7x": "TPU-v7",
    "tpu-v5litepod": "TPU-v5e",
    "h100-nvlink-80gb": "H100-SXM-80GB",  # gpu.nvidia.com/class of CoreWeave
    "a100-nvlink-80gb": "A100-SXM-80GB",
    "a100-pcie-80gb": "A100-PCIe-80GB",
    "a100-nvlink": "A100-SXM-40GB",
    "h200": "H200-SXM-141GB",
    "h100-mega": "H100-SXM-80GB",
    "h100-80gb-sxm": "H100-SXM-80GB",
    "a100-80gb-sxm": "A100-SXM-80GB",
    "rtx6000": "Quadro-RTX-6000",
    "rtxpro6000": "RTX-PRO-6000-Blackwell-Server",
    "rtx-pro-6000": "RTX-PRO-6000-Blackwell-Server",
    "rtxa6000": "RTX-A6000",
    "rtxa5000": "RTX-A5000",
    "rtxa4000": "RTX-A4000",
    "rtx6000-ada": "RTX-6000-Ada",
    "rtx5000-ada": "RTX-5000-Ada",
    "a100-40g": "A100-SXM-40GB",
    "a100-80g": "A100-SXM-80GB",
    "intel-gaudi": "Gaudi3",
    "intel-gpu-max-1550": "Max-1550",
    "intel-gpu-max-1100": "Max-1100",
    "amd-instinct-mi300x-hf": "MI300X",
    "amd-instinct-mi250x-mi250": "MI250X-GCD",
    "a100-40": "A100-SXM-40GB",  # features of Slurm's nodes
    "a100-80": "A100-SXM-80GB",
    "h100-80": "H100-SXM-80GB",
    "v100-16": "V100-SXM2-16GB",
    "v100-32": "V100-SXM2-32GB",
    "volta": "V100-SXM2-32GB",
}
# Labels that NVIDIA's and AMD's plugins give nodes: what nvidia-smi calls the card, with dashes.
PRODUCTS = {
    "H100-SXM-80GB": "NVIDIA-H100-80GB-HBM3",
    "H100-PCIe-80GB": "NVIDIA-H100-PCIe",
    "H100-NVL-94GB": "NVIDIA-H100-NVL",
    "H200-SXM-141GB": "NVIDIA-H200",
    "H200-NVL-141GB": "NVIDIA-H200-NVL",
    "H20-96GB": "NVIDIA-H20",
    "H800-SXM-80GB": "NVIDIA-H800",
    "B200-SXM-180GB": "NVIDIA-B200",
    "B300-SXM-288GB": "NVIDIA-B300-SXM6-AC",
    "GB200-186GB": "NVIDIA-GB200",
    "GB300-288GB": "NVIDIA-GB300",
    "GH200-96GB": "NVIDIA-GH200-480GB",
    "A100-SXM-40GB": "NVIDIA-A100-SXM4-40GB",
    "A100-SXM-80GB": "NVIDIA-A100-SXM4-80GB",
    "A100-PCIe-40GB": "NVIDIA-A100-PCIE-40GB",
    "A100-PCIe-80GB": "NVIDIA-A100-80GB-PCIe",
    "A10": "NVIDIA-A10",
    "A10G": "NVIDIA-A10G",
    "A30": "NVIDIA-A30",
    "A40": "NVIDIA-A40",
    "L4": "NVIDIA-L4",
    "L40": "NVIDIA-L40",
    "L40S": "NVIDIA-L40S",
    "T4": "Tesla-T4",
    "V100-SXM2-16GB": "Tesla-V100-SXM2-16GB",
    "V100-SXM2-32GB": "Tesla-V100-SXM2-32GB",
    "RTX-A6000": "NVIDIA-RTX-A6000",
    "RTX-6000-Ada": "NVIDIA-RTX-6000-Ada-Generation",
    "RTX-4090": "NVIDIA-GeForce-RTX-4090",
    "RTX-5090": "NVIDIA-GeForce-RTX-5090",
    "RTX-3090": "NVIDIA-GeForce-RTX-3090",
    "RTX-PRO-6000-Blackwell-Server": "NVIDIA-RTX-PRO-6000-Blackwell-Server-Edition",
    "MI300X": "AMD_Instinct_MI300X_OAM",
    "MI325X": "AMD_Instinct_MI325X_OAM",
    "MI350X": "AMD_Instinct_MI350X_OAM",
    "MI355X": "AMD_Instinct_MI355X_OAM",
}
# Resources of Kubernetes that count accelerators, by vendor of ours.
RESOURCES = {
    "NVIDIA": "nvidia.com/gpu",
    "AMD": "amd.com/gpu",
    "Intel": "gpu.intel.com/xe",
    "Google": "google.com/tpu",
    "AWS": "aws.amazon.com/neuron",
    "Huawei": "huawei.com/Ascend910",
}
GAUDI = "habana.ai/gaudi"
COUNTED = (
    *RESOURCES.values(),
    GAUDI,
    "gpu.intel.com/i915",
    "intel.com/gpu",
    "aws.amazon.com/neurondevice",
    "nvidia.com/gpu.shared",
)
MIG = "nvidia.com/mig-"
_MIG_OF_PRODUCT = re.compile(r"(.+)-MIG-(\d+g\.\d+gb)(?:\.me|\+me)?", re.IGNORECASE)
_LONGEST = 100


def accelerator_named(name: str) -> str:
    """The name in our catalogue, with its slice; "" where a name means no accelerator."""
    from tonnage.catalogue import toml_files
    from tonnage.catalogue.accelerators import accelerator

    plain = str(name).strip()
    if not plain or len(plain) > _LONGEST:
        return ""
    if match := _MIG_OF_PRODUCT.fullmatch(plain):
        base = accelerator_named(match[1])
        return f"{base}:{match[2].lower()}" if base else ""
    chip, colon, part = plain.removesuffix("-SHARED").partition(":")
    for one in (chip.lower().replace("_", "-"), f"nvidia-{chip.lower()}"):
        if one in NAMES:
            return NAMES[one] + colon + part
    for one in (chip, chip.replace("-", " "), chip.replace("_", "-"), _without_generation(chip)):
        if one and toml_files.find("accelerators", one):
            return accelerator(one).name + colon + part
    return ""


def _without_generation(name: str) -> str:
    """`NVIDIA-RTX-PRO-6000-...-Edition` of labels, `nvidia_h100_80gb_hbm3` of Slurm's autodetection."""
    plain = name.replace("_", "-")
    return plain.removeprefix("NVIDIA-").removeprefix("nvidia-")


def accelerator_of_instance(name: str) -> tuple[str, int]:
    """The accelerator of a cloud's machine, and how many it has; "" and 0 of others."""
    from tonnage.catalogue.nodes import find, load

    path = find(name) if name and len(name) <= _LONGEST else None
    if path is None:
        return "", 0
    node = load(path)
    return node.accelerator, node.accelerators


def product_label(accelerator: str) -> str:
    """The value of the label of nodes with this accelerator; "" where it is not known."""
    return PRODUCTS.get(accelerator.partition(":")[0], "")


def resource_of(vendor: str, accelerator: str) -> str:
    """The resource that a container asks for one of these accelerators with."""
    _, colon, part = accelerator.partition(":")
    if colon and re.fullmatch(r"\d+g\.\d+gb", part):
        return f"{MIG}{part}"
    return GAUDI if accelerator.startswith("Gaudi") else RESOURCES.get(vendor, "nvidia.com/gpu")
