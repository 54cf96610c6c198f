//===- CrashMessage.cpp - What a tool says when it dies -------------------===//

#include "spmd/Pipelines/CrashMessage.h"
#include "llvm/ADT/StringRef.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/PrettyStackTrace.h"
#include "llvm/Support/raw_ostream.h"
#include <string>

using namespace llvm;

/// One word of a command line as a shell reads it.
static void printWord(StringRef word, raw_ostream &os) {
  StringRef plain = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_=./,:+@%";
  if (!word.empty() && word.find_first_not_of(plain) == StringRef::npos) {
    os << word;
    return;
  }
  os << '\'';
  for (char c : word)
    if (c == '\'')
      os << "'\\''";
    else
      os << c;
  os << '\'';
}

void spmd::explainCrashes(int argc, char **argv) {
  // Kept for the life of the process: a signal handler prints it, and may not make it.
  static std::string message;
  raw_string_ostream os(message);
  os << (argc > 0 ? sys::path::filename(argv[0]) : StringRef("this tool"))
     << " died of a mistake of its own, which no input should bring about\n"
        "  to report it, send its input (of a step package, step.json is enough), all of this output, and the "
        "command:\n    ";
  for (int i = 0; i < argc; ++i) {
    os << (i ? " " : "");
    printWord(argv[i], os);
  }
  os << '\n';
  setBugReportMsg(message.c_str());
}
