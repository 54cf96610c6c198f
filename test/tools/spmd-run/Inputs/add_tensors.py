"""add_tensors.py IN.safetensors OUT.safetensors N: with N more tensors, whose names no artifact knows."""
import json
import struct
import sys

source, target, count = sys.argv[1:]
raw = open(source, "rb").read()
size, = struct.unpack("<Q", raw[:8])
header, data = json.loads(raw[8:8 + size]), raw[8 + size:]
for number in range(int(count)):
    header[f"fc3.weight{number:02}"] = {"dtype": "F32", "shape": [1], "data_offsets": [len(data), len(data) + 4]}
    data += bytes(4)
text = json.dumps(header).encode()
open(target, "wb").write(struct.pack("<Q", len(text)) + text + data)
