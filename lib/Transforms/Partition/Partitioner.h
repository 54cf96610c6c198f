//===- Partitioner.h - emission of one rank's program -----------*- C++ -*-===//
//
// [Note: order of the partitioner]
// 1. Step reads roles and units, OwnerDomain votes (both on the captured step).
// 2. The ops of the captured step are visited in program order (twice, see
//    [Note: gradients]). Each either
//    belongs to the owner domain (list ops and pointwise ops on chunks, norms of
//    parameters), or is a view of a parameter (emitted again wherever it is used,
//    so that no gathered buffer lives from forward to backward), or runs in the
//    states that propagate() chooses. Operands are converted where they are used.
// 3. Results are brought home: updates as chunks and tables, outputs replicated.
// 4. localizeSlices() computes replicated values on shards where only a shard is
//    used.
//
//===----------------------------------------------------------------------===//

#ifndef SPMD_LIB_TRANSFORMS_PARTITION_PARTITIONER_H
#define SPMD_LIB_TRANSFORMS_PARTITION_PARTITIONER_H

#include "OwnerDomain.h"
#include "Propagate.h"
#include "States.h"
#include "Step.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/OperationSupport.h"

namespace spmd::partition {

/// Where a value of the owner domain is: one segment of a chunk, or one entry of a
/// table.
struct Carrier {
  mlir::Value value;
  Place place;
  bool isTable = false;
};

/// A value of the captured step at a segment of a unit.
using Member = std::pair<int64_t, mlir::Value>;

/// Of ops, those with the same name, attributes, operands and result types are equal.
struct EqualOperations : llvm::DenseMapInfo<mlir::Operation *> {
  static unsigned getHashValue(const mlir::Operation *op) {
    return mlir::OperationEquivalence::computeHash(
        const_cast<mlir::Operation *>(op), mlir::OperationEquivalence::directHashValue,
        mlir::OperationEquivalence::ignoreHashValue, mlir::OperationEquivalence::IgnoreLocations);
  }
  static bool isEqual(mlir::Operation *a, mlir::Operation *b) {
    auto isKey = [](mlir::Operation *op) { return op == getEmptyKey() || op == getTombstoneKey(); };
    return a == b || (!isKey(a) && !isKey(b) &&
                      mlir::OperationEquivalence::isEquivalentTo(a, b, mlir::OperationEquivalence::IgnoreLocations));
  }
};

/// What a first emission finds out for the second; see [Note: gradients].
struct GradientUse {
  /// Per unit: values that are wanted in its chunk.
  llvm::SmallVector<llvm::SmallVector<Member>> wanted;
  /// Ops that need reduced gradients.
  llvm::DenseSet<mlir::Operation *> late;
};

class Partitioner {
public:
  /// Replaces @step by the program of one rank. On failure an error is out and
  /// @step is as it was.
  static mlir::LogicalResult run(Step &step);

private:
  Partitioner(Step &step, GradientUse known, bool isFinal);

  // Partitioner.cpp: the visit.
  mlir::LogicalResult emitAll();
  mlir::LogicalResult emit(mlir::Operation *op);
  mlir::LogicalResult emitGeneric(mlir::Operation *op);
  bool isParameterViewOp(mlir::Operation *op) const;
  void shardAgain(mlir::Value value);
  void countWork(mlir::Operation *op, const OpStates &chosen);
  void warnOfReplicatedWork();
  AxisState getState(mlir::Value value) const;
  void setLocal(mlir::Value value, AxisState state, mlir::Value local);
  mlir::Operation *cloneOnto(mlir::Operation *op, mlir::ValueRange operands, mlir::TypeRange results);
  template <typename OpTy, typename... Args>
  OpTy create(Args &&...args) {
    auto op = OpTy::create(builder, loc, std::forward<Args>(args)...);
    tag(op);
    return op;
  }
  void tag(mlir::Operation *op);

  // LocalView.cpp: the captured step is one rank's.
  mlir::FailureOr<bool> emitVarying(mlir::Operation *op);
  bool isAveraged(mlir::Value value) const;
  bool isInOptimizer() const;
  mlir::Value getOwnNumbers(mlir::RankedTensorType index);
  void takeReduced(mlir::Value value);
  mlir::LogicalResult reduceVaryingOperands(mlir::Operation *op);
  mlir::Value average(mlir::Value sum);
  mlir::Value divideGradient(mlir::Value sum);
  mlir::Value scaleSameGradient(mlir::Value value, mlir::Value whole);
  mlir::InFlightDiagnostic emitVaryingError(mlir::Operation *op);

