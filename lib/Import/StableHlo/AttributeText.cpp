//===- AttributeText.cpp - What opaque StableHLO attributes say -----------===//

#include "AttributeText.h"

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Diagnostics.h"

using namespace mlir;
using namespace spmd::stablehlo;

InFlightDiagnostic spmd::stablehlo::opError(Operation *op) {
  return emitError(op->getLoc()) << "'" << op->getName() << "': ";
}

Attribute spmd::stablehlo::getAttribute(Operation *op, StringRef name) {
  if (!op->isRegistered())
    if (auto properties = dyn_cast_or_null<DictionaryAttr>(op->getPropertiesAsAttribute()))
      if (Attribute attr = properties.get(name))
        return attr;
  return op->getAttr(name);
}

FailureOr<Ints> spmd::stablehlo::getInts(Operation *op, StringRef name, std::optional<Ints> otherwise) {
  Attribute attr = getAttribute(op, name);
  if (!attr && otherwise)
    return *otherwise;
  if (auto array = dyn_cast_or_null<DenseI64ArrayAttr>(attr))
    return Ints(array.asArrayRef());
  if (auto dense = dyn_cast_or_null<DenseIntElementsAttr>(attr)) {
    Ints values;
    for (const APInt &value : dense)
      values.push_back(value.getSExtValue());
    return values;
  }
  return opError(op) << "attribute '" << name << "' must be a list of integers, such as array<i64: 0, 1>";
}

/// The text of an attribute of the unregistered dialect; empty when it is none.
static StringRef getText(Attribute attr) {
  auto opaque = dyn_cast_or_null<OpaqueAttr>(attr);
  return opaque && opaque.getDialectNamespace() == "stablehlo" ? opaque.getAttrData() : StringRef();
}

FailureOr<StringRef> spmd::stablehlo::getEnum(Operation *op, StringRef name) {
  Attribute attr = getAttribute(op, name);
  if (!attr)
    return StringRef();
  auto [kind, value] = getText(attr).split(' ');
  value = value.trim();
  if (value.empty())
    return opError(op) << "attribute '" << name << "' must be an enumeration of stablehlo, found " << attr;
  return value;
}

/// "[0, 1]" or "3".
static std::optional<Ints> readNumbers(StringRef text) {
  Ints numbers;
  if (text.consume_front("[") && !text.consume_back("]"))
    return {};
  SmallVector<StringRef> parts;
  text.split(parts, ',', -1, /*KeepEmpty=*/false);
  for (StringRef part : parts) {
    int64_t number;
    if (part.trim().getAsInteger(10, number))
      return {};
    numbers.push_back(number);
  }
  return numbers;
}

FailureOr<Fields> Fields::read(Operation *op, StringRef name, StringRef kind) {
  Attribute attr = getAttribute(op, name);
  StringRef text = getText(attr);
  auto fail = [&]() -> FailureOr<Fields> {
    InFlightDiagnostic error = opError(op) << "attribute '" << name << "' must be #stablehlo." << kind << "<...>";
    if (attr)
      error << ", found " << attr;
    return error;
  };
  if (!text.consume_front(kind) || !text.consume_front("<") || !text.consume_back(">"))
    return fail();
  Fields fields;
  while (!(text = text.trim()).empty()) {
    auto [field, rest] = text.split('=');
    rest = rest.ltrim();
    size_t end = rest.starts_with("[") ? rest.find(']') + 1 : std::min(rest.find(','), rest.size());
    std::optional<Ints> numbers = end == 0 ? std::nullopt : readNumbers(rest.take_front(end).trim());
    text = rest.drop_front(std::min(end, rest.size())).ltrim();
    if (!numbers || (!text.empty() && !text.consume_front(",")) ||
        !fields.lists.try_emplace(field.trim(), *numbers).second)
      return fail();
  }
  return fields;
}
