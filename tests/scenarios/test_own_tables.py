"""A table of one's own: what is read, how it is coded, and when it is read again."""

import os

import numpy as np
import pytest
from habitus.scenarios import load_applicants
from habitus.scenarios.columns import Column, category_field, quantile_edges

NOTHING = frozenset(("", "na"))


def column(cells, name="x"):
    return Column("table.csv", name, cells, NOTHING)


def test_a_small_table_is_read_as_written(own):
    table = own.load()
    assert table.name == "applicants"
    assert [field.name for field in table.fields] == ["amount", "income", "home"]
    amount, income, home = table.fields
    assert (amount.low, amount.high, amount.edges, amount.status) == (100.0, 200.0, (120.0, 150.0, 200.0), None)
    assert (income.low, income.high, income.fill, income.status) == (10.0, 40.0, 20.0, "income_status")
    assert home.labels == ("owner", "rent")
    assert table.numbers[:, 1].tolist() == [10.0, 20.0, 20.0, 40.0]  # the third is the fill
    assert table.missing[:, 1].tolist() == [False, False, True, False]
    assert table.categories[:, 0].tolist() == [0, 1, 0, 1]
    assert table.bad.tolist() == [False, True, False, False]
    # mean amount 142.5; no amount is clipped
    assert table.stake == pytest.approx(np.array([100, 200, 150, 120]) / 142.5)
    assert (table.group_name, table.group_labels, table.group.tolist()) == ("sex", ("f", "m"), [0, 1, 0, 1])
    assert table.ids == ("a1", "a2", "a3", "a4")
    assert table.hidden_fields == ("income",)


def test_a_declared_missing_number_is_missing_however_it_is_written(own, table_text, description_text):
    text = table_text.replace("20,", "-999.0,", 1)
    assert text != table_text
    table = own.load(text, description_text + "missing: [-999]\n")
    assert -999.0 not in table.numbers
    assert table.missing.sum() == own.load(table_text, description_text).missing.sum() + 1


def test_a_description_needs_only_outcome_and_one_field(own, table_text):
    table = own.load(table_text, "outcome: {column: status, good: paid}\ncategorical: home\n")
    assert not table.has_amount
    assert (table.stake == 1.0).all()
    assert table.group is None
    assert table.ids == ()


def test_yes_no_and_numbers_are_taken_as_written_not_as_yaml_reads_them(own, table_text):
    text = table_text.replace("paid", "no").replace("default", "yes").replace("income", "2020")
    table = own.load(text, "outcome: {column: status, good: no}\nnumeric: [2020]\n")
    assert table.bad.tolist() == [False, True, False, False]
    assert table.fields[0].name == "2020"


def test_several_good_and_bad_labels(own, table_text):
    text = table_text.replace("a3,paid", "a3,current").replace("a4,paid", "a4,late")
    table = own.load(
        text, "outcome: {column: status, good: [paid, current], bad: [default, late]}\nnumeric: [income]\n"
    )
    assert table.bad.tolist() == [False, True, False, True]


def test_own_missing_marks_and_case(own, table_text, description_text):
    text = table_text.replace(",20,", ",-999,").replace(",40,", ",n/a,") + "a5,paid,100,30,owner,f\n"
    table = own.load(text, description_text + "missing: [-999]\n")
    assert table.missing[:, 1].tolist() == [False, True, True, True, False]


def test_declared_labels_rename_and_merge_in_their_order(own, table_text, description_text):
    labels = "labels: {home: {rent: tenant, lodger: tenant, owner: proprietor}}\n"
    table = own.load(table_text.replace("a4,paid,120,40,rent", "a4,paid,120,40,lodger"), description_text + labels)
    assert table.fields[2].labels == ("tenant", "proprietor")
    assert table.categories[:, 0].tolist() == [1, 0, 1, 0]


def test_a_byte_order_mark_windows_lines_quotes_and_trailing_lines_are_read(own, table_text):
    text = table_text.replace("owner", '"owner, ""mortgaged"""').replace("\n", "\r\n") + ",,,,,\r\n\r\n"
    table = own.load(b"\xef\xbb\xbf" + text.encode())
    assert len(table) == 4
    assert table.fields[2].labels == ('owner, "mortgaged"', "rent")


