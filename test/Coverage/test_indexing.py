from table import check


def test_coverage_is_as_committed():
    check("indexing")
