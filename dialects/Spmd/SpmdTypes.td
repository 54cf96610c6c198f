//===- SpmdTypes.td - types of the spmd dialect --------------*- tablegen -*-===//

#ifndef SPMD_TYPES_TD
#define SPMD_TYPES_TD

include "dialects/Spmd/SpmdDialect.td"
include "mlir/IR/AttrTypeBase.td"

def Spmd_HandleType : TypeDef<Spmd_Dialect, "Handle"> {
  let mnemonic = "handle";
  let summary = "a collective under way; its results exist after spmd.wait";
  let parameters = (ins ArrayRefParameter<"::mlir::Type">:$results);
  let assemblyFormat = "`<` $results `>`";
}

#endif // SPMD_TYPES_TD
