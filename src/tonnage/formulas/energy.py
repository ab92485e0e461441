"""Power, energy and carbon."""

from tonnage.kernel.formula import formula


@formula(unit="watts", source="Latif2024, abstract", assumes="every machine draws the same share of its rated power")
def machines_power(nodes, pw, u):
    """Power of machines rated at pw watts that draw the share u of it."""
    return nodes * pw * u


@formula(
    unit="machines",
    source="Patterson2021, the equations of energy and of CO2e",
    assumes="accelerators of a machine draw alike, and others use those that are left",
)
def machines_in_part(n, n_node):
    """Machines of n_node accelerators that n accelerators are, a part of one counted as a part."""
    return n / n_node


@formula(
    unit="watts",
    source="Patterson2021, the equations of energy and of CO2e",
    assumes="accelerators alone: hosts, fans and network are left out",
)
def accelerators_power(n, pw, u):
    """Power of n accelerators rated at pw watts that draw the share u of it."""
    return n * pw * u


@formula(unit="joules", source="Patterson2021, the equations of energy and of CO2e", assumes="power is even over time")
def energy_joules(pw, tau, pue):
    """Energy that a building takes up for machines of pw watts in tau seconds."""
    return pw * tau * pue


@formula(
    unit="gCO2e",
    source="Patterson2021, the equations of energy and of CO2e",
    assumes="the grid's yearly mean; making the machines is left out",
)
def carbon_grams(en, gco2):
    """Emissions of electric energy from a grid."""
    return en * gco2 / 3_600_000
