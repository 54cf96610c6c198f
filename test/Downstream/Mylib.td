//===- Mylib.td - Ops of somebody else ---------------------*- tablegen -*-===//
//
// What a project outside of this one writes to add a pointwise op: one entry
// per op, with its scalar body. Nothing else knows of these ops.
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
