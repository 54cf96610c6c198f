//===- CommandEmitter.cpp - One command per op, with waits ----------------===//
//
// [Note: gates] A collective's stream waits, before it starts, for the last command that the compute stream was given
// before it. Its operands are then there, and the bytes of every buffer that was dead at this point of the block are
// free for what it receives, whatever the speed of either stream. The compute stream waits for it at the `spmd.wait`.
//
//===----------------------------------------------------------------------===//

#include "CommandEmitter.h"
#include "AttentionShape.h"
#include "Communicators.h"
#include "PlanKinds.h"
#include "RowLayout.h"
#include "dialects/Kernel/Kernel.h"
#include "dialects/Spmd/Roles.h"
#include "mlir/IR/TypeUtilities.h"
#include <map>

using namespace mlir;
using namespace spmd;
using kernel::KernelOpInterface;
using plan::Access;
using plan::RefAttr;

namespace {

constexpr plan::Stream kCompute = plan::Stream::compute;

plan::Stream translateStream(Stream stream) {
  switch (stream) {
  case Stream::gather:
    return plan::Stream::gather;
  case Stream::reduce:
    return plan::Stream::reduce;
  case Stream::scalar:
    return plan::Stream::scalar;
  }
  llvm_unreachable("unknown stream");
}

class CommandEmitter {
public:
  CommandEmitter(func::FuncOp step, const BufferAssignment &assignment, plan::ProgramOp program)
      : step(step), assignment(assignment), program(program),
        builder(OpBuilder::atBlockEnd(&program.getBody().front())) {}

  LogicalResult run();

private:
  void emitBuffers();
  void emitBindings();
  LogicalResult emitOp(Operation *op);
  void emitKernel(KernelOpInterface kernel);
  void emitAttention(kernel::AttentionOp attention);
  void emitAttentionBackward(kernel::AttentionBackwardOp attention);
  void emitGemm(kernel::GemmOp gemm);
  void emitPack(PackOp pack);
  /// Emits the collective on its stream, and returns its event.
  FailureOr<Value> emitCollective(CollectiveOpInterface collective);
  LogicalResult checkFlat(RowCollectiveOpInterface op);
  /// What is sent and what is received.
  SmallVector<RefAttr> getBuffers(CollectiveOpInterface collective);
  /// The buffers that are reduced in place; what is still read is copied there first.
  FailureOr<SmallVector<RefAttr>> prepareBuffers(CollectiveOpInterface collective);

  /// Creates a command and returns its event.
  template <typename Command, typename... Args>
  Value create(Location loc, Args &&...args) {
    return Command::create(builder, loc, plan::EventType::get(builder.getContext()), std::forward<Args>(args)...)
        .getEvent();
  }
  RefAttr getRef(Slot slot, Access access) {
    auto name = FlatSymbolRefAttr::get(builder.getContext(), ("b" + Twine(slot.buffer)).str());
    return RefAttr::get(builder.getContext(), name, slot.offset, {}, slot.bytes, access);
  }
  ArrayAttr readRefs(ValueRange values) {
    return builder.getArrayAttr(llvm::map_to_vector(values, [&](Value value) -> Attribute { return readRef(value); }));
  }
  RefAttr readRef(Value value) { return getRef(assignment.getSlot(value), Access::Read); }
  /// A range that a command is about to write; the padding of a packed buffer is filled before its first value.
  RefAttr writeRef(Slot slot, Location loc);
  void emitCopy(Slot from, Slot to, Location loc, const Twine &what);
  void waitFor(Value event, plan::Stream stream, Location loc) {
    Value done = create<plan::WaitOp>(loc, event, stream);
    if (stream == kCompute)
      lastCompute = done;
  }
  /// Lets `stream` wait for all that the compute stream has been given; see [Note: gates].
  void gate(plan::Stream stream, Location loc) {
    if (lastCompute && gates[stream] != lastCompute)
      waitFor(gates[stream] = lastCompute, stream, loc);
  }

  func::FuncOp step;
  const BufferAssignment &assignment;
  plan::ProgramOp program;
  OpBuilder builder;
  Value lastCompute;
  std::map<plan::Stream, Value> gates;
  DenseMap<Value, Value> events; ///< of started collectives, by handle
  DenseSet<unsigned> filled;     ///< packed buffers whose padding is written
};

} // namespace

