from gateway.blobs.errors import BlobOffset


def test_who_sends_what_does_not_follow_on_is_told_where_to_go_on() -> None:
    error = BlobOffset(300)
    assert (error.offset, error.code) == (300, "conflict")
    assert "300" in error.hint
