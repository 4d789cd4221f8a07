"""Length and azimuths of the shortest geodesic between two points of the ellipsoid WGS 84.

The method is that of C. F. F. Karney, "Algorithms for geodesics", J. Geodesy 87 (2013), 43-55, with series of order 6:
the error is some nanometres, and nearly antipodal points converge too. The code follows GeographicLib's implementation
in Python (Copyright (c) Charles Karney 2011-2022, MIT/X11 licence), for one oblate ellipsoid and without the area.
"""

from math import atan2, copysign, cos, hypot, pi, sin, sqrt

import numpy as np

from contrada.jit import kernel

A = 6378137.0  # metres: the equatorial radius
F = 1 / 298.257223563  # flattening
F1 = 1 - F
B = A * F1  # the polar semi-axis
E2 = F * (2 - F)
EP2 = E2 / (F1 * F1)
N = F / (2 - F)
DEGREE = pi / 180
EPSILON = 2.0**-52
TINY = sqrt(2.0**-1022)
ROOT = sqrt(EPSILON)
SHORT = 0.1 * ROOT / sqrt(max(0.001, F) * min(1.0, 1 - F / 2) / 2)  # shorter arcs need no iteration
MAX_NEWTON, MAX_STEPS = 20, 83  # steps of Newton's method; of it and bisection
# Coefficients of the series A3 and C3 in eps, as polynomials of the third flattening.
A31, A32, A33 = (N - 1) / 2, ((3 * N - 1) * N - 2) / 8, ((-N - 3) * N - 1) / 16
A34, A35 = (-2 * N - 3) / 64, -3 / 128
C11, C12, C13 = (1 - N) / 4, (1 - N * N) / 8, ((3 - N) * N + 3) / 64
C14, C15 = (2 * N + 5) / 128, 3 / 128
C22, C23, C24, C25 = ((N - 3) * N + 2) / 32, ((-3 * N - 2) * N + 3) / 64, (N + 3) / 128, 5 / 256
C33, C34, C35 = ((5 * N - 9) * N + 5) / 192, (9 - 10 * N) / 384, 7 / 512
C44, C45, C55 = (7 - 14 * N) / 512, 7 / 512, 21 / 2560


@kernel
def clenshaw(s, c, c1, c2, c3, c4, c5, c6):
    """Return the sum of ck * sin(2 k x), for the sine and cosine of x."""
    ar = 2 * (c - s) * (c + s)
    y1 = c6
    y0 = ar * y1 + c5
    y1 = ar * y0 - y1 + c4
    y0 = ar * y1 - y0 + c3
    y1 = ar * y0 - y1 + c2
    y0 = ar * y1 - y0 + c1
    return 2 * s * c * y0


@kernel
def lengths(eps, sig12, ssig1, csig1, dn1, ssig2, csig2, dn2):
    """Return the length of a geodesic and its reduced length, both over the polar semi-axis."""
    e2 = eps * eps
    e3 = e2 * eps
    e4 = e2 * e2
    a1 = ((((e2 + 4) * e2 + 64) * e2) / 256 + eps) / (1 - eps)
    a2 = ((((-11 * e2 - 28) * e2 - 192) * e2) / 256 - eps) / (1 + eps)
    c1 = eps * ((6 - e2) * e2 - 16) / 32
    c2 = e2 * ((64 - 9 * e2) * e2 - 128) / 2048
    c3 = e3 * (9 * e2 - 16) / 768
    c4 = e4 * (3 * e2 - 5) / 512
    c5 = e4 * eps * -7 / 1280
    c6 = e3 * e3 * -7 / 2048
    b1 = clenshaw(ssig2, csig2, c1, c2, c3, c4, c5, c6) - clenshaw(ssig1, csig1, c1, c2, c3, c4, c5, c6)
    c1 = eps * ((e2 + 2) * e2 + 16) / 32
    c2 = e2 * ((35 * e2 + 64) * e2 + 384) / 2048
    c3 = e3 * (15 * e2 + 80) / 768
    c4 = e4 * (7 * e2 + 35) / 512
    c5 = e4 * eps * 63 / 1280
    c6 = e3 * e3 * 77 / 2048
    b2 = clenshaw(ssig2, csig2, c1, c2, c3, c4, c5, c6) - clenshaw(ssig1, csig1, c1, c2, c3, c4, c5, c6)
    j12 = (a1 - a2) * sig12 + ((1 + a1) * b1 - (1 + a2) * b2)
    reduced = dn2 * (csig1 * ssig2) - dn1 * (ssig1 * csig2) - csig1 * csig2 * j12
    return (1 + a1) * (sig12 + b1), reduced


