"""Hashes that no available module computes: inner nodes of BLAKE3 (core 7.3) and fs-verity (core 1)."""
import hashlib, struct
from functools import lru_cache

IV = 0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19
SHUFFLE = 2, 6, 3, 10, 7, 0, 4, 13, 1, 11, 12, 5, 9, 14, 15, 8
# The words that a round mixes: four columns, then four diagonals.
LANES = [(i, 4 + (i + d) % 4, 8 + (i + 2 * d) % 4, 12 + (i + 3 * d) % 4) for d in (0, 1) for i in range(4)]
START, END, PARENT, ROOT = 1, 2, 4, 8

@lru_cache(1 << 16)
def compress(chain, block, counter, flags):
    """BLAKE3's compression of a block of at most 64 bytes."""
    words = struct.unpack("<16I", block.ljust(64, b"\0"))
    v = [*struct.unpack("<8I", chain), *IV[:4], counter & 0xffffffff, counter >> 32, len(block), flags]
    for _ in range(7):
        for (a, b, c, d), even, odd in zip(LANES, words[::2], words[1::2]):
            for x, y, z, n, word in (a, b, d, 16, even), (c, d, b, 12, 0), (a, b, d, 8, odd), (c, d, b, 7, 0):
                v[x] = v[x] + v[y] + word & 0xffffffff
                v[z] ^= v[x]
                v[z] = (v[z] >> n | v[z] << 32 - n) & 0xffffffff
        words = [words[place] for place in SHUFFLE]
    return struct.pack("<8I", *(low ^ high for low, high in zip(v, v[8:])))

def parent(left, right, flags):
    return compress(struct.pack("<8I", *IV), left + right, 0, flags)

def chaining_value(data, start):
    """That of a piece, which begins at `start` in its object (core 7.3)."""
    values = []
    for at in range(0, len(data), 1024):
        chunk, chain = data[at:at + 1024], struct.pack("<8I", *IV)
        for place in range(0, len(chunk), 64):
            flags = START * (place == 0) | END * (place + 64 >= len(chunk))
            chain = compress(chain, bytes(chunk[place:place + 64]), (start + at) // 1024, flags)
        values.append(chain)
    return merge(values, PARENT)

def merge(values, flags=PARENT | ROOT):
    """Return the hash of an object from the chaining values of its pieces (core 7.3)."""
    if len(values) == 1:
        return values[0]
    split = 1 << (len(values) - 1).bit_length() - 1
    return parent(merge(values[:split], PARENT), merge(values[split:], PARENT), flags)

def blocks(data):
    """Return the SHA-256 of each block of 4096 bytes; the last is padded with zeros."""
    parts = (data[at:at + 4096] for at in range(0, len(data), 4096))
    return b"".join(hashlib.sha256(part.ljust(4096, b"\0")).digest() for part in parts)

def verity_of_blocks(size, level):
    """Return the fs-verity digest of `size` bytes whose blocks have the hashes `level`."""
    while len(level) > 32:
        level = blocks(level)
    return hashlib.sha256(struct.pack("<4B4xQ64s176x", 1, 1, 12, 0, size, level)).digest()

def verity(data):
    return verity_of_blocks(len(data), blocks(data))
