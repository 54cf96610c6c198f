//===- Ptx.cpp - GPU kernels as PTX ---------------------------------------===//

#include "Ptx.h"
#include "ConvertToNVVM.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMDialect.h"
#include "mlir/Target/LLVMIR/Export.h"
#include "llvm/ADT/SetVector.h"
#include "llvm/IR/LLVMContext.h"
#include "llvm/IR/LegacyPassManager.h"
#include "llvm/IR/Module.h"
#include "llvm/MC/TargetRegistry.h"
#include "llvm/Passes/PassBuilder.h"
#include "llvm/Support/Parallel.h"
#include "llvm/Support/TargetSelect.h"
#include "llvm/Support/Threading.h"
#include "llvm/Support/raw_ostream.h"
#include "llvm/Target/TargetMachine.h"

using namespace mlir;

namespace spmd::kernel {

namespace {

/// One kernel on its way to PTX.
struct Unit {
  std::string symbol;
  std::unique_ptr<llvm::LLVMContext> context;
  std::unique_ptr<llvm::Module> module;
  std::string text, error;
};

} // namespace

/// The oldest PTX that has what kernels use, so that old drivers take it as well: CUDA 11.8's, or the first with the
/// chip.
static StringRef getPtxFeature(const Device &device) { return device.chip == "sm_100" ? "+ptx86" : "+ptx78"; }

static std::unique_ptr<llvm::TargetMachine> createMachine(const Device &device, std::string &error) {
  static llvm::once_flag initialized;
  llvm::call_once(initialized, [] {
    LLVMInitializeNVPTXTargetInfo();
    LLVMInitializeNVPTXTarget();
    LLVMInitializeNVPTXTargetMC();
    LLVMInitializeNVPTXAsmPrinter();
  });
  llvm::Triple triple("nvptx64-nvidia-cuda");
  const llvm::Target *target = llvm::TargetRegistry::lookupTarget(triple, error);
  if (!target)
    return nullptr;
  llvm::TargetOptions options;
  // Written as mul.rn and add.rn, which ptxas may not contract; math.fma is fma.rn.
  options.AllowFPOpFusion = llvm::FPOpFusion::Strict;
  return std::unique_ptr<llvm::TargetMachine>(target->createTargetMachine(triple, device.chip, getPtxFeature(device),
                                                                          options, std::nullopt, std::nullopt,
                                                                          llvm::CodeGenOptLevel::Aggressive));
}

/// Optimizes and prints one kernel; runs in several threads.
static void compile(Unit &unit, const Device &device) {
  std::unique_ptr<llvm::TargetMachine> machine = createMachine(device, unit.error);
  if (!machine)
    return;
  llvm::Module &module = *unit.module;
  module.setTargetTriple(machine->getTargetTriple());
  module.setDataLayout(machine->createDataLayout());
  for (llvm::Function &function : module) {
    function.addFnAttr(llvm::Attribute::NoUnwind);
    // No loop becomes a call of memcpy.
    if (!function.isDeclaration())
      function.addFnAttr("no-builtins");
  }
  llvm::PassBuilder builder(machine.get());
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager components;
  llvm::ModuleAnalysisManager modules;
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(components);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, components, modules);
  builder.buildPerModuleDefaultPipeline(llvm::OptimizationLevel::O3).run(module, modules);

  SmallString<0> text;
  llvm::raw_svector_ostream stream(text);
  llvm::legacy::PassManager emission;
  if (machine->addPassesToEmitFile(emission, stream, nullptr, llvm::CodeGenFileType::AssemblyFile)) {
    unit.error = "the target cannot write PTX";
    return;
  }
  emission.run(module);
  unit.text = text.str().str();
}

/// A module of `kernel` and the globals it uses.
static OwningOpRef<ModuleOp> isolate(LLVM::LLVMFuncOp kernel, gpu::GPUModuleOp from) {
  OwningOpRef<ModuleOp> module = ModuleOp::create(kernel.getLoc());
  OpBuilder b = OpBuilder::atBlockEnd(module->getBody());
  llvm::SetVector<Operation *> globals;
  kernel.walk([&](LLVM::AddressOfOp address) {
    if (Operation *global = from.lookupSymbol(address.getGlobalName()))
      globals.insert(global);
  });
  for (Operation *global : globals)
    b.clone(*global);
  b.clone(*kernel);
  return module;
}

FailureOr<std::vector<KernelPtx>> emitPtx(ModuleOp module, const Device &device) {
  if (failed(convertToNVVM(module)))
    return failure();

  std::vector<Unit> units;
  for (auto kernels : module.getOps<gpu::GPUModuleOp>())
    for (auto kernel : kernels.getOps<LLVM::LLVMFuncOp>()) {
      Unit unit;
      unit.symbol = kernel.getSymName().str();
      unit.context = std::make_unique<llvm::LLVMContext>();
      unit.module = translateModuleToLLVMIR(*isolate(kernel, kernels), *unit.context, unit.symbol);
      if (!unit.module)
        return failure();
      units.push_back(std::move(unit));
    }
  llvm::parallelFor(0, units.size(), [&](size_t i) { compile(units[i], device); });

  std::vector<KernelPtx> result;
  for (Unit &unit : units) {
    if (!unit.error.empty())
      return module.emitError("code generation for ") << device.chip << ": " << unit.error;
    result.push_back({std::move(unit.symbol), std::move(unit.text)});
  }
  return result;
}

std::string joinPtx(ArrayRef<KernelPtx> kernels) {
  std::string joined;
  for (const KernelPtx &kernel : kernels) {
    StringRef text = kernel.text;
    // Version, target and address size are stated once.
    constexpr StringLiteral kLast = ".address_size 64\n";
    size_t end = text.find(kLast);
    joined += joined.empty() || end == StringRef::npos ? text : text.substr(end + kLast.size());
  }
  return joined;
}

} // namespace spmd::kernel
