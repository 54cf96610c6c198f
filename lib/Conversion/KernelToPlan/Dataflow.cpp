//===- Dataflow.cpp - The step in values, for the certificate -------------===//
//
// Nothing here may use BufferAssignment: a value that was given the wrong bytes must not be described by them.
//
//===----------------------------------------------------------------------===//

#include "Dataflow.h"
#include "AttentionShape.h"
#include "Communicators.h"
#include "PlanKinds.h"
#include "dialects/Kernel/Kernel.h"
#include "dialects/Plan/Plan.h"
#include "dialects/Spmd/FlatLayout.h"
#include "dialects/Spmd/Roles.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace spmd;
using kernel::KernelOpInterface;

namespace {

class DataflowBuilder {
public:
  explicit DataflowBuilder(func::FuncOp step) : step(step), builder(step) {}

  void run();

private:
  void addOp(Operation *op);
  void addGemm(kernel::GemmOp gemm);
  void addKernel(KernelOpInterface kernel);
  void addCheck(kernel::CheckIndexOp check);
  void addCollective(CollectiveOpInterface op);
  void addUnpack(UnpackOp unpack);
  void addPack(PackOp pack);
  void addTargets(func::ReturnOp op);
  /// `operation` on `operands`; its results become `results`. `reads`, `byRank`: see plan.compute.
  plan::ComputeOp compute(Attribute operation, ArrayRef<Value> operands, ValueRange results, Location loc,
                          ArrayAttr reads = {}, ArrayRef<int32_t> byRank = {});

  static int64_t sizeOf(Type elementType) { return (elementType.getIntOrFloatBitWidth() + 7) / 8; }
  static int64_t bytesOf(Type type) {
    auto tensor = cast<RankedTensorType>(type);
    return tensor.getNumElements() * sizeOf(tensor.getElementType());
  }
  static Type dtypeOf(Value value) { return cast<RankedTensorType>(value.getType()).getElementType(); }
  plan::BytesType typeOf(int64_t bytes) { return plan::BytesType::get(builder.getContext(), bytes); }
  /// Bytes [at, at + bytes) of a value; all of them are the value itself.
  Value partOf(Value whole, int64_t at, int64_t bytes, StringAttr segment, StringAttr unit, Location loc) {
    if (!segment && whole.getType() == typeOf(bytes))
      return whole;
    return plan::PartOp::create(builder, loc, typeOf(bytes), whole, at, segment, unit);
  }
  SmallVector<Value> lookup(ValueRange operands) const {
    return llvm::map_to_vector(operands, [&](Value value) { return values.at(value); });
  }
  FlatAttr layoutOf(Operation *op, FlatSymbolRefAttr unit) const {
    return SymbolTable::lookupNearestSymbolFrom<ShardUnitOp>(op, unit).getLayout();
  }

  func::FuncOp step;
  OpBuilder builder;
  DenseMap<Value, Value> values; ///< of the step, in bytes
};

} // namespace

plan::ComputeOp DataflowBuilder::compute(Attribute operation, ArrayRef<Value> operands, ValueRange results,
                                         Location loc, ArrayAttr reads, ArrayRef<int32_t> byRank) {
  SmallVector<Type> types;
  for (Value result : results)
    types.push_back(typeOf(bytesOf(result.getType())));
  auto op = plan::ComputeOp::create(builder, loc, types, operation, operands, reads,
                                    byRank.empty() ? DenseI32ArrayAttr() : builder.getDenseI32ArrayAttr(byRank),
                                    /*along=*/ArrayAttr());
  for (auto [result, value] : llvm::zip_equal(results, op.getValues()))
    values[result] = value;
  return op;
}

//===----------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------===//

/// The numbers of the operands that each result of a cluster is computed from, where that is not all of all: loops that
/// share nothing may be one cluster.
static ArrayAttr findReads(kernel::ClusterOp cluster) {
  Builder builder(cluster.getContext());
  Block &body = cluster->getRegion(0).front();
  unsigned count = cluster->getNumOperands();
  DenseMap<Value, llvm::BitVector> from;
  for (BlockArgument argument : body.getArguments().take_front(count))
    from.try_emplace(argument, count).first->second.set(argument.getArgNumber());
  for (Operation &op : body.without_terminator()) {
    llvm::BitVector numbers(count);
    op.walk([&](Operation *inner) {
      for (Value operand : inner->getOperands())
        numbers |= from.lookup(operand);
    });
    for (Value result : op.getResults())
      from[result] = numbers;
  }
  bool isAll = true;
  SmallVector<Attribute> reads;
  for (Value yielded : body.getTerminator()->getOperands()) {
    llvm::BitVector numbers = from.lookup(yielded);
    isAll &= numbers.count() == count;
    reads.push_back(builder.getDenseI32ArrayAttr(llvm::to_vector_of<int32_t>(numbers.set_bits())));
  }
  return isAll ? ArrayAttr() : builder.getArrayAttr(reads);
}

