//===- EmitCustomCall.cpp - call of kernel.custom_call --------------------===//
//
// [Note: what a function of the user's is given] Two arrays of DLTensor, as DLPack 1.0 has it (dlpack.h): its arguments
// in the order of the operator's schema, numbers as 0-dimensional int64, float64 or bool, lists of numbers as
// 1-dimensional ones; and its results, to be written. All are on the CPU, contiguous, with strides.
//
//===----------------------------------------------------------------------===//

#include "../Externals.h"
#include "Emitters.h"
#include "dialects/Spmd/ElementType.h"
#include "mlir/IR/TypeUtilities.h"
#include "spmd/Runtime/Core/Externals.h"

using namespace mlir;

namespace spmd::kernel {

namespace {

/// The words of a DlTensor: data; device; dims and dtype; shape; strides; byte offset.
constexpr int64_t kWords = 6;
static_assert(sizeof(runtime::DlTensor) == kWords * sizeof(int64_t));
/// kDLCPU, device 0.
constexpr int64_t kDevice = 1;

/// Fills arrays of DLTensor.
class TensorWriter {
public:
  explicit TensorWriter(KernelBuilder &b) : b(b), pointer(LLVM::LLVMPointerType::get(b.getContext())) {}

  Value array(size_t count) { return b.stack(b.getI64Type(), std::max<int64_t>(kWords * count, 1)); }
  void write(Value array, unsigned index, Value data, Type element, ArrayRef<int64_t> shape);
  /// A number, or numbers, as the function gets them.
  void writeNumbers(Value array, unsigned index, Attribute argument);

private:
  void store(Value value, Value array, int64_t word) {
    LLVM::StoreOp::create(b, value, b.address(array, b.getI64Type(), b.i64(word)), /*alignment=*/8);
  }
  Value table(Type element, ArrayRef<Attribute> values) {
    return b.table(
        DenseElementsAttr::get(RankedTensorType::get({static_cast<int64_t>(values.size())}, element), values));
  }
  Value sizes(ArrayRef<int64_t> values) {
    SmallVector<int64_t> stored(values); // a scalar's are not read, but are somewhere
    if (stored.empty())
      stored.push_back(1);
    return b.table(DenseElementsAttr::get(RankedTensorType::get({static_cast<int64_t>(stored.size())}, b.getI64Type()),
                                          ArrayRef<int64_t>(stored)));
  }

  KernelBuilder &b;
  Type pointer;
};

} // namespace

void TensorWriter::write(Value array, unsigned index, Value data, Type element, ArrayRef<int64_t> shape) {
  SmallVector<int64_t> strides(shape.size(), 1);
  for (size_t dim = shape.size(); dim-- > 1;)
    strides[dim - 1] = strides[dim] * shape[dim];
  runtime::DType dtype = *getDType(element);
  int64_t code = runtime::getDlTypeCode(dtype), bits = 8 * runtime::sizeOf(dtype), lanes = 1;
  int64_t kind = static_cast<int64_t>(shape.size()) | code << 32 | bits << 40 | lanes << 48;
  int64_t word = index * kWords;
  store(data, array, word);
  store(b.i64(kDevice), array, word + 1);
  store(b.i64(kind), array, word + 2);
  store(sizes(shape), array, word + 3);
  store(sizes(strides), array, word + 4);
  store(b.i64(0), array, word + 5);
}

void TensorWriter::writeNumbers(Value array, unsigned index, Attribute argument) {
  if (auto integers = dyn_cast<DenseI64ArrayAttr>(argument)) {
    write(array, index, sizes(integers.asArrayRef()), b.getI64Type(), integers.size());
  } else if (auto reals = dyn_cast<DenseF64ArrayAttr>(argument)) {
    SmallVector<Attribute> values;
    for (double real : reals.asArrayRef())
      values.push_back(b.getF64FloatAttr(real));
    if (values.empty())
      values.push_back(b.getF64FloatAttr(0));
    write(array, index, table(b.getF64Type(), values), b.getF64Type(), reals.size());
  } else if (auto flag = dyn_cast<BoolAttr>(argument)) {
    write(array, index, table(b.getI8Type(), {b.getI8IntegerAttr(flag.getValue())}), b.getI1Type(), {});
  } else {
    Type type = cast<TypedAttr>(argument).getType();
    write(array, index, table(type, {argument}), type, {});
  }
}

static LogicalResult emitCustomCall(KernelBuilder &b, CustomCallOp op) {
  auto pointer = LLVM::LLVMPointerType::get(b.getContext());
  std::string name = getPointerName(op);
  auto functions = b.getInsertionBlock()->getParentOp()->getParentOfType<ModuleOp>();
  if (!functions.lookupSymbol(name)) {
    OpBuilder::InsertionGuard guard(b);
    b.setInsertionPointToStart(functions.getBody());
    LLVM::GlobalOp::create(b, pointer, /*isConstant=*/false, LLVM::Linkage::External, name, Attribute(),
                           /*alignment=*/8);
  }
  TensorWriter writer(b);
  Value arguments = writer.array(op.getArguments().size()), results = writer.array(op.getNumResults());
  b.loop(b.getBegin(), b.getEnd(), 1, [&](Value) {
    unsigned next = 0;
    for (auto [index, argument] : llvm::enumerate(op.getArguments())) {
      if (!isa<UnitAttr>(argument)) {
        writer.writeNumbers(arguments, index, argument);
        continue;
      }
      auto shape = cast<DenseI64ArrayAttr>(op.getShapes()[next]);
      writer.write(arguments, index, b.getPointer(next), getElementTypeOrSelf(op.getInputs()[next].getType()), shape);
      ++next;
    }
    for (auto [index, result] : llvm::enumerate(op.getResults())) {
      auto type = cast<RankedTensorType>(result.getType());
      writer.write(results, index, b.getResultPointer(index), type.getElementType(), type.getShape());
    }
    Value function = LLVM::LoadOp::create(b, pointer, LLVM::AddressOfOp::create(b, pointer, name), /*alignment=*/8);
    auto type = LLVM::LLVMFunctionType::get(LLVM::LLVMVoidType::get(b.getContext()), {pointer, pointer});
    LLVM::CallOp::create(b, type, ValueRange{function, arguments, results});
  });
  return success();
}

void addCustomCallEmitters(HostEmitters &emitters) { emitters.add(emitCustomCall); }

} // namespace spmd::kernel
