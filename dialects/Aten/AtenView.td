//===- AtenView.td - Views, layout, pieces, factories ------*- tablegen -*-===//

#ifndef SPMD_ATEN_VIEW_TD
#define SPMD_ATEN_VIEW_TD

include "dialects/Aten/AtenBase.td"

class Aten_LayoutOp<string mnemonic, string torchSchema, string sum,
                    list<Trait> traits = []>
    : Aten_Op<mnemonic, torchSchema, sum, traits> {
  let results = (outs Aten_Tensor:$result);
  let flops = "noFlops(op)";
}
class Aten_MovementOp<string mnemonic, string torchSchema, string sum>
    : Aten_LayoutOp<mnemonic, torchSchema, sum> {
  let movesElements = "true";
}
class Aten_ViewLikeOp<string mnemonic, string torchSchema, string sum>
    : Aten_LayoutOp<mnemonic, torchSchema, sum> {
  let viewLike = "true";
}

// Same elements, same flat order.
def Aten_ViewOp
    : Aten_ViewLikeOp<"view", "aten::view(Tensor(a) self, SymInt[] size) -> Tensor(a)",
                      "the same elements under another shape"> {
  let arguments = (ins Aten_Tensor:$self, DenseI64ArrayAttr:$size);
  let localizer = [{localizeShape(op, "size", types)}];
  let verifier = "verifyView(op)";
  let statesSize = [{isShape(op, name, "size")}];
}
def Aten_UnsqueezeOp
    : Aten_ViewLikeOp<"unsqueeze", "aten::unsqueeze(Tensor(a) self, int dim) -> Tensor(a)",
                      "inserts a dimension of size 1"> {
  let arguments = (ins Aten_Tensor:$self, I64Attr:$dim);
  let verifier = "verifyUnsqueeze(op)";
}
def Aten_SqueezeDimOp
    : Aten_ViewLikeOp<"squeeze.dim", "aten::squeeze.dim(Tensor(a) self, int dim) -> Tensor(a)",
                      "removes dimension dim if its size is 1"> {
  let arguments = (ins Aten_Tensor:$self, I64Attr:$dim);
  let verifier = "verifySqueeze(op)";
}

// Copies that keep the shape.
def Aten_ToCopyOp
    : Aten_MovementOp<"_to_copy",
                      "aten::_to_copy(Tensor self, *, ScalarType? dtype=None, Layout? layout=None, "
                      "Device? device=None, bool? pin_memory=None, bool non_blocking=False, "
                      "MemoryFormat? memory_format=None) -> Tensor",
                      "converts to another element type"> {
  let arguments = (ins Aten_Tensor:$self, TypeAttr:$dtype);
  let rule = "castRule(op)";
  let pointwise = "true";
  let body = "self";
  let verifier = "verifyCast(op)";
}
def Aten_CloneOp
    : Aten_MovementOp<"clone", "aten::clone(Tensor self, *, MemoryFormat? memory_format=None) -> Tensor",
                      "the same value in memory of its own"> {
  let arguments = (ins Aten_Tensor:$self);
  let rule = "pointwiseRule(op, Linearity::additive)";
  let pointwise = "true";
  let verifier = "verifyPointwise(op, ResultType::first)";
}

// Dimensions moved or repeated.
def Aten_PermuteOp
    : Aten_MovementOp<"permute", "aten::permute(Tensor(a) self, int[] dims) -> Tensor(a)",
                      "result dimension i is operand dimension dims[i]"> {
  let arguments = (ins Aten_Tensor:$self, DenseI64ArrayAttr:$dims);
  let rule = "permuteRule(op)";
  let verifier = "verifyPermute(op)";
}
def Aten_ExpandOp
    : Aten_MovementOp<"expand", "aten::expand(Tensor(a) self, SymInt[] size, *, bool implicit=False) -> Tensor(a)",
                      "repeats dimensions of size 1 and new leading ones"> {
  let arguments = (ins Aten_Tensor:$self, DenseI64ArrayAttr:$size);
  let localizer = [{localizeShape(op, "size", types)}];
  let rule = "expandRule(op)";
  let verifier = "verifyExpand(op)";
  let statesSize = [{isShape(op, name, "size")}];
}

