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

/// One collective, synchronous or as a start on a stream: both have the same operands and attributes, and a start gives a
/// handle for what the other gives. The text has the operands before the mesh and the attributes behind the unit.
/// `reduceKinds` is what getReduceKinds() returns.
class Spmd_CollectiveOp<string name, bit isStart, dag operands, dag own, dag received, string operandText,
                        string ownText, string types, string reduceKinds, list<Trait> traits = []>
    : Spmd_Op<name # !if(isStart, "_start", ""), !if(isStart, [Spmd_Scheduled], [Pure, Spmd_PaddingOpInterface]) # traits # [
        DeclareOpInterfaceMethods<SymbolUserOpInterface>, Spmd_CollectiveOpInterface]> {
  let arguments = !con(operands,
      (ins FlatSymbolRefAttr:$mesh, StrArrayAttr:$axes, OptionalAttr<FlatSymbolRefAttr>:$unit), own,
      !if(isStart, (ins Spmd_StreamAttr:$stream), (ins)));
  let results = !if(isStart, (outs Spmd_HandleType:$handle), received);
  let assemblyFormat = operandText # " `on` $mesh $axes (`unit` $unit^)? " # ownText #
                       !if(isStart, " `stream` $stream", "") # " attr-dict `:` " # types;
  string members = [{
    ::spmd::CollectiveKind getCollectiveKind();
    ::spmd::Stream getStreamKind();
    ::llvm::SmallVector<::mlir::Type> getReceivedTypes();
    ::llvm::SmallVector<::spmd::ReduceKind> getReduceKinds() { return }] # reduceKinds # [{; }
  }];
  let extraClassDeclaration = members;
}

/// One that takes one value and gives one, of which dimension `dim` is [pre][rows]; `Rows` is the attribute that has the
/// rows of what is received. One that combines has the reduction kind before its operand.
class Spmd_RowCollective<string name, bit isStart, string Rows, bit combines>
    : Spmd_CollectiveOp<name, isStart, (ins AnyRankedTensor:$input),
        !con(!if(combines, (ins Spmd_ReduceKindAttr:$kind), (ins)), (ins I64Attr:$dim, I64Attr:$pre),
             !dag(ins, [I64Attr], [!tolower(Rows)])),
        (outs AnyRankedTensor:$result), !if(combines, "custom<Kind>($kind) ", "") # "$input",
        "`dim` $dim `pre` $pre `" # !tolower(Rows) # "` $" # !tolower(Rows),
        "type($input) `->` " # !if(isStart, "qualified(type($handle))", "type($result)"),
        !if(combines, "{getKind()}", "{}"), [Spmd_RowCollectiveOpInterface]> {
  let extraClassDeclaration = members # [{
    int64_t getRows() { return get}] # Rows # [{(); }
    void setRows(int64_t rows) { set}] # Rows # [{(rows); }
    static ::llvm::StringRef getRowsName() { return "}] # !tolower(Rows) # [{"; }
  }];
}

class Spmd_AllGather<bit isStart> : Spmd_RowCollective<"all_gather", isStart, "Total", false>;
class Spmd_ReduceScatter<bit isStart> : Spmd_RowCollective<"reduce_scatter", isStart, "Chunk", true>;

class Spmd_AllReduce<bit isStart> : Spmd_CollectiveOp<"all_reduce", isStart,
    (ins Variadic<AnyRankedTensor>:$inputs), (ins Spmd_KindArrayAttr:$kinds), (outs Variadic<AnyRankedTensor>:$results),
    "custom<Kinds>($kinds) $inputs", "",
    "functional-type($inputs, " # !if(isStart, "$handle", "$results") # ")",
    "::llvm::map_to_vector(getKinds().getAsRange<::spmd::ReduceKindAttr>(), [](auto kind) { return kind.getValue(); })">;

//===----------------------------------------------------------------------===//
// Synchronous
//===----------------------------------------------------------------------===//

def Spmd_AllGatherOp : Spmd_AllGather<false> {
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
}

def Spmd_ReduceScatterOp : Spmd_ReduceScatter<false> {
  let summary = "combines the ranks' values, each rank gets its rows";
  let description = [{
    Dimension `dim` of the operand is [pre][total], of the result [pre][chunk], with
    total <= chunk × ranks; missing rows are zero.
  }];
}

def Spmd_AllReduceOp : Spmd_AllReduce<false> {
  let summary = "combines the ranks' values, every rank gets the result";
  let description = [{
    Several operands travel in one message; each has its own kind.

    ```mlir
    %a, %b = spmd.all_reduce [sum, max] %x, %y on @mesh ["data"]
        : (tensor<f32>, tensor<f32>) -> (tensor<f32>, tensor<f32>)
    ```
  }];
}

//===----------------------------------------------------------------------===//
// Local: what a rank's coordinate decides
//===----------------------------------------------------------------------===//

def Spmd_SliceOp : Spmd_Op<"slice",
    [Pure, DeclareOpInterfaceMethods<SymbolUserOpInterface>, Spmd_PaddingOpInterface]> {
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

def Spmd_AllGatherStartOp : Spmd_AllGather<true> {
  let summary = "starts an all_gather on a stream; spmd.wait gives the result";
  let description = [{ The operand must stay alive until the wait. The stream is that of its communicator, too. }];
}

def Spmd_ReduceScatterStartOp : Spmd_ReduceScatter<true> {
  let summary = "starts a reduce_scatter on a stream; spmd.wait gives the result";
}

def Spmd_AllReduceStartOp : Spmd_AllReduce<true> {
  let summary = "starts an all_reduce on a stream; spmd.wait gives the results";
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
