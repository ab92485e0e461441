import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from tonnage.search.pareto import front

GRIDS = st.integers(1, 4).flatmap(
    lambda figures: hnp.arrays(
        np.float64, st.tuples(st.integers(0, 60), st.just(figures)), elements=st.integers(0, 5).map(float)
    )
)


def by_definition(figures):
    return [not any((other <= row).all() and (other < row).any() for other in figures) for row in figures]


@given(GRIDS)
def test_a_front_is_what_no_other_point_dominates(figures):
    assert front(figures).tolist() == by_definition(figures)


def test_a_large_front_is_found_block_by_block():
    points = np.random.default_rng(0).integers(0, 40, (9000, 3)).astype(float)
    kept = points[front(points)]
    assert len(kept) and np.array_equal(np.unique(kept, axis=0), np.unique(kept[by_definition(kept)], axis=0))
    for point in points[:200]:
        assert ((kept <= point).all(axis=1)).any()


def test_points_without_a_finite_figure_are_not_on_the_front():
    assert front(np.array([[1.0, np.nan], [np.inf, 0.0], [3.0, 3.0]])).tolist() == [False, False, True]
