//===- AtenOptim.td - List ops of optimizers ---------------*- tablegen -*-===//
//
// List form and chunk form are told apart by `unit`; see the dialect's
// description.
//
//===----------------------------------------------------------------------===//

#ifndef SPMD_ATEN_OPTIM_TD
#define SPMD_ATEN_OPTIM_TD

include "dialects/Aten/AtenBase.td"

def Aten_Unit : OptionalAttr<FlatSymbolRefAttr>;
// One tensor per param group.
def Aten_GroupList : Variadic<Aten_Tensor>;

// The lists are the arguments that are an Aten_List; they come first. The other
// facts are ListOpInterface's; an overload is the C++ class of its op.
class Aten_ListOp<string mnemonic, string torchSchema, string sum,
                  list<Trait> traits = []>
    : Aten_Op<mnemonic, torchSchema, sum,
              !listconcat([ListOpInterface], traits)> {
  string norm = "false";
  string scalars = "";
  string scalarListOverload = "";
  string listOverload = "";
  string identity = "::std::nullopt";

  string operandLists = !foldl("", !range(!size(arguments)), text, i,
      text # !if(!initialized(!getdagarg<Aten_ParallelList>(arguments, i)),
                 "  lists.push_back(getODSOperands(lists.size()));\n", ""));
  // Operands but for lists: there is one group of them at most, the last.
  string shared = !foldl("", !range(!size(arguments)), text, i,
      !if(!or(!initialized(!getdagarg<AttrConstraint>(arguments, i)),
              !initialized(!getdagarg<Aten_ParallelList>(arguments, i))),
          text, "  return getODSOperands(getOperandLists().size());\n"));
  string resultLists = !foldl("", !range(!size(results)), text, i,
      text # "  lists.push_back(getODSResults(" # i # "));\n");

  let moreDeclarations =
      "::llvm::SmallVector<::mlir::OperandRange> getOperandLists();\n"
      "::mlir::OperandRange getShared();\n"
      "::llvm::SmallVector<::mlir::ResultRange> getResultLists();\n" #
      "static bool isNorm() { return " # norm # "; }\n" #
      "static ::llvm::StringRef getScalarsName() { return \"" # scalars #
      "\"; }\n" #
      "static ::llvm::StringRef getScalarListOverload();\n" #
      "static ::llvm::StringRef getListOverload();\n" #
      "static ::std::optional<int64_t> getIdentity() { return " # identity #
      "; }\n";
  let moreDefinitions =
      "::llvm::SmallVector<::mlir::OperandRange> $cppClass::getOperandLists() {\n"
      "  ::llvm::SmallVector<::mlir::OperandRange> lists;\n" #
      operandLists # "  return lists;\n}\n" #
      "::mlir::OperandRange $cppClass::getShared() {\n" #
      !if(!empty(shared),
          "  return getOperation()->getOperands().take_front(0);\n", shared) #
      "}\n" #
      "::llvm::SmallVector<::mlir::ResultRange> $cppClass::getResultLists() {\n"
      "  ::llvm::SmallVector<::mlir::ResultRange> lists;\n" #
      resultLists # "  return lists;\n}\n" #
      "::llvm::StringRef $cppClass::getScalarListOverload() { return " #
      !if(!empty(scalarListOverload), "{}",
          scalarListOverload # "::getOperationName()") # "; }\n" #
      "::llvm::StringRef $cppClass::getListOverload() { return " #
      !if(!empty(listOverload), "{}", listOverload # "::getOperationName()") #
      "; }\n";
}

class Aten_ForeachOp<string name, string args, string sum, dag operandsAndAttrs,
                     list<Trait> traits = []>
    : Aten_ListOp<"_foreach_" # name,
                  "aten::_foreach_" # name # "(" # args # ") -> Tensor[]",
                  sum, traits> {
  let arguments = !con(operandsAndAttrs, (ins Aten_Unit:$unit));
  let results = (outs Aten_List:$outs);
  let verifier = "verifyForeach(op)";
}
class Aten_ForeachUnaryOp<string name, string sum>
    : Aten_ForeachOp<name, "Tensor[] self", sum, (ins Aten_List:$self)>;
// listed: the .ScalarList overload, if there is one.
class Aten_ForeachScalarOp<string name, string sum, string listed = "",
                           string neutral = "::std::nullopt">
    : Aten_ForeachOp<name # ".Scalar", "Tensor[] self, Scalar scalar", sum,
                     (ins Aten_List:$self, Aten_Scalar:$scalar)> {
  let scalars = !if(!empty(listed), "", "scalar");
  let scalarListOverload = listed;
  let identity = neutral;
}
class Aten_ForeachScalarListOp<string name, string sum, string neutral>
    : Aten_ForeachOp<name # ".ScalarList", "Tensor[] self, Scalar[] scalars",
                     sum, (ins Aten_List:$self, Aten_Scalars:$scalars)> {
  let scalars = "scalars";
  let scalarListOverload = "$cppClass";
  let identity = neutral;
}
class Aten_ForeachListOp<string name, string sum>
    : Aten_ForeachOp<name # ".List", "Tensor[] self, Tensor[] other", sum,
                     (ins Aten_List:$self, Aten_List:$other),
                     [SameVariadicOperandSize]>;
class Aten_ForeachAlphaListOp<string name, string sum>
    : Aten_ForeachOp<name # ".List",
                     "Tensor[] self, Tensor[] other, *, Scalar alpha=1", sum,
                     (ins Aten_List:$self, Aten_List:$other,
                          Aten_ScalarOne:$alpha),
                     [SameVariadicOperandSize]>;
// other: one 0-dimensional tensor for the whole list.
class Aten_ForeachTensorOp<string name, string sum, string listed, string neutral>
    : Aten_ForeachOp<name # ".Tensor", "Tensor[] self, Tensor other", sum,
                     (ins Aten_List:$self, Aten_Tensor:$other)> {
  let listOverload = listed;
  let identity = neutral;
}

def Aten_ForeachAddScalarOp
    : Aten_ForeachScalarOp<"add", "self + scalar", "ForeachAddScalarListOp", "0">;
def Aten_ForeachAddScalarListOp
    : Aten_ForeachScalarListOp<"add", "self + scalar of the position", "0">;
def Aten_ForeachAddListOp
    : Aten_ForeachAlphaListOp<"add", "self + alpha * other">;
def Aten_ForeachAddTensorOp
    : Aten_ForeachOp<"add.Tensor", "Tensor[] self, Tensor other, *, Scalar alpha=1",
                     "self + alpha * other",
                     (ins Aten_List:$self, Aten_Tensor:$other,
                          Aten_ScalarOne:$alpha)> {
  let listOverload = "ForeachAddListOp";
  let identity = "0";
}
def Aten_ForeachSubScalarOp
    : Aten_ForeachScalarOp<"sub", "self - scalar", "ForeachSubScalarListOp", "0">;
def Aten_ForeachSubScalarListOp
    : Aten_ForeachScalarListOp<"sub", "self - scalar of the position", "0">;
def Aten_ForeachSubListOp
    : Aten_ForeachAlphaListOp<"sub", "self - alpha * other">;
def Aten_ForeachMulScalarOp
    : Aten_ForeachScalarOp<"mul", "self * scalar", "ForeachMulScalarListOp", "1">;
def Aten_ForeachMulScalarListOp
    : Aten_ForeachScalarListOp<"mul", "self * scalar of the position", "1">;
def Aten_ForeachMulListOp : Aten_ForeachListOp<"mul", "self * other">;
def Aten_ForeachMulTensorOp
    : Aten_ForeachTensorOp<"mul", "self * other", "ForeachMulListOp", "1">;
def Aten_ForeachDivScalarOp
    : Aten_ForeachScalarOp<"div", "self / scalar", "ForeachDivScalarListOp", "1">;
def Aten_ForeachDivScalarListOp
    : Aten_ForeachScalarListOp<"div", "self / scalar of the position", "1">;
def Aten_ForeachDivListOp : Aten_ForeachListOp<"div", "self / other">;
def Aten_ForeachDivTensorOp
    : Aten_ForeachTensorOp<"div", "self / other", "ForeachDivListOp", "1">;

def Aten_ForeachNegOp : Aten_ForeachUnaryOp<"neg", "-self">;
def Aten_ForeachSqrtOp : Aten_ForeachUnaryOp<"sqrt", "square root">;
def Aten_ForeachReciprocalOp : Aten_ForeachUnaryOp<"reciprocal", "1 / self">;

def Aten_ForeachPowScalarAndTensorOp
    : Aten_ForeachOp<"pow.ScalarAndTensor", "Scalar self, Tensor[] exponent",
                     "scalar self to the power of exponent",
                     (ins Aten_Scalar:$self, Aten_List:$exponent)>;
def Aten_ForeachPowScalarOp
    : Aten_ForeachOp<"pow.Scalar", "Tensor[] self, Scalar exponent",
                     "self to the power of exponent",
                     (ins Aten_List:$self, Aten_Scalar:$exponent)> {
  let scalars = "exponent";
  let scalarListOverload = "ForeachPowScalarListOp";
}
def Aten_ForeachPowScalarListOp
    : Aten_ForeachOp<"pow.ScalarList", "Tensor[] self, Scalar[] exponent",
                     "self to the power of the position's exponent",
                     (ins Aten_List:$self, Aten_Scalars:$exponent)> {
  let scalars = "exponent";
  let scalarListOverload = "$cppClass";
}
def Aten_ForeachPowListOp
    : Aten_ForeachOp<"pow.List", "Tensor[] self, Tensor[] exponent",
                     "self to the power of exponent",
                     (ins Aten_List:$self, Aten_List:$exponent),
                     [SameVariadicOperandSize]>;

def Aten_ForeachLerpScalarOp
    : Aten_ForeachOp<"lerp.Scalar", "Tensor[] self, Tensor[] tensors1, Scalar weight",
                     "self + weight * (tensors1 - self)",
                     (ins Aten_List:$self, Aten_List:$tensors1,
                          Aten_Scalar:$weight), [SameVariadicOperandSize]> {
  let scalars = "weight";
  let scalarListOverload = "ForeachLerpScalarListOp";
}
def Aten_ForeachLerpScalarListOp
    : Aten_ForeachOp<"lerp.ScalarList", "Tensor[] self, Tensor[] tensors1, Scalar[] weight",
                     "self + weight * (tensors1 - self), a weight per position",
                     (ins Aten_List:$self, Aten_List:$tensors1,
                          Aten_Scalars:$weight), [SameVariadicOperandSize]> {
  let scalars = "weight";
  let scalarListOverload = "$cppClass";
}
def Aten_ForeachLerpListOp
    : Aten_ForeachOp<"lerp.List", "Tensor[] self, Tensor[] tensors1, Tensor[] weights",
                     "self + weights * (tensors1 - self)",
                     (ins Aten_List:$self, Aten_List:$tensors1,
                          Aten_List:$weights), [SameVariadicOperandSize]>;

class Aten_ForeachAddcScalarOp<string name, string sum, string listed>
    : Aten_ForeachOp<name # ".Scalar", "Tensor[] self, Tensor[] tensor1, Tensor[] tensor2, Scalar value=1",
                     sum, (ins Aten_List:$self, Aten_List:$tensor1,
                               Aten_List:$tensor2, Aten_ScalarOne:$value),
                     [SameVariadicOperandSize]> {
  let scalars = "value";
  let scalarListOverload = listed;
}
class Aten_ForeachAddcScalarListOp<string name, string sum>
    : Aten_ForeachOp<name # ".ScalarList", "Tensor[] self, Tensor[] tensor1, Tensor[] tensor2, Scalar[] scalars",
                     sum, (ins Aten_List:$self, Aten_List:$tensor1,
                               Aten_List:$tensor2, Aten_Scalars:$scalars),
                     [SameVariadicOperandSize]> {
  let scalars = "scalars";
  let scalarListOverload = "$cppClass";
}
// scalars: a 1-dimensional tensor with one entry per position (segment).
class Aten_ForeachAddcTensorOp<string name, string sum>
    : Aten_ForeachOp<name # ".Tensor", "Tensor[] self, Tensor[] tensor1, Tensor[] tensor2, Tensor scalars",
                     sum, (ins Aten_List:$self, Aten_List:$tensor1,
                               Aten_List:$tensor2, Aten_Tensor:$scalars),
                     [SameVariadicOperandSize]>;
def Aten_ForeachAddcmulScalarOp
    : Aten_ForeachAddcScalarOp<"addcmul", "self + value * tensor1 * tensor2",
                               "ForeachAddcmulScalarListOp">;
def Aten_ForeachAddcmulScalarListOp
    : Aten_ForeachAddcScalarListOp<"addcmul", "self + scalar * tensor1 * tensor2">;
def Aten_ForeachAddcmulTensorOp
    : Aten_ForeachAddcTensorOp<"addcmul", "self + scalar * tensor1 * tensor2">;
def Aten_ForeachAddcdivScalarOp
    : Aten_ForeachAddcScalarOp<"addcdiv", "self + value * tensor1 / tensor2",
                               "ForeachAddcdivScalarListOp">;
def Aten_ForeachAddcdivScalarListOp
    : Aten_ForeachAddcScalarListOp<"addcdiv", "self + scalar * tensor1 / tensor2">;
def Aten_ForeachAddcdivTensorOp
    : Aten_ForeachAddcTensorOp<"addcdiv", "self + scalar * tensor1 / tensor2">;

def Aten_ForeachMaximumListOp : Aten_ForeachListOp<"maximum", "max(self, other)">;
// Also PyTorch's _foreach_clamp_min.Scalar and _foreach_clamp_max.Scalar.
def Aten_ForeachMaximumScalarOp
    : Aten_ForeachScalarOp<"maximum", "max(self, scalar)">;
def Aten_ForeachMinimumScalarOp
    : Aten_ForeachScalarOp<"minimum", "min(self, scalar)">;

// A pointwise op at every position: what isomorphic chains of ops, one chain per
// parameter, are merged into. `op` is the op's name without "aten.", `options` are
// its attributes, `operands` its operands, one list after the other.
def Aten_ForeachMapOp
    : Aten_ListOp<"_foreach_map",
                  "spmd::_foreach_map(Tensor[] operands, *, str op, Dict options) -> Tensor[]",
                  "a pointwise op at every position"> {
  let arguments = (ins Aten_List:$operands, StrAttr:$op,
                   DictionaryAttr:$options, Aten_Unit:$unit);
  let results = (outs Aten_List:$outs);
  // As many as the op at a position has operands, each as long as the results.
  let operandLists = [{
    size_t length = getNumResults();
    for (::mlir::OperandRange rest = getOperands(); length && rest.size() >= length; rest = rest.drop_front(length))
      lists.push_back(rest.take_front(length));
  }];
  let verifier = "verifyForeachMap(op)";
}

// One 0-dimensional norm per list entry; in chunk form the table of this
// rank's contributions.
def Aten_ForeachNormScalarOp
    : Aten_ForeachOp<"norm.Scalar", "Tensor[] self, Scalar ord=2, ScalarType? dtype=None",
                     "norm of order ord of each tensor; dtype: convert first",
                     (ins Aten_List:$self,
                          DefaultValuedAttr<Aten_Scalar, "2">:$ord,
                          OptionalAttr<TypeAttr>:$dtype)> {
  let flops = "operandElements(op)";
  let norm = "true";
}

// Fused optimizers. Several param groups in one op: `lr` has one 0-dimensional
// tensor per group, or is empty and `lr_values` has one constant per group; the
// float hyper-parameters have one entry per group; `groups` is the group of
// each list position (segment). The gradients that PyTorch returns unscaled are
// not results: grad_scale and found_inf are not supported.
class Aten_FusedAdamLikeOp<string name, string sum>
    : Aten_ListOp<name,
              "aten::" # name # "(Tensor[] self, Tensor[] grads, Tensor[] exp_avgs, Tensor[] exp_avg_sqs, "
              "Tensor[] max_exp_avg_sqs, Tensor[] state_steps, *, float lr, float beta1, float beta2, "
              "float weight_decay, float eps, bool amsgrad, bool maximize, Tensor? grad_scale=None, "
              "Tensor? found_inf=None) -> (Tensor[] self_out, Tensor[] grads_out, Tensor[] exp_avgs_out, "
              "Tensor[] exp_avg_sqs_out, Tensor[] max_exp_avg_sqs_out)",
              sum, [AttrSizedOperandSegments, AttrSizedResultSegments]> {
  let arguments = (ins Aten_List:$self, Aten_List:$grads, Aten_List:$exp_avgs,
                   Aten_List:$exp_avg_sqs, Aten_List:$max_exp_avg_sqs,
                   Aten_List:$state_steps, Aten_GroupList:$lr,
                   OptionalAttr<DenseF64ArrayAttr>:$lr_values,
                   DenseF64ArrayAttr:$beta1, DenseF64ArrayAttr:$beta2,
                   DenseF64ArrayAttr:$weight_decay, DenseF64ArrayAttr:$eps,
                   Aten_False:$amsgrad, Aten_False:$maximize,
                   DenseI64ArrayAttr:$groups, Aten_Unit:$unit);
  let results = (outs Aten_List:$self_out, Aten_List:$exp_avgs_out,
                 Aten_List:$exp_avg_sqs_out, Aten_List:$max_exp_avg_sqs_out);
  let verifier = "verifyFused(op)";
}
def Aten_FusedAdamOp
    : Aten_FusedAdamLikeOp<"_fused_adam", "Adam with weight decay in the gradient">;
def Aten_FusedAdamwOp
    : Aten_FusedAdamLikeOp<"_fused_adamw", "Adam with decoupled weight decay">;
def Aten_FusedSgdOp
    : Aten_ListOp<"_fused_sgd",
              "aten::_fused_sgd(Tensor[] self, Tensor[] grads, Tensor[] momentum_buffer_list, *, float weight_decay, "
              "float momentum, float lr, float dampening, bool nesterov, bool maximize, bool is_first_step, "
              "Tensor? grad_scale=None, Tensor? found_inf=None) -> (Tensor[] self_out, Tensor[] grads_out, "
              "Tensor[] momentum_buffer_list_out)",
              "stochastic gradient descent with momentum",
              [AttrSizedOperandSegments, AttrSizedResultSegments]> {
  let arguments = (ins Aten_List:$self, Aten_List:$grads,
                   Aten_List:$momentum_buffer_list, Aten_GroupList:$lr,
                   OptionalAttr<DenseF64ArrayAttr>:$lr_values,
                   DenseF64ArrayAttr:$weight_decay, DenseF64ArrayAttr:$momentum,
                   DenseF64ArrayAttr:$dampening, Aten_False:$nesterov,
                   Aten_False:$maximize, Aten_False:$is_first_step,
                   DenseI64ArrayAttr:$groups, Aten_Unit:$unit);
  let results = (outs Aten_List:$self_out, Aten_List:$momentum_buffer_list_out);
  let verifier = "verifyFused(op)";
}

#endif // SPMD_ATEN_OPTIM_TD