  // AmongRanks.cpp: collectives of the user's own.
  mlir::LogicalResult emitAmongRanks(mlir::Operation *op);
  mlir::Value reduceAmongRanks(mlir::Value value, mlir::StringRef kind);
  mlir::Value gatherAmongRanks(mlir::Value value, mlir::RankedTensorType type);

  // AlongTensor.cpp: what the tensor axis has put into the step.
  mlir::LogicalResult emitAlongTensor(mlir::Operation *op);

  // Conversions.cpp: a value in a wanted state.
  mlir::Value get(mlir::Value value, AxisState want);
  mlir::Value getMasked(mlir::Value value, AxisState want, double fill);
  mlir::Value convert(mlir::Value value, AxisState from, AxisState to, mlir::Value local);
  /// What this rank adds to the value.
  mlir::Value getSummand(mlir::Value value);
  mlir::Value getOneOnFirst(mlir::Type dtype);
  /// The state of what ranks have of a gradient that outlives the step.
  AxisState getSummandState() const;
  /// The value that `state`, a partial one, says to be in parts on the ranks.
  mlir::Value allReduce(mlir::Value local, mlir::RankedTensorType global, const AxisState &state,
                        mlir::FlatSymbolRefAttr unit);
  mlir::Value slice(mlir::Value local, mlir::RankedTensorType global, AxisState to);

  // Parameters.cpp: parameters and their views, whole.
  bool isParameter(mlir::Value value) const;
  mlir::Value getParameterView(mlir::Value value);
  mlir::Value gather(int64_t unit, mlir::Value chunk);
  mlir::Value unpack(mlir::Value chunk, Place place, mlir::RankedTensorType type);
  mlir::Value getEntry(mlir::Value value, const Carrier &carrier);
  mlir::Value view(mlir::Value local, mlir::RankedTensorType type, AxisState state);

  // Chunks.cpp: flat values of a unit.
  mlir::RankedTensorType getChunkType(int64_t unit, mlir::Type dtype) const;
  mlir::RankedTensorType getFlatType(int64_t unit, mlir::Type dtype) const;
  mlir::RankedTensorType getTableType(int64_t unit, mlir::Type dtype, AxisState state) const;
  /// The chunk that has the value at this place, if one does.
  mlir::Value findChunk(mlir::Value value, Place place) const;
  /// The members are one number per parameter.
  bool isTable(int64_t unit, llvm::ArrayRef<Member> members) const;
  /// One chunk with every member at its segment.
  mlir::FailureOr<mlir::Value> assembleChunk(int64_t unit, llvm::ArrayRef<Member> members);
  /// One table with every member at its entry.
  mlir::Value assembleTable(int64_t unit, llvm::ArrayRef<Member> members);
  mlir::Value getWholeTable(mlir::Value table);
  mlir::Value merge(int64_t unit, bool isTable, llvm::MapVector<mlir::Value, llvm::SmallVector<int64_t>> parts);
  mlir::Value stackTable(int64_t unit, llvm::ArrayRef<Member> members);

  // Gradients.cpp: from values to the chunk.
  bool isGradient(int64_t unit, const Member &member) const;
  llvm::SmallVector<Member> takeAlong(int64_t unit, llvm::ArrayRef<Member> requested,
                                      llvm::function_ref<bool(const Member &)> accepted) const;
  /// Places the values, whatever they are, at segments of the unit's chunk.
  mlir::LogicalResult bringHome(int64_t unit, llvm::ArrayRef<Member> requested);
  mlir::Value getWhole(mlir::Value value, mlir::RankedTensorType type);
  /// The value in another type.
  mlir::Value castTo(mlir::Value value, mlir::FloatType dtype);
  mlir::Value sumAcross(mlir::Value chunk, mlir::RankedTensorType type, mlir::FlatSymbolRefAttr unit);
  mlir::Value packAndReduce(int64_t unit, llvm::ArrayRef<Member> members, bool partial);

  // OwnerOps.cpp: pointwise ops of the owner domain.
  bool isOnChunk(mlir::Value value) const;
  mlir::Value getRepeated(mlir::Operation *op, mlir::Value value) const;
  bool isNumber(mlir::Operation *op, mlir::Value value, llvm::ArrayRef<int64_t> shape) const;
  bool isGradientToScale(mlir::Operation *op) const;
  bool runsAtHome(mlir::Operation *op, Place &place) const;
  mlir::LogicalResult emitAtHome(mlir::Operation *op, Place place);
  mlir::Operation *takeFirstOfEqual(mlir::Operation *op);

