//===- Lowering.h - StableHLO ops as nodes of a step ------------*- C++ -*-===//
//
// [Note: lazy scalars]
// StableHLO has no broadcasting: a number times a tensor is a constant, a broadcast and a product. Written down so, the
// number would be a tensor of the parameter's size. So a value may be a number, or a tensor without dimensions, that is
// repeated; pointwise ops take it as it is (`mul.Scalar`, or ATen's broadcasting), everything else makes it a tensor.
//
//===----------------------------------------------------------------------===//

#ifndef SPMD_LIB_IMPORT_STABLEHLO_LOWERING_H
#define SPMD_LIB_IMPORT_STABLEHLO_LOWERING_H

#include "../Package/StepPackage.h"
#include "AttributeText.h"

#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/SymbolTable.h"
#include "llvm/ADT/DenseMap.h"

namespace spmd::stablehlo {

using runtime::DType;
using step::TensorSpec;
using Kind = step::Arg::Kind;

/// A number of a type's kind, as an argument of a node has it.
struct Number {
  Kind kind = Kind::real;
  double real = 0;
  int64_t integer = 0; ///< also 0 or 1 of a boolean

  double asDouble() const { return kind == Kind::real ? real : static_cast<double>(integer); }
};

/// What a value of the function is in the step.
struct Tensor {
  TensorSpec spec;
  int64_t id = -1;              ///< its value in the step, once it is one
  std::optional<Number> number; ///< that number, everywhere
  int64_t scalar = -1;          ///< this value without dimensions, everywhere
  int64_t root = -1;            ///< it is the square of this value

  bool isRepeated() const { return number || scalar >= 0; }
};

step::Arg makeValue(llvm::StringRef name, int64_t id);
step::Arg makeInteger(llvm::StringRef name, int64_t value);
step::Arg makeIntegers(llvm::StringRef name, llvm::ArrayRef<int64_t> values);
step::Arg makeNumber(llvm::StringRef name, const Number &number);
step::Arg makeBoolean(llvm::StringRef name, bool value);

/// The type of a value; none if the step has no such type, which is an error at `loc`.
std::optional<TensorSpec> getSpec(mlir::Type type, mlir::Location loc);
/// The type of an op's first result, which the step has.
TensorSpec specOf(mlir::Operation *op);
Ints shapeOf(mlir::Value value);

class Lowering {
public:
  Lowering(step::Step &step, mlir::ModuleOp module);

  /// Makes nodes of everything in `block` but its terminator, whose operands it gives. Arguments are bound already.
  mlir::LogicalResult lowerBlock(mlir::Block &block, llvm::SmallVectorImpl<Tensor> &results);
  /// Calls the function `name` at `op` on the op's operands.
  mlir::LogicalResult inlineCall(mlir::Operation *op, llvm::StringRef name);

  Tensor &get(mlir::Value value) { return tensors[value]; }
  void bind(mlir::Value value, Tensor tensor) { tensors[value] = std::move(tensor); }
  void bind(mlir::Value value, int64_t id) { tensors[value] = Tensor{specs[id], id, std::nullopt, -1}; }

  /// The value as a tensor of its shape.
  int64_t use(mlir::Value value) { return use(tensors[value]); }
  int64_t use(Tensor &tensor);
  /// The value as it is, or as what is repeated in it: an operand of an op that broadcasts.
  int64_t useScalar(Tensor &tensor);

  /// Adds a node that gives one result. `op` is as in step.json: aten.exp.default.
  int64_t emit(llvm::StringRef op, std::vector<step::Arg> args, TensorSpec result);
  /// Adds the node that makes `source` the value of input `target`.
  void emitUpdate(int64_t target, int64_t source);

  const TensorSpec &spec(int64_t id) const { return specs[id]; }
  /// Adds an input's value.
  int64_t addInput(TensorSpec spec);
  /// The module of ops that read this value: that of the parameter it is.
  void setModule(int64_t id, std::string module) { modules[id] = std::move(module); }

  // Nodes that do nothing where there is nothing to do are left out.
  int64_t view(int64_t id, llvm::ArrayRef<int64_t> shape);
  int64_t permute(int64_t id, llvm::ArrayRef<int64_t> dims);
  int64_t expand(int64_t id, llvm::ArrayRef<int64_t> shape);
  int64_t cast(int64_t id, DType dtype);
  int64_t slice(int64_t id, int64_t dim, int64_t start, int64_t end, int64_t step = 1);
  int64_t full(const TensorSpec &spec, const Number &number);
  int64_t unary(llvm::StringRef op, int64_t id) { return emit(op, {makeValue("self", id)}, specs[id]); }
  int64_t scalarOp(llvm::StringRef op, int64_t id, const Number &number);

  /// Whether the op at hand is taken for one of the optimizer.
  bool isOptimizer() const { return phase == "optimizer"; }

private:
  mlir::LogicalResult lowerOp(mlir::Operation *op);
  mlir::LogicalResult checkResults(mlir::Operation *op);
  std::optional<int64_t> getStack(mlir::Location loc);

  step::Step &step;
  mlir::SymbolTable symbols;
  llvm::DenseMap<mlir::Value, Tensor> tensors;
  std::vector<TensorSpec> specs; ///< by value
  llvm::DenseMap<int64_t, std::string> modules;
  std::map<std::vector<std::pair<std::string, int64_t>>, int64_t> stacks;
  llvm::SmallVector<mlir::Operation *> calls; ///< what is being inlined, outermost first
  std::string phase;                          ///< of the op at hand
  std::optional<int64_t> stack;
};

/// What an op becomes; emits its own errors, at the op.
using Handler = mlir::LogicalResult (*)(Lowering &, mlir::Operation *);
using HandlerTable = llvm::StringMap<Handler>;
void addElementwiseHandlers(HandlerTable &table);
void addMovementHandlers(HandlerTable &table);
void addReductionHandlers(HandlerTable &table);
void addProductHandlers(HandlerTable &table);
void addIndexingHandlers(HandlerTable &table);

/// The elements of a list without those at `dims`, and the product of a list.
Ints without(llvm::ArrayRef<int64_t> values, llvm::ArrayRef<int64_t> dims);
int64_t product(llvm::ArrayRef<int64_t> values);
/// Lists one after the other.
Ints join(std::initializer_list<llvm::ArrayRef<int64_t>> lists);
/// The permutation that undoes `dims`.
Ints invert(llvm::ArrayRef<int64_t> dims);

/// The only op of a region that combines its two arguments: "stablehlo.add". Empty when the region is something else.
llvm::StringRef getCombiner(mlir::Region &region);
/// A binary pointwise op of two values, as the op of that name combines them; -1 when it cannot.
int64_t combine(Lowering &lowering, llvm::StringRef op, int64_t lhs, int64_t rhs);
/// What changes nothing when it is combined with a value of that type; none for ops that have no such number.
bool isNeutral(llvm::StringRef op, const Number &number, DType dtype);

} // namespace spmd::stablehlo

#endif // SPMD_LIB_IMPORT_STABLEHLO_LOWERING_H
