"""Independent computations that tests compare with."""
