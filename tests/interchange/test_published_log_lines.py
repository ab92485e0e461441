"""Figures of published logs: each metric of the sources is recognised in the line that prints it."""

import pytest
from published_log_lines import LINES, METRICS

from every_row import every_row
from tonnage.interchange.logs import figures_of

GOAL = 0.95  # of the figures of the sources


def recognised(line):
    """The printed figures that are found in a line: with their values."""
    found = {one.quantity or one.metric: one.value for one in figures_of(line.text).get(line.tool, [])}
    return [each for each in line.printed if found.get(each.name) == pytest.approx(each.value)]


def test_at_least_95_of_100_published_figures_of_logs_are_recognised():
    count = sum(each.times for line in LINES for each in recognised(line))
    total = sum(METRICS.values())
    assert (count, total) == (278, 278)  # 100 %
    assert count / total >= GOAL


def test_every_metric_of_the_sources_has_its_line():
    times = dict.fromkeys(METRICS, 0)
    for line in LINES:
        for each in line.printed:
            times[each.metric] += each.times
    assert times == METRICS


@every_row("line", LINES, ids=lambda line: f"{line.tool} {line.release}", at_least=20)
def test_a_line_gives_its_figures_and_no_other_tool_reads_it(line):
    assert recognised(line) == list(line.printed)
    assert list(figures_of(line.text)) == [line.tool]
