"""The report of a plan names the price that its title's cost comes from, also where no plan keeps the budget."""

from tonnage.cli import main


def test_a_report_that_no_plan_keeps_the_budget_of_has_the_price_of_the_nearest(capsys):
    words = "plan llama-3.2-1b --on 8xh100 --runtime fsdp2 --recompute full --tokens 1T --budget 5 --markdown"
    assert main(words.split()) == 3
    text = capsys.readouterr().out
    assert "No price is known" not in text
    prices = text.partition("## Prices")[2].partition("##")[0]
    assert "USD an hour of an accelerator" in prices
