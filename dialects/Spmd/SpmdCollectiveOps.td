//===- SpmdCollectiveOps.td - communication between ranks ----*- tablegen -*-===//

#ifndef SPMD_COLLECTIVE_OPS_TD
#define SPMD_COLLECTIVE_OPS_TD

include "dialects/Spmd/SpmdSymbolOps.td"
include "mlir/Interfaces/SideEffectInterfaces.td"

/// Block order of starts, waits and releases is the schedule.
def Spmd_Schedule : Resource<"::spmd::ScheduleResource">;
def Spmd_Scheduled
    : MemoryEffects<[MemRead<Spmd_Schedule>, MemWrite<Spmd_Schedule>]>;

def Spmd_KindArrayAttr
    : TypedArrayAttrBase<Spmd_ReduceKindAttr, "array of reduce kinds">;

class Spmd_CollectiveOp<string mnemonic, list<Trait> traits = []>
    : Spmd_Op<mnemonic, traits # [
        DeclareOpInterfaceMethods<SymbolUserOpInterface>,
        DeclareOpInterfaceMethods<Spmd_CollectiveOpInterface,
            ["getCollectiveName", "getReceivedTypes"]>]>;

//===----------------------------------------------------------------------===//
// Synchronous
//===----------------------------------------------------------------------===//

def Spmd_AllGatherOp : Spmd_CollectiveOp<"all_gather", [Pure]> {
  let summary = "every rank gets the rows of all ranks";
  let description = [{
    Dimension `dim` of the operand is [pre][chunk]; of the result [pre][total], with
    total <= chunk × ranks: the padding of the last ranks is dropped. With `unit` it
    gathers the unit's flat buffer.

    ```mlir
    %flat = spmd.all_gather %shard on @mesh ["data"] unit @unit0
        dim 0 pre 1 total 1024 : tensor<256xf32> -> tensor<1024xf32>
    ```
  }];
  let arguments = (ins AnyRankedTensor:$input, FlatSymbolRefAttr:$mesh,
                       StrArrayAttr:$axes, OptionalAttr<FlatSymbolRefAttr>:$unit,
                       I64Attr:$dim, I64Attr:$pre, I64Attr:$total);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = [{
    $input `on` $mesh $axes (`unit` $unit^)? `dim` $dim `pre` $pre `total` $total
    attr-dict `:` type($input) `->` type($result)
  }];
}

def Spmd_ReduceScatterOp : Spmd_CollectiveOp<"reduce_scatter", [Pure]> {
  let summary = "combines the ranks' values, each rank gets its rows";
  let description = [{
    Dimension `dim` of the operand is [pre][total], of the result [pre][chunk], with
    total <= chunk × ranks; missing rows are zero.
  }];
  let arguments = (ins AnyRankedTensor:$input, FlatSymbolRefAttr:$mesh,
                       StrArrayAttr:$axes, OptionalAttr<FlatSymbolRefAttr>:$unit,
                       Spmd_ReduceKindAttr:$kind, I64Attr:$dim, I64Attr:$pre,
                       I64Attr:$chunk);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = [{
    custom<Kind>($kind) $input `on` $mesh $axes (`unit` $unit^)? `dim` $dim
    `pre` $pre `chunk` $chunk attr-dict `:` type($input) `->` type($result)
  }];
}

def Spmd_AllReduceOp : Spmd_CollectiveOp<"all_reduce", [Pure]> {
  let summary = "combines the ranks' values, every rank gets the result";
  let description = [{
    Several operands travel in one message; each has its own kind.

    ```mlir
    %a, %b = spmd.all_reduce [sum, max] %x, %y on @mesh ["data"]
        : (tensor<f32>, tensor<f32>) -> (tensor<f32>, tensor<f32>)
    ```
  }];
  let arguments = (ins Variadic<AnyRankedTensor>:$inputs, FlatSymbolRefAttr:$mesh,
                       StrArrayAttr:$axes, OptionalAttr<FlatSymbolRefAttr>:$unit,
                       Spmd_KindArrayAttr:$kinds);
  let results = (outs Variadic<AnyRankedTensor>:$results);
  let assemblyFormat = [{
    custom<Kinds>($kinds) $inputs `on` $mesh $axes (`unit` $unit^)? attr-dict
    `:` functional-type($inputs, $results)
  }];
}

//===----------------------------------------------------------------------===//
// Local: what a rank's coordinate decides
//===----------------------------------------------------------------------===//

def Spmd_SliceOp : Spmd_Op<"slice",
    [Pure, DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "this rank's rows of a replicated value, no communication";
  let description = [{
    Dimension `dim` of the operand is [pre][total], of the result [pre][chunk]; rows
    past `total` are zero.
  }];
  let arguments = (ins AnyRankedTensor:$input, FlatSymbolRefAttr:$mesh,
                       StrArrayAttr:$axes, I64Attr:$dim, I64Attr:$pre,
                       I64Attr:$chunk);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = [{
    $input `on` $mesh $axes `dim` $dim `pre` $pre `chunk` $chunk attr-dict
    `:` type($input) `->` type($result)
  }];
}