  // OwnerLists.cpp: list ops.
  mlir::LogicalResult emitList(aten::ListOpInterface list);
  std::optional<Place> getPlace(aten::ListOpInterface list, int64_t position) const;
  bool fits(aten::ListOpInterface list, int64_t position, Place place) const;
  mlir::LogicalResult emitUnitList(aten::ListOpInterface list, int64_t unit,
                                   llvm::ArrayRef<std::pair<int64_t, int64_t>> positions);
  mlir::LogicalResult emitRest(aten::ListOpInterface list, llvm::ArrayRef<int64_t> positions);
  mlir::Operation *createListOp(aten::ListOpInterface list, llvm::ArrayRef<llvm::SmallVector<mlir::Value>> lists,
                                mlir::TypeRange results, llvm::ArrayRef<int64_t> entries, mlir::FlatSymbolRefAttr unit);

  // Norms.cpp: clipping.
  mlir::LogicalResult emitNorm(mlir::Operation *op, int64_t unit, llvm::ArrayRef<std::pair<Member, mlir::Value>> parts);
  bool emitStackOfTables(mlir::Operation *op);

  // Signature.cpp: arguments and results.
  void createFunction();
  mlir::BlockArgument addArgument(mlir::Type type, mlir::DictionaryAttr attrs, mlir::Location at);
  void addUnitArguments();
  mlir::Value takeChunk(int64_t unit, mlir::Value whole);
  void addOtherArguments();
  AxisState getArgumentState(mlir::BlockArgument argument) const;
  mlir::LogicalResult emitReturn();

  Step &step;
  OwnerDomain domain;
  mlir::OpBuilder builder;
  mlir::func::FuncOp newFunc;
  /// Location and segment that new ops get.
  mlir::Location loc;
  mlir::Attribute segment;

  llvm::DenseMap<mlir::Value, AxisState> states;
  llvm::DenseMap<mlir::Value, Carrier> carriers;
  /// Of a chunk of parameters that ranks have whole: these.
  llvm::DenseMap<mlir::Value, mlir::Value> wholeOf;
  /// The value in each state it exists in.
  llvm::DenseMap<mlir::Value, llvm::SmallVector<std::pair<AxisState, mlir::Value>>> locals;
  llvm::DenseMap<std::tuple<mlir::Value, mlir::Value, uint64_t>, mlir::Value> masked;
  /// Views of parameters, and what was emitted for them in each segment.
  llvm::DenseSet<mlir::Value> parameterViews;
  llvm::DenseMap<std::pair<mlir::Value, mlir::Attribute>, mlir::Value> viewLocals;
  /// What an emission before this one found out, and what this one does.
  GradientUse known, recorded;
  /// This emission is the one that stays; only it warns.
  bool isFinal;
  /// A conversion that does not exist was asked for, and the error is out.
  bool cannotConvert = false;
  /// Floating-point operations of heavy ops, and of those that run replicated.
  double totalWork = 0, replicatedWork = 0, largestReplicatedFlops = 0;
  mlir::Operation *largestReplicated = nullptr;
  /// The op of the captured step that is emitted.
  mlir::Operation *current = nullptr;
  llvm::DenseMap<std::pair<mlir::Value, int>, mlir::Value> norms;
  /// Tables of partial norms, reduced.
  llvm::DenseMap<mlir::Value, mlir::Value> wholeTables;
  /// Chunks in other types: of gradients the sums that they are casts of.
  llvm::DenseMap<std::pair<mlir::Value, mlir::Type>, mlir::Value> casts;
  /// Of pointwise ops on chunks and on numbers, equal ones are one.
  llvm::DenseSet<mlir::Operation *, EqualOperations> pointwiseOps;
  /// Chunks of values that are elsewhere too, by unit and segment.
  llvm::DenseMap<std::pair<mlir::Value, std::pair<int64_t, int64_t>>, mlir::Value> placed;
  /// The units whose one reduction is there.
  llvm::SmallVector<bool> unitIsReduced;
};

/// Computes a replicated value on shards when only slices of it are used
/// (Localize.cpp).
void localizeSlices(mlir::func::FuncOp func);

} // namespace spmd::partition

#endif // SPMD_LIB_TRANSFORMS_PARTITION_PARTITIONER_H
