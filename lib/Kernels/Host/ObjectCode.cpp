//===- ObjectCode.cpp - LLVM IR to machine code and shared objects --------===//

#include "ObjectCode.h"
#include "spmd/Kernels/SharedObject.h"
#include "llvm/Analysis/TargetLibraryInfo.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FileUtilities.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Program.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Support/Threading.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Target/TargetMachine.h"

using namespace llvm;

namespace spmd::kernel {

/// Kernels stand alone: no pass may turn their loops into calls of a C library.
static TargetLibraryInfoImpl getNoLibrary(const Triple &triple) {
  TargetLibraryInfoImpl info(triple);
  info.disableAllFunctions();
  return info;
}

std::string generateObject(Module &module, StringRef cpu, SmallVectorImpl<char> &object) {
  static llvm::once_flag initialized;
  llvm::call_once(initialized, [] {
    LLVMInitializeX86TargetInfo();
    LLVMInitializeX86Target();
    LLVMInitializeX86TargetMC();
    LLVMInitializeX86AsmPrinter();
  });
  Triple triple("x86_64-unknown-linux-gnu");
  std::string error;
  const Target *target = TargetRegistry::lookupTarget(triple, error);
  if (!target)
    return error;
  TargetOptions options;
  // mul and add stay two roundings; math.fma is one.
  options.AllowFPOpFusion = FPOpFusion::Strict;
  std::unique_ptr<TargetMachine> machine(target->createTargetMachine(triple, cpu, /*Features=*/"", options, Reloc::PIC_,
                                                                     std::nullopt, CodeGenOptLevel::Aggressive));
  if (!machine)
    return "no target machine for " + cpu.str();
  module.setTargetTriple(triple);
  module.setDataLayout(machine->createDataLayout());
  for (Function &function : module) {
    if (function.isDeclaration())
      continue;
    function.addFnAttr("target-cpu", cpu);
    function.addFnAttr("no-builtins");
    function.addFnAttr(Attribute::NoUnwind);
    // Vectors are 16 lanes: one 512-bit register where there is one.
    if (cpu == "x86-64-v4")
      function.addFnAttr("prefer-vector-width", "512");
  }

  PipelineTuningOptions tuning;
  tuning.LoopVectorization = tuning.SLPVectorization = tuning.LoopUnrolling = tuning.LoopInterleaving = true;
  PassBuilder builder(machine.get(), tuning);
  LoopAnalysisManager loops;
  FunctionAnalysisManager functions;
  CGSCCAnalysisManager components;
  ModuleAnalysisManager modules;
  functions.registerPass([&] { return TargetLibraryAnalysis(getNoLibrary(triple)); });
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(components);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, components, modules);
  builder.buildPerModuleDefaultPipeline(OptimizationLevel::O3).run(module, modules);

  raw_svector_ostream stream(object);
  legacy::PassManager emission;
  emission.add(new TargetLibraryInfoWrapperPass(getNoLibrary(triple)));
  if (machine->addPassesToEmitFile(emission, stream, nullptr, CodeGenFileType::ObjectFile))
    return "the target cannot write object files";
  emission.run(module);
  return "";
}

/// The linker beside LLVM's tools, or on the PATH.
static std::string findLinker() {
  StringRef directory = SPMD_LLVM_TOOLS_DIR;
  for (StringRef name : {"ld.lld-22", "ld.lld"}) {
    if (ErrorOr<std::string> found = sys::findProgramByName(name, {directory}))
      return *found;
    if (ErrorOr<std::string> found = sys::findProgramByName(name))
      return *found;
  }
  return "";
}

std::string linkSharedObject(ArrayRef<ArrayRef<char>> objects, StringRef path) {
  std::string linker = findLinker();
  if (linker.empty())
    return "no ld.lld-22 or ld.lld in " SPMD_LLVM_TOOLS_DIR " or on the PATH; install lld";

  SmallString<128> temporary(path);
  temporary += ".tmp";
  FileRemover removeTemporary(temporary);
  SmallVector<std::string> arguments = {linker,
                                        "-shared",
                                        "--no-undefined",
                                        "--build-id=none",
                                        "--gc-sections",
                                        "--hash-style=gnu",
                                        "-o",
                                        temporary.str().str()};
  std::vector<std::unique_ptr<FileRemover>> removers;
  for (ArrayRef<char> bytes : objects) {
    SmallString<128> file;
    int descriptor;
    if (std::error_code code = sys::fs::createTemporaryFile("spmd-kernels", "o", descriptor, file))
      return "cannot make a temporary file: " + code.message();
    removers.push_back(std::make_unique<FileRemover>(file));
    raw_fd_ostream stream(descriptor, /*shouldClose=*/true);
    stream.write(bytes.data(), bytes.size());
    stream.close();
    if (std::error_code code = stream.error()) {
      stream.clear_error();
      return "cannot write " + file.str().str() + ": " + code.message();
    }
    arguments.push_back(file.str().str());
  }

  // The linker's messages are the user's only hint: they go to a file that is read back.
  SmallString<128> messages;
  if (std::error_code code = sys::fs::createTemporaryFile("spmd-link", "txt", messages))
    return "cannot make a temporary file: " + code.message();
  FileRemover removeMessages(messages);
  SmallVector<StringRef> views(arguments.begin(), arguments.end());
  std::string failure;
  int status =
      sys::ExecuteAndWait(linker, views, std::nullopt, {std::nullopt, StringRef(messages), StringRef(messages)},
                          /*SecondsToWait=*/0, /*MemoryLimit=*/0, &failure);
  if (status != 0) {
    ErrorOr<std::unique_ptr<MemoryBuffer>> text = MemoryBuffer::getFile(messages);
    return linker + " failed: " + (text ? (*text)->getBuffer().trim().str() : failure);
  }
  if (std::error_code code = sys::fs::rename(temporary, path))
    return "cannot write " + path.str() + ": " + code.message();
  return "";
}

} // namespace spmd::kernel