@kernel
def a3_of(eps):
    """Return the series A3."""
    return ((((A35 * eps + A34) * eps + A33) * eps + A32) * eps + A31) * eps + 1


@kernel
def astroid(x, y):
    """Return the positive root k of k^4 + 2 k^3 - (x^2 + y^2 - 1) k^2 - 2 y^2 k - y^2 = 0."""
    p = x * x
    q = y * y
    r = (p + q - 1) / 6
    if q == 0 and r <= 0:
        return 0.0
    s = p * q / 4
    r3 = r * r * r
    disc = s * (s + 2 * r3)
    u = r
    if disc >= 0:
        t3 = s + r3
        t3 += -sqrt(disc) if t3 < 0 else sqrt(disc)
        t = copysign(abs(t3) ** (1 / 3), t3)
        u += t
        if t != 0:
            u += r * r / t
    else:
        u += 2 * r * cos(atan2(sqrt(-disc), -(s + r3)) / 3)
    v = sqrt(u * u + q)
    uv = q / (v - u) if u < 0 else u + v
    w = (uv - q) / (2 * v)
    return uv / (sqrt(uv + w * w) + w)


@kernel
def start(sbet1, cbet1, sbet2, cbet2, lam12, slam12, clam12):
    """Return an arc, and sines and cosines of both azimuths; the arc is -1 unless the line is so short that it counts.

    Otherwise the first azimuth begins Newton's method.
    """
    sbet12 = sbet2 * cbet1 - cbet2 * sbet1
    cbet12 = cbet2 * cbet1 + sbet2 * sbet1
    sbet12a = sbet2 * cbet1 + cbet2 * sbet1
    is_short = cbet12 >= 0 and sbet12 < 0.5 and cbet2 * lam12 < 0.5
    dnm = 1.0
    somg12 = slam12
    comg12 = clam12
    if is_short:
        square = (sbet1 + sbet2) * (sbet1 + sbet2)
        square /= square + (cbet1 + cbet2) * (cbet1 + cbet2)
        dnm = sqrt(1 + EP2 * square)
        somg12 = sin(lam12 / (F1 * dnm))
        comg12 = cos(lam12 / (F1 * dnm))
    salp1 = cbet2 * somg12
    turn = cbet2 * sbet1 * somg12 * somg12
    calp1 = sbet12 + turn / (1 + comg12) if comg12 >= 0 else sbet12a - turn / (1 - comg12)
    ssig12 = hypot(salp1, calp1)
    csig12 = sbet1 * sbet2 + cbet1 * cbet2 * comg12
    if is_short and ssig12 < SHORT:
        salp2 = cbet1 * somg12
        calp2 = sbet12 - cbet1 * sbet2 * (somg12 * somg12 / (1 + comg12) if comg12 >= 0 else 1 - comg12)
        norm1 = max(ssig12, TINY)
        norm2 = max(hypot(salp2, calp2), TINY)
        return atan2(ssig12, csig12) * dnm, salp1 / norm1, calp1 / norm1, salp2 / norm2, calp2 / norm2
    if csig12 < 0 and ssig12 < 6 * N * pi * cbet1 * cbet1:
        k2 = sbet1 * sbet1 * EP2
        scale = F * cbet1 * a3_of(k2 / (2 * (1 + sqrt(1 + k2)) + k2)) * pi
        x = atan2(-slam12, -clam12) / scale
        y = sbet12a / (scale * cbet1)
        if y > -200 * EPSILON and x > -1 - 1000 * ROOT:
            salp1 = min(1.0, -x)
            calp1 = -sqrt(1 - salp1 * salp1)
        else:
            k = astroid(x, y)
            omg12a = scale * (-x * k / (1 + k))
            somg12 = sin(omg12a)
            comg12 = -cos(omg12a)
            salp1 = cbet2 * somg12
            calp1 = sbet12a - cbet2 * sbet1 * somg12 * somg12 / (1 - comg12)
    if salp1 <= 0:
        return -1.0, 1.0, 0.0, 0.0, 0.0
    norm1 = hypot(salp1, calp1)
    return -1.0, salp1 / norm1, calp1 / norm1, 0.0, 0.0


