"""Scripts of bash: variables, arrays, sums and branches that are put into the commands they start."""

from hypothesis import given
from hypothesis import strategies as st

from every_row import every_row
from tonnage.interchange.source import commands_of


def words(script):
    return [list(command.words) for command in commands_of(script)]


def test_arrays_of_bash_are_put_in():
    script = (
        'A=(\n  --x 1 # first\n  # --y 2\n  "--z 3"\n)\nA+=(--w)\nN=2\nB=(--n $N)\nrun "${A[@]}" ${B[@]} ${NONE[@]}\n'
    )
    assert words(script) == [["run", "--x", "1", "--z", "3", "--w", "--n", "2", "${NONE[@]}"]]


def test_a_variable_with_options_over_several_lines_is_put_in():
    script = 'ARGS="\n  --x 1 \\\n  --y 2\n"\nMORE="--z 3\n  --w 4"\nrun $ARGS ${MORE}\n'
    assert words(script) == [["run", "--x", "1", "--y", "2", "--z", "3", "--w", "4"]]


@every_row(
    "text, value",
    [
        ("$((2 * 8))", "16"),
        ("$(($N*8/4))", "6"),
        ("$(( (N + 1) * 2 ))", "8"),
        ("$((10 % 4))", "2"),
        ("$((-3 + 5))", "2"),
    ],
)
def test_sums_of_bash_are_worked_out(text, value):
    assert words(f"N=3\nrun --gbs {text}\n") == [["run", "--gbs", value]]


@every_row("text", ["$((UNKNOWN * 2))", "$((1 / 0))", "$((2 ** 9999))", "$((" + "9" * 300 + "))"])
def test_sums_that_are_not_known_stay_as_they_are(text):
    assert words(f"run {text.replace(' ', '')}\n") == [["run", text.replace(" ", "")]]


def test_of_a_condition_that_is_known_the_branch_that_runs_is_read():
    script = 'T=fp8\nif [[ "$T" == "fp8" ]]; then\n  A=(--fp8)\nelif [ $T = bf16 ]; then\n  A=(--bf16)\n'
    script += "else\n  A=(--no)\nfi\nrun ${A[@]}\n"
    assert words(script) == [["run", "--fp8"]]
    assert words(script.replace("T=fp8", "T=bf16")) == [["run", "--bf16"]]
    assert words(script.replace("T=fp8", "T=x")) == [["run", "--no"]]
    assert words("N=2\nif [ $N -gt 1 ]; then\nrun a\nelse\nrun b\nfi\nrun c\n") == [["run", "a"], ["run", "c"]]


def test_of_a_condition_that_is_not_known_all_branches_are_read():
    assert words('if [ -z "$T" ]; then\nrun a\nelse\nrun b\nfi\n') == [["run", "a"], ["run", "b"]]


def test_variables_and_arrays_that_double_each_other_stop_growing():
    doubled = "A=xxxxxxxxxx\n" + "A=$A$A\n" * 60 + "run $A\n" + "B=(1 2)\n" + 'B+=("${B[@]}")\n' * 60 + "run ${B[@]}\n"
    first, second = words(doubled)
    assert len(first[1]) <= 200_000
    assert len(second) <= 20_001
    (third,) = words("A=" + "x" * 19_000 + "\nrun " + "$A" * 9_000 + "\n")
    assert third[1].startswith("$A$A")


@given(st.text(alphabet="AB=()[]{}$@+*/%-# \n\"'\\;|if thenelsfi12", max_size=200))
def test_any_script_is_taken_apart_without_a_failure(text):
    assert all(command.words for command in commands_of(text))
