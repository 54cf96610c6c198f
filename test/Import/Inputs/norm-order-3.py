# clip_grad_norm_(..., norm_type=3) where the step has order 2
for node in d["nodes"]:
    if node["op"] in ("aten._foreach_norm.Scalar", "aten.linalg_vector_norm.default"):
        for argument in node["args"]:
            if argument[0] == "ord":
                argument[1] = {"int": 3}
