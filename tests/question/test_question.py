"""The declarations of the options: names that people can choose, and names that mean one thing."""

import pytest

from tonnage.estimate.load import options as load_options
from tonnage.estimate.money.bill import KINDS
from tonnage.estimate.options import training_method
from tonnage.estimate.options.plans import ATTENTION, RECOMPUTE
from tonnage.estimate.plan import schedule
from tonnage.estimate.step import objective
from tonnage.question.option import names_in
from tonnage.question.verbs import FORMS, form_of, forms_of

CHOICES = {
    "attention": ATTENTION,
    "method": training_method.PEFT_METHODS,
    "objective": objective.OBJECTIVES,
    "percentile": load_options.PERCENTILES,
    "pipeline_schedule": schedule.SCHEDULES,
    "price_kind": KINDS,
    "recompute": RECOMPUTE,
}
FORMS_OF_VERBS = [form for verb in FORMS for form in forms_of(verb)]


@pytest.mark.parametrize("name", CHOICES)
def test_the_choices_of_an_option_are_those_that_the_estimate_takes(name):
    options = {**form_of("serve").options, **form_of("train").options}
    assert {*names_in(options[name].choices)} == {*CHOICES[name]}


@pytest.mark.parametrize("form", FORMS_OF_VERBS, ids=lambda form: " ".join((form.verb, *form.words)))
def test_a_flag_means_one_option(form):
    every = [flag for option in form.options.values() for flag in option.flags]
    assert len(every) == len(set(every))
    assert all(option.help or option.choices for option in form.options.values())
