//===- DiagnosticWriter.cpp - Where diagnostics go ------------------------===//

#include "DiagnosticWriter.h"
#include "llvm/ADT/StringExtras.h"
#include <fcntl.h>

using namespace spmd;

static constexpr int kStandardError = 2;

std::string DiagnosticWriter::open(const std::string &format, int descriptor) {
  if (format != "text" && format != "json")
    return "--diagnostics=" + format + ": expected text, json";
  std::string option = "--diagnostics-fd=" + std::to_string(descriptor) + ": ";
  if (format == "text")
    return descriptor == kStandardError ? "" : option + "is for --diagnostics=json";
  int flags = fcntl(descriptor, F_GETFL);
  if (flags == -1 || (flags & O_ACCMODE) == O_RDONLY)
    return option + "expected the number of a file that is open for writing";
  json = std::make_unique<llvm::raw_fd_ostream>(descriptor, /*shouldClose=*/false, /*unbuffered=*/true);
  isText = descriptor != kStandardError;
  return "";
}

void DiagnosticWriter::write(const DiagnosticRecord &record) {
  if (json)
    *json << record.toJson() + "\n";
  if (isText)
    llvm::errs() << record.render();
}

void DiagnosticWriter::writeText(llvm::StringRef text) {
  if (isText)
    llvm::errs() << text;
  if (!json)
    return;
  // Each line begins with the program's name, which rendering adds.
  std::string message;
  for (llvm::StringRef line : llvm::split(text.rtrim(), '\n')) {
    line.consume_front("spmd-compile: ");
    message += (message.empty() ? "" : "\n") + line.str();
  }
  *json << DiagnosticRecord::error(message).toJson() + "\n";
}

bool DiagnosticWriter::close() {
  if (!json || !json->has_error())
    return true;
  llvm::errs() << "spmd-compile: error: cannot write diagnostics: " << json->error().message() << '\n';
  json->clear_error(); // else its destructor ends the process
  return false;
}
