//===- DescribeKernels.cpp - what the emulator reads of a kernel ----------===//

#include "DescribeKernels.h"
#include "mlir/Interfaces/DataLayoutInterfaces.h"
#include "llvm/IR/IRBuilder.h"
#include "llvm/IR/Module.h"

using namespace llvm;

namespace spmd::kernel {

std::string getThreadFunctionName(StringRef kernel, bool isChecked) {
  return (kernel + (isChecked ? "_checked" : "_plain")).str();
}

namespace {

/// Builds constant data.
class Data {
public:
  explicit Data(Module &module) : module(module), context(module.getContext()) {}

  Constant *number(int64_t value) { return ConstantInt::getSigned(Type::getInt64Ty(context), value); }
  Constant *null() { return ConstantPointerNull::get(PointerType::get(context, 0)); }
  Constant *text(StringRef value) { return global(ConstantDataArray::getString(context, value)); }
  Constant *record(ArrayRef<Constant *> members) { return ConstantStruct::getAnon(context, members); }
  Constant *array(ArrayRef<Constant *> elements) {
    if (elements.empty())
      return null();
    return global(ConstantArray::get(ArrayType::get(elements.front()->getType(), elements.size()), elements));
  }
  GlobalVariable *global(Constant *value, bool isConstant = true, const Twine &name = "") {
    return new GlobalVariable(module, value->getType(), isConstant, GlobalValue::PrivateLinkage, value, name);
  }

private:
  Module &module;
  LLVMContext &context;
};

} // namespace

void describeKernel(Module &module, const EmulatedKernel &kernel) {
  Data data(module);
  SmallVector<Constant *> memories, ops;
  for (int64_t bytes : kernel.argumentBytes)
    memories.push_back(data.record({data.number(bytes), data.null()}));
  for (mlir::LLVM::GlobalOp table : kernel.tables) {
    int64_t bytes = mlir::DataLayout::closest(table).getTypeSize(table.getGlobalType());
    memories.push_back(data.record({data.number(bytes), module.getNamedGlobal(table.getSymName())}));
  }
  for (const EmulatedOp &op : kernel.ops)
    ops.push_back(
        data.record({data.text(op.text), data.text(op.source), data.number(op.bytes), data.number(op.alignment)}));
  auto threadFunction = [&](bool isChecked) -> Constant * {
    Function *function = module.getFunction(getThreadFunctionName(kernel.name, isChecked));
    if (!function)
      return data.null();
    function->setLinkage(GlobalValue::InternalLinkage);
    return function;
  };
  int64_t numArguments = kernel.argumentBytes.size(), granule = 16;
  for (const EmulatedOp &op : kernel.ops)
    while (op.bytes && (op.bytes % granule || op.alignment % granule))
      granule /= 2;
  GlobalVariable *descriptor = data.global(
      data.record({data.text(kernel.name), threadFunction(false), threadFunction(true), data.number(kernel.blockSize),
                   data.number(kernel.gridSize), data.number(kernel.sharedBytes), data.number(kernel.numOperands),
                   data.number(numArguments), data.number(memories.size()), data.number(granule), data.array(memories),
                   data.array(ops), data.number(0), data.number(0)}),
      /*isConstant=*/false, kernel.name + "_kernel");
  descriptor->setSection("spmd_kernels");
  descriptor->setAlignment(Align(8));

  LLVMContext &context = module.getContext();
  Type *pointer = PointerType::get(context, 0), *i64 = Type::getInt64Ty(context);
  Type *nothing = Type::getVoidTy(context);
  FunctionCallee launch = module.getOrInsertFunction(
      "spmd_emulation_launch", FunctionType::get(nothing, {pointer, pointer, pointer, i64, i64}, false));
  Function *function = Function::Create(FunctionType::get(nothing, {pointer, pointer, i64, i64}, false),
                                        GlobalValue::ExternalLinkage, kernel.name, module);
  IRBuilder<> b(BasicBlock::Create(context, "", function));
  b.CreateCall(launch,
               {descriptor, function->getArg(0), function->getArg(1), function->getArg(2), function->getArg(3)});
  b.CreateRetVoid();
}

} // namespace spmd::kernel