void CommandEmitter::emitBuffers() {
  for (auto [id, info] : llvm::enumerate(assignment.getBuffers()))
    plan::BufferOp::create(builder, info.loc, ("b" + Twine(id)).str(), info.bufferClass, /*offset=*/0, info.bytes,
                           info.alignment ? builder.getI64IntegerAttr(info.alignment) : IntegerAttr(), info.isState,
                           info.label);
}

void CommandEmitter::emitBindings() {
  for (BlockArgument argument : step.getArguments()) {
    unsigned index = argument.getArgNumber();
    plan::InputOp::create(builder, argument.getLoc(), readRef(argument), getArgRole(step, index),
                          TypeAttr::get(argument.getType()), step.getArgAttr(index, kLayoutAttr),
                          step.getArgAttrOfType<IntegerAttr>(index, kIndexBoundAttr),
                          step.getArgAttrOfType<IntegerAttr>(index, kIgnoreIndexAttr));
  }
  for (auto [index, type] : llvm::enumerate(step.getResultTypes()))
    if (Attribute role = getResultRole(step, index); !isa<UpdateAttr>(role))
      plan::OutputOp::create(builder, step.getLoc(), getRef(assignment.getResultSlot(index), Access::Read), role,
                             TypeAttr::get(type), step.getResultAttr(index, kLayoutAttr));
}

RefAttr CommandEmitter::writeRef(Slot slot, Location loc) {
  if (filled.insert(slot.buffer).second)
    for (const Slot &gap : assignment.getBuffers()[slot.buffer].gaps)
      lastCompute = create<plan::FillOp>(loc, getRef(gap, Access::Write), 0, kCompute);
  return getRef(slot, Access::Write);
}

void CommandEmitter::emitCopy(Slot from, Slot to, Location loc, const Twine &what) {
  if (from == to)
    return;
  RefAttr target = writeRef(to, loc);
  lastCompute = create<plan::CopyOp>(loc, getRef(from, Access::Read), target, kCompute);
  emitRemark(loc) << what << " is copied: " << to.bytes << " bytes";
}

//===----------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------===//

void CommandEmitter::emitKernel(KernelOpInterface kernel) {
  Operation *op = kernel;
  SmallVector<Attribute> args;
  for (Value operand : op->getOperands())
    args.push_back(readRef(operand));
  for (Value value : op->getResults())
    args.push_back(writeRef(assignment.getSlot(value), op->getLoc()));
  lastCompute = create<plan::KernelOp>(op->getLoc(), kernel.getSymbolAttr().getValue(), builder.getArrayAttr(args),
                                       kernel.getParallelIterations(), kernel.getGrain(), kCompute);
}

void CommandEmitter::emitAttention(kernel::AttentionOp attention) {
  Location loc = attention.getLoc();
  ValueRange maskInputs = attention.getMaskInputs();
  lastCompute = create<plan::AttentionOp>(
      loc, *attention.getSymbol(), getAttentionShape(attention), readRef(attention.getQ()), readRef(attention.getK()),
      readRef(attention.getV()), maskInputs.empty() ? ArrayAttr() : readRefs(maskInputs),
      writeRef(assignment.getSlot(attention.getOut()), loc), writeRef(assignment.getSlot(attention.getLse()), loc),
      attention.getParallelIterations(), attention.getGrain(), /*library=*/StringAttr(), /*library_plan=*/StringAttr(),
      kCompute);
}

void CommandEmitter::emitAttentionBackward(kernel::AttentionBackwardOp attention) {
  Location loc = attention.getLoc();
  ValueRange maskInputs = attention.getMaskInputs();
  SmallVector<Attribute> gradients;
  for (Value gradient : attention.getGrads())
    gradients.push_back(writeRef(assignment.getSlot(gradient), loc));
  RefAttr maskGradient;
  if (attention.getMaskGrad())
    maskGradient = writeRef(assignment.getSlot(attention.getMaskGrad()), loc);
  lastCompute = create<plan::AttentionBackwardOp>(
      loc, *attention.getSymbol(), getAttentionShape(attention), readRef(attention.getDout()),
      readRef(attention.getQ()), readRef(attention.getK()), readRef(attention.getV()),
      maskInputs.empty() ? ArrayAttr() : readRefs(maskInputs), readRef(attention.getOut()), readRef(attention.getLse()),
      builder.getArrayAttr(gradients), maskGradient, attention.getParallelIterations(), attention.getGrain(),
      /*library=*/StringAttr(), /*library_plan=*/StringAttr(), kCompute);
}

