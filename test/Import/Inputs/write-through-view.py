# x = input 9, f32 [8, 12]. Python:  column = x[:, 3]; x[:2].mul_(2); output column.sum()
def node(op, args, result=None, **extra):
    results = [] if result is None else [{"id": result[0], "shape": result[1], "dtype": "f32"}]
    return {"op": op, "phase": "forward", "module": None, "stack": None, "args": args, "results": results, **extra}


d["nodes"][0:0] = [
    node("aten.select.int", [["self", {"value": 9}], ["dim", {"int": 1}], ["index", {"int": 3}]], (100, [8]),
         view_of="self"),
    node("aten.slice.Tensor", [["self", {"value": 9}], ["dim", {"int": 0}], ["start", {"int": 0}], ["end", {"int": 2}],
                               ["step", {"int": 1}]], (101, [2, 12]), view_of="self"),
    node("aten.mul_.Tensor", [["self", {"value": 101}], ["other", {"int": 2}]], (102, [2, 12]), mutates=["self"],
         view_of="self"),
    node("aten.sum.default", [["self", {"value": 100}], ["dtype", {"none": None}]], (103, [])),
]
d["outputs"].append({"kind": "output", "path": "1", "value": 103})
