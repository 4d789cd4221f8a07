"""Integers of any length, for comparisons of distances that floating point cannot decide.

A number is an array of limbs of 30 bits, the lowest first; all limbs but the last are in 0..2**30 - 1, and the last
carries the sign. Doubles become integers in a common unit, a power of two, so nothing is rounded, overflows or
vanishes, whatever their magnitudes. This decides few pairs: those whose distance is within rounding of the one asked.
"""

import math

import numpy as np

from contrada.jit import allocating_kernel, kernel

LIMB_BITS = np.int64(30)
LIMB_MASK = np.int64((1 << 30) - 1)
MANTISSA = 2.0**53


@kernel
def lowest_exponent(x, least):
    """Return the exponent of the last bit of x, or `least` if that is smaller or x is 0."""
    if x == 0.0:
        return least
    _, exponent = math.frexp(x)
    return min(least, np.int64(exponent) - 53)


@kernel
def highest_exponent(x, most):
    """Return an exponent above the first bit of x, or `most` if that is larger or x is 0."""
    if x == 0.0:
        return most
    _, exponent = math.frexp(x)
    return max(most, np.int64(exponent))


@kernel
def fill_carried(number):
    """Bring all limbs but the last into 0..2**30 - 1."""
    for k in range(len(number) - 1):
        carry = number[k] >> LIMB_BITS
        number[k] &= LIMB_MASK
        number[k + 1] += carry


@allocating_kernel
def integer_of(x, unit, limbs):
    """Return x / 2**unit, which is an integer, in `limbs` limbs."""
    number = np.zeros(limbs, np.int64)
    if x == 0.0:
        return number
    part, exponent = math.frexp(abs(x))
    mantissa = np.int64(part * MANTISSA)
    shift = np.int64(exponent) - 53 - unit
    first = shift // LIMB_BITS
    by = shift - first * LIMB_BITS
    low = (mantissa & LIMB_MASK) << by
    high = (mantissa >> LIMB_BITS) << by
    number[first] = low & LIMB_MASK
    high += low >> LIMB_BITS
    number[first + 1] = high & LIMB_MASK
    number[first + 2] = high >> LIMB_BITS
    if x < 0.0:
        for k in range(limbs):
            number[k] = -number[k]
        fill_carried(number)
    return number


@allocating_kernel
def sum_of(a, b, sign):
    """Return a + sign * b; both have the same number of limbs, and room for the sum."""
    made = np.empty(len(a), np.int64)
    for k in range(len(a)):
        made[k] = a[k] + sign * b[k]
    fill_carried(made)
    return made


@allocating_kernel
def product_of(a, b):
    """Return a * b."""
    made = np.zeros(len(a) + len(b), np.int64)
    for i in range(len(a)):
        if a[i] == 0:
            continue
        carry = np.int64(0)
        for j in range(len(b)):
            term = made[i + j] + a[i] * b[j] + carry
            made[i + j] = term & LIMB_MASK
            carry = term >> LIMB_BITS
        made[i + len(b)] += carry
    fill_carried(made)
    return made


@kernel
def sign_of(number):
    """Return -1, 0 or 1."""
    if number[len(number) - 1] < 0:
        return -1
    for k in range(len(number)):
        if number[k] != 0:
            return 1
    return 0
