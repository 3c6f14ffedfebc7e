from hashlib import sha256

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey, Ed25519PublicKey

from auth import curve
from auth.curve import in_prime_order_group

P = 2**255 - 19

LOW_ORDER = [
    value.to_bytes(32, "little")
    for y in (
        0,
        1,
        P - 1,
        P,
        P + 1,
        int.from_bytes(
            bytes.fromhex("26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05"), "little"
        ),
        int.from_bytes(
            bytes.fromhex("c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a"), "little"
        ),
    )
    for value in (y, y | 1 << 255)
]
"""All fourteen encodings of points of order 1, 2, 4 and 8, the non-canonical ones included."""


def good(number: int) -> bytes:
    seed = sha256(number.to_bytes(4)).digest()
    return Ed25519PrivateKey.from_private_bytes(seed).public_key().public_bytes_raw()


@pytest.mark.parametrize("number", range(20))
def test_real_keys_are_in_the_group(number: int) -> None:
    assert in_prime_order_group(good(number))


@pytest.mark.parametrize("raw", LOW_ORDER, ids=bytes.hex)
def test_low_order_encodings_are_not(raw: bytes) -> None:
    assert not in_prime_order_group(raw)


@pytest.mark.parametrize("raw", LOW_ORDER, ids=bytes.hex)
def test_the_library_alone_would_load_them(raw: bytes) -> None:
    Ed25519PublicKey.from_public_bytes(raw)


@pytest.mark.parametrize("number", range(5))
def test_a_good_point_plus_a_low_order_one_is_not(number: int) -> None:
    point = curve._decode(good(number))
    torsion = curve._decode(LOW_ORDER[10])
    assert point is not None
    assert torsion is not None
    mixed = curve._add(point, torsion)
    x, y, z, _ = mixed
    inverse = pow(z, -1, P)
    raw = (y * inverse % P | (x * inverse % P & 1) << 255).to_bytes(32, "little")
    assert curve._decode(raw) is not None
    assert not in_prime_order_group(raw)


def test_points_off_the_curve_and_other_lengths_are_not() -> None:
    assert not in_prime_order_group((2).to_bytes(32, "little"))
    assert not in_prime_order_group(b"")
    assert not in_prime_order_group(good(1)[:31])
    assert not in_prime_order_group(good(1) + b"\x00")


def test_about_half_of_all_texts_are_points_and_few_of_them_are_keys() -> None:
    texts = [sha256(bytes([number])).digest() for number in range(64)]
    decoded = [raw for raw in texts if curve._decode(raw) is not None]
    assert 16 < len(decoded) < 48
    # One point in eight lies in the subgroup of prime order.
    assert sum(map(in_prime_order_group, decoded)) < len(decoded) / 2
