"""Errors of the demo say where."""

from gateway.demo.errors import InvalidConversation


def test_a_line_is_named_and_a_file_is_not():
    assert str(InvalidConversation(7, "no text")) == "line 7: no text"
    assert str(InvalidConversation(0, "it is empty")) == "it is empty"
