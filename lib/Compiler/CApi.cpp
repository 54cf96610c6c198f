//===- CApi.cpp - compile.h over Compiler ---------------------------------===//

#include "spmd/Compiler/Compiler.h"
#include "spmd/Compiler/compile.h"
#include "spmd/Runtime/Core/SizedStruct.h"
#include "spmd/Version.h"

using namespace spmd;
using runtime::StatusCode, runtime::readSized;

static void diagnose(const spmd_compile_options &options, const DiagnosticRecord &record) {
  if (!options.diagnose)
    return;
  std::string rendered = record.render(), json = record.toJson();
  SourceFrame place = record.location.empty() ? SourceFrame() : record.location.front();
  spmd_diagnostic diagnostic = {};
  diagnostic.size = sizeof diagnostic;
  switch (record.severity) {
  case mlir::DiagnosticSeverity::Note:
    diagnostic.severity = SPMD_NOTE;
    break;
  case mlir::DiagnosticSeverity::Warning:
    diagnostic.severity = SPMD_WARNING;
    break;
  case mlir::DiagnosticSeverity::Error:
    diagnostic.severity = SPMD_ERROR;
    break;
  case mlir::DiagnosticSeverity::Remark:
    diagnostic.severity = SPMD_REMARK;
    break;
  }
  diagnostic.code = record.code.c_str();
  diagnostic.message = record.message.c_str();
  diagnostic.module = record.module.c_str();
  diagnostic.file = place.file.c_str();
  diagnostic.line = place.line;
  diagnostic.column = place.column;
  diagnostic.hint = record.hint.c_str();
  diagnostic.rendered = rendered.c_str();
  diagnostic.json = json.c_str();
  options.diagnose(options.context, &diagnostic);
}

int32_t spmd_compile(const spmd_compile_options *given) {
  std::optional<spmd_compile_options> known = readSized(given, spmd_compile_options());
  if (!known)
    return SPMD_BAD_INPUT;
  const spmd_compile_options &options = *known;
  auto refuse = [&](const std::string &problem) {
    diagnose(options, DiagnosticRecord::error(problem));
    return SPMD_BAD_INPUT;
  };
  OptionTexts texts;
  texts.input = options.input ? options.input : "";
  texts.output = options.output ? options.output : "";
  for (size_t i = 0; i < options.num_words; ++i)
    if (std::optional<std::string> problem = setOption(texts, options.words[i]))
      return refuse(*problem);
  if (!texts.plugins.empty() || !texts.passPlugins.empty())
    return refuse(std::string(texts.plugins.empty() ? "--load-pass-plugin" : "--load-dialect-plugin") +
                  ": plugins are loaded by the program spmd-compile only");
  CompilerOptions checked;
  if (std::optional<std::string> problem = checkOptions(texts, checked))
    return refuse(*problem);

  CompilerListener listener;
  listener.diagnose = [&](const DiagnosticRecord &record) { diagnose(options, record); };
  if (options.progress)
    listener.progress = [&](llvm::StringRef phase) { options.progress(options.context, phase.str().c_str()); };
  std::string report;
  llvm::raw_string_ostream stream(report);
  listener.report = &stream;
  StatusCode code = compile(checked, listener);
  if (options.report && !report.empty())
    options.report(options.context, report.c_str());
  return static_cast<int32_t>(code);
}

const char *spmd_compiler_version(void) { return SPMD_VERSION; }
