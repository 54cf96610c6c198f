//===- KernelBuilder.cpp - builds one kernel function for CPUs ------------===//

#include "KernelBuilder.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/IR/BuiltinOps.h"

using namespace mlir;

namespace spmd::kernel {

KernelBuilder::KernelBuilder(ModuleOp module, StringRef symbol, Operation *op, const Cpu &cpu)
    : CodeBuilder(op->getLoc(), op->getNumOperands()), cpu(cpu) {
  setInsertionPointToEnd(module.getBody());
  auto pointer = LLVM::LLVMPointerType::get(getContext());
  Type i64Type = getI64Type();
  auto type = LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(getContext()), {pointer, pointer, i64Type, i64Type});
  function = LLVM::LLVMFuncOp::create(*this, symbol, type);
  entry = function.addEntryBlock(*this);
  setInsertionPointToStart(entry);
  Value args = entry->getArgument(0);
  coords = entry->getArgument(1);
  begin = entry->getArgument(2);
  end = entry->getArgument(3);
  for (unsigned i = 0; i < op->getNumOperands() + op->getNumResults(); ++i)
    pointers.push_back(LLVM::LoadOp::create(*this, pointer, address(args, pointer, i64(i)), /*alignment=*/8));
}

void KernelBuilder::finish() {
  LLVM::ReturnOp::create(*this, ValueRange());
  function->setAttr("spmd.moved_bytes", getI64IntegerAttr(movedBytes));
}

Value KernelBuilder::getCoordinate(unsigned axis) {
  if (coordinates.size() <= axis)
    coordinates.resize(axis + 1);
  if (!coordinates[axis]) {
    // Right behind the pointers, where every use can see it.
    OpBuilder::InsertionGuard guard(*this);
    setInsertionPointAfterValue(pointers.back());
    coordinates[axis] = load(coords, getI64Type(), i64(axis));
  }
  return coordinates[axis];
}

Value KernelBuilder::stack(Type element, int64_t count) {
  Value size = i64(count);
  OpBuilder::InsertionGuard guard(*this);
  setInsertionPointAfterValue(size);
  Type stored = getStoredType(element);
  stackBytes += count * getStoredBytes(stored);
  return LLVM::AllocaOp::create(*this, LLVM::LLVMPointerType::get(getContext()), stored, size, /*alignment=*/64);
}

Value KernelBuilder::table(DenseElementsAttr values) {
  std::string name = (function.getName() + "_table" + Twine(numTables++)).str();
  auto type = LLVM::LLVMArrayType::get(values.getElementType(), values.getNumElements());
  {
    OpBuilder::InsertionGuard guard(*this);
    setInsertionPoint(function);
    LLVM::GlobalOp::create(*this, type, /*isConstant=*/true, LLVM::Linkage::Internal, name, values, /*alignment=*/64);
  }
  return LLVM::AddressOfOp::create(*this, LLVM::LLVMPointerType::get(getContext()), name);
}

Value KernelBuilder::isLineAligned(Value pointer) {
  Value number = LLVM::PtrToIntOp::create(*this, getI64Type(), pointer);
  return arith::CmpIOp::create(*this, arith::CmpIPredicate::eq, mod(number, kLineBytes), i64(0));
}

void KernelBuilder::storePastCaches(Value vector, Value pointer, Value index) {
  auto type = cast<VectorType>(vector.getType());
  int64_t bytes = type.getNumElements() * getStoredBytes(type.getElementType());
  store(vector, pointer, index, std::min(bytes, kLineBytes), /*pastCaches=*/true);
}

void KernelBuilder::finishPastCaches() { LLVM::FenceOp::create(*this, LLVM::AtomicOrdering::seq_cst); }

} // namespace spmd::kernel
