//===- Emitter.h - Creating aten ops for captured calls ---------*- C++ -*-===//

#ifndef SPMD_LIB_IMPORT_EMITTER_H
#define SPMD_LIB_IMPORT_EMITTER_H

#include "Package/StepPackage.h"

#include "dialects/Aten/TensorType.h"
#include "dialects/Spmd/ElementType.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"
#include "mlir/IR/Diagnostics.h"
#include "llvm/ADT/StringMap.h"

namespace spmd {

mlir::RankedTensorType getTensorType(const step::TensorSpec &spec, mlir::MLIRContext *context);

/// An argument of a captured call with its tensors read.
struct BoundArg {
  step::Arg literal;
  /// Of kind value: one; of kind values: one per entry, null for none.
  llvm::SmallVector<mlir::Value> values;

  const std::string &name() const { return literal.name; }
  bool isValue() const { return literal.kind == step::Arg::Kind::value; }
  bool isNone() const { return literal.kind == step::Arg::Kind::none; }
  /// Makes this the number, whatever it was.
  void setInteger(int64_t number) {
    literal.kind = step::Arg::Kind::integer;
    literal.integer = number;
    values.clear();
  }
  bool isNumber() const {
    return literal.kind == step::Arg::Kind::integer || literal.kind == step::Arg::Kind::real ||
           literal.kind == step::Arg::Kind::boolean;
  }
  /// The value of a number of any kind.
  double number() const {
    return literal.kind == step::Arg::Kind::real      ? literal.real
           : literal.kind == step::Arg::Kind::boolean ? static_cast<double>(literal.boolean)
                                                      : static_cast<double>(literal.integer);
  }
};

/// One captured op on values: what it computes and which types it must give.
struct Call {
  std::string op; ///< as in JSON, without "aten.", ".default" and in-place "_"
  llvm::SmallVector<BoundArg> args;
  /// Null for an absent result.
  llvm::SmallVector<mlir::RankedTensorType> resultTypes;

  BoundArg *find(llvm::StringRef name);
  /// The tensor argument `name`; null when there is none.
  mlir::Value value(llvm::StringRef name);
  /// The integer argument `name`, or `otherwise` when absent or none.
  int64_t integer(llvm::StringRef name, int64_t otherwise);
  /// The number `name` of any kind, or `otherwise` when absent or none.
  double number(llvm::StringRef name, double otherwise);
  bool boolean(llvm::StringRef name);
};

/// "aten._foreach_add_.List" with `inPlace`: "_foreach_add.List"; "mylib.swish.default": "mylib::swish".
std::string functionalName(llvm::StringRef op, bool inPlace);

/// Inserts aten ops at the end of a block, with a location and a segment that
/// hold until the next change.
class Emitter {
public:
  explicit Emitter(mlir::Block *block) : builder(mlir::OpBuilder::atBlockEnd(block)), loc(builder.getUnknownLoc()) {}

  mlir::OpBuilder builder;
  mlir::Location loc;
  /// What whole numbers are computed as where an op needs floating ones: torch's default dtype at the capture.
  mlir::Type defaultFloat = builder.getF32Type();
  int64_t segment = 0;
  /// Operators of the user's with functions in libraries, by the name of their calls.
  llvm::StringMap<const step::Operator *> operators;
  /// Where the present call stands in the package, for errors.
  std::string place;

  /// An error at `loc`, with a note that says the place.
  mlir::InFlightDiagnostic error(const llvm::Twine &message);

  mlir::Operation *create(llvm::StringRef op, mlir::ValueRange operands, llvm::ArrayRef<mlir::NamedAttribute> attrs,
                          mlir::TypeRange results);
  mlir::Value createValue(llvm::StringRef op, mlir::ValueRange operands, llvm::ArrayRef<mlir::NamedAttribute> attrs,
                          mlir::RankedTensorType result) {
    return create(op, operands, attrs, result)->getResult(0);
  }

  /// The aten op of the call's name with its schema's operands and attributes;
  /// null, after an error at `loc`, when an argument does not fit.
  mlir::Operation *createFromSchema(Call &call);

  /// A Python number in the place of a tensor, as a 0-dimensional one: of the type of the call's tensors, or, if it is
  /// of a higher kind, of the default type of its own kind, so that it promotes as the number does.
  void wrapNumber(Call &call, BoundArg &arg);

  // Ops that do nothing when there is nothing to do; a view of a view, and a
  // permutation of one, are made from its source.
  mlir::Value view(mlir::Value value, llvm::ArrayRef<int64_t> shape);
  mlir::Value permute(mlir::Value value, llvm::ArrayRef<int64_t> dims);
  mlir::Value expand(mlir::Value value, llvm::ArrayRef<int64_t> shape);
  mlir::Value cast(mlir::Value value, mlir::Type elementType);
  mlir::Value full(mlir::RankedTensorType type, mlir::Attribute scalar);

  /// A number as the attribute of a Scalar argument.
  mlir::Attribute scalar(const step::Arg &arg);
  mlir::NamedAttribute named(llvm::StringRef name, mlir::Attribute attr) { return builder.getNamedAttr(name, attr); }
};

} // namespace spmd

#endif // SPMD_LIB_IMPORT_EMITTER_H