@kernel
def along(sbet1, cbet1, dn1, sbet2, cbet2, dn2, salp1, calp1, slam12, clam12):
    """Follow the geodesic of an azimuth to the second latitude.

    Return by how much longitude is too large there, its derivative, the length, and the azimuth there.
    """
    if sbet1 == 0 and calp1 == 0:
        calp1 = -TINY
    salp0 = salp1 * cbet1
    calp0 = hypot(calp1, salp1 * sbet1)
    somg1 = salp0 * sbet1
    comg1 = calp1 * cbet1
    norm = hypot(sbet1, comg1)
    ssig1 = sbet1 / norm
    csig1 = comg1 / norm
    salp2 = salp0 / cbet2 if cbet2 != cbet1 else salp1
    calp2 = abs(calp1)
    if cbet2 != cbet1 or abs(sbet2) != -sbet1:
        more = (cbet2 - cbet1) * (cbet1 + cbet2) if cbet1 < -sbet1 else (sbet1 - sbet2) * (sbet1 + sbet2)
        calp2 = sqrt(calp1 * cbet1 * calp1 * cbet1 + more) / cbet2
    somg2 = salp0 * sbet2
    comg2 = calp2 * cbet2
    norm = hypot(sbet2, comg2)
    ssig2 = sbet2 / norm
    csig2 = comg2 / norm
    sig12 = atan2(max(0.0, csig1 * ssig2 - ssig1 * csig2), csig1 * csig2 + ssig1 * ssig2)
    somg12 = max(0.0, comg1 * somg2 - somg1 * comg2)
    comg12 = comg1 * comg2 + somg1 * somg2
    eta = atan2(somg12 * clam12 - comg12 * slam12, comg12 * clam12 + somg12 * slam12)
    k2 = calp0 * calp0 * EP2
    eps = k2 / (2 * (1 + sqrt(1 + k2)) + k2)
    e2 = eps * eps
    e3 = e2 * eps
    c1 = eps * ((((C15 * eps + C14) * eps + C13) * eps + C12) * eps + C11)
    c2 = e2 * (((C25 * eps + C24) * eps + C23) * eps + C22)
    c3 = e3 * ((C35 * eps + C34) * eps + C33)
    c4 = e2 * e2 * (C45 * eps + C44)
    c5 = e3 * e2 * C55
    b3 = clenshaw(ssig2, csig2, c1, c2, c3, c4, c5, 0.0) - clenshaw(ssig1, csig1, c1, c2, c3, c4, c5, 0.0)
    length, reduced = lengths(eps, sig12, ssig1, csig1, dn1, ssig2, csig2, dn2)
    slope = -2 * F1 * dn1 / sbet1 if calp2 == 0 else reduced * F1 / (calp2 * cbet2)
    return eta - F * a3_of(eps) * salp0 * (sig12 + b3), slope, length, salp2, calp2


@kernel
def iterated(sbet1, cbet1, dn1, sbet2, cbet2, dn2, salp1, calp1, slam12, clam12):
    """Find the azimuth by Newton's method within a bracket; return the length, and both azimuths."""
    salp1a = salp1b = TINY
    calp1a = 1.0
    calp1b = -1.0
    is_close = is_narrow = False
    length = salp2 = calp2 = 0.0
    for step in range(MAX_STEPS + 1):
        v, slope, length, salp2, calp2 = along(
            sbet1, cbet1, dn1, sbet2, cbet2, dn2, salp1, calp1, slam12, clam12
        )  # fmt: skip
        if is_narrow or not abs(v) >= (8 if is_close else 1) * EPSILON:
            break
        if v > 0 and (step > MAX_NEWTON or calp1 / salp1 > calp1b / salp1b):
            salp1b = salp1
            calp1b = calp1
        elif v < 0 and (step > MAX_NEWTON or calp1 / salp1 < calp1a / salp1a):
            salp1a = salp1
            calp1a = calp1
        if step + 1 < MAX_NEWTON and slope > 0:
            change = -v / slope
            sine = salp1 * cos(change) + calp1 * sin(change)
            if abs(change) < pi and sine > 0:
                calp1 = calp1 * cos(change) - salp1 * sin(change)
                norm = hypot(sine, calp1)
                salp1 = sine / norm
                calp1 /= norm
                is_close = abs(v) <= 16 * EPSILON
                continue
        salp1 = (salp1a + salp1b) / 2
        calp1 = (calp1a + calp1b) / 2
        norm = hypot(salp1, calp1)
        salp1 /= norm
        calp1 /= norm
        is_close = False
        is_narrow = abs(salp1a - salp1) + (calp1a - calp1) < EPSILON or abs(salp1 - salp1b) + (calp1 - calp1b) < EPSILON
    return length, salp1, calp1, salp2, calp2


