"""Integers as Thrift's compact protocol writes them."""


def varint(value: int) -> bytes:
    """Write a number that is not negative, seven bits at a time."""
    written = bytearray()
    while value >= 128:
        written.append(value & 127 | 128)
        value >>= 7
    return bytes([*written, value])


def zigzag(value: int) -> bytes:
    """Write any integer: those that are not negative as even numbers, the others as odd ones."""
    return varint(2 * value if value >= 0 else -2 * value - 1)