static bool usesRank(AffineMap map) {
  for (unsigned symbol = 0; symbol < map.getNumSymbols(); ++symbol)
    if (map.isFunctionOfSymbol(symbol))
      return true;
  return false;
}

/// The results that are made with the coordinates of the rank, which maps have as symbols and bodies as kernel.coord.
static SmallVector<int32_t> findByRank(kernel::ClusterOp cluster) {
  Block &body = cluster->getRegion(0).front();
  DenseSet<Value> byRank;
  for (unsigned i = 0; i < cluster->getNumOperands(); ++i)
    if (usesRank(cluster.getOperandMap(i)))
      byRank.insert(body.getArgument(i));
  for (Operation &op : body.without_terminator()) {
    bool found = false;
    op.walk([&](Operation *inner) {
      found |= isa<kernel::CoordOp>(inner) ||
               llvm::any_of(inner->getOperands(), [&](Value operand) { return byRank.contains(operand); });
    });
    if (found)
      byRank.insert(op.getResults().begin(), op.getResults().end());
  }
  SmallVector<int32_t> numbers;
  for (auto [number, yielded] : llvm::enumerate(body.getTerminator()->getOperands()))
    if (byRank.contains(yielded) || usesRank(cluster.getResultMap(number)))
      numbers.push_back(static_cast<int32_t>(number));
  return numbers;
}

/// The same of any kernel; without a body to look into, or of one that is told as a whole, that is all results or none.
static SmallVector<int32_t> findByRank(Operation *kernel) {
  if (auto cluster = dyn_cast<kernel::ClusterOp>(kernel))
    return findByRank(cluster);
  auto segmented = dyn_cast<kernel::SegmentedOp>(kernel);
  bool found = segmented && usesRank(segmented.getPosition());
  kernel->walk([&](kernel::CoordOp) { found = true; });
  return found ? llvm::to_vector(llvm::seq<int32_t>(0, static_cast<int32_t>(kernel->getNumResults())))
               : SmallVector<int32_t>();
}

/// The axes of the mesh whose coordinates a kernel has in its maps or its body, if they are not all; null if they are.
static ArrayAttr findAxesOfRank(Operation *kernel, MeshOp mesh) {
  ArrayRef<Attribute> names = mesh.getAxisNames().getValue();
  llvm::SmallBitVector used(names.size());
  auto add = [&](AffineMap map) {
    for (unsigned symbol = 0; symbol < map.getNumSymbols(); ++symbol)
      if (map.isFunctionOfSymbol(symbol))
        used.set(symbol);
  };
  if (auto cluster = dyn_cast<kernel::ClusterOp>(kernel)) {
    for (unsigned i = 0; i < cluster->getNumOperands(); ++i)
      add(cluster.getOperandMap(i));
    for (unsigned i = 0; i < cluster->getNumResults(); ++i)
      add(cluster.getResultMap(i));
  } else if (auto segmented = dyn_cast<kernel::SegmentedOp>(kernel)) {
    add(segmented.getPosition());
  }
  kernel->walk([&](kernel::CoordOp op) { used.set(op.getAxis()); });
  if (used.all())
    return {};
  SmallVector<Attribute> found;
  for (unsigned axis : used.set_bits())
    found.push_back(names[axis]);
  return ArrayAttr::get(kernel->getContext(), found);
}

/// What the kernel computes.
static Attribute getOperation(KernelOpInterface kernel) {
  MLIRContext *context = kernel->getContext();
  auto symbol = FlatSymbolRefAttr::get(kernel.getSymbolAttr());
  return llvm::TypeSwitch<Operation *, Attribute>(kernel)
      .Case<kernel::AttentionOp, kernel::AttentionBackwardOp>([&](auto attention) {
        return plan::AttentionOperationAttr::get(context, symbol, getAttentionShape(attention));
      })
      .Default([&](Operation *) { return plan::KernelOperationAttr::get(context, symbol); });
}

