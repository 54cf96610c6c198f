//===- Dataflow.cpp - The step in values, for the certificate -------------===//
//
// Nothing here may use BufferAssignment: a value that was given the wrong bytes must not be described by them.
//
//===----------------------------------------------------------------------===//

#include "Communicators.h"
#include "Dataflow.h"
#include "dialects/Kernel/Kernel.h"
#include "dialects/Plan/Plan.h"
#include "dialects/Spmd/ElementType.h"
#include "dialects/Spmd/FlatLayout.h"
#include "dialects/Spmd/Roles.h"
#include "spmd/Conversion/PlanToRuntime/PlanToRuntime.h"
#include "spmd/Runtime/Core/Values.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace spmd;
using kernel::KernelOpInterface;
using runtime::Access;
using runtime::Command;

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
  /// The operation of `command` on `operands`; its results become `results`. `reads`, `byRank`: see plan.compute.
  plan::ComputeOp compute(const Command &command, ArrayRef<Value> operands, ValueRange results, Location loc,
                          ArrayAttr reads = {}, ArrayRef<int32_t> byRank = {},
                          const std::vector<std::string> &axes = {});

  static int64_t sizeOf(Type elementType) { return (elementType.getIntOrFloatBitWidth() + 7) / 8; }
  static int64_t bytesOf(Type type) {
    auto tensor = cast<RankedTensorType>(type);
    return tensor.getNumElements() * sizeOf(tensor.getElementType());
  }
  /// A type that the runtime does not have is refused when it reads the plan.
  static runtime::DType dtypeOf(Value value) {
    Type type = cast<RankedTensorType>(value.getType()).getElementType();
    return getDType(type).value_or(runtime::DType::F32);
  }
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

plan::ComputeOp DataflowBuilder::compute(const Command &command, ArrayRef<Value> operands, ValueRange results,
                                         Location loc, ArrayAttr reads, ArrayRef<int32_t> byRank,
                                         const std::vector<std::string> &axes) {
  SmallVector<Type> types;
  for (Value result : results)
    types.push_back(typeOf(bytesOf(result.getType())));
  auto op = plan::ComputeOp::create(builder, loc, types, runtime::operationOf(command, axes), operands, reads,
                                    byRank.empty() ? DenseI32ArrayAttr() : builder.getDenseI32ArrayAttr(byRank),
                                    /*along=*/ArrayAttr());
  for (auto [result, value] : llvm::zip_equal(results, op.getValues()))
    values[result] = value;
  return op;
}

//===----------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------===//

/// References with these accesses: an operation is told by how many operands it reads and writes, in which order.
static std::vector<runtime::Ref> makeRefs(size_t reads, size_t writes) {
  std::vector<runtime::Ref> refs(reads + writes);
  for (size_t i = reads; i < refs.size(); ++i)
    refs[i].access = Access::Write;
  return refs;
}

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

void DataflowBuilder::addKernel(KernelOpInterface kernel) {
  Operation *op = kernel;
  Command command;
  command.action = runtime::KernelCommand{kernel.getSymbolAttr().getValue().str()};
  command.refs = makeRefs(op->getNumOperands(), op->getNumResults());
  auto cluster = dyn_cast<kernel::ClusterOp>(op);
  SmallVector<int32_t> byRank = findByRank(op);
  plan::ComputeOp computed =
      compute(command, lookup(op->getOperands()), op->getResults(), op->getLoc(),
              cluster && op->getNumResults() > 1 ? findReads(cluster) : ArrayAttr(), byRank);
  auto meshes = step->getParentOfType<ModuleOp>().getOps<MeshOp>();
  if (!byRank.empty() && !meshes.empty())
    if (ArrayAttr along = findAxesOfRank(op, *meshes.begin()))
      computed.setAlongAttr(along);
}

static runtime::Activation activationOf(kernel::Activation activation) {
  switch (activation) {
#define SPMD_ACTIVATION(NAME, TEXT)                                                                                    \
  case kernel::Activation::NAME:                                                                                       \
    return runtime::Activation::NAME;
#include "spmd/Runtime/Core/Kinds.def"
  }
  llvm_unreachable("unknown activation");
}

