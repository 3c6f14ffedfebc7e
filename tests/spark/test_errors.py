import spark.errors
from outbox.errors import MeshError


def test_every_error_is_in_the_drawn_tree_with_its_code():
    tree = spark.errors.__doc__
    ours = [
        kind
        for kind in vars(spark.errors).values()
        if isinstance(kind, type) and issubclass(kind, MeshError) and kind.__module__ == "spark.errors"
    ]
    assert ours
    for kind in ours:
        assert f"── {kind.__name__}" in tree
        assert kind.code in tree
    assert len({kind.code for kind in ours}) == len(ours)
