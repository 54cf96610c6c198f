//===- GpuBuilder.cpp - builds one kernel for GPUs ------------------------===//

#include "GpuBuilder.h"
#include "dialects/Kernel/Body.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/SCF/IR/SCF.h"
#include "mlir/IR/TypeUtilities.h"
#include "llvm/Support/MathExtras.h"

using namespace mlir;

namespace spmd::kernel {

static LLVM::LLVMPointerType getGlobalPointer(MLIRContext *context) { return LLVM::LLVMPointerType::get(context, 1); }
static LLVM::LLVMPointerType getSharedPointer(MLIRContext *context) { return LLVM::LLVMPointerType::get(context, 3); }

GpuBuilder::GpuBuilder(gpu::GPUModuleOp module, StringRef symbol, Operation *op)
    : CodeBuilder(op->getLoc(), op->getNumOperands()), numPointers(op->getNumOperands() + op->getNumResults()) {
  setInsertionPointToEnd(module.getBody());
  SmallVector<Type> types(numPointers, getGlobalPointer(getContext()));
  function = gpu::GPUFuncOp::create(*this, symbol, getFunctionType(types, {}));
  function->setAttr(gpu::GPUDialect::getKernelFuncAttrName(), getUnitAttr());
  SmallVector<int64_t> bytes;
  for (Type type : llvm::concat<const Type>(op->getOperandTypes(), op->getResultTypes()))
    bytes.push_back(getNumElements(type) * getElementBytes(type));
  function->setAttr("spmd.arguments", getDenseI64ArrayAttr(bytes));
  function->setAttr("spmd.operands", getI64IntegerAttr(op->getNumOperands()));
  entry = &function.getBody().front();
  pointers.assign(entry->args_begin(), entry->args_end());
  for (unsigned i = 0; i < numPointers; ++i)
    function.setArgAttr(i, LLVM::LLVMDialect::getAlignAttrName(), getI64IntegerAttr(kArgumentAlignment));
  setInsertionPointToStart(entry);
  auto number = [&](Value index) { return arith::IndexCastOp::create(*this, getI64Type(), index); };
  thread = number(gpu::ThreadIdOp::create(*this, getIndexType(), gpu::Dimension::x));
  block = number(gpu::BlockIdOp::create(*this, getIndexType(), gpu::Dimension::x));
}

void GpuBuilder::finish(int64_t blockSize, int64_t grid) {
  gpu::ReturnOp::create(*this);
  auto launch = [&](int64_t x) { return getDenseI32ArrayAttr({static_cast<int32_t>(x), 1, 1}); };
  function->setAttr(gpu::GPUFuncOp::getKnownBlockSizeAttrName(function->getName()), launch(blockSize));
  function->setAttr(gpu::GPUFuncOp::getKnownGridSizeAttrName(function->getName()), launch(grid));
  function->setAttr("spmd.shared_bytes", getI64IntegerAttr(sharedBytes));
  if (movedBytes)
    function->setAttr("spmd.moved_bytes", getI64IntegerAttr(movedBytes));
}

void GpuBuilder::setResidentBlocks(int64_t blocks) {
  function->setAttr("spmd.resident_blocks", getI64IntegerAttr(blocks));
}

Value GpuBuilder::getCoordinate(unsigned axis) {
  while (entry->getNumArguments() <= numPointers + axis)
    (void)function.insertArgument(entry->getNumArguments(), getI64Type(), {}, function.getLoc());
  return entry->getArgument(numPointers + axis);
}

//===----------------------------------------------------------------------===//
// Memory
//===----------------------------------------------------------------------===//

Value GpuBuilder::shared(Type element, int64_t count) {
  OpBuilder::InsertionGuard guard(*this);
  if (!sharedMemory) {
    auto type = LLVM::LLVMArrayType::get(getI8Type(), 0);
    std::string name = (function.getName() + "_shared").str();
    setInsertionPoint(function);
    LLVM::GlobalOp::create(*this, type, /*isConstant=*/false, LLVM::Linkage::External, name, Attribute(),
                           /*alignment=*/kWideBytes, /*addrSpace=*/3);
    setInsertionPointToStart(entry);
    sharedMemory = LLVM::AddressOfOp::create(*this, getSharedPointer(getContext()), name);
  }
  Value offset = i64(sharedBytes);
  sharedBytes += llvm::alignTo(count * getStoredBytes(element), kWideBytes);
  // Where every use can see it.
  setInsertionPointAfterValue(sharedMemory);
  if (offset.getDefiningOp()->getBlock() == entry &&
      sharedMemory.getDefiningOp()->isBeforeInBlock(offset.getDefiningOp()))
    setInsertionPointAfterValue(offset);
  return LLVM::GEPOp::create(*this, sharedMemory.getType(), getI8Type(), sharedMemory, ValueRange(offset));
}

Value GpuBuilder::local(Type element, int64_t count) {
  Value size = i64(count);
  OpBuilder::InsertionGuard guard(*this);
  setInsertionPointAfterValue(size);
  return LLVM::AllocaOp::create(*this, LLVM::LLVMPointerType::get(getContext()), getStoredType(element), size,
                                /*alignment=*/kWideBytes);
}

Value GpuBuilder::table(DenseElementsAttr values) {
  std::string name = (function.getName() + "_table" + Twine(numTables++)).str();
  auto type = LLVM::LLVMArrayType::get(values.getElementType(), values.getNumElements());
  {
    OpBuilder::InsertionGuard guard(*this);
    setInsertionPoint(function);
    LLVM::GlobalOp::create(*this, type, /*isConstant=*/true, LLVM::Linkage::Internal, name, values,
                           /*alignment=*/kWideBytes, /*addrSpace=*/1);
  }
  return LLVM::AddressOfOp::create(*this, getGlobalPointer(getContext()), name);
}

//===----------------------------------------------------------------------===//
// Threads
//===----------------------------------------------------------------------===//

void GpuBuilder::barrier() { gpu::BarrierOp::create(*this); }

/// Only 32 bits are shuffled at a time.
Value GpuBuilder::shuffle(Value value, Value by, gpu::ShuffleMode mode) {
  Value width = constant(getI32IntegerAttr(kWarpSize));
  auto move = [&](Value word) { return gpu::ShuffleOp::create(*this, word, by, width, mode).getShuffleResult(); };
  Type type = value.getType();
  unsigned bits = type.getIntOrFloatBitWidth();
  if (bits == 32)
    return move(value);
  Type integer = getIntegerType(bits);
  bool isFloat = isa<FloatType>(type);
  Value word = isFloat ? Value(arith::BitcastOp::create(*this, integer, value)) : value;
  if (bits < 32) {
    Value moved = move(arith::ExtUIOp::create(*this, getI32Type(), word));
    word = arith::TruncIOp::create(*this, integer, moved);
  } else {
    Value shift = i64(32);
    Value low = move(arith::TruncIOp::create(*this, getI32Type(), word));
    Value high = move(arith::TruncIOp::create(*this, getI32Type(), arith::ShRUIOp::create(*this, word, shift)));
    low = arith::ExtUIOp::create(*this, integer, low);
    high = arith::ShLIOp::create(*this, arith::ExtUIOp::create(*this, integer, high), shift);
    word = arith::OrIOp::create(*this, low, high);
  }
  return isFloat ? Value(arith::BitcastOp::create(*this, type, word)) : word;
}

Value GpuBuilder::shuffleXor(Value value, int64_t mask) {
  return shuffle(value, constant(getI32IntegerAttr(mask)), gpu::ShuffleMode::XOR);
}

Value GpuBuilder::shuffleIndex(Value value, Value lane) { return shuffle(value, lane, gpu::ShuffleMode::IDX); }

Value GpuBuilder::reduceWarp(ReduceKind kind, Value value, int64_t lanes) {
  for (int64_t mask = lanes / 2; mask > 0; mask /= 2)
    value = combine(kind, value, shuffleXor(value, mask));
  return value;
}

//===----------------------------------------------------------------------===//
// Control
//===----------------------------------------------------------------------===//

std::pair<Value, Value> GpuBuilder::divide(Value a, int64_t divisor, int64_t bound) {
  if (divisor == 1)
    return {a, i64(0)};
  if (bound > int64_t(1) << 31) {
    Value quotient = floorDiv(a, divisor);
    return {quotient, sub(a, mul(quotient, divisor))};
  }
  Value narrow = arith::TruncIOp::create(*this, getI32Type(), a);
  Value by = constant(getI32IntegerAttr(divisor));
  Value quotient = arith::DivUIOp::create(*this, narrow, by);
  Value rest = arith::SubIOp::create(*this, narrow, arith::MulIOp::create(*this, quotient, by));
  return {arith::ExtUIOp::create(*this, getI64Type(), quotient), arith::ExtUIOp::create(*this, getI64Type(), rest)};
}

Value GpuBuilder::isLess(Value a, Value b) { return arith::CmpIOp::create(*this, arith::CmpIPredicate::slt, a, b); }
Value GpuBuilder::isEqual(Value a, Value b) { return arith::CmpIOp::create(*this, arith::CmpIPredicate::eq, a, b); }

} // namespace spmd::kernel