void DataflowBuilder::addGemm(kernel::GemmOp gemm) {
  Type type = cast<RankedTensorType>(gemm.getResult().getType()).getElementType();
  int64_t size = sizeOf(type);
  runtime::GemmShape shape;
  shape.m = gemm.getM(), shape.n = gemm.getN(), shape.k = gemm.getK(), shape.batch = gemm.getBatch();
  shape.lda = gemm.getLda(), shape.ldb = gemm.getLdb(), shape.ldc = shape.n;
  shape.transA = gemm.getTransA(), shape.transB = gemm.getTransB();
  shape.strideA = gemm.getAStride(), shape.strideB = gemm.getBStride();
  shape.strideC = shape.batch > 1 ? shape.m * shape.n : 0;
  // A matrix of a view is what lies between the first and the last of its elements.
  auto addMatrix = [&](Value matrix, int64_t rows, int64_t columns, int64_t offset, int64_t ld, int64_t stride) {
    int64_t elements = (rows - 1) * ld + columns + (shape.batch - 1) * stride;
    return partOf(values.at(matrix), offset * size, elements * size, {}, {}, gemm.getLoc());
  };
  SmallVector<Value> operands = {
      addMatrix(gemm.getA(), shape.transA ? shape.k : shape.m, shape.transA ? shape.m : shape.k, gemm.getAOffset(),
                shape.lda, shape.strideA),
      addMatrix(gemm.getB(), shape.transB ? shape.n : shape.k, shape.transB ? shape.k : shape.n, gemm.getBOffset(),
                shape.ldb, shape.strideB)};
  if (gemm.getBias()) {
    shape.bias = operands.size();
    operands.push_back(values.at(gemm.getBias()));
  }
  if (gemm.getResidual()) {
    shape.residual = operands.size();
    operands.push_back(values.at(gemm.getResidual()));
  }
  if (gemm.getActivation())
    shape.activation = activationOf(*gemm.getActivation());
  SmallVector<Value> results = {gemm.getResult()};
  if (gemm.getPreActivation()) {
    shape.preActivation = operands.size();
    results.push_back(gemm.getPreActivation());
  }
  Command command;
  command.action = runtime::GemmCommand{shape, dtypeOf(gemm.getResult())};
  compute(command, operands, results, gemm.getLoc());
}

void DataflowBuilder::addCheck(kernel::CheckIndexOp check) {
  auto ids = cast<RankedTensorType>(check.getIds().getType());
  runtime::CheckIndexCommand checked;
  checked.dtype = dtypeOf(check.getIds());
  checked.count = ids.getNumElements();
  checked.low = check.getLow(), checked.high = check.getHigh();
  if (auto ignored = check.getIgnoreIndexAttr())
    checked.ignoreIndex = ignored.getInt();
  checked.use = check.getUse().str();
  Command command;
  command.action = std::move(checked);
  compute(command, {values.at(check.getIds())}, {}, check.getLoc());
}

//===----------------------------------------------------------------------===//
// Collectives and flat buffers
//===----------------------------------------------------------------------===//

static runtime::ReductionKind kindOf(ReduceKind kind) {
  switch (kind) {
#define SPMD_REDUCTION_KIND(NAME, TEXT)                                                                                \
  case ReduceKind::TEXT:                                                                                               \
    return runtime::ReductionKind::NAME;
#include "spmd/Runtime/Core/Kinds.def"
  }
  llvm_unreachable("unknown reduction");
}

void DataflowBuilder::addCollective(CollectiveOpInterface op) {
  runtime::CollectiveCommand collective;
  if (auto unit = op.getUnitAttr())
    collective.unit = unit.getValue().str();
  collective.kind = op.getCollectiveKind();
  for (int64_t count : getElementCounts(op))
    collective.counts.push_back(count);
  for (ReduceKind kind : op.getReduceKinds())
    collective.kinds.push_back(kindOf(kind));
  collective.dtype = dtypeOf(op->getOperand(0));
  Command command;
  command.action = std::move(collective);
  compute(command, lookup(op->getOperands()), getReceived(op), op.getLoc(), {}, {}, getPartialAxes(op));
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
  auto dataflow = plan::DataflowOp::create(builder, step.getLoc());
  builder.setInsertionPointToStart(&dataflow.getBody().emplaceBlock());
  for (BlockArgument argument : step.getArguments())
    values[argument] = plan::SourceOp::create(builder, argument.getLoc(), typeOf(bytesOf(argument.getType())),
                                              getArgRole(step, argument.getArgNumber()), argument.getType());
  for (Operation &op : step.getBody().front())
    addOp(&op);
}

void spmd::addDataflow(func::FuncOp step) { DataflowBuilder(step).run(); }
