"""Turn an .npz of the reference into a .safetensors that the C++ tests read.

convert.py IN.npz OUT.safetensors; f32 stays, integers become I32 (their range is checked), booleans
U8. Needs numpy.
"""
import json
import struct
import sys

import numpy as np


def stored(name, array):
    if array.dtype == np.float32:
        return "F32", array
    if array.dtype == np.bool_:
        return "U8", array.astype(np.uint8)
    if array.dtype.kind in "iu":
        if array.size and (array.min() < -2**31 or array.max() >= 2**31):
            raise ValueError(f"{name} does not fit 32 bits")
        return "I32", array.astype(np.int32)
    if array.dtype == np.float64:
        return "F32", array.astype(np.float32)
    raise ValueError(f"{name} is {array.dtype}")


def write(path, arrays):
    head, data = {}, b""
    for name, array in sorted(arrays.items()):
        kind, array = stored(name, np.asarray(array))
        raw = np.ascontiguousarray(array).tobytes()
        head[name] = {"dtype": kind, "shape": list(array.shape),
                      "data_offsets": [len(data), len(data) + len(raw)]}
        data += raw
    text = json.dumps(head, separators=(",", ":")).encode()
    text += b" " * (-len(text) % 8)
    with open(path, "wb") as file:
        file.write(struct.pack("<Q", len(text)) + text + data)


if __name__ == "__main__":
    write(sys.argv[2], dict(np.load(sys.argv[1])))
