"""Every mistake in a table of one's own is refused, with the file, the place, what was expected and the way out."""

import re

import pytest
from habitus.scenarios import TableError, load_applicants

CSV, YAML = "applicants.csv", "applicants.yaml"


def change(text, *replacements):
    for old, new in replacements:
        assert old in text, old
        text = text.replace(old, new)
    return text


def many(home, sex="f"):
    """300 applicants whose home and sex are given as functions of the row number."""
    rows = [f"{i},{'paid' if i % 3 else 'default'},{i + 1},{i},{home(i)},{sex}" for i in range(300)]
    return "\n".join(["id,status,amount,income,home,sex", *rows]) + "\n"


# (what is wrong, changes of the table, file that is named, column, data row, words of the message)
BAD_CELLS = [
    ("unknown outcome", [("a3,paid", "a3,late")], "status", 3, ["'default' or 'paid'", "'late'", "`outcome`"]),
    ("no outcome", [("a3,paid", "a3,")], "status", 3, ["an outcome", "leave applicants"]),
    ("one class", [("default", "paid")], "status", None, ["every applicant is good"]),
    ("text in numbers", [(",20,", ",twenty,")], "income", 2, ["a number", "'twenty'", "`categorical`"]),
    ("thousands separator", [(",20,", ',"2,000",')], "income", 2, ["'2,000'", "without thousands separators"]),
    ("Python's underscore", [(",20,", ",2_0,")], "income", 2, ["a number", "'2_0'"]),
    ("infinite", [(",20,", ",inf,")], "income", 2, ["finite", "'inf'", "leave the cell empty"]),
    ("infinite as float32", [(",20,", ",1e39,")], "income", 2, ["finite 32-bit", "'1e39'"]),
    ("one number", [(",20,", ",10,"), (",40,", ",10,")], "income", None, ["two different numbers", "only 10", "leave"]),
    ("no number", [(",10,", ",,"), (",20,", ",NA,"), (",40,", ",?,")], "income", None, ["no value at all"]),
    ("one label", [("rent", "owner")], "home", None, ["two different values", "only 'owner'", "leave the column out"]),
    ("reserved label", [("rent", "hidden")], "home", 2, ["'hidden'", "rename it under `labels`"]),
    ("equal ids", [("a4", "a1")], "id", 4, ["every id once", "'a1'", "data row 1"]),
    ("no id", [("a4", "")], "id", 4, ["expected an id"]),
    ("amount of zero", [("120,40", "0,40")], "amount", 4, ["above 0", "'0'"]),
    ("negative amount", [("120,40", "-5,40")], "amount", 4, ["above 0", "'-5'"]),
    ("no amount", [("120,40", ",40")], "amount", 4, ["above 0", "leave such applicants out"]),
    ("amount in words", [("120,40", "much,40")], "amount", 4, ["a number", "'much'"]),
    (
        "equal amounts",
        [(",100,", ",120,"), (",200,", ",120,"), (",150,", ",120,")],
        "amount",
        None,
        ["every amount is 120"],
    ),
    ("one group", [(",m\n", ",f\n")], "sex", None, ["two different values", "only 'f'"]),
    ("short row", [("a3,paid,150,,owner,f", "a3,paid,150")], None, 3, ["6 cells", "got 3", "line 4"]),
    ("long row", [("a3,paid,150", "a3,paid,1,500")], None, 3, ["6 cells", "got 7", "needs quotes"]),
    ("empty line", [("a3,paid", "\na3,paid")], None, 3, ["got 0", "delete the empty line"]),
    ("open quote", [("a3,paid,150,,owner", 'a3,paid,150,,"owner')], None, 3, ["closed quotes"]),
    ("equal column names", [("home,sex", "home,home")], "home", None, ["2 times", "[5, 6]", "rename"]),
    ("no column name", [("home,sex", "home,")], None, None, ["a name for column 6"]),
    ("other delimiter", [(",", ";")], None, None, ["separated by `,`", 'delimiter: ";"']),
]


