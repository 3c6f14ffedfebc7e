"""One question about edwards25519: is this encoding a point of the big prime-order group?
from auth.limits import KEYS_REMEMBERED

Libraries load any 32 bytes as a public key. Under a *low-order* key the signature ``(R = identity, S = 0)``
verifies for every message, so such a key proves nothing about who signed. A *mixed-order* key (a good point
plus a low-order one) makes verifiers disagree about the same signature. A *non-canonical* encoding is a
second name for the same key. All three are refused where keys enter the mesh.

Constants and decoding: RFC 8032 sections 5.1 and 5.1.3. Nothing here is secret, so nothing is constant-time.
"""

from functools import lru_cache

from auth.limits import KEYS_REMEMBERED

_P = 2**255 - 19
_L = 2**252 + 27742317777372353535851937790883648493
_D = -121665 * pow(121666, -1, _P) % _P
_SQRT_M1 = pow(2, (_P - 1) // 4, _P)

_Point = tuple[int, int, int, int]
"""Extended coordinates (X, Y, Z, T) with x = X/Z, y = Y/Z, xy = T/Z."""


@lru_cache(KEYS_REMEMBERED)
def in_prime_order_group(raw: bytes) -> bool:
    """Whether 32 bytes are the canonical encoding of a point of order L. A millisecond or two, once a key."""
    point = _decode(raw)
    if point is None or _is_identity(point):
        return False
    return _is_identity(_times_order(point))


def _decode(raw: bytes) -> _Point | None:
    encoded = int.from_bytes(raw, "little")
    sign, y = encoded >> 255, encoded & ((1 << 255) - 1)
    if len(raw) != 32 or y >= _P:
        return None
    x = _recover_x(y)
    if x is None or (x == 0 and sign):
        return None
    if x & 1 != sign:
        x = _P - x
    return x, y, 1, x * y % _P


def _recover_x(y: int) -> int | None:
    u, v = (y * y - 1) % _P, (_D * y * y + 1) % _P
    x = u * pow(v, 3, _P) * pow(u * pow(v, 7, _P), (_P - 5) // 8, _P) % _P
    if v * x * x % _P == u:
        return x
    x = x * _SQRT_M1 % _P
    return x if v * x * x % _P == u else None


def _is_identity(point: _Point) -> bool:
    x, y, z, _ = point
    return x % _P == 0 and (y - z) % _P == 0


def _times_order(point: _Point) -> _Point:
    result = point
    for bit in bin(_L)[3:]:
        result = _double(result)
        if bit == "1":
            result = _add(result, point)
    return result


def _double(point: _Point) -> _Point:
    x, y, z, _ = point
    a, b, c = x * x, y * y, 2 * z * z
    h = a + b
    e = (h - (x + y) * (x + y)) % _P
    g = (a - b) % _P
    f = (c + g) % _P
    return e * f % _P, g * h % _P, f * g % _P, e * h % _P


def _add(left: _Point, right: _Point) -> _Point:
    x1, y1, z1, t1 = left
    x2, y2, z2, t2 = right
    a, b = (y1 - x1) * (y2 - x2) % _P, (y1 + x1) * (y2 + x2) % _P
    c, d = 2 * t1 * t2 * _D % _P, 2 * z1 * z2 % _P
    e, f, g, h = b - a, d - c, d + c, b + a
    return e * f % _P, g * h % _P, f * g % _P, e * h % _P
