//===- BufferAssignment.cpp - Which bytes hold which value ----------------===//
//
// [Note: assignment] Two walks. The first goes backward over the packs: the flat buffer's segments are given to the
// kernels that produce their values, and on to operands that those kernels may overwrite, so that an accumulated
// gradient is accumulated in place. The second goes forward and gives every other value its bytes: the argument that it
// updates, else an operand that is dead and may be overwritten, else a buffer of its own. Whatever this leaves apart
// that must be together is copied by the command emitter; being apart is always correct.
//
//===----------------------------------------------------------------------===//

#include "BufferAssignment.h"
#include "Liveness.h"
#include "dialects/Kernel/Kernel.h"
#include "dialects/Spmd/FlatLayout.h"
#include "dialects/Spmd/ResultSource.h"
#include "dialects/Spmd/Roles.h"
#include "dialects/Spmd/Source.h"
#include "llvm/ADT/TypeSwitch.h"

using namespace mlir;
using namespace spmd;
using kernel::KernelOpInterface;
using plan::BufferClass;

/// What libraries want theirs to begin at: as much as an allocation of CUDA's has.
static constexpr int64_t kWorkspaceAlignment = 256;

int64_t spmd::getBytes(Type tensorType) { return getTensorBytes(cast<RankedTensorType>(tensorType)); }

Slot BufferAssignment::getSegmentSlot(Slot flat, FlatAttr layout, StringRef name) {
  SegmentAttr segment = findSegment(layout, name);
  // A mask of the parameters' elements is flat, too: the dtype is the buffer's, not the unit's.
  int64_t elementBytes = flat.bytes / static_cast<int64_t>(layout.getPadded());
  return {flat.buffer, flat.offset + segment.getOffset() * elementBytes, segment.getNumel() * elementBytes};
}

namespace spmd {

class Assigner {
public:
  Assigner(func::FuncOp step, int64_t gemmWorkspace, BufferAssignment &result)
      : step(step), block(step.getBody().front()), gemmWorkspace(gemmWorkspace), liveness(block), result(result) {}

  LogicalResult run();

private:
  void assignArguments();
  void assignPacks();
  void assignUpward(Operation *op);
  LogicalResult assignOp(Operation *op);
  LogicalResult assignKernel(Operation *op);
  void assignReceived(CollectiveOpInterface op, ValueRange received);
  void assignInPlace(Operation *op, ValueRange outputs);
  void assignWorkspace(kernel::GemmOp gemm);
  void assignResults();
  void addUpdates(SmallVector<ResultCopy> updates);

  void assign(Value value, Slot slot) {
    result.slots[value] = slot;
    valuesIn[slot.buffer].push_back(value);
  }
  bool isAssigned(Value value) const { return result.slots.count(value); }
  Slot addBuffer(BufferClass bufferClass, int64_t bytes, Location loc, const Twine &label);
  /// The op that `value` comes from, by name.
  std::string getLabel(Value value) const;
  /// A buffer of its own for `value`; named after the op it comes from.
  Slot addBuffer(BufferClass bufferClass, Value value);

  /// True if nothing reads any value of the buffer at or after `op`, but for `op` itself.
  bool isDeadAfter(unsigned buffer, Operation *op) const {
    return llvm::all_of(valuesIn[buffer], [&](Value value) { return liveness.isDeadAfter(value, op); });
  }
  /// True if the kernel may write result number `index` to `slot` while it reads its operands.
  bool mayWrite(KernelOpInterface kernel, unsigned index, Slot slot) const;
  /// The slot of the argument that `value` is the new value of, if the old one is dead by then.
  std::optional<Slot> findUpdatedSlot(KernelOpInterface kernel, unsigned index) const;
  /// The slot of an operand that result number `index` may overwrite; the oldest one, so that what a loop adds to stays
  /// where it is.
  std::optional<Slot> findDeadOperand(KernelOpInterface kernel, unsigned index) const;

  ShardUnitOp getUnit(Operation *op, FlatSymbolRefAttr name) const {
    return SymbolTable::lookupNearestSymbolFrom<ShardUnitOp>(op, name);
  }

  func::FuncOp step;
  Block &block;
  int64_t gemmWorkspace;
  Liveness liveness;
  BufferAssignment &result;
  /// The values that lie, wholly or partly, in each buffer.
  SmallVector<SmallVector<Value>> valuesIn;
};

} // namespace spmd

Slot Assigner::addBuffer(BufferClass bufferClass, int64_t bytes, Location loc, const Twine &label) {
  unsigned id = result.buffers.size();
  result.buffers.push_back({bufferClass, bytes, loc, label.str(), false, false, {}, 0});
  valuesIn.emplace_back();
  return {id, 0, bytes};
}

