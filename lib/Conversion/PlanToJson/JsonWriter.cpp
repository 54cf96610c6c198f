//===- JsonWriter.cpp - JSON with one entry per line ----------------------===//

#include "JsonWriter.h"
#include "mlir/IR/BuiltinTypes.h"
#include "spmd/Conversion/PlanToJson/PlanToJson.h"

using namespace mlir;

std::string spmd::getDTypeName(Type type) {
  if (type.isUnsignedInteger())
    return "u" + std::to_string(type.getIntOrFloatBitWidth());
  if (type.isBF16())
    return "bf16";
  return (isa<FloatType>(type) ? "f" : "i") + std::to_string(type.getIntOrFloatBitWidth());
}

void spmd::writeInts(llvm::json::OStream &json, StringRef key, ArrayRef<int64_t> values) {
  json.attributeArray(key, [&] {
    for (int64_t value : values)
      json.value(value);
  });
}

void spmd::writeStrings(llvm::json::OStream &json, StringRef key, ArrayAttr values) {
  json.attributeArray(key, [&] {
    for (StringRef value : values.getAsValueRange<StringAttr>())
      json.value(value);
  });
}