@pytest.mark.parametrize(
    ("changes", "column", "row", "words"), [case[1:] for case in BAD_CELLS], ids=[c[0] for c in BAD_CELLS]
)
def test_a_bad_table_is_refused(own, table_text, changes, column, row, words):
    with pytest.raises(TableError) as refusal:
        own.load(change(table_text, *changes))
    error, message = refusal.value, str(refusal.value)
    assert message.startswith(str(own.path))
    assert (error.file, error.column, error.row) == (str(own.path), column, row)
    assert column is None or f"column `{column}`" in message
    assert row is None or f"data row {row} (counted from 1, without the header)" in message
    for word in words:
        assert word in message


BAD_DESCRIPTIONS = [
    ("empty", None, None, ["got nothing", "outcome: {column:"]),
    ("list", [("outcome", "- outcome")], None, ["expected YAML"]),
    ("open bracket", [("default}", "default")], None, ["in line 2", "begins in line 1"]),
    ("equal keys", [("group: sex", "amount: sex")], None, ["line 5", "`amount`", "line 2"]),
    ("unknown key", [("numeric", "numerical")], "numerical", ["no such key", "`numeric`", "categorical"]),
    ("unknown key inside", [("good:", "goood:")], "outcome.goood", ["no such key", "did you mean `good`"]),
    ("no outcome", [("outcome: {column: status, good: paid, bad: default}\n", "")], "outcome",
     ["required", "numeric: ["]),
    ("no good value", [(", good: paid, bad: default", "")], "outcome.good",
     ["required", "{column: status, good: paid}"]),
    ("outcome without keys", [("{column: status, good: paid, bad: default}", "status")], "outcome",
     ["{key: value, ...}"]),
    ("numbers with keys", [("numeric: [income]", "numeric: {income: EUR}")], "numeric", ["a list", "income"]),
    ("missing outcome column", [("column: status", "column: Status_")], "outcome.column",
     ["the outcome column of", "`Status_`", "did you mean `status`", "id, status, amount"]),
    ("missing column", [("[home]", "[house]")], "categorical", ["a column of", "`house`", "id, status"]),
    ("missing amount", [("amount: amount", "amount: amout")], "amount", ["did you mean `amount`"]),
    ("missing group", [("group: sex", "group: gender")], "group", ["`gender`"]),
    ("column twice", [("[income]\ncat", "[income, income]\ncat")], None, ["`income`", "`numeric` 2 times"]),
    ("two kinds", [("[home]", "[home, income]")], None, ["`numeric` and `categorical`", "one role"]),
    ("amount as a field", [("[income]\ncat", "[income, amount]\ncat")], None,
     ["`amount` and `numeric`", "observed as a number anyway"]),
    ("group as a field", [("[home]", "[home, sex]")], None, ["`group` and `categorical`", "observe_group=True"]),
    ("outcome as a field", [("[home]", "[home, status]")], None, ["`outcome.column` and `categorical`"]),
    ("no field", [("numeric: [income]\ncategorical: [home]\n", ""), ("documents: [income]\n", "")], None,
     ["at least one column", "`numeric` or `categorical`"]),
    ("unknown document", [("documents: [income]", "documents: [incom]")], "documents", ["did you mean `income`"]),
    ("document twice", [("documents: [income]", "documents: [income, income]")], "documents", ["2 times"]),
    ("good and bad", [("bad: default", "bad: [default, paid]")], "outcome", ["both good and bad"]),
    ("good never occurs", [("good: paid, bad: default", "good: Payed")], "status",
     ["'Payed' never occurs", "did you mean `paid`", "'default', 'paid'"]),
    ("long delimiter", [("id: id", 'id: id\ndelimiter: "::"')], "delimiter", ["one character", "\\t"]),
    ("labels of a number", [("id: id", "id: id\nlabels: {income: {a: b}}")], "labels", ["categorical", "`income`"]),
    ("unit of a label", [("id: id", "id: id\nunits: {home: EUR}")], "units", ["numeric", "`home`"]),
    ("undeclared label", [("id: id", "id: id\nlabels: {home: {owner: owns, rnt: rents}}")], "home",
     ["`labels` declares (owner, rnt)", "'rent'", "did you mean `rnt`"]),
]  # fmt: skip


@pytest.mark.parametrize(
    ("changes", "place", "words"), [c[1:] for c in BAD_DESCRIPTIONS], ids=[c[0] for c in BAD_DESCRIPTIONS]
)
def test_a_bad_description_is_refused(own, description_text, changes, place, words):
    with pytest.raises(TableError) as refusal:
        own.load(description="" if changes is None else change(description_text, *changes))
    error, message = refusal.value, str(refusal.value)
    assert message.startswith((str(own.path), str(own.path.with_suffix(".yaml"))))
    assert place in (error.key, error.column)
    for word in words:
        assert word in message


