//===- Lockstep.cpp - all ranks execute op k, then op k + 1 ---------------===//

#include "Lockstep.h"
#include "Collectives.h"
#include "dialects/Aten/AtenInterfaces.h"
#include "dialects/Spmd/Source.h"
#include "dialects/Spmd/Spmd.h"

using namespace mlir;

namespace spmd::interp {

Lockstep::Lockstep(func::FuncOp function, const Mesh &mesh, Options options)
    : function(function), mesh(mesh), options(options) {
  for (int64_t rank = 0, e = mesh.numRanks(); rank < e; ++rank)
    contexts.push_back({rank, mesh.coordinates(rank)});
}

LogicalResult Lockstep::checkSupported() {
  if (!llvm::hasSingleElement(function.getBody())) {
    function.emitError() << "only functions of one block can be run";
    return fail(Failure::input);
  }
  for (Operation &op : function.getBody().front()) {
    if (isa<CollectiveOpInterface, WaitOp, ReleaseOp, func::ReturnOp>(op) || findEvaluator(&op))
      continue;
    InFlightDiagnostic diag = op.emitError() << "the interpreter has no evaluator of '" << op.getName() << "'";
    std::string source = describeSource(op.getLoc());
    if (!source.empty())
      diag << " (" << source << ")";
    return fail(Failure::input);
  }
  return success();
}

FailureOr<SmallVector<PerRank>> Lockstep::run(ArrayRef<PerRank> arguments) {
  values.clear();
  pending.clear();
  remainingUses.clear();
  stats = {};
  Block &block = function.getBody().front();
  for (BlockArgument argument : block.getArguments())
    if (failed(define(argument, arguments[argument.getArgNumber()])))
      return failure();
  for (Operation &op : block.without_terminator())
    if (failed(execute(op)))
      return failure();
  return takeOperands(*block.getTerminator());
}

/// Operand values; those with no use left are forgotten.
Lockstep::Operands Lockstep::takeOperands(Operation &op) {
  Operands operands;
  for (Value value : op.getOperands())
    operands.push_back(values.lookup(value));
  for (Value value : op.getOperands())
    if (--remainingUses[value] == 0)
      values.erase(value);
  return operands;
}

LogicalResult Lockstep::execute(Operation &op) {
  if (auto wait = dyn_cast<WaitOp>(op)) {
    auto started = pending.find(wait.getHandle());
    if (started == pending.end()) {
      op.emitError() << "the collective was waited for before";
      return fail(Failure::wrong);
    }
    SmallVector<PerRank> results = std::move(started->second);
    pending.erase(started);
    for (auto [value, tensors] : llvm::zip_equal(wait.getResults(), results))
      if (failed(define(value, std::move(tensors))))
        return failure();
    return success();
  }
  if (auto release = dyn_cast<ReleaseOp>(op)) {
    // Forgotten at once: a later use would find nothing.
    Value value = release.getValue();
    if (remainingUses.lookup(value) != 1) {
      op.emitError() << "the released value is used below";
      return fail(Failure::wrong);
    }
    takeOperands(op);
    return success();
  }
  Operands operands = takeOperands(op);
  if (auto collective = dyn_cast<CollectiveOpInterface>(op)) {
    CollectiveCount &count = stats.collectives[collective.getCollectiveName().str()];
    ++count.calls;
    count.bytes += collective.getSentBytes();
    FailureOr<SmallVector<PerRank>> received = runCollective(collective, operands, mesh, options.precision);
    if (failed(received))
      return failure();
    if (op.getNumResults() == 1 && isa<HandleType>(op.getResult(0).getType())) {
      pending[op.getResult(0)] = std::move(*received);
      return success();
    }
    for (auto [value, tensors] : llvm::zip_equal(op.getResults(), *received))
      if (failed(define(value, std::move(tensors))))
        return failure();
    return success();
  }
  return executeOnEachRank(op, operands);
}

LogicalResult Lockstep::executeOnEachRank(Operation &op, const Operands &operands) {
  Evaluator evaluator = findEvaluator(&op);
  auto [names, isNew] = groups.try_emplace(op.getName());
  if (isNew)
    names->second = getOperandGroups(&op);
  countFlops(op, operands);
  SmallVector<PerRank> results(op.getNumResults());
  for (const RankContext &context : contexts) {
    SmallVector<Tensor> mine;
    for (const PerRank &operand : operands)
      mine.push_back(operand[context.rank]);
    OpCall call(&op, names->second, mine, context);
    if (failed(evaluator(call)))
      return fail(Failure::running);
    if (call.results.size() != op.getNumResults()) {
      op.emitError() << "its definition gives " << call.results.size() << " results, the op has " << op.getNumResults();
      return fail(Failure::wrong);
    }
    for (auto [list, result] : llvm::zip_equal(results, call.results))
      list.push_back(std::move(result));
  }
  for (auto [value, tensors] : llvm::zip_equal(op.getResults(), results))
    if (failed(define(value, std::move(tensors))))
      return failure();
  return success();
}

/// Rounds, checks and keeps a value that all ranks have computed.
LogicalResult Lockstep::define(Value value, PerRank tensors) {
  auto type = cast<RankedTensorType>(value.getType());
  std::optional<DType> dtype = getDType(type.getElementType());
  for (Tensor &tensor : tensors) {
    if (tensor.dtype() != dtype || tensor.shape() != type.getShape()) {
      InFlightDiagnostic diag = mlir::emitError(value.getLoc());
      diag << "a value of type " << type << " is computed as tensor<";
      for (int64_t size : tensor.shape())
        diag << size << "x";
      diag << toString(tensor.dtype()) << ">";
      if (Operation *op = value.getDefiningOp())
        diag << " by its definition, " << op->getName();
      return fail(Failure::wrong);
    }
    if (options.precision == Precision::program)
      tensor = tensor.rounded();
  }
  if (failed(checkReplicas(value, tensors)))
    return fail(Failure::wrong);
  unsigned uses = std::distance(value.use_begin(), value.use_end());
  if (uses != 0) {
    remainingUses[value] = uses;
    values[value] = std::move(tensors);
  }
  return success();
}

/// Ranks that differ only in axes on which the value is replicated have the same
/// bits.
LogicalResult Lockstep::checkReplicas(Value value, const PerRank &tensors) {
  auto sharding = dyn_cast_or_null<ShardingAttr>(cast<RankedTensorType>(value.getType()).getEncoding());
  if (!sharding)
    return success();
  if (sharding.getStates().size() > mesh.numDataAxes()) {
    mlir::emitError(value.getLoc()) << "the type " << value.getType() << " has states for "
                                    << sharding.getStates().size() << " mesh axes, the mesh has " << mesh.numDataAxes();
    return failure();
  }
  for (auto [axis, state] : llvm::enumerate(sharding.getStates())) {
    if (!state.isReplicated())
      continue;
    for (ArrayRef<int64_t> group : mesh.groupsOfState(axis, sharding.getStates().size()))
      for (int64_t rank : group.drop_front())
        if (!tensors[group[0]].identical(tensors[rank])) {
          InFlightDiagnostic diag = mlir::emitError(value.getLoc())
                                    << "a replicated value differs on ranks " << group[0] << " and " << rank;
          if (Operation *op = value.getDefiningOp())
            diag << ": a result of " << op->getName();
          return failure();
        }
  }
  return success();
}

void Lockstep::countFlops(Operation &op, const Operands &operands) {
  auto product = dyn_cast<aten::CostOpInterface>(op);
  if (!product || !product.isMatrixProduct())
    return;
  double flops = product.getFlops() * mesh.numRanks();
  stats.matmulFlops += flops;
  bool replicated = mesh.numRanks() > 1 && llvm::all_of(operands, [](const PerRank &tensors) {
                      return llvm::all_of(tensors, [&](const Tensor &tensor) { return tensor.identical(tensors[0]); });
                    });
  if (replicated)
    stats.replicatedMatmulFlops += flops;
}

} // namespace spmd::interp
