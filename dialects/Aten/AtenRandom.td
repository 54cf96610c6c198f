//===- AtenRandom.td - Random numbers ----------------------*- tablegen -*-===//

#ifndef SPMD_ATEN_RANDOM_TD
#define SPMD_ATEN_RANDOM_TD

include "dialects/Aten/AtenBase.td"

// Everything random is made of this by arithmetic: dropout, bernoulli, rand,
// randn (python-bindings/spmd/capture/ops/draws.py).
def Aten_PhiloxUniformOp
    : Aten_PointwiseOp<"philox_uniform",
                       "spmd::philox_uniform(Tensor seed, Tensor step, Tensor index, int stream, int word=0) -> Tensor",
                       "a number in [0, 1) for each index, a function of seed, step, index, stream and word"> {
  let description = [{
    `index` numbers the elements of the global tensor, so that a rank that has
    some of the indices draws what a single device draws for these elements.
    `stream` tells apart the places of a step that draw; `word` (0 to 3) picks
    one of four independent numbers. See [Note: random numbers] in
    Runtime/Core/Philox.h.
  }];
  let arguments = (ins Aten_Tensor:$seed, Aten_Tensor:$step, Aten_Tensor:$index,
                   I64Attr:$stream, DefaultValuedAttr<I64Attr, "0">:$word);
  let resultType = "";
  let verifier = "verifyPhiloxUniform(op)";
  let flops = "resultElements(op, 60)";
}

#endif // SPMD_ATEN_RANDOM_TD
