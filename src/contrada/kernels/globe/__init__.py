"""Kernels on the ellipsoid WGS 84: lengths of geodesics, and distances of shapes with edges straight in degrees."""
