import numpy as np
import pytest
from habitus import envs
from habitus.envs.credit_review import applicants


def test_stakes_are_relative_to_the_mean_clipped_and_have_mean_one():
    # mean 25; 10/25 = .4 stays, 1/25 is raised to .2, 80/25 is lowered to 3; mean of (.4, .2, .36, 3) is .99
    stakes = envs.stake_of_amounts([10, 1, 9, 80])
    np.testing.assert_allclose(stakes, np.array([0.4, 0.2, 0.36, 3.0]) / 0.99, rtol=1e-6)
    assert stakes.dtype == np.float32


@pytest.mark.parametrize("amounts", [[1.0, 0.0], [1.0, -2.0], [1.0, np.nan], [np.inf, 1.0]])
def test_a_loan_without_a_size_is_refused(amounts):
    with pytest.raises(ValueError, match=r"`amounts` must be positive and finite, got .* in row "):
        envs.stake_of_amounts(amounts)


def test_a_table_keeps_read_only_copies(toy_table):
    bad = np.array([True, False] * 30)
    table = toy_table(bad=bad)
    bad[0] = False
    assert table.bad[0]
    with pytest.raises(ValueError, match="read-only"):
        table.stake[0] = 2.0
    assert len(table) == 60
    assert [field.name for field in table.category_fields] == ["job", "home"]
    assert [field.name for field in table.number_fields] == ["income", "age"]


FIELD = envs.Field("job", ("fixed", "freelance", "missing", "hidden"))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"bad": [True]}, "`bad` must list at least 2 applicants, got 1"),
        ({"bad": np.zeros(60, bool)}, "`bad` must hold both outcomes.* got 0 bad of 60"),
        ({"categories": np.zeros((60, 1))}, r"`categories` must have shape \(60, 2\), got \(60, 1\)"),
        ({"categories": np.full((60, 2), 4)}, r"codes of 'job' must lie in \[0, 4\), got 4 in row 0"),
        ({"numbers": np.full((60, 2), np.nan)}, r"numbers of 'income' must lie in \[0.0, 10\], got nan in row 0"),
        ({"stake": np.full(60, 2.0)}, "`stake` must be positive with mean 1 .* a mean of 2.0"),
        ({"hidden_fields": ("job", "wage")}, r"`hidden_fields` must name fields of the table .*, got \['wage'\]"),
        ({"hidden_fields": ("home",)}, "field 'home' can be withheld and needs the label 'hidden'"),
        ({"hidden_fields": ("age",)}, "number 'age' can be withheld and needs a `status` field, got None"),
        ({"missing": np.ones((60, 2))}, "number 'age' has gaps and needs a `status` field"),
        ({"proxies": ("wage",)}, r"`proxies` must name fields of the table .*, got \['wage'\]"),
        ({"group_labels": ()}, "`group` and `group_labels` go together, got only one of them"),
        ({"group": np.full(60, 2)}, r"`group` must lie in \[0, 2\), got 2 to 2"),
        ({"group_name": "age"}, "`group_name` must not be one of `fields`.* got age"),
        ({"group_name": "stake"}, r"no field may have a name that the world adds.* got \['stake'\]; rename it"),
        ({"ids": ("a",) * 60}, "`ids` must name each of the 60 rows once, got 1 different of 60"),
        (
            {"fields": (FIELD, FIELD, *(envs.Field(name) for name in "ab"))},
            r"must differ, got \['job'\] more than once",
        ),
        ({"fields": (), "categories": np.zeros((60, 0))}, r"`numbers` must have shape \(60, 0\), got \(60, 2\)"),
    ],
)
def test_parts_that_do_not_fit_are_refused_by_table_and_name(toy_table, changes, message):
    with pytest.raises(ValueError, match="table 'toy': .*" + message):
        toy_table(**changes)


def test_a_table_without_columns_is_refused(toy_table):
    empty = np.zeros((60, 0))
    with pytest.raises(ValueError, match="`fields` must name at least one column"):
        toy_table(fields=(), categories=empty, numbers=empty, missing=empty, hidden_fields=(), proxies=())


def test_a_fill_outside_its_bounds_is_refused(toy_table):
    fields = (FIELD, envs.Field("income", high=10, fill=11.0, status="s"), envs.Field("age", low=18, high=90))
    with pytest.raises(ValueError, match=r"`fill` of 'income' must lie in \[0.0, 10\], got 11.0"):
        toy_table(fields=(*fields, envs.Field("home", ("rent", "own"))))


def test_reserved_names_are_those_that_the_world_adds(toy_table):
    env = envs.CreditReviewEnv(toy_table())
    assert {field.name for field in env.schema.fields} >= set(applicants.RESERVED_NAMES)
