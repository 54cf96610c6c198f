//===- AtenInterfaces.td - What every aten op says of itself -*- tablegen -*-===//

#ifndef SPMD_ATEN_INTERFACES_TD
#define SPMD_ATEN_INTERFACES_TD

include "mlir/IR/OpBase.td"

def ShardingOpInterface : OpInterface<"ShardingOpInterface"> {
  let cppNamespace = "::spmd::aten";
  let description = [{
    What becomes of an op when its operands are parts of tensors or summands of
    them: the loops its dimensions stand for, where elements come from, and how
    its size attributes follow from the shapes a rank computes on.
  }];
  let methods = [
    InterfaceMethod<[{
      The sharding rule, or failure if the op can only run on replicated
      operands. Computed from the operands' and results' present types and from
      the attributes, so it is a rule about global shapes before partition and
      about local shapes after it. View-like ops have none (see `isViewLike`).
    }], "::mlir::FailureOr<::spmd::aten::ShardingRule>", "getShardingRule">,
    InterfaceMethod<[{
      The result has the elements of the first operand in the same flat order
      (view, unsqueeze, squeeze): which dimension a shard lands in follows from
      flat positions alone, not from a rule.
    }], "bool", "isViewLike">,
    InterfaceMethod<[{
      Every element of the results is an element of an operand, at most in
      another type: what holds of all elements (a range, a largest value or norm
      over ranks) goes through the op. Views, copies, layouts, pieces and what
      puts them together; not what adds zeros.
    }], "bool", "movesElements">,
    InterfaceMethod<[{
      How the op cuts a dimension into pieces, or puts pieces side by side along
      one, if it does nothing else (cat, split, a slice and what undoes it).
    }], "std::optional<::spmd::aten::Pieces>", "getRowPieces">,
    InterfaceMethod<[{
      The attribute `name` says no more than what the types of operands and
      results say as well: it is a size of theirs.
    }], "bool", "statesSize", (ins "::llvm::StringRef":$name)>,
    InterfaceMethod<[{
      Were the result longer, the other attributes and the operands being the
      same, it would begin with what it is now (arange).
    }], "bool", "continuesRows">,
    InterfaceMethod<[{
      Rewrites the attributes that state sizes (the `size` of a view, an expand
      or a full, the end of a slice over a whole dimension) so that the op,
      given operands of local shape, computes results of `localResultTypes`.
      Attributes still state global sizes when this is called; the op's result
      types are not touched. Fails when the op cannot produce these types, for
      instance an arange that every rank must start elsewhere.
    }], "::llvm::LogicalResult", "localize",
      (ins "::mlir::TypeRange":$localResultTypes)>,
  ];
}

def CostOpInterface : OpInterface<"CostOpInterface"> {
  let cppNamespace = "::spmd::aten";
  let description = [{
    What an op costs, for decisions that change no value.
  }];
  let methods = [
    InterfaceMethod<[{
      Not worth computing twice and not fused into loops around it: matrix
      products, attention, row gathers and scatters.
    }], "bool", "isHeavy">,
    InterfaceMethod<[{
      Its operations are multiply-adds of matrix products: what a rank should
      not do that another does as well.
    }], "bool", "isMatrixProduct", (ins), [{}], [{
      return false;
    }]>,
    InterfaceMethod<[{
      Floating-point operations on the present shapes; an estimate for ops that
      are not matrix products (one per element and elementary function).
    }], "double", "getFlops">,
  ];
}

def ScalarBodyOpInterface : OpInterface<"ScalarBodyOpInterface"> {
  let cppNamespace = "::spmd::aten";
  let description = [{
    What one element of the result of a pointwise op is, from which its kernels
    and its evaluator come.
  }];
  let methods = [
    InterfaceMethod<[{
      Every element of every result depends only on the elements of the operands
      that broadcasting puts at the same place.
    }], "bool", "isPointwise">,
    InterfaceMethod<[{
      The element type that PyTorch gives the result of a pointwise op with
      these operands and attributes; null for other ops.
    }], "::mlir::Type", "getPointwiseType">,
    InterfaceMethod<[{
      The op is pointwise with one result, and says what one element of that
      is (`buildScalarBody`).
    }], "bool", "hasScalarBody">,
    InterfaceMethod<[{
      Emits one element of the result as arith and math ops: `args` has a
      scalar per operand, of its element type. The arithmetic is PyTorch's, in
      PyTorch's order, in the compute type that follows from the op's types.
      Null without a scalar body.
    }], "::mlir::Value", "buildScalarBody",
      (ins "::mlir::ImplicitLocOpBuilder &":$builder, "::mlir::ValueRange":$args)>,
  ];
}

