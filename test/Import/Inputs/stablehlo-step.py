"""Writes OUT.mlir and OUT.json: a step of StableHLO in generic form on parameter w, 4x3, and batch x, 2x4, and its roles.

    stablehlo-step.py OUT [BODY] [STATEMENT on roles]

BODY are ops before the last ones; what stands behind it is the loss, 1 unless BODY defines %loss, and the update of w, 2w.
"""
import json
import sys

TEXT = """"builtin.module"() ({
  "func.func"() <{arg_attrs = [{}, {}], function_type = (tensor<4x3xf32>, tensor<2x4xf32>) -> (tensor<4x3xf32>, tensor<f32>),
    res_attrs = [{jax.result_info = "result[0]['w']"}, {jax.result_info = "result[1]"}], sym_name = "main"}> ({
  ^bb0(%w: tensor<4x3xf32> loc("params['w']"), %x: tensor<2x4xf32> loc("x")):
    BODY
    LOSS
    %twice = "stablehlo.add"(%w, %w) : (tensor<4x3xf32>, tensor<4x3xf32>) -> tensor<4x3xf32>
    "func.return"(%twice, %loss) : (tensor<4x3xf32>, tensor<f32>) -> ()
  }) : () -> ()
}) : () -> ()
"""
LOSS = '%loss = "stablehlo.constant"() <{value = dense<1.0> : tensor<f32>}> : () -> tensor<f32>'
out, body, statement = (sys.argv[1:] + ["", ""])[:3]
roles = {"arguments": {"params": "param", "x": "batch"}, "results": {"[0]": {"updates": "params"}, "[1]": "loss"}}
exec(statement)
with open(out + ".mlir", "w") as file:
    file.write(TEXT.replace("BODY", body).replace("LOSS", "" if "%loss =" in body else LOSS))
with open(out + ".json", "w") as file:
    json.dump(roles, file)
