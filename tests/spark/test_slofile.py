import pytest

from spark.errors import InvalidSlo
from spark.slofile import read_objectives
from tests.spark.test_openslo import THRESHOLD


def test_reads_a_file_and_names_it_in_what_it_refuses(tmp_path):
    path = tmp_path / "slo.yaml"
    path.write_text(THRESHOLD)
    assert [objective.name for objective in read_objectives(path)] == ["coder-answers"]
    path.write_text(THRESHOLD.replace("lte", "lt"))
    with pytest.raises(InvalidSlo, match=r"slo.yaml:22: spec.objectives\[0\].op is 'lt'"):
        read_objectives(path)


def test_a_file_that_is_no_text_is_told_so(tmp_path):
    path = tmp_path / "slo.yaml"
    for content in (b"\xff\xfe\x00", None):
        path.unlink(missing_ok=True)
        if content is not None:
            path.write_bytes(content)
        with pytest.raises(InvalidSlo, match="cannot be read"):
            read_objectives(path)