Slot Assigner::addBuffer(BufferClass bufferClass, Value value) {
  auto [op, loc] = getResultSource(cast<OpResult>(value));
  return addBuffer(bufferClass, getBytes(value.getType()), loc, getLabel(value));
}

std::string Assigner::getLabel(Value value) const {
  auto [op, loc] = getResultSource(cast<OpResult>(value));
  StringRef path = getModulePath(loc);
  return ((path.empty() ? "" : path + " ") + op).str();
}

//===----------------------------------------------------------------------===//
// Arguments
//===----------------------------------------------------------------------===//

void Assigner::assignArguments() {
  for (BlockArgument argument : block.getArguments()) {
    Attribute role = getArgRole(step, argument.getArgNumber());
    BufferClass bufferClass = BufferClass::io;
    std::string label;
    llvm::TypeSwitch<Attribute>(role)
        .Case<ParamAttr>([&](auto param) {
          bufferClass = BufferClass::parameters;
          label = param.getName().str();
        })
        .Case<BufferAttr, ConstantAttr>([&](auto named) {
          bufferClass = BufferClass::parameters;
          label = named.getName().str();
        })
        .Case<StateAttr>([&](StateAttr state) {
          bufferClass = BufferClass::optimizer_state;
          label = (state.getOf() + " " + state.getState()).str();
        })
        .Case<RngAttr>([&](RngAttr rng) {
          bufferClass = BufferClass::optimizer_state;
          label = ("rng " + rng.getName()).str();
        })
        .Case<ShardAttr, TableAttr>([&](auto part) {
          bufferClass = part.getState() == "param" ? BufferClass::parameters : BufferClass::optimizer_state;
          label = (part.getUnit().getValue() + " " + part.getState()).str();
        })
        .Case<HyperAttr>([&](HyperAttr hyper) { label = (hyper.getName() + " " + Twine(hyper.getGroup())).str(); })
        .Case<BatchAttr>([&](BatchAttr batch) { label = batch.getName().str(); });
    Slot slot = addBuffer(bufferClass, getBytes(argument.getType()), argument.getLoc(), label);
    result.buffers.back().isArgument = true;
    result.buffers.back().isState = bufferClass != BufferClass::io;
    assign(argument, slot);
  }
}

//===----------------------------------------------------------------------===//
// Packs: producers write into the flat buffer
//===----------------------------------------------------------------------===//

/// The ranges of the flat buffer that none of `covered` covers.
static SmallVector<Slot> findGaps(Slot flat, SmallVector<Slot> covered) {
  llvm::sort(covered, [](const Slot &a, const Slot &b) { return a.offset < b.offset; });
  SmallVector<Slot> gaps;
  int64_t end = flat.offset;
  auto addGap = [&](int64_t upTo) {
    if (upTo > end)
      gaps.push_back({flat.buffer, end, upTo - end});
  };
  for (const Slot &slot : covered) {
    addGap(slot.offset);
    end = slot.offset + slot.bytes;
  }
  addGap(flat.offset + flat.bytes);
  return gaps;
}

void Assigner::assignPacks() {
  for (Operation &op : llvm::reverse(block)) {
    auto pack = dyn_cast<PackOp>(op);
    if (!pack) {
      assignUpward(&op);
      continue;
    }
    FlatAttr layout = getUnit(pack, pack.getUnitAttr()).getLayout();
    Slot flat = addBuffer(BufferClass::gradients, getBytes(pack.getFlat().getType()), pack.getLoc(),
                          pack.getUnit() + " gradients");
    assign(pack.getFlat(), flat);
    SmallVector<Slot> covered;
    for (auto [value, name] : llvm::zip_equal(pack.getValues(), pack.getNames().getAsValueRange<StringAttr>())) {
      Slot slot = BufferAssignment::getSegmentSlot(flat, layout, name);
      covered.push_back(slot);
      if (isa_and_nonnull<KernelOpInterface>(value.getDefiningOp()) && !isAssigned(value))
        assign(value, slot);
    }
    result.buffers[flat.buffer].gaps = findGaps(flat, covered);
  }
}

/// Where a packed value is computed from an operand that it may overwrite, that operand is computed there too.
void Assigner::assignUpward(Operation *op) {
  auto kernel = dyn_cast<KernelOpInterface>(op);
  if (!kernel)
    return;
  for (OpResult value : op->getResults()) {
    if (!isAssigned(value))
      continue;
    Slot slot = result.getSlot(value);
    for (OpOperand &operand : op->getOpOperands())
      if (isa_and_nonnull<KernelOpInterface>(operand.get().getDefiningOp()) && !isAssigned(operand.get()) &&
          getBytes(operand.get().getType()) == slot.bytes &&
          kernel.canAlias(operand.getOperandNumber(), value.getResultNumber()) &&
          liveness.isDeadAfter(operand.get(), op)) {
        assign(operand.get(), slot);
        break;
      }
  }
}