void CommandEmitter::emitGemm(kernel::GemmOp gemm) {
  Location loc = gemm.getLoc();
  Type type = cast<RankedTensorType>(gemm.getResult().getType()).getElementType();
  int64_t elementBytes = getElementBytes(type);
  int64_t m = gemm.getM(), n = gemm.getN(), k = gemm.getK(), batch = gemm.getBatch(), ldc = gemm.getResultLd();
  // The bytes from the first to the last element that the matrices of a view touch.
  auto viewRef = [&](Value matrix, int64_t rows, int64_t columns, int64_t offset, int64_t ld, int64_t stride) {
    int64_t elements = (rows - 1) * ld + columns + (batch - 1) * stride;
    Slot slot = assignment.getSlot(matrix);
    return getRef({slot.buffer, slot.offset + offset * elementBytes, elements * elementBytes}, Access::Read);
  };
  bool transA = gemm.getTransA(), transB = gemm.getTransB();
  RefAttr a = viewRef(gemm.getA(), transA ? k : m, transA ? m : k, gemm.getAOffset(), gemm.getLda(), gemm.getAStride());
  RefAttr b = viewRef(gemm.getB(), transB ? n : k, transB ? k : n, gemm.getBOffset(), gemm.getLdb(), gemm.getBStride());
  Slot target = assignment.getSlot(gemm.getResult());
  RefAttr c = writeRef(target, loc), bias, residual, preActivation, biasGradient;
  plan::ActivationAttr activation;
  bool accumulate = gemm.getResidual() && assignment.getSlot(gemm.getResidual()) == target;
  if (accumulate)
    c = getRef(target, Access::ReadWrite);
  else if (gemm.getResidual())
    residual = readRef(gemm.getResidual());
  if (gemm.getBias())
    bias = readRef(gemm.getBias());
  if (gemm.getActivation())
    activation = plan::ActivationAttr::get(builder.getContext(), translateActivation(*gemm.getActivation()));
  if (gemm.getPreActivation())
    preActivation = writeRef(assignment.getSlot(gemm.getPreActivation()), loc);
  else if (gemm.getSavedPreActivation())
    preActivation = readRef(gemm.getSavedPreActivation());
  plan::GemmOperandAttr biasGradientOf;
  if (gemm.getBiasGradient()) {
    biasGradientOf = plan::GemmOperandAttr::get(builder.getContext(), translateOperand(*gemm.getBiasGradientOf()));
    biasGradient = writeRef(assignment.getSlot(gemm.getBiasGradient()), loc);
  }
  RefAttr workspace;
  if (std::optional<Slot> slot = assignment.getWorkspace(gemm))
    workspace = writeRef(*slot, loc);
  lastCompute = create<plan::GemmOp>(loc, a, b, c, m, n, k, gemm.getLda(), gemm.getLdb(), ldc, transA, transB,
                                     llvm::APFloat(accumulate ? 1.0 : 0.0), batch, gemm.getAStride(), gemm.getBStride(),
                                     /*stride_c=*/batch > 1 ? m * ldc : 0, type, bias, residual, activation,
                                     preActivation, biasGradientOf, biasGradient, workspace, kCompute);
}

void CommandEmitter::emitPack(PackOp pack) {
  auto unit = SymbolTable::lookupNearestSymbolFrom<ShardUnitOp>(pack, pack.getUnitAttr());
  Slot flat = assignment.getSlot(pack.getFlat());
  writeRef(flat, pack.getLoc()); // a pack of nothing is all padding
  for (auto [value, name] : llvm::zip_equal(pack.getValues(), pack.getNames().getAsValueRange<StringAttr>()))
    emitCopy(assignment.getSlot(value), BufferAssignment::getSegmentSlot(flat, unit.getLayout(), name), pack.getLoc(),
             "the gradient of " + name);
}

//===----------------------------------------------------------------------===//
// Collectives
//===----------------------------------------------------------------------===//

/// A collective moves contiguous chunks: rows of the outermost dim that has more than one element, and all of them.
LogicalResult CommandEmitter::checkFlat(RowCollectiveOpInterface op) {
  RowLayout layout(op);
  if (layout.isFlat())
    return success();
  return op->emitOpError("is not flat (dim ")
         << op.getDim() << ", pre " << op.getPre() << ", " << layout.total << " rows in chunks of " << layout.chunk
         << " over " << layout.ranks << " ranks); run spmd-flatten-collectives before the plan";
}

