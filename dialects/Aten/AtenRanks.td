//===- AtenRanks.td - Collectives of the user's own --------*- tablegen -*-===//

#ifndef SPMD_ATEN_RANKS_TD
#define SPMD_ATEN_RANKS_TD

include "dialects/Aten/AtenBase.td"

// Functional collectives that a step with view=local calls itself
// (python-bindings/spmd/capture/ops/collectives.py): the captured step is one
// rank's, and these are what it gets from the others. Partition makes
// collectives of them. `kind` is sum, avg, max or min; `ranks` how many there
// are.
class Aten_RankOp<string mnemonic, string torchSchema, string sum>
    : Aten_Op<mnemonic, torchSchema, sum> {
  let results = (outs Aten_Tensor:$result);
  let heavy = "true";
  let flops = "noFlops(op)";
  let verifier = "verifyAmongRanks(op)";
}

def Aten_C10dAllReduceOp
    : Aten_RankOp<"c10d_all_reduce", "spmd::c10d_all_reduce(Tensor self, *, str kind, int ranks) -> Tensor",
                  "self of all ranks, combined"> {
  let arguments = (ins Aten_Tensor:$self, StrAttr:$kind, I64Attr:$ranks);
}
def Aten_C10dAllGatherOp
    : Aten_RankOp<"c10d_all_gather", "spmd::c10d_all_gather(Tensor self, *, int ranks) -> Tensor",
                  "self of all ranks, in rank order along the first dimension"> {
  let arguments = (ins Aten_Tensor:$self, I64Attr:$ranks);
}
def Aten_C10dReduceScatterOp
    : Aten_RankOp<"c10d_reduce_scatter", "spmd::c10d_reduce_scatter(Tensor self, *, str kind, int ranks) -> Tensor",
                  "a rank's part, along the first dimension, of self of all ranks, combined"> {
  let arguments = (ins Aten_Tensor:$self, StrAttr:$kind, I64Attr:$ranks);
}

#endif // SPMD_ATEN_RANKS_TD
