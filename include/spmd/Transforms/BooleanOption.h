//===- BooleanOption.h - Options of passes that are on or off ---*- C++ -*-===//
#ifndef SPMD_TRANSFORMS_BOOLEANOPTION_H
#define SPMD_TRANSFORMS_BOOLEANOPTION_H

#include "llvm/Support/CommandLine.h"

namespace spmd {

/// The type of a pass's option that is true or false. LLVM's parser of `bool` takes what is empty (`fuse=`) for true,
/// and words that spmd-compile does not take.
class BooleanOption {
public:
  BooleanOption(bool value = false) : value(value) {}
  operator bool() const { return value; }

private:
  bool value;
};

inline llvm::raw_ostream &operator<<(llvm::raw_ostream &os, const BooleanOption &option) {
  return os << (option ? "true" : "false");
}

} // namespace spmd

namespace llvm::cl {

template <>
class parser<spmd::BooleanOption> : public basic_parser<spmd::BooleanOption> {
public:
  using basic_parser::basic_parser;

  /// The name alone is true.
  enum ValueExpected getValueExpectedFlagDefault() const { return ValueOptional; }

  bool parse(Option &option, StringRef, StringRef text, spmd::BooleanOption &value) {
    bool isNameAlone = text.data() == nullptr;
    if (!isNameAlone && text != "true" && text != "false")
      return option.error("'" + text + "': expected true, false");
    value = text != "false";
    return false;
  }

  void printOptionDiff(const Option &option, spmd::BooleanOption, const OptionValue<spmd::BooleanOption> &,
                       size_t width) const {
    printOptionNoValue(option, width);
  }
};

} // namespace llvm::cl

#endif // SPMD_TRANSFORMS_BOOLEANOPTION_H