def test_a_missing_description_shows_how_to_write_it(own, table_text):
    own.write(table_text, None)
    with pytest.raises(TableError, match=re.escape("outcome: {column:")) as refusal:
        load_applicants(own.path)
    assert refusal.value.file == str(own.path.with_suffix(".yaml"))


def test_a_description_with_another_ending_is_pointed_out(own, table_text, description_text):
    own.write(table_text, None)
    own.path.with_suffix(".yml").write_text(description_text)
    with pytest.raises(TableError, match=re.escape("in this folder lie applicants.yml")):
        load_applicants(own.path)


def test_a_missing_table_names_its_neighbours(own):
    own.write()
    with pytest.raises(TableError, match=re.escape("in this folder lie applicants.csv")):
        load_applicants(own.path.with_name("applicant.csv"))


def test_a_missing_folder_is_named(tmp_path):
    with pytest.raises(TableError, match=r"the folder .*nowhere does not exist"):
        load_applicants(tmp_path / "nowhere" / "applicants.csv")


@pytest.mark.parametrize(("name", "word"), [("spanich", "did you mean `spanish`"), ("table.parquet", "a .csv file")])
def test_an_unknown_name_lists_the_known_ones(name, word):
    with pytest.raises(ValueError, match="lending_club") as refusal:
        load_applicants(name)
    assert word in str(refusal.value)


@pytest.mark.parametrize(("table", "word"), [("", "the table is empty"), ("\n\n", "the table is empty"),
                                             ("id,status,amount,income,home,sex\n", "no data row")])  # fmt: skip
def test_an_empty_table_is_refused(own, table, word):
    with pytest.raises(TableError, match=word):
        own.load(table)


def test_another_encoding_is_refused_with_the_byte(own, table_text):
    data = change(table_text, ("rent", "Miete in Köln")).encode("latin-1")
    with pytest.raises(TableError, match=r"expected UTF-8 text, but byte 0xf6 at position (\d+) \(line 3\)") as refusal:
        own.load(data)
    assert f"position {data.index(0xF6)} " in str(refusal.value)


@pytest.mark.parametrize(
    ("data", "word"), [("id,status\n".encode("utf-16"), "UTF-16"), (b"PK\x03\x04...", "spreadsheet")]
)
def test_a_file_that_is_no_text_is_named_for_what_it_is(own, data, word):
    with pytest.raises(TableError, match=word):
        own.load(data)


def test_another_encoding_of_the_description_is_refused(own, table_text):
    own.write(table_text)
    own.path.with_suffix(".yaml").write_bytes("amount: Höhe\n".encode("latin-1"))
    with pytest.raises(TableError, match=r"byte 0xf6 at position 9") as refusal:
        load_applicants(own.path)
    assert refusal.value.file.endswith(YAML)


def test_more_than_one_other_outcome_asks_for_the_bad_ones(own, table_text, description_text):
    with pytest.raises(TableError, match=re.escape("list the bad ones under `outcome.bad`")):
        own.load(change(table_text, ("a3,paid", "a3,late")), change(description_text, (", bad: default", "")))


def test_a_column_of_names_is_no_category(own):
    with pytest.raises(TableError, match="300 different values, none in 1% of the rows"):
        own.load(many(home="street {}".format))


def test_many_groups_are_refused(own):
    table = many(home=lambda i: f"h{i % 3}").replace(",f\n", ",{}\n").format(*(i % 20 for i in range(300)))
    with pytest.raises(TableError, match="at most 12 groups, got 20"):
        own.load(table)


@pytest.mark.parametrize("name", ["stake", "documents"])
def test_names_of_the_world_are_refused(own, table_text, description_text, name):
    with pytest.raises(TableError, match="rename the column"):
        own.load(change(table_text, ("income", name)), change(description_text, ("income", name)))


def test_the_number_of_equal_mistakes_is_told(own, table_text):
    with pytest.raises(TableError, match=re.escape("holds for 2 more rows")):
        own.load(change(table_text, (",10,", ",a,"), (",20,", ",b,"), (",40,", ",c,")))