void DataflowBuilder::addKernel(KernelOpInterface kernel) {
  Operation *op = kernel;
  auto cluster = dyn_cast<kernel::ClusterOp>(op);
  SmallVector<int32_t> byRank = findByRank(op);
  plan::ComputeOp computed = compute(getOperation(kernel), lookup(op->getOperands()), op->getResults(), op->getLoc(),
                                     cluster && op->getNumResults() > 1 ? findReads(cluster) : ArrayAttr(), byRank);
  auto meshes = step->getParentOfType<ModuleOp>().getOps<MeshOp>();
  if (!byRank.empty() && !meshes.empty())
    if (ArrayAttr along = findAxesOfRank(op, *meshes.begin()))
      computed.setAlongAttr(along);
}

void DataflowBuilder::addGemm(kernel::GemmOp gemm) {
  int64_t size = sizeOf(dtypeOf(gemm.getResult()));
  int64_t m = gemm.getM(), n = gemm.getN(), k = gemm.getK(), batch = gemm.getBatch(), ldc = gemm.getResultLd();
  int64_t strideA = gemm.getAStride(), strideB = gemm.getBStride(), strideC = batch > 1 ? m * ldc : 0;
  bool transA = gemm.getTransA(), transB = gemm.getTransB();
  // A matrix of a view is what lies between the first and the last of its elements.
  auto addMatrix = [&](Value matrix, int64_t rows, int64_t columns, int64_t offset, int64_t ld, int64_t stride) {
    int64_t elements = (rows - 1) * ld + columns + (batch - 1) * stride;
    return partOf(values.at(matrix), offset * size, elements * size, {}, {}, gemm.getLoc());
  };
  SmallVector<Value> operands = {
      addMatrix(gemm.getA(), transA ? k : m, transA ? m : k, gemm.getAOffset(), gemm.getLda(), strideA),
      addMatrix(gemm.getB(), transB ? n : k, transB ? k : n, gemm.getBOffset(), gemm.getLdb(), strideB)};
  if (gemm.getBias())
    operands.push_back(values.at(gemm.getBias()));
  if (gemm.getResidual())
    operands.push_back(values.at(gemm.getResidual()));
  if (gemm.getSavedPreActivation())
    operands.push_back(values.at(gemm.getSavedPreActivation()));
  plan::ActivationAttr activation;
  if (gemm.getActivation())
    activation = plan::ActivationAttr::get(gemm.getContext(), translateActivation(*gemm.getActivation()));
  SmallVector<Value> results = {gemm.getResult()};
  if (gemm.getPreActivation())
    results.push_back(gemm.getPreActivation());
  plan::GemmOperandAttr biasGradientOf;
  if (gemm.getBiasGradient()) {
    results.push_back(gemm.getBiasGradient());
    biasGradientOf = plan::GemmOperandAttr::get(gemm.getContext(), translateOperand(*gemm.getBiasGradientOf()));
  }
  if (batch == 1) // strides of one matrix are of no account
    strideA = strideB = 0;
  auto operation = plan::GemmOperationAttr::get(
      gemm.getContext(), dtypeOf(gemm.getResult()), m, n, k, gemm.getLda(), gemm.getLdb(), ldc, transA, transB, batch,
      strideA, strideB, strideC, static_cast<bool>(gemm.getBias()), static_cast<bool>(gemm.getResidual()), activation,
      gemm.getPreActivation() || gemm.getSavedPreActivation(), biasGradientOf);
  compute(operation, operands, results, gemm.getLoc());
}

void DataflowBuilder::addCheck(kernel::CheckIndexOp check) {
  int64_t count = cast<RankedTensorType>(check.getIds().getType()).getNumElements();
  std::optional<int64_t> ignored;
  if (auto index = check.getIgnoreIndexAttr())
    ignored = index.getInt();
  compute(plan::CheckIndexOperationAttr::get(check.getContext(), dtypeOf(check.getIds()), count, check.getLow(),
                                             check.getHigh(), ignored, check.getUseAttr()),
          {values.at(check.getIds())}, {}, check.getLoc());
}

//===----------------------------------------------------------------------===//
// Collectives and flat buffers
//===----------------------------------------------------------------------===//

