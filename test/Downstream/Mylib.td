//===- Mylib.td - Ops of somebody else ---------------------*- tablegen -*-===//
//
// What a project outside of this one writes to add an op: one entry per op, of
// a pointwise one with its scalar body, of others with what passes ask of them.
// Nothing else knows of these ops.
//
//===----------------------------------------------------------------------===//

include "dialects/Aten/AtenBase.td"

def MylibDialect : Dialect {
  let name = "mylib";
  let cppNamespace = "::mylib";
}

def Mylib_SwooshOp
    : Aten_PointwiseOp<"swoosh", "mylib::swoosh(Tensor self, Tensor gate, float slope) -> Tensor",
                       "(self + slope * gate) * sigmoid(gate)", [], MylibDialect> {
  let arguments = (ins Aten_Tensor:$self, Aten_Tensor:$gate, F64Attr:$slope);
  let body = [{
    Value line = s.add(self, s.mul(s.constant(getSlope().convertToDouble()), gate));
    return s.mul(line, s.sigmoid(gate));
  }];
}

def Mylib_SwooshGateBackwardOp
    : Aten_PointwiseOp<"swoosh_gate_backward",
                       "mylib::swoosh_gate_backward(Tensor grad_output, Tensor self, Tensor gate, float slope) "
                       "-> Tensor",
                       "gradient of swoosh with respect to gate", [], MylibDialect> {
  let arguments = (ins Aten_Tensor:$grad_output, Aten_Tensor:$self,
                   Aten_Tensor:$gate, F64Attr:$slope);
  let rule = "pointwiseRule(op, Linearity::multilinear, {0})";
  let body = [{
    Value slope = s.constant(getSlope().convertToDouble()), sigmoid = s.sigmoid(gate);
    Value line = s.add(self, s.mul(slope, gate));
    Value bend = s.mul(sigmoid, s.sub(s.constant(1), sigmoid));
    return s.mul(grad_output, s.add(s.mul(slope, sigmoid), s.mul(line, bend)));
  }];
}

// Whole numbers: how large they are follows from the body.
def Mylib_BucketOp
    : Aten_PointwiseOp<"bucket", "mylib::bucket(Tensor self, int count) -> Tensor", "the nearest of 0 to count - 1", [],
                       MylibDialect> {
  let arguments = (ins Aten_Tensor:$self, I64Attr:$count);
  let body = "s.min(s.max(self, s.constant(0)), s.constant(static_cast<double>(getCount()) - 1))";
}

class Mylib_Op<string mnemonic, string torchSchema, string sum>
    : Aten_Op<mnemonic, torchSchema, sum, [], MylibDialect> {
  let results = (outs Aten_Tensor:$result);
}

def Mylib_NearestOp
    : Mylib_Op<"nearest", "mylib::nearest(Tensor self, Tensor centers) -> Tensor",
               "for each element the number of the center that is nearest"> {
  let arguments = (ins Aten_Tensor:$self, Aten_Tensor:$centers);
  let integerRanges = "rangeFrom(0, getCenters().getType().getNumElements() - 1)";
}

def Mylib_BesideOp
    : Mylib_Op<"beside", "mylib::beside(Tensor self, Tensor other, int dim) -> Tensor", "one after the other along dim"> {
  let arguments = (ins Aten_Tensor:$self, Aten_Tensor:$other, I64Attr:$dim);
  let movesElements = "true";
  let rule = "wholeDimRule(op, Linearity::additive)";
  let rowPieces = "piecesAlong(getDim())";
}