// Pieces.
def Aten_SliceTensorOp
    : Aten_MovementOp<"slice.Tensor",
                      "aten::slice.Tensor(Tensor(a) self, int dim=0, SymInt? start=None, SymInt? end=None, "
                      "SymInt step=1) -> Tensor(a)",
                      "rows start, start + step, … below end of dimension dim"> {
  let arguments = (ins Aten_Tensor:$self, I64Attr:$dim, I64Attr:$start,
                   I64Attr:$end, DefaultValuedAttr<I64Attr, "1">:$step);
  let localizer = "localizeSlice(op, types)";
  let rule = "sliceRule(op)";
  let verifier = "verifySlice(op)";
  let rowPieces = "piecesAlong(getDim(), getStart(), getStep())";
  let statesSize = "isEndOfWhole(op, name)";
}
def Aten_SelectIntOp
    : Aten_MovementOp<"select.int", "aten::select.int(Tensor(a) self, int dim, SymInt index) -> Tensor(a)",
                      "row index of dimension dim, which disappears"> {
  let arguments = (ins Aten_Tensor:$self, I64Attr:$dim, I64Attr:$index);
  let rule = "selectRule(op)";
  let verifier = "verifySelect(op)";
}
def Aten_SplitTensorOp
    : Aten_MovementOp<"split.Tensor",
                      "aten::split.Tensor(Tensor(a -> *) self, SymInt split_size, int dim=0) -> Tensor(a)[]",
                      "pieces of split_size rows of dimension dim; the last may be shorter"> {
  let arguments = (ins Aten_Tensor:$self, I64Attr:$split_size, I64Attr:$dim);
  let results = (outs Aten_List:$pieces);
  let localizer = "localizeSplit(op, types)";
  let rule = "wholeDimRule(op, Linearity::additive)";
  let verifier = "verifySplit(op)";
  let rowPieces = "piecesAlong(getDim())";
}
def Aten_SplitWithSizesOp
    : Aten_MovementOp<"split_with_sizes",
                      "aten::split_with_sizes(Tensor(a -> *) self, SymInt[] split_sizes, int dim=0) -> Tensor(a)[]",
                      "pieces of the given numbers of rows of dimension dim"> {
  let arguments = (ins Aten_Tensor:$self, DenseI64ArrayAttr:$split_sizes,
                   I64Attr:$dim);
  let results = (outs Aten_List:$pieces);
  let localizer = "localizeSplit(op, types)";
  let rule = "wholeDimRule(op, Linearity::additive)";
  let verifier = "verifySplit(op)";
  let rowPieces = "piecesAlong(getDim())";
}
def Aten_CatOp
    : Aten_MovementOp<"cat", "aten::cat(Tensor[] tensors, int dim=0) -> Tensor",
                      "the tensors one after the other along dim"> {
  let arguments = (ins Aten_List:$tensors, I64Attr:$dim);
  let rule = "wholeDimRule(op, Linearity::additive)";
  let verifier = "verifyCat(op)";
  let rowPieces = "piecesAlong(getDim())";
}
def Aten_StackOp
    : Aten_MovementOp<"stack", "aten::stack(Tensor[] tensors, int dim=0) -> Tensor",
                      "the tensors as rows of a new dimension dim"> {
  let arguments = (ins Aten_List:$tensors, I64Attr:$dim);
  let rule = "stackRule(op)";
  let verifier = "verifyStack(op)";
}
def Aten_SliceBackwardOp
    : Aten_LayoutOp<"slice_backward",
                    "aten::slice_backward(Tensor grad_output, SymInt[] input_sizes, int dim, SymInt start, SymInt end, "
                    "SymInt step) -> Tensor",
                    "zeros of input_sizes with grad_output in the slice"> {
  let arguments = (ins Aten_Tensor:$grad_output, DenseI64ArrayAttr:$input_sizes,
                   I64Attr:$dim, I64Attr:$start, I64Attr:$end, I64Attr:$step);
  let localizer = "localizeSlice(op, types)";
  let rule = "sliceRule(op)";
  let verifier = "verifySlice(op)";
  let rowPieces = "piecesAlong(getDim(), getStart(), getStep())";
  let statesSize = [{isShape(op, name, "input_sizes") || isEndOfWhole(op, name)}];
}
def Aten_SelectBackwardOp
    : Aten_LayoutOp<"select_backward",
                    "aten::select_backward(Tensor grad_output, SymInt[] input_sizes, int dim, SymInt index) -> Tensor",
                    "zeros of input_sizes with grad_output in row index"> {
  let arguments = (ins Aten_Tensor:$grad_output, DenseI64ArrayAttr:$input_sizes,
                   I64Attr:$dim, I64Attr:$index);
  let localizer = [{localizeShape(op, "input_sizes", types)}];
  let rule = "selectRule(op)";
  let verifier = "verifySelect(op)";
  let statesSize = [{isShape(op, name, "input_sizes")}];
}
def Aten_SliceScatterOp
    : Aten_LayoutOp<"slice_scatter",
                    "aten::slice_scatter(Tensor self, Tensor src, int dim=0, SymInt? start=None, SymInt? end=None, "
                    "SymInt step=1) -> Tensor",
                    "self with src in the slice"> {
  let arguments = (ins Aten_Tensor:$self, Aten_Tensor:$src, I64Attr:$dim,
                   I64Attr:$start, I64Attr:$end,
                   DefaultValuedAttr<I64Attr, "1">:$step);
  let localizer = "localizeSlice(op, types)";
  let rule = "sliceRule(op)";
  let verifier = "verifySlice(op)";
}
def Aten_SelectScatterOp
    : Aten_LayoutOp<"select_scatter", "aten::select_scatter(Tensor self, Tensor src, int dim, SymInt index) -> Tensor",
                    "self with src in row index of dimension dim"> {
  let arguments = (ins Aten_Tensor:$self, Aten_Tensor:$src, I64Attr:$dim,
                   I64Attr:$index);
  let rule = "selectRule(op)";
  let verifier = "verifySelect(op)";
}
def Aten_FlipOp
    : Aten_MovementOp<"flip", "aten::flip(Tensor self, int[] dims) -> Tensor",
                      "the rows of each of dims from last to first"> {
  let arguments = (ins Aten_Tensor:$self, DenseI64ArrayAttr:$dims);
  let rule = "flipRule(op)";
  let verifier = "verifyFlip(op)";
}

