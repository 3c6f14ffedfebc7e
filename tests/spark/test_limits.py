from outbox.limits import BATCH_ENTRIES_MAX, PAGE_ENTRIES_MAX
from outbox.timestamps import parse_rfc3339
from spark import limits


def test_limits_fit_each_other():
    assert limits.FILE_ROWS_MAX > PAGE_ENTRIES_MAX
    assert limits.FILE_ROWS_MAX > BATCH_ENTRIES_MAX
    assert limits.SAMPLES_MAX <= limits.INCIDENTS_JSON_MAX
    assert parse_rfc3339("2020-01-01T00:00:00Z") == limits.CREATED_AT_MIN_MS
