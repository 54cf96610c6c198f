//===- NormalizeCustomCall.cpp - Operators of the user's ------------------===//

#include "Normalize.h"

#include "dialects/Aten/AtenCustomCall.h"
#include "dialects/Aten/AtenLaunch.h"

using namespace mlir;
using namespace spmd;
using Kind = step::Arg::Kind;

/// A number, or numbers, as the function gets them; null for anything else.
static Attribute getNumbers(Emitter &emitter, const step::Arg &arg) {
  switch (arg.kind) {
  case Kind::integer:
  case Kind::real:
  case Kind::boolean:
    return emitter.scalar(arg);
  case Kind::integers:
    return emitter.builder.getDenseI64ArrayAttr(arg.integers);
  case Kind::reals:
    return emitter.builder.getDenseF64ArrayAttr(arg.reals);
  default:
    return {};
  }
}

LogicalResult spmd::emitCustomCall(Emitter &emitter, Call &call, const step::Operator &entry, Results &results) {
  Builder &builder = emitter.builder;
  SmallVector<Value> inputs;
  SmallVector<Attribute> arguments;
  for (const BoundArg &arg : call.args) {
    bool isTensor = arg.isValue() && arg.values.front();
    Attribute argument = isTensor ? builder.getUnitAttr() : getNumbers(emitter, arg.literal);
    if (!argument)
      return emitter.error("argument '") << arg.name() << "' of '" << call.op
                                         << "' is neither a tensor nor a number, which a function in a library gets";
    if (isTensor)
      inputs.push_back(arg.values.front());
    arguments.push_back(argument);
  }
  SmallVector<ArrayRef<int64_t>> shapes, resultShapes;
  SmallVector<Type> types;
  for (Value input : inputs)
    shapes.push_back(typeOf(input).getShape());
  for (RankedTensorType type : call.resultTypes) {
    if (!type)
      return emitter.error("'") << call.op << "' has a result that is none";
    types.push_back(type);
    resultShapes.push_back(type.getShape());
  }
  SmallVector<StringRef> reduce(entry.reduce.begin(), entry.reduce.end());
  std::string why;
  if (!aten::readSharding(entry.sharding, reduce, shapes, resultShapes, why))
    return emitter.error("the sharding \"")
           << entry.sharding << "\" that was declared for '" << call.op << "' does not fit it: " << why;
  SmallVector<NamedAttribute> attributes{emitter.named("op", builder.getStringAttr(call.op)),
                                         emitter.named("arguments", builder.getArrayAttr(arguments)),
                                         emitter.named("sharding", builder.getStringAttr(entry.sharding)),
                                         emitter.named("reduce", builder.getStrArrayAttr(reduce))};
  if (entry.library)
    attributes.append({emitter.named("library", builder.getStringAttr(entry.library->name)),
                       emitter.named("hash", builder.getStringAttr(entry.library->hash)),
                       emitter.named("symbol", builder.getStringAttr(entry.symbol))});
  if (!entry.cubins.empty()) {
    SmallVector<std::string> names, cubins;
    for (const BoundArg &arg : call.args)
      names.push_back(arg.name());
    SmallVector<StringRef> known(names.begin(), names.end());
    if (!aten::readLaunch(entry.launch, {builder.getArrayAttr(arguments), known, shapes, resultShapes, entry.sharding},
                          why))
      return emitter.error("the launch \"")
             << entry.launch << "\" that was declared for '" << call.op << "' does not fit it: " << why;
    for (const auto &[chip, file] : entry.cubins)
      cubins.push_back(chip + " " + file.hash + " " + file.name);
    attributes.append(
        {emitter.named("names", builder.getStrArrayAttr(known)),
         emitter.named("launch", builder.getStringAttr(entry.launch)),
         emitter.named("cubins", builder.getStrArrayAttr(SmallVector<StringRef>(cubins.begin(), cubins.end())))});
  }
  Operation *op = emitter.create("custom_call", inputs, attributes, types);
  results.append(op->result_begin(), op->result_end());
  return success();
}
