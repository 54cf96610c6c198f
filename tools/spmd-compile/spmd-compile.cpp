//===- spmd-compile.cpp - From a step package to an artifact --------------===//
//
// The command line of lib/Compiler. Exit codes: 0 done, 2 usage or input, 3 failure of the compiler itself, or of the
// disk.
//
//===----------------------------------------------------------------------===//

#include "CommandLine.h"
#include "DiagnosticWriter.h"
#include "spmd/Compiler/Compiler.h"
#include "spmd/InitAll.h"
#include "spmd/Pipelines/CrashMessage.h"

#include "llvm/Support/InitLLVM.h"
#include "llvm/Support/Process.h"

using namespace spmd;
using runtime::StatusCode;

static StatusCode run(const CommandLine &line, DiagnosticWriter &writer) {
  CompilerOptions options;
  auto refuse = [&](const std::string &problem) {
    writer.write(DiagnosticRecord::error(problem));
    return StatusCode::BadInput;
  };
  if (!line.problem.empty()) {
    writer.writeText(line.problem);
    return StatusCode::BadInput;
  }
  if (line.badValue)
    return refuse(*line.badValue);
  if (line.printPipeline) {
    if (std::optional<std::string> problem = checkPipelineOptions(line.texts, options))
      return refuse(*problem);
    registerAllPasses();
    printPipeline(options.pipeline, llvm::outs());
    return StatusCode::Ok;
  }
  if (std::optional<std::string> problem = checkOptions(line.texts, options))
    return refuse(*problem);
  CompilerListener listener;
  listener.diagnose = [&](const DiagnosticRecord &record) { writer.write(record); };
  listener.report = &llvm::outs();
  if (llvm::sys::Process::StandardErrIsDisplayed())
    listener.progress = [](llvm::StringRef text) { llvm::errs() << "\r\033[K" << text; };
  return compile(options, listener);
}

int main(int argc, char **argv) {
  explainCrashes(argc, argv);
  llvm::InitLLVM init(argc, argv);
  CommandLine line = parseCommandLine(argc, argv);
  DiagnosticWriter writer;
  StatusCode code = StatusCode::BadInput;
  if (std::string problem = writer.open(line.diagnostics, line.diagnosticsDescriptor); !problem.empty())
    writer.write(DiagnosticRecord::error(problem));
  else
    code = run(line, writer);
  return static_cast<int>(writer.close() ? code : StatusCode::Failed);
}