def AtenOpInterface : OpInterface<"AtenOpInterface", [
    ShardingOpInterface, CostOpInterface, ScalarBodyOpInterface]> {
  let cppNamespace = "::spmd::aten";
  let description = [{
    Facts about an ATen op that passes need without knowing the op: its PyTorch
    schema and the parts above, whose methods it has too. Code that asks for one
    part names that one.
  }];
  let methods = [
    StaticInterfaceMethod<[{
      The schema of the functional overload, as PyTorch prints it. Operands and
      attributes have the names that it gives to its arguments.
    }], "::llvm::StringRef", "getSchema">,
    InterfaceMethod<[{
      The results share memory with an operand, as the schema says: what lies in
      a buffer is read there.
    }], "bool", "isView", (ins), [{}], [{
      return ::spmd::aten::returnsView($_op.getSchema());
    }]>,
    StaticInterfaceMethod<[{
      The attribute that is the number that all elements of the result are,
      whatever its shape. Empty for ops that do not state one.
    }], "::llvm::StringRef", "getFillName", (ins), [{}], [{ return {}; }]>,
    StaticInterfaceMethod<[{
      Of an op of one tensor and a number `other`: its name in the overload that
      has a tensor in the number's place. Empty if there is none, or if it has
      other attributes.
    }], "::llvm::StringRef", "getTensorOverload", (ins), [{}], [{ return {}; }]>,
    InterfaceMethod<[{
      What the elements of `operand` may be, if they are numbers of rows or of
      classes that the op looks up; nothing if they are not. The bound is that
      of the present shapes.
    }], "::std::optional<::spmd::aten::RowNumbers>", "getRowNumbers",
      (ins "::mlir::OpOperand &":$operand), [{}], [{
      return ::std::nullopt;
    }]>,
  ];
  let extraSharedClassDeclaration = [{
    /// The number that all elements of the result are; null if the op does not state one.
    ::mlir::Attribute getFillNumber() {
      ::llvm::StringRef name = $_op.getFillName();
      return name.empty() ? ::mlir::Attribute() : $_op->getAttr(name);
    }
  }];
}

def ListOpInterface : OpInterface<"ListOpInterface"> {
  let cppNamespace = "::spmd::aten";
  let description = [{
    A list op of an optimizer (`_foreach_*`, `_fused_*`): position i of all its
    lists belongs to one parameter. In list form a position is an entry of each
    list; in chunk form each list has one entry, a unit's chunk or table, and a
    position is a segment of it.
  }];
  let methods = [
    InterfaceMethod<[{
      The parallel lists of operands; one that is empty has no positions. They
      come before the other operands.
    }], "::llvm::SmallVector<::mlir::OperandRange>", "getOperandLists">,
    InterfaceMethod<[{
      The operands that are no list's: one number for all positions, a tensor
      with a number for each, a learning rate for each group.
    }], "::mlir::OperandRange", "getShared">,
    InterfaceMethod<[{
      The parallel lists of results; one that is empty has no positions.
    }], "::llvm::SmallVector<::mlir::ResultRange>", "getResultLists">,
    InterfaceMethod<[{
      The number of entries of the lists.
    }], "size_t", "getLength", (ins), [{}], [{
      return $_op.getOperandLists().front().size();
    }]>,
    InterfaceMethod<[{
      The shard unit whose chunk or table an entry is; null in list form.
    }], "::mlir::FlatSymbolRefAttr", "getUnitAttr">,
    StaticInterfaceMethod<[{
      The results are norms of what stands at their positions: numbers, whatever
      the shapes of the operands are.
    }], "bool", "isNorm", (ins), [{}], [{ return false; }]>,
    StaticInterfaceMethod<[{
      Of an op with a number for all positions that has an overload with a
      number for each, and of that overload: the attribute that is the number or
      the list of them. Empty for other ops.
    }], "::llvm::StringRef", "getScalarsName", (ins), [{}], [{ return {}; }]>,
    StaticInterfaceMethod<[{
      The op's name in the overload with a number for each position; empty if
      there is none.
    }], "::llvm::StringRef", "getScalarListOverload", (ins), [{}],
      [{ return {}; }]>,
    StaticInterfaceMethod<[{
      The op's name in the overload that has a list in place of the shared
      tensor, as the last one; empty if there is none.
    }], "::llvm::StringRef", "getListOverload", (ins), [{}],
      [{ return {}; }]>,
    StaticInterfaceMethod<[{
      The shared number that makes the op an identity of its list, in all of the
      op's overloads; none if there is no such number.
    }], "::std::optional<int64_t>", "getIdentity", (ins), [{}],
      [{ return ::std::nullopt; }]>,
  ];
}

#endif // SPMD_ATEN_INTERFACES_TD