def Spmd_MaskOp : Spmd_Op<"mask",
    [Pure, DeclareOpInterfaceMethods<SymbolUserOpInterface>]> {
  let summary = "puts a neutral element into the padded rows";
  let description = [{
    Dimension `dim` is [pre][chunk]. Row i of a chunk is padding when
    coordinate × chunk + i >= total; it becomes `fill`, whatever it was (a select,
    so a NaN there does no harm). For integers -inf and inf are the lowest and
    highest value, for i1 false and true.
  }];
  let arguments = (ins AnyRankedTensor:$input, FlatSymbolRefAttr:$mesh,
                       StrArrayAttr:$axes, I64Attr:$dim, I64Attr:$pre,
                       I64Attr:$chunk, I64Attr:$total, F64Attr:$fill);
  let results = (outs AnyRankedTensor:$result);
  let assemblyFormat = [{
    $input `on` $mesh $axes `dim` $dim `pre` $pre `chunk` $chunk `total` $total
    `fill` $fill attr-dict `:` type($input) `->` type($result)
  }];
}

//===----------------------------------------------------------------------===//
// Scheduled
//===----------------------------------------------------------------------===//

def Spmd_AllGatherStartOp
    : Spmd_CollectiveOp<"all_gather_start", [Spmd_Scheduled]> {
  let summary = "starts an all_gather on a stream; spmd.wait gives the result";
  let description = [{
    The operand must stay alive until the wait. `stream` names the stream and the
    communicator: `gather`, `reduce` or `scalar`.
  }];
  let arguments = (ins AnyRankedTensor:$input, FlatSymbolRefAttr:$mesh,
                       StrArrayAttr:$axes, OptionalAttr<FlatSymbolRefAttr>:$unit,
                       I64Attr:$dim, I64Attr:$pre, I64Attr:$total,
                       StrAttr:$stream);
  let results = (outs Spmd_HandleType:$handle);
  let assemblyFormat = [{
    $input `on` $mesh $axes (`unit` $unit^)? `dim` $dim `pre` $pre `total` $total
    `stream` $stream attr-dict `:` type($input) `->` qualified(type($handle))
  }];
}

def Spmd_ReduceScatterStartOp
    : Spmd_CollectiveOp<"reduce_scatter_start", [Spmd_Scheduled]> {
  let summary = "starts a reduce_scatter on a stream; spmd.wait gives the result";
  let arguments = (ins AnyRankedTensor:$input, FlatSymbolRefAttr:$mesh,
                       StrArrayAttr:$axes, OptionalAttr<FlatSymbolRefAttr>:$unit,
                       Spmd_ReduceKindAttr:$kind, I64Attr:$dim, I64Attr:$pre,
                       I64Attr:$chunk, StrAttr:$stream);
  let results = (outs Spmd_HandleType:$handle);
  let assemblyFormat = [{
    custom<Kind>($kind) $input `on` $mesh $axes (`unit` $unit^)? `dim` $dim
    `pre` $pre `chunk` $chunk `stream` $stream attr-dict
    `:` type($input) `->` qualified(type($handle))
  }];
}

def Spmd_AllReduceStartOp
    : Spmd_CollectiveOp<"all_reduce_start", [Spmd_Scheduled]> {
  let summary = "starts an all_reduce on a stream; spmd.wait gives the results";
  let arguments = (ins Variadic<AnyRankedTensor>:$inputs, FlatSymbolRefAttr:$mesh,
                       StrArrayAttr:$axes, OptionalAttr<FlatSymbolRefAttr>:$unit,
                       Spmd_KindArrayAttr:$kinds, StrAttr:$stream);
  let results = (outs Spmd_HandleType:$handle);
  let assemblyFormat = [{
    custom<Kinds>($kinds) $inputs `on` $mesh $axes (`unit` $unit^)?
    `stream` $stream attr-dict `:` functional-type($inputs, $handle)
  }];
}

def Spmd_WaitOp : Spmd_Op<"wait", [Spmd_Scheduled]> {
  let summary = "waits for a started collective and gives its results";
  let arguments = (ins Spmd_HandleType:$handle);
  let results = (outs Variadic<AnyRankedTensor>:$results);
  let assemblyFormat = "$handle attr-dict `:` qualified(type($handle)) `->` type($results)";
  let hasVerifier = 1;
}

def Spmd_ReleaseOp : Spmd_Op<"release", [Spmd_Scheduled]> {
  let summary = "the bytes of a gathered value are free from here on";
  let description = [{ Nothing below reads the value, nor a view of it. }];
  let arguments = (ins AnyRankedTensor:$value);
  let assemblyFormat = "$value attr-dict `:` type($value)";
}

#endif // SPMD_COLLECTIVE_OPS_TD
