//===- Schema.cpp - Arguments of a PyTorch schema -------------------------===//

#include "dialects/Aten/Schema.h"

using namespace llvm;

/// Splits at commas outside parentheses and brackets.
static SmallVector<StringRef> splitTopLevel(StringRef text) {
  SmallVector<StringRef> parts;
  int depth = 0;
  size_t begin = 0;
  for (size_t i = 0; i <= text.size(); ++i) {
    if (i == text.size() || (text[i] == ',' && depth == 0)) {
      parts.push_back(text.slice(begin, i).trim());
      begin = i + 1;
    } else if (text[i] == '(' || text[i] == '[') {
      ++depth;
    } else if (text[i] == ')' || text[i] == ']') {
      --depth;
    }
  }
  return parts;
}

SmallVector<spmd::aten::SchemaArg> spmd::aten::parseSchemaArgs(StringRef schema) {
  StringRef inside = schema.split('(').second;
  inside = inside.take_front(inside.rfind(") -> "));
  SmallVector<SchemaArg> args;
  for (StringRef part : splitTopLevel(inside)) {
    if (part.empty() || part == "*")
      continue;
    // The name is the last word before a default value; the type is what
    // stands before it.
    part = part.take_front(part.find('='));
    auto [type, name] = part.rsplit(' ');
    args.push_back({type, name});
  }
  return args;
}

bool spmd::aten::returnsView(StringRef schema) { return schema.rsplit(" -> ").second.starts_with("Tensor(a)"); }
