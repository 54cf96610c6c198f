//===- DiagnosticRecord.cpp - What the compiler says, in parts ------------===//

#include "spmd/Compiler/DiagnosticRecord.h"
#include "dialects/Spmd/Hint.h"
#include "dialects/Spmd/Source.h"
#include "llvm/Support/JSON.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace spmd;

StringRef spmd::getSeverityName(DiagnosticSeverity severity) {
  switch (severity) {
  case DiagnosticSeverity::Note:
    return "note";
  case DiagnosticSeverity::Warning:
    return "warning";
  case DiagnosticSeverity::Error:
    return "error";
  case DiagnosticSeverity::Remark:
    return "remark";
  }
  llvm_unreachable("unknown severity");
}

static void render(const DiagnosticRecord &record, bool isNote, raw_ostream &os) {
  os << (isNote ? "  " : "");
  if (!record.location.empty())
    os << record.location.front().file << ':' << record.location.front().line << ": ";
  else if (!isNote)
    os << "spmd-compile: ";
  os << getSeverityName(record.severity) << ": " << record.message << '\n';
  if (!record.module.empty())
    os << (isNote ? "    in " : "  in ") << record.module << '\n';
  for (const DiagnosticRecord &note : record.notes)
    render(note, /*isNote=*/true, os);
  if (!record.hint.empty())
    os << "  hint: " << record.hint << '\n';
}

std::string DiagnosticRecord::render() const {
  std::string text;
  llvm::raw_string_ostream os(text);
  ::render(*this, /*isNote=*/false, os);
  return text;
}

/// The members of a record; `rendered` is of the whole, so notes have none.
static void writeMembers(const DiagnosticRecord &record, llvm::json::OStream &json) {
  auto text = [&](StringRef key, StringRef value) {
    if (!value.empty())
      json.attribute(key, llvm::json::fixUTF8(value));
  };
  json.attribute("severity", getSeverityName(record.severity));
  text("code", record.code);
  json.attribute("message", llvm::json::fixUTF8(record.message));
  text("module", record.module);
  json.attributeArray("location", [&] {
    for (const SourceFrame &frame : record.location)
      json.object([&] {
        json.attribute("file", llvm::json::fixUTF8(frame.file));
        json.attribute("line", frame.line);
        json.attribute("column", frame.column);
      });
  });
  json.attributeArray("notes", [&] {
    for (const DiagnosticRecord &note : record.notes)
      json.object([&] { writeMembers(note, json); });
  });
  text("hint", record.hint);
}

std::string DiagnosticRecord::toJson() const {
  std::string text;
  llvm::raw_string_ostream os(text);
  llvm::json::OStream json(os);
  json.object([&] {
    writeMembers(*this, json);
    json.attribute("rendered", llvm::json::fixUTF8(render()));
  });
  return text;
}

DiagnosticRecord spmd::toRecord(Diagnostic &diagnostic) {
  DiagnosticRecord record;
  record.severity = diagnostic.getSeverity();
  record.message = diagnostic.str();
  record.module = getModulePath(diagnostic.getLocation()).str();
  // A call-site chain is walked from the callee outwards.
  diagnostic.getLocation()->walk([&](Location nested) {
    if (auto file = dyn_cast<FileLineColLoc>(nested))
      record.location.push_back({file.getFilename().str(), file.getLine(), file.getColumn()});
    return WalkResult::advance();
  });
  for (Diagnostic &note : diagnostic.getNotes()) {
    if (std::optional<std::string> hint = getHint(note))
      record.hint = *hint;
    else
      record.notes.push_back(toRecord(note));
  }
  return record;
}

RecordDiagnostics::RecordDiagnostics(MLIRContext *context, bool remarks, DiagnosticConsumer consume)
    : ScopedDiagnosticHandler(context) {
  setHandler([remarks, consume = std::move(consume)](Diagnostic &diagnostic) {
    if (diagnostic.getSeverity() != DiagnosticSeverity::Remark || remarks)
      consume(toRecord(diagnostic));
    return success();
  });
}
