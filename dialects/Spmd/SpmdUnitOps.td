//===- SpmdUnitOps.td - flat buffers of shard units ----------*- tablegen -*-===//

#ifndef SPMD_UNIT_OPS_TD
#define SPMD_UNIT_OPS_TD

include "dialects/Spmd/SpmdSymbolOps.td"

class Spmd_UnitOp<string mnemonic, list<Trait> traits = []>
    : Spmd_Op<mnemonic, [Pure, DeclareOpInterfaceMethods<SymbolUserOpInterface>] # traits>;

/// One that makes a flat buffer with zeros in its padding.
class Spmd_ZeroPaddedOp<string mnemonic>
    : Spmd_UnitOp<mnemonic, [Spmd_PaddingOpInterface]> {
  let extraClassDeclaration = "::mlir::Value getPaddingSource(::mlir::OpResult) { return {}; }";
}

def Spmd_UnpackOp : Spmd_UnitOp<"unpack"> {
  let summary = "views of parameters in a unit's flat buffer, no bytes move";
  let description = [{
    ```mlir
    %w, %b = spmd.unpack %flat unit @unit0 ["fc.weight", "fc.bias"]
        : tensor<256xf32> -> tensor<4x16xf32>, tensor<4xf32>
    ```
  }];
  let arguments = (ins AnyRankedTensor:$flat, FlatSymbolRefAttr:$unit,
                       StrArrayAttr:$names);
  let results = (outs Variadic<AnyRankedTensor>:$values);
  let assemblyFormat = [{
    $flat `unit` $unit $names attr-dict `:` type($flat) `->` type($values)
  }];
}

def Spmd_PackOp : Spmd_ZeroPaddedOp<"pack"> {
  let summary = "a unit's flat buffer from the values of its segments";
  let description = [{
    Segments that are not named, and padding, are zero. Any dtype will do: a mask of
    the parameters' elements is packed like their gradients. The plan lets the producers
    write where the pack would put their values, so that no bytes move.
  }];
  let arguments = (ins Variadic<AnyRankedTensor>:$values, FlatSymbolRefAttr:$unit,
                       StrArrayAttr:$names);
  let results = (outs AnyRankedTensor:$flat);
  let assemblyFormat = [{
    $values `unit` $unit $names attr-dict `:` functional-type($values, $flat)
  }];
}

def Spmd_SegmentBroadcastOp : Spmd_ZeroPaddedOp<"segment_broadcast"> {
  let summary = "each element of the rank's chunk gets its segment's entry";
  let description = [{ Padding gets 0. The table has one entry per segment. }];
  let arguments = (ins AnyRankedTensor:$table, FlatSymbolRefAttr:$unit);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat =
      "$table `unit` $unit attr-dict `:` type($table) `->` type($result)";
}

def Spmd_SegmentNormOp : Spmd_UnitOp<"segment_norm"> {
  let summary = "norm of each segment over this rank's chunk";
  let description = [{
    A table of partial norms: sqrt of the sum of squares (`norm2`) or the largest
    magnitude (`max`) of the elements of each segment this rank has; 0 for none.
  }];
  let arguments = (ins AnyRankedTensor:$chunk, FlatSymbolRefAttr:$unit,
                       Spmd_ReduceKindAttr:$kind);
  let results = (outs AnyRankedTensor:$table);
  let assemblyFormat = [{
    custom<Kind>($kind) $chunk `unit` $unit attr-dict
    `:` type($chunk) `->` type($table)
  }];
}

#endif // SPMD_UNIT_OPS_TD