void DataflowBuilder::addCollective(CollectiveOpInterface op) {
  SmallVector<plan::ReductionKind> reductions;
  for (ReduceKind kind : op.getReduceKinds())
    reductions.push_back(translateKind(kind));
  auto unit = op.getUnitAttr() ? op.getUnitAttr().getAttr() : StringAttr();
  SmallVector<StringAttr> axes;
  for (const std::string &axis : getPartialAxes(op))
    axes.push_back(builder.getStringAttr(axis));
  compute(plan::CollectiveOperationAttr::get(op->getContext(), op.getCollectiveKind(), dtypeOf(op->getOperand(0)),
                                             getElementCounts(op), reductions, unit, axes),
          lookup(op->getOperands()), getReceived(op), op.getLoc());
}

void DataflowBuilder::addUnpack(UnpackOp unpack) {
  FlatAttr layout = layoutOf(unpack, unpack.getUnitAttr());
  int64_t size = sizeOf(cast<RankedTensorType>(unpack.getFlat().getType()).getElementType());
  for (auto [value, name] : llvm::zip_equal(unpack.getValues(), unpack.getNames().getAsRange<StringAttr>()))
    values[value] = partOf(values.at(unpack.getFlat()), findSegment(layout, name).getOffset() * size,
                           bytesOf(value.getType()), name, unpack.getUnitAttr().getAttr(), unpack.getLoc());
}

void DataflowBuilder::addPack(PackOp pack) {
  FlatAttr layout = layoutOf(pack, pack.getUnitAttr());
  int64_t size = sizeOf(cast<RankedTensorType>(pack.getFlat().getType()).getElementType());
  // In the order of the buffer.
  SmallVector<std::tuple<int64_t, Value, Attribute>> parts;
  for (auto [value, name] : llvm::zip_equal(pack.getValues(), pack.getNames().getAsRange<StringAttr>()))
    parts.push_back({findSegment(layout, name).getOffset() * size, values.at(value), name});
  llvm::sort(parts, [](const auto &a, const auto &b) { return std::get<0>(a) < std::get<0>(b); });
  SmallVector<int64_t> at;
  SmallVector<Value> operands;
  SmallVector<Attribute> names;
  for (auto &[offset, value, name] : parts) {
    at.push_back(offset);
    operands.push_back(value);
    names.push_back(name);
  }
  values[pack.getFlat()] =
      plan::JoinOp::create(builder, pack.getLoc(), typeOf(bytesOf(pack.getFlat().getType())), operands, at,
                           builder.getArrayAttr(names), pack.getUnitAttr().getAttr());
}

//===----------------------------------------------------------------------===//
// The step
//===----------------------------------------------------------------------===//

void DataflowBuilder::addTargets(func::ReturnOp op) {
  for (auto [index, value] : llvm::enumerate(op.getOperands())) {
    Attribute role = getResultRole(step, index);
    if (auto update = dyn_cast<UpdateAttr>(role))
      role = update.getArg();
    plan::TargetOp::create(builder, op.getLoc(), values.at(value), role, TypeAttr::get(value.getType()));
  }
}

void DataflowBuilder::addOp(Operation *op) {
  llvm::TypeSwitch<Operation *>(op)
      .Case([&](kernel::GemmOp gemm) { addGemm(gemm); })
      .Case([&](kernel::CheckIndexOp check) { addCheck(check); })
      .Case([&](KernelOpInterface kernel) { addKernel(kernel); })
      .Case([&](UnpackOp unpack) { addUnpack(unpack); })
      .Case([&](PackOp pack) { addPack(pack); })
      .Case([&](CollectiveOpInterface collective) { addCollective(collective); })
      .Case([&](func::ReturnOp ret) { addTargets(ret); });
}

void DataflowBuilder::run() {
  auto dataflow = plan::DataflowOp::create(builder, step.getLoc(), /*iteration=*/DenseI64ArrayAttr());
  builder.setInsertionPointToStart(&dataflow.getBody().emplaceBlock());
  for (BlockArgument argument : step.getArguments())
    values[argument] = plan::SourceOp::create(builder, argument.getLoc(), typeOf(bytesOf(argument.getType())),
                                              getArgRole(step, argument.getArgNumber()), argument.getType());
  for (Operation &op : step.getBody().front())
    addOp(&op);
}

void spmd::addDataflow(func::FuncOp step) { DataflowBuilder(step).run(); }