// Factories.
def Aten_FullOp
    : Aten_LayoutOp<"full",
                    "aten::full(SymInt[] size, Scalar fill_value, *, ScalarType? dtype=None, Layout? layout=None, "
                    "Device? device=None, bool? pin_memory=None) -> Tensor",
                    "a tensor with one value everywhere"> {
  let arguments = (ins DenseI64ArrayAttr:$size, Aten_Scalar:$fill_value);
  let localizer = [{localizeShape(op, "size", types)}];
  let rule = "fullRule(op)";
  let verifier = "verifyFull(op)";
  let fillName = "fill_value";
  let statesSize = [{isShape(op, name, "size")}];
}
def Aten_ArangeStartStepOp
    : Aten_LayoutOp<"arange.start_step",
                    "aten::arange.start_step(Scalar start, Scalar end, Scalar step=1, *, ScalarType? dtype=None, "
                    "Layout? layout=None, Device? device=None, bool? pin_memory=None) -> Tensor",
                    "start, start + step, … below end"> {
  let arguments = (ins Aten_Scalar:$start, Aten_Scalar:$end, Aten_ScalarOne:$step);
  let localizer = "keepShape(op, types)";
  let verifier = "verifyArange(op)";
  let integerRanges = "rangeOfProgression(getStartAttr(), getStepAttr(), getType().getNumElements())";
  let statesSize = [{name == "end"}];
  let continuesRows = "true";
}
def Aten_ScalarTensorOp
    : Aten_LayoutOp<"scalar_tensor",
                    "aten::scalar_tensor(Scalar s, *, ScalarType? dtype=None, Layout? layout=None, "
                    "Device? device=None, bool? pin_memory=None) -> Tensor",
                    "a scalar as a 0-dimensional tensor"> {
  let arguments = (ins Aten_Scalar:$s);
  let rule = "fullRule(op)";
  let verifier = "verifyScalarTensor(op)";
  let fillName = "s";
}
def Aten_ConstantOp
    : Aten_LayoutOp<"constant", "spmd::constant(*, Tensor value) -> Tensor",
                    "a tensor given by its elements"> {
  let arguments = (ins ElementsAttr:$value);
  let assemblyFormat = "$value attr-dict `:` type($result)";
  let localizer = "keepShape(op, types)";
  let verifier = "verifyConstant(op)";
  let integerRanges = "rangeOfConstant(getValueAttr())";
}

#endif // SPMD_ATEN_VIEW_TD
