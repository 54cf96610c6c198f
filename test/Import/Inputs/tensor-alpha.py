# lr = input 8, f64 []. Python (what PyTorch's SGD does):  (x * 1).add_(x, alpha=-lr.item()).sum()
def node(op, args, result=None, dtype="f32", **extra):
    results = [] if result is None else [{"id": result[0], "shape": result[1], "dtype": dtype}]
    return {"op": op, "phase": "forward", "module": None, "stack": None, "args": args, "results": results, **extra}


d["nodes"][0:0] = [
    node("aten.neg.default", [["self", {"value": 8}]], (100, []), "f64"),
    node("aten._local_scalar_dense.default", [["self", {"value": 100}]], (101, []), "f64"),
    node("aten.mul.Tensor", [["self", {"value": 9}], ["other", {"int": 1}]], (102, [8, 12])),
    node("aten.add_.Tensor", [["self", {"value": 102}], ["other", {"value": 9}], ["alpha", {"value": 101}]],
         (103, [8, 12]), mutates=["self"], view_of="self"),
    node("aten.sum.default", [["self", {"value": 102}], ["dtype", {"none": None}]], (104, [])),
]
d["outputs"].append({"kind": "output", "path": "1", "value": 104})
