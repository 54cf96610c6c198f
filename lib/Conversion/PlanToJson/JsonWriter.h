//===- JsonWriter.h - JSON with one entry per line --------------*- C++ -*-===//
//
// Two plans are compared with diff, so every buffer and every command is one line, and keys keep their order.
//
//===----------------------------------------------------------------------===//
#ifndef SPMD_LIB_CONVERSION_PLANTOJSON_JSONWRITER_H
#define SPMD_LIB_CONVERSION_PLANTOJSON_JSONWRITER_H

#include "mlir/IR/BuiltinAttributes.h"
#include "mlir/IR/Types.h"
#include "llvm/Support/JSON.h"

namespace spmd {

/// Writes one JSON object: a line per member, and a line per element of a list.
class JsonWriter {
public:
  explicit JsonWriter(llvm::raw_ostream &os) : os(os) { os << '{'; }

  /// `"key": value` on a line of its own.
  void attribute(llvm::StringRef key, const llvm::json::Value &value) {
    startMember(key);
    llvm::json::OStream(os).value(value);
  }

  /// `"key": {...}` on a line; `write` writes its members.
  void object(llvm::StringRef key, llvm::function_ref<void(llvm::json::OStream &)> write) {
    startMember(key);
    llvm::json::OStream stream(os);
    stream.object([&] { write(stream); });
  }

  /// `"key": [` and an object per line; `write` writes the members of one.
  template <typename Range>
  void objects(llvm::StringRef key, const Range &range,
               llvm::function_ref<void(llvm::json::OStream &, decltype(*std::begin(range)))> write) {
    startMember(key);
    os << '[';
    bool first = true;
    for (auto &&element : range) {
      os << (first ? "\n  " : ",\n  ");
      first = false;
      llvm::json::OStream stream(os);
      stream.object([&] { write(stream, element); });
    }
    os << (first ? "]" : "\n]");
  }

  void finish() { os << "\n}\n"; }

private:
  void startMember(llvm::StringRef key) {
    os << (firstMember ? "\n" : ",\n");
    firstMember = false;
    llvm::json::OStream(os).value(key);
    os << ": ";
  }

  llvm::raw_ostream &os;
  bool firstMember = true;
};

/// Writes `"key": [1, 2]`.
void writeInts(llvm::json::OStream &json, llvm::StringRef key, llvm::ArrayRef<int64_t> values);

/// Writes `"key": ["a", "b"]`.
void writeStrings(llvm::json::OStream &json, llvm::StringRef key, mlir::ArrayAttr values);

} // namespace spmd

#endif // SPMD_LIB_CONVERSION_PLANTOJSON_JSONWRITER_H