//===----------------------------------------------------------------------===//
// Kernels
//===----------------------------------------------------------------------===//

bool Assigner::mayWrite(KernelOpInterface kernel, unsigned index, Slot slot) const {
  Operation *op = kernel;
  for (OpOperand &operand : op->getOpOperands()) {
    Slot read = result.getSlot(operand.get());
    if (read.overlaps(slot) && (read != slot || !kernel.canAlias(operand.getOperandNumber(), index)))
      return false;
  }
  // Two results never share bytes.
  for (OpResult other : op->getResults())
    if (other.getResultNumber() != index && isAssigned(other) && result.getSlot(other).overlaps(slot))
      return false;
  return true;
}

std::optional<Slot> Assigner::findUpdatedSlot(KernelOpInterface kernel, unsigned index) const {
  Operation *op = kernel;
  for (OpOperand &use : op->getResult(index).getUses()) {
    if (!isa<func::ReturnOp>(use.getOwner()))
      continue;
    auto update = dyn_cast_or_null<UpdateAttr>(getResultRole(step, use.getOperandNumber()));
    if (!update)
      continue;
    std::optional<unsigned> argument = findArg(step, update.getArg());
    if (!argument)
      continue;
    Slot slot = result.getSlot(block.getArgument(*argument));
    if (slot.bytes == getBytes(op->getResult(index).getType()) && isDeadAfter(slot.buffer, op) &&
        mayWrite(kernel, index, slot))
      return slot;
  }
  return std::nullopt;
}

std::optional<Slot> Assigner::findDeadOperand(KernelOpInterface kernel, unsigned index) const {
  Operation *op = kernel;
  int64_t bytes = getBytes(op->getResult(index).getType());
  std::optional<Slot> oldest;
  for (Value operand : op->getOperands()) {
    Slot slot = result.getSlot(operand);
    const BufferInfo &buffer = result.buffers[slot.buffer];
    if (!buffer.isArgument && slot.bytes == bytes && buffer.bytes == bytes && isDeadAfter(slot.buffer, op) &&
        mayWrite(kernel, index, slot) && (!oldest || slot.buffer < oldest->buffer))
      oldest = slot;
  }
  return oldest;
}

LogicalResult Assigner::assignKernel(Operation *op) {
  auto kernel = cast<KernelOpInterface>(op);
  if (kernel.isGenerated() && !kernel.getSymbolAttr())
    return op->emitOpError("has no symbol; run spmd-outline-kernels before the plan");
  for (OpResult value : op->getResults()) {
    if (isAssigned(value))
      continue;
    unsigned index = value.getResultNumber();
    std::optional<Slot> slot = findUpdatedSlot(kernel, index);
    if (!slot)
      slot = findDeadOperand(kernel, index);
    assign(value, slot ? *slot : addBuffer(BufferClass::activations, value));
  }
  if (auto gemm = dyn_cast<kernel::GemmOp>(op))
    assignWorkspace(gemm);
  return success();
}

/// A buffer for each GEMM, which is alive while that runs: it takes bytes of its own only where a GEMM runs at the
/// peak.
void Assigner::assignWorkspace(kernel::GemmOp gemm) {
  if (gemmWorkspace == 0)
    return;
  result.workspaces[gemm] =
      addBuffer(BufferClass::workspace, gemmWorkspace, gemm.getLoc(), getLabel(gemm.getResult()) + " workspace");
  result.buffers.back().alignment = kWorkspaceAlignment;
}

//===----------------------------------------------------------------------===//
// Collectives and views
//===----------------------------------------------------------------------===//

/// An operand is reduced where it is, unless somebody still reads it or its bytes are not the program's to overwrite.
void Assigner::assignInPlace(Operation *op, ValueRange outputs) {
  SmallVector<Slot> taken;
  for (auto [index, input, output] : llvm::enumerate(op->getOperands(), outputs)) {
    Slot slot = result.getSlot(input);
    bool inPlace = !result.buffers[slot.buffer].isArgument && isDeadAfter(slot.buffer, op) &&
                   llvm::none_of(taken, [&](const Slot &other) { return other.overlaps(slot); });
    if (!inPlace)
      slot = addBuffer(result.buffers[slot.buffer].bufferClass == BufferClass::gradients ? BufferClass::gradients
                                                                                         : BufferClass::activations,
                       output);
    taken.push_back(slot);
    result.reducedSlots[&op->getOpOperand(index)] = slot;
    assign(output, slot);
  }
}

