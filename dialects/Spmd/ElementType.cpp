//===- ElementType.cpp - dtypes of files as types -------------------------===//

#include "dialects/Spmd/ElementType.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/BuiltinTypes.h"

using namespace mlir;
using namespace spmd;

Type spmd::getElementType(runtime::DType dtype, MLIRContext *context) {
  Builder builder(context);
  switch (dtype) {
  case runtime::DType::F32:
    return builder.getF32Type();
  case runtime::DType::F64:
    return builder.getF64Type();
  case runtime::DType::F16:
    return builder.getF16Type();
  case runtime::DType::BF16:
    return builder.getBF16Type();
  case runtime::DType::I64:
    return builder.getI64Type();
  case runtime::DType::I32:
    return builder.getI32Type();
  case runtime::DType::I16:
    return builder.getIntegerType(16);
  case runtime::DType::I8:
    return builder.getIntegerType(8);
  case runtime::DType::U8:
    return builder.getIntegerType(8, /*isSigned=*/false);
  case runtime::DType::I1:
    return builder.getI1Type();
  }
  llvm_unreachable("covered switch");
}

std::optional<runtime::DType> spmd::getDType(Type type) {
  for (runtime::DType dtype : runtime::kDTypes)
    if (getElementType(dtype, type.getContext()) == type)
      return dtype;
  return std::nullopt;
}
