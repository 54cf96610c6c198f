// Views of what is gone when they are used: each line must be an error of the project's flags.
#include "llvm/ADT/ArrayRef.h"
#include "llvm/ADT/StringRef.h"
#include <string>

void elements(bool some) {
  llvm::ArrayRef<int> view = some ? llvm::ArrayRef<int>{1, 2} : llvm::ArrayRef<int>();
  (void)view;
}
void text() {
  llvm::StringRef view = std::string("abc");
  (void)view;
}
llvm::StringRef local() {
  std::string text = "abc";
  return text;
}
struct Kept {
  llvm::ArrayRef<int> view;
  Kept() : view({1, 2}) {}
};
