# x = input 9, f32 [8, 12]. Python:  x.split([5, 3])[1].mul_(2); x.view(2, 4, 12).permute(1, 2, 0).mul_(3)
def node(op, args, *results, **extra):
    made = [{"id": number, "shape": shape, "dtype": "f32"} for number, shape in results]
    return {"op": op, "phase": "forward", "module": None, "stack": None, "args": args, "results": made, **extra}


d["nodes"][0:0] = [
    node("aten.split_with_sizes.default", [["self", {"value": 9}], ["split_sizes", {"ints": [5, 3]}], ["dim", {"int": 0}]],
         (100, [5, 12]), (101, [3, 12]), view_of="self"),
    node("aten.mul_.Tensor", [["self", {"value": 101}], ["other", {"int": 2}]], (102, [3, 12]), mutates=["self"],
         view_of="self"),
    node("aten.view.default", [["self", {"value": 9}], ["size", {"ints": [2, 4, 12]}]], (103, [2, 4, 12]),
         view_of="self"),
    node("aten.permute.default", [["self", {"value": 103}], ["dims", {"ints": [1, 2, 0]}]], (104, [4, 12, 2]),
         view_of="self"),
    node("aten.mul_.Tensor", [["self", {"value": 104}], ["other", {"int": 3}]], (105, [4, 12, 2]), mutates=["self"],
         view_of="self"),
]
