import pytest

from spark.errors import InvalidSlo
from spark.limits import SLO_FILE_CHARS_MAX
from spark.yamlnodes import documents

FILE = """\
# a comment
name: one
count: 3
deep:
  list:
    - on: true
      note: &note here
    - on: false
      note: *note
  empty:
labels: {a: b, c: "d"}
"""


def only(text):
    (section,) = documents(text, "f.yaml")
    return section


def nothing(section):
    """Ask for no field."""


def read_all(text, read):
    section = only(text)
    read(section)
    section.close()


def refused(text, read):
    with pytest.raises(InvalidSlo) as caught:
        read_all(text, read)
    return str(caught.value), caught.value.hint


def test_reads_every_shape_and_knows_where_it_stands():
    section = only(FILE)
    assert (section.text("name"), section.number("count"), section.number("none")) == ("one", 3.0, None)
    deep = section.section("deep")
    first, second = deep.sections("list")
    assert (first.truth("on", default=False), second.truth("on", default=True)) == (True, False)
    assert (first.text("note"), second.text("note")) == ("here", "here")
    assert second.truth("off", default=True) is True
    assert second.path == "deep.list[1]"
    assert deep.maybe("empty") is None
    assert section.pairs("labels") == {"a": "b", "c": "d"}
    assert section.pairs("annotations") == {}
    for part in (first, second, deep, section):
        part.close()


@pytest.mark.parametrize(
    ("text", "read", "message", "hint"),
    [
        ("nane: x", lambda s: s.text("name", "-"), "1: nane is no field of this place", "did you mean name?"),
        ("zzz: x", lambda s: s.text("name", "-"), "1: zzz is no field of this place", "known here: name"),
        ("a: 1\nb: 2\na: 3", nothing, "3: a stands here twice", "keep one of them"),
        ("a: 1", lambda s: s.text("a"), "1: a is not a text", "put it in quotes"),
        ("a: x", lambda s: s.number("a"), "1: a is not a number", "write digits, without a unit"),
        ("a: 0x1f", lambda s: s.number("a"), "1: a is not a decimal number", "write digits, without a unit"),
        ("a: yes", lambda s: s.truth("a", default=True), "1: a is neither true nor false",
         "write true or false"),
        ("b: x", lambda s: s.text("a"), "1: a is missing", "add `a:` here"),
        ("b: x", lambda s: s.section("a"), "1: a is missing", "add `a:` here"),
        ("b: x", lambda s: s.sections("a"), "1: a is missing", "add `a:` here"),
        ("a: ''", lambda s: s.text("a"), "1: a is missing", "add `a:` here"),
        ("a: []", lambda s: s.sections("a"), "1: a is not a list", "begin each of its elements with `- `"),
        ("x: 1\na:\n  - b\n", lambda s: s.sections("a"), "3: a[0] is not a mapping",
         "write `key: value` lines, indented below it"),
        ("x: 1\na:\n  b: 1\n", lambda s: s.section("a").refuse("b", "is bad", "mend"), "3: a.b is bad",
         "mend"),
        ("x: 1\na:\n  b: 1\n", lambda s: s.section("a").refuse("", "is bad", "mend"), "2: a is bad", "mend"),
        ("x: 1", lambda s: s.refuse("", "is bad", "mend it"), "1: is bad", "mend it"),
        ("just text", nothing, "1: is not a mapping", "write `key: value` lines, indented below it"),
        ("a: [1,\nb: 2", nothing, "2: is not YAML: expected ',' or ']', but got '<stream end>'",
         "check indentation and colons"),
        ("a: *nobody", nothing, "1: is not YAML: found undefined alias 'nobody'",
         "check indentation and colons"),
        ("a: \x00", nothing, "1: is not YAML: unacceptable character #x0000: special characters are not al",
         "is it the right file?"),
        ("[" * 3000, nothing, "1: is nested too deeply",
         "is it the right file?"),
        ("#" * (SLO_FILE_CHARS_MAX + 1), nothing, f"1: has more than {SLO_FILE_CHARS_MAX} characters",
         "split the file"),
    ],
)  # fmt: skip
def test_says_file_line_field_and_what_to_write(text, read, message, hint):
    assert refused(text, read) == (f"f.yaml:{message}", hint)


def test_skips_fields_that_mean_nothing_and_documents_without_content():
    section = only("---\n# nothing\n---\na: {b: [c]}\n---\n")
    section.skip("a")
    section.close()