@kernel
def canonical(lat1, lat2, lam12, slam12, clam12):
    """Return the length and azimuths of the geodesic where -90 <= lat1 <= 0, |lat2| <= -lat1 and 0 <= lam12 <= pi."""
    sbet1 = F1 * sin(lat1 * DEGREE)
    cbet1 = cos(lat1 * DEGREE)
    norm = hypot(sbet1, cbet1)
    sbet1 /= norm
    cbet1 = max(TINY, cbet1 / norm)
    sbet2 = F1 * sin(lat2 * DEGREE)
    cbet2 = cos(lat2 * DEGREE)
    norm = hypot(sbet2, cbet2)
    sbet2 /= norm
    cbet2 = max(TINY, cbet2 / norm)
    if cbet1 < -sbet1:
        if cbet2 == cbet1:
            sbet2 = copysign(sbet1, sbet2)
    elif abs(sbet2) == -sbet1:
        cbet2 = cbet1
    dn1 = sqrt(1 + EP2 * sbet1 * sbet1)
    dn2 = sqrt(1 + EP2 * sbet2 * sbet2)
    if lat1 == -90 or slam12 == 0:
        csig1 = clam12 * cbet1
        sig12 = atan2(max(0.0, csig1 * sbet2 - sbet1 * cbet2), csig1 * cbet2 + sbet1 * sbet2)
        length, _ = lengths(N, sig12, sbet1, csig1, dn1, sbet2, cbet2, dn2)
        return max(length, 0.0) * B, slam12, clam12, 0.0, 1.0
    if sbet1 == 0 and pi - lam12 >= F * pi:
        return A * lam12, 1.0, 0.0, 1.0, 0.0
    arc, salp1, calp1, salp2, calp2 = start(sbet1, cbet1, sbet2, cbet2, lam12, slam12, clam12)
    if arc >= 0:
        return arc * B, salp1, calp1, salp2, calp2
    length, salp1, calp1, salp2, calp2 = iterated(
        sbet1, cbet1, dn1, sbet2, cbet2, dn2, salp1, calp1, slam12, clam12
    )  # fmt: skip
    return length * B, salp1, calp1, salp2, calp2


@kernel
def turned(lon):
    """Return a longitude less the whole turns that bring it to -180..180."""
    return lon - 360.0 * np.rint(lon / 360.0)


@kernel
def inverse(lon1, lat1, lon2, lat2):
    """Return the metres between two points, and sines and cosines of the azimuths in the first and the second."""
    lon12 = turned(lon2 - lon1)
    east = copysign(1.0, lon12)
    lon12 = abs(lon12)
    lam12 = lon12 * DEGREE
    slam12 = sin(lam12)
    clam12 = cos(lam12)
    if lon12 == 180:
        slam12 = 0.0
        clam12 = -1.0
    # Latitudes next to the equator are on a grid, so none is tiny but for 0.
    if abs(lat1) < 0.0625:
        lat1 = copysign(0.0625 - (0.0625 - abs(lat1)), lat1)
    if abs(lat2) < 0.0625:
        lat2 = copysign(0.0625 - (0.0625 - abs(lat2)), lat2)
    is_swapped = abs(lat1) < abs(lat2)
    first = lat2 if is_swapped else lat1
    second = lat1 if is_swapped else lat2
    north = copysign(1.0, -first)
    length, salp1, calp1, salp2, calp2 = canonical(first * north, second * north, lam12, slam12, clam12)
    if is_swapped:
        return length, salp2 * east, -calp2 * north, salp1 * east, -calp1 * north
    return length, salp1 * east, calp1 * north, salp2 * east, calp2 * north
