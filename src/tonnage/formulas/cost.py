"""Money: rent by the hour, and what a machine costs that one owns."""

from tonnage.kernel.formula import ceil_div, formula


@formula(
    unit="machines",
    source="DocumentD, section on cloud and own servers",
    assumes="a machine that is used in part is paid whole",
)
def machines_billed(n, n_node):
    """Machines of n_node accelerators that n accelerators take."""
    return ceil_div(n, n_node)


@formula(
    unit="USD", source="DocumentD, section on cloud and own servers", assumes="every second of every machine is billed"
)
def rent_usd(nodes, tau, USD_hour):
    """Rent of the machines for tau seconds."""
    return nodes * tau * USD_hour / 3600


@formula(unit="USD", source="DocumentD, section on cloud and own servers")
def accelerator_hour_usd(USD_hour, n_node):
    """Price of one accelerator of a machine for one hour."""
    return USD_hour / n_node


@formula(unit="USD", source="DocumentD, section on cloud and own servers", assumes="the rate is the user's own")
def in_dollars(amount, fx):
    """An amount of another currency in US dollars."""
    return amount / fx


@formula(unit="USD", source="DocumentD, section on cloud and own servers")
def purchase_usd(nodes, USD_buy, share_net):
    """Price of machines with the switches, cables and racks that join them."""
    return nodes * USD_buy * (1 + share_net)


@formula(
    unit="USD",
    source="DocumentD, section on cloud and own servers",
    assumes="written off evenly, to nothing; a year of 8760 hours",
)
def depreciation_usd(USD_buy, tau, years):
    """The part of a purchase price that tau seconds use up."""
    return USD_buy * tau / (years * 31_536_000)


@formula(unit="USD", source="DocumentD, section on cloud and own servers")
def electricity_usd(en, USD_kwh):
    """Price of electric energy."""
    return en * USD_kwh / 3_600_000


@formula(
    unit="USD",
    source="DocumentD, section on cloud and own servers",
    assumes="paid for the most power that is drawn; a month of 730 hours",
)
def colocation_usd(pw, tau, USD_kw):
    """Room, cooling and feeds for machines of pw watts in somebody's data centre, for tau seconds."""
    return pw * USD_kw * tau / 2_628_000_000


@formula(unit="USD", source="DocumentD, section on cloud and own servers", assumes="a month of 730 hours")
def staff_usd(USD_staff, tau):
    """Pay of people for tau seconds."""
    return USD_staff * tau / 2_628_000


@formula(
    unit="seconds",
    source="DocumentD, section on cloud and own servers",
    assumes="the rent is higher than what running the machine costs",
)
def break_even_seconds(USD_buy, USD_rent, USD_run):
    """Time after which buying, and paying USD_run a second, is cheaper than renting for USD_rent a second."""
    return USD_buy / (USD_rent - USD_run)