/// What a unit's collective gives are its parameters or, where values are combined, its gradients.
void Assigner::assignReceived(CollectiveOpInterface op, ValueRange received) {
  CollectiveKind kind = op.getCollectiveKind();
  if (isInPlace(kind))
    return assignInPlace(op, received);
  FlatSymbolRefAttr unit = op.getUnitAttr();
  BufferClass ofUnit = combines(kind) ? BufferClass::gradients : BufferClass::gathered;
  assign(received.front(), addBuffer(unit ? ofUnit : BufferClass::activations, received.front()));
  if (unit)
    result.buffers.back().label = (unit.getValue() + (combines(kind) ? " gradient shard" : " gathered")).str();
}

LogicalResult Assigner::assignOp(Operation *op) {
  if (isa<KernelOpInterface>(op))
    return assignKernel(op);
  return llvm::TypeSwitch<Operation *, LogicalResult>(op)
      .Case([&](UnpackOp unpack) {
        FlatAttr layout = getUnit(op, unpack.getUnitAttr()).getLayout();
        Slot flat = result.getSlot(unpack.getFlat());
        for (auto [value, name] : llvm::zip_equal(unpack.getValues(), unpack.getNames().getAsValueRange<StringAttr>()))
          assign(value, BufferAssignment::getSegmentSlot(flat, layout, name));
        return success();
      })
      .Case([&](CollectiveOpInterface collective) {
        if (!collective.isStart())
          assignReceived(collective, op->getResults());
        return success();
      })
      .Case([&](WaitOp wait) {
        assignReceived(cast<CollectiveOpInterface>(wait.getHandle().getDefiningOp()), wait.getResults());
        return success();
      })
      .Case<PackOp, ReleaseOp, kernel::CheckIndexOp, func::ReturnOp>([](auto) { return success(); })
      .Default([](Operation *other) {
        return other->emitOpError("has no command; it must be lowered to kernels before the plan");
      });
}

void Assigner::assignResults() {
  SmallVector<ResultCopy> updates;
  for (auto [index, value] : llvm::enumerate(cast<func::ReturnOp>(block.getTerminator()).getOperands())) {
    Slot source = result.getSlot(value), slot = source;
    if (auto update = dyn_cast<UpdateAttr>(getResultRole(step, index))) {
      slot = result.getSlot(block.getArgument(*findArg(step, update.getArg())));
      if (source != slot)
        updates.push_back({source, slot, value.getLoc(), "the new value of " + result.buffers[slot.buffer].label});
    } else if (result.buffers[slot.buffer].isArgument) {
      // An argument's bytes may be written again before the output is read: an output has bytes of its own.
      slot = addBuffer(BufferClass::io, getBytes(value.getType()), value.getLoc(), "output " + Twine(index));
      result.resultCopies.push_back({source, slot, value.getLoc(), result.buffers[slot.buffer].label});
    } else if (result.buffers[slot.buffer].bufferClass == BufferClass::activations) {
      result.buffers[slot.buffer].bufferClass = BufferClass::io;
    }
    result.resultSlots.push_back(slot);
  }
  addUpdates(std::move(updates));
}

/// Behind the outputs, which read old values. Of states that take each other's old values, a = b, b = c goes in this
/// order, and of a = b, b = a one old value is kept in a buffer of its own.
void Assigner::addUpdates(SmallVector<ResultCopy> updates) {
  while (!updates.empty()) {
    auto *next = llvm::find_if(updates, [&](const ResultCopy &copy) {
      return llvm::none_of(
          updates, [&](const ResultCopy &other) { return &other != &copy && other.from.overlaps(copy.to); });
    });
    if (next == updates.end()) {
      ResultCopy &first = updates.front();
      std::string what = "the old value of " + result.buffers[first.from.buffer].label;
      Slot kept = addBuffer(BufferClass::activations, first.from.bytes, first.loc, what);
      result.resultCopies.push_back({first.from, kept, first.loc, what});
      first.from = kept;
      continue;
    }
    result.resultCopies.push_back(*next);
    updates.erase(next);
  }
}

LogicalResult Assigner::run() {
  for (auto [index, type] : llvm::enumerate(step.getArgumentTypes()))
    if (!getArgRole(step, index))
      return step.emitOpError("argument ") << index << " has no role";
  for (unsigned index = 0, e = step.getNumResults(); index != e; ++index) {
    Attribute role = getResultRole(step, index);
    auto update = dyn_cast_or_null<UpdateAttr>(role);
    if (!role || (update && !findArg(step, update.getArg())))
      return step.emitOpError("result ") << index << " has no role, or updates an argument that there is not";
  }
  assignArguments();
  assignPacks();
  for (Operation &op : block)
    if (failed(assignOp(&op)))
      return failure();
  assignResults();
  return success();
}

FailureOr<BufferAssignment> BufferAssignment::compute(func::FuncOp step, int64_t gemmWorkspace) {
  BufferAssignment result;
  if (failed(Assigner(step, gemmWorkspace, result).run()))
    return failure();
  return result;
}