def test_another_delimiter_is_declared(own, table_text, description_text):
    table = own.load(table_text.replace(",", ";"), description_text + 'delimiter: ";"\n')
    assert len(table) == 4


def test_a_first_column_without_a_name_is_passed_over(own, table_text):
    lines = table_text.splitlines()
    text = "\n".join([f",{lines[0]}", *(f"{i},{line}" for i, line in enumerate(lines[1:]))])
    assert len(own.load(text)) == 4


def test_a_label_beside_no_value_is_two_values(own, table_text):
    table = own.load(table_text.replace("rent", ""))
    assert table.fields[2].labels == ("owner", "missing")


def test_a_table_is_read_again_only_when_a_file_changed(own, table_text, description_text):
    first = own.load()
    assert load_applicants(own.path) is first
    assert load_applicants(str(own.path)) is first
    own.write(table_text.replace("a4,paid", "a4,default"))
    later = own.path.stat().st_mtime_ns + 1_000_000_000
    os.utime(own.path, ns=(later, later))
    second = load_applicants(own.path)
    assert second.bad.tolist() == [False, True, False, True]
    own.path.with_suffix(".yaml").write_text(description_text.replace("id: id\n", ""))
    assert load_applicants(own.path).ids == ()


def test_bins_of_a_continuous_number_hold_equal_shares():
    numbers = np.random.default_rng(0).normal(size=8000).astype(np.float32)
    edges = quantile_edges(numbers)
    counts = np.bincount(np.searchsorted(np.array(edges, np.float32), numbers, side="right"))
    assert counts.tolist() == [1000] * 8


@pytest.mark.parametrize(
    ("numbers", "edges"),
    [
        ([0] * 90 + [5] * 10, (5.0,)),  # every quantile leads to the one border there is
        ([0] * 999 + [5], (5.0,)),  # rare, but the only one
        ([0] * 60 + [1] * 39 + [9], (1.0, 9.0)),  # 1 of 100 rows is enough for a bin
        ([0] * 600 + [1] * 399 + [9], (1.0,)),  # 1 of 1000 is not
        ([1, 2], (2.0,)),
    ],
)
def test_equal_values_share_a_bin(numbers, edges):
    assert quantile_edges(np.array(numbers, np.float32)) == edges


def test_edges_are_exact_32_bit_values_so_that_a_value_on_an_edge_falls_above_it():
    numbers = np.array([0.1, 0.1, 0.7, 0.7], np.float32)
    (edge,) = quantile_edges(numbers)
    assert edge == float(np.float32(0.7))


def test_frequent_labels_keep_their_name_and_rare_ones_become_other():
    cells = ["a"] * 500 + ["b"] * 480 + ["c"] * 5 + ["d"] * 5 + ["10"] * 5 + [""] * 5
    field, codes = category_field(column(cells), declared=None, is_document=True)
    assert field.labels == ("a", "b", "other", "missing", "hidden")
    assert np.bincount(codes).tolist() == [500, 480, 15, 5]


def test_one_rare_label_keeps_its_name():
    field, _ = category_field(column(["a"] * 500 + ["b"] * 495 + ["c"]), declared=None, is_document=False)
    assert field.labels == ("a", "b", "c")


def test_of_many_frequent_labels_the_most_frequent_stay():
    cells = [f"s{i:02}" for i in range(20) for _ in range(40 - i)]
    field, _ = category_field(column(cells), declared=None, is_document=False)
    assert field.labels == (*(f"s{i:02}" for i in range(11)), "other")


def test_labels_that_are_numbers_are_sorted_by_size():
    field, _ = category_field(column(["10", "9", "b", "a", "1.5"] * 3), declared=None, is_document=False)
    assert field.labels == ("1.5", "9", "10", "a", "b")


def test_a_written_label_other_joins_the_rare_ones():
    cells = ["a"] * 500 + ["other"] * 480 + ["c"] * 2 + ["d"] * 2
    field, codes = category_field(column(cells), declared=None, is_document=False)
    assert field.labels == ("a", "other")
    assert np.bincount(codes).tolist() == [500, 484]
