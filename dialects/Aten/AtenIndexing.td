//===- AtenIndexing.td - Rows by number, sorting -----------*- tablegen -*-===//
//
// PyTorch indexes in a dozen ways (index, gather, take, index_select, scatter,
// index_put, ...). All of them are rows of a tensor by number, with the
// dimensions moved: import makes them gather_rows and scatter_rows.
//
//===----------------------------------------------------------------------===//

#ifndef SPMD_ATEN_INDEXING_TD
#define SPMD_ATEN_INDEXING_TD

include "dialects/Aten/AtenBase.td"

// B are the first batch_dims dimensions, equal in all tensors.
def Aten_GatherRowsOp
    : Aten_Op<"gather_rows", "spmd::gather_rows(Tensor self, Tensor index, int batch_dims) -> Tensor",
              "result[B, I, R] = self[B, index[B, I], R]"> {
  let arguments = (ins Aten_Tensor:$self, Aten_Tensor:$index,
                   DefaultValuedAttr<I64Attr, "0">:$batch_dims);
  let results = (outs Aten_Tensor:$result);
  let heavy = "true";
  let flops = "noFlops(op)";
  let rule = "gatherRowsRule(op)";
  let rowNumbers = "rowNumbersIn(getIndexMutable(), operand, getSelf().getType().getDimSize(getBatchDims()))";
  let verifier = "verifyGatherRows(op)";
  let integerRanges = "ranges.front()";
}

// What a row number writes twice is written in the order of src. Without self,
// rows start as zeros; reduce is then "set" or "sum".
def Aten_ScatterRowsOp
    : Aten_Op<"scatter_rows",
              "spmd::scatter_rows(Tensor? self, Tensor index, Tensor src, int rows, int batch_dims, str reduce) "
              "-> Tensor",
              "self[B, N, R] with result[B, index[B, I], R] reduced with src[B, I, R]"> {
  let arguments = (ins Optional<Aten_Tensor>:$self, Aten_Tensor:$index,
                   Aten_Tensor:$src, I64Attr:$rows,
                   DefaultValuedAttr<I64Attr, "0">:$batch_dims, StrAttr:$reduce);
  let results = (outs Aten_Tensor:$result);
  let heavy = "true";
  let flops = "scatterFlops(op)";
  let rule = "scatterRowsRule(op)";
  let rowNumbers = "rowNumbersIn(getIndexMutable(), operand, getRows())";
  let verifier = "verifyScatterRows(op)";
  let integerRanges = [{getReduce() == "set" ? unite(getSelf() ? ranges.front() : rangeFrom(0, 0), ranges.back())
                                           : KnownRange()}];
}

// Import puts one before every use of computed row numbers;
// spmd-infer-index-bounds removes those that cannot fail.
def Aten_CheckIndexOp
    : Aten_Op<"check_index", "spmd::check_index(Tensor self, int low, int high, int? ignore_index, str use) -> Tensor",
              "self, or an error of the step if some element is neither in [low, high) nor ignore_index"> {
  let arguments = (ins Aten_Tensor:$self, I64Attr:$low, I64Attr:$high,
                   OptionalAttr<I64Attr>:$ignore_index, StrAttr:$use);
  let results = (outs Aten_Tensor:$result);
  let heavy = "true";
  let flops = "noFlops(op)";
  let rule = "checkIndexRule(op)";
  let rowNumbers = "rowNumbersIn(getSelfMutable(), operand, getHigh(), getIgnoreIndex())";
  let verifier = "verifyCheckIndex(op)";
  let integerRanges = "getIgnoreIndex() ? ranges.front() : rangeFrom(getLow(), getHigh() - 1)";
}

// Not-a-number counts as greatest; equal elements keep their order.
def Aten_SortStableOp
    : Aten_Op<"sort.stable",
              "aten::sort.stable(Tensor self, *, bool? stable, int dim=-1, bool descending=False) "
              "-> (Tensor values, Tensor indices)",
              "elements along dim in order, and where they were"> {
  let arguments = (ins Aten_Tensor:$self, DefaultValuedAttr<BoolAttr, "true">:$stable,
                   DefaultValuedAttr<I64Attr, "-1">:$dim, Aten_False:$descending);
  let results = (outs Aten_Tensor:$values, Aten_Tensor:$indices);
  let heavy = "true";
  let flops = "sortFlops(op)";
  let rule = "wholeDimRule(op)";
  let verifier = "verifySort(op)";
  let integerRanges = "ranges.front(), rangeOfPlaces(op, getDim())";
}

#endif // SPMD_ATEN_INDEXING_TD