SmallVector<RefAttr> CommandEmitter::getBuffers(CollectiveOpInterface collective) {
  Slot received = assignment.getSlot(getReceived(collective).front());
  return {readRef(collective->getOperand(0)), writeRef(received, collective.getLoc())};
}

FailureOr<SmallVector<RefAttr>> CommandEmitter::prepareBuffers(CollectiveOpInterface collective) {
  SmallVector<RefAttr> refs;
  Type elementType;
  for (OpOperand &operand : collective->getOpOperands()) {
    Type type = getElementTypeOrSelf(operand.get());
    if (elementType && type != elementType)
      return collective->emitOpError("reduces ") << elementType << " and " << type << " in one message";
    elementType = type;
    Slot slot = assignment.getReducedSlot(operand);
    emitCopy(assignment.getSlot(operand.get()), slot, collective.getLoc(),
             "a value that is all-reduced and still read");
    refs.push_back(getRef(slot, Access::ReadWrite));
  }
  return refs;
}

FailureOr<Value> CommandEmitter::emitCollective(CollectiveOpInterface collective) {
  if (auto rows = dyn_cast<RowCollectiveOpInterface>(collective.getOperation()); rows && failed(checkFlat(rows)))
    return failure();
  CollectiveKind kind = collective.getCollectiveKind();
  FailureOr<SmallVector<RefAttr>> refs = isInPlace(kind) ? prepareBuffers(collective) : getBuffers(collective);
  if (failed(refs))
    return failure();
  Location loc = collective.getLoc();
  plan::Stream stream = translateStream(collective.getStreamKind());
  gate(stream, loc);
  return plan::createCollective(
      builder, loc, kind, *refs, getElementCounts(collective),
      llvm::map_to_vector(collective.getReduceKinds(), translateKind), getElementTypeOrSelf(collective->getOperand(0)),
      collective.getUnitAttr() ? collective.getUnitAttr().getValue() : "", getCommunicatorName(collective), stream);
}

//===----------------------------------------------------------------------===//
// The step
//===----------------------------------------------------------------------===//

LogicalResult CommandEmitter::emitOp(Operation *op) {
  Location loc = op->getLoc();
  if (auto check = dyn_cast<kernel::CheckIndexOp>(op)) {
    auto ids = cast<RankedTensorType>(check.getIds().getType());
    lastCompute = create<plan::CheckIndexOp>(loc, readRef(check.getIds()), ids.getNumElements(), ids.getElementType(),
                                             check.getLow(), check.getHigh(), check.getIgnoreIndexAttr(),
                                             check.getUse(), kCompute);
  } else if (auto gemm = dyn_cast<kernel::GemmOp>(op)) {
    emitGemm(gemm);
  } else if (auto attention = dyn_cast<kernel::AttentionOp>(op)) {
    emitAttention(attention);
  } else if (auto attention = dyn_cast<kernel::AttentionBackwardOp>(op)) {
    emitAttentionBackward(attention);
  } else if (auto kernel = dyn_cast<KernelOpInterface>(op)) {
    emitKernel(kernel);
  } else if (auto collective = dyn_cast<CollectiveOpInterface>(op)) {
    bool isStart = collective.isStart();
    if (isStart && !op->hasOneUse())
      return op->emitOpError("must have exactly one wait");
    FailureOr<Value> event = emitCollective(collective);
    if (failed(event))
      return failure();
    if (isStart)
      events[op->getResult(0)] = *event;
    else
      waitFor(*event, kCompute, loc);
  } else if (auto wait = dyn_cast<WaitOp>(op)) {
    waitFor(events.at(wait.getHandle()), kCompute, loc);
  } else if (auto pack = dyn_cast<PackOp>(op)) {
    emitPack(pack);
  } else if (isa<func::ReturnOp>(op)) {
    for (const ResultCopy &copy : assignment.getResultCopies())
      emitCopy(copy.from, copy.to, copy.loc, copy.what);
  }
  return success();
}

LogicalResult CommandEmitter::run() {
  emitBuffers();
  emitBindings();
  for (Operation &op : step.getBody().front())
    if (failed(emitOp(&op)))
      return failure();
  return success();
}

LogicalResult spmd::emitCommands(func::FuncOp step, const BufferAssignment &assignment, plan::ProgramOp program) {
  return CommandEmitter(step, assignment, program).run();
}
