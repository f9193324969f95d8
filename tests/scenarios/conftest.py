"""A small table of one's own, and the way to break it."""

import pytest
from habitus.scenarios import load_applicants

TABLE = """\
id,status,amount,income,home,sex
a1,paid,100,10,owner,f
a2,default,200,20,rent,m
a3,paid,150,,owner,f
a4,paid,120,40,rent,m
"""
DESCRIPTION = """\
outcome: {column: status, good: paid, bad: default}
amount: amount
numeric: [income]
categorical: [home]
group: sex
id: id
documents: [income]
"""


class OwnTable:
    """Writes the two files into a folder of their own and loads them."""

    def __init__(self, folder):
        self.path = folder / "applicants.csv"

    def write(self, table=TABLE, description=DESCRIPTION):
        if table is not None:
            self.path.write_bytes(table if isinstance(table, bytes) else table.encode())
        if description is not None:
            self.path.with_suffix(".yaml").write_text(description, encoding="utf-8")

    def load(self, table=TABLE, description=DESCRIPTION):
        self.write(table, description)
        return load_applicants(self.path)


@pytest.fixture
def own(tmp_path):
    return OwnTable(tmp_path)


@pytest.fixture
def table_text():
    return TABLE


@pytest.fixture
def description_text():
    return DESCRIPTION
