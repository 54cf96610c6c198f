//===- Target.cpp - what code is generated for ----------------------------===//

#include "Targets.h"
#include "spmd/Kernels/SharedObject.h"
#include "spmd/Runtime/Core/Collective.h"
#include "spmd/Runtime/Core/GemmWorkspace.h"
#include "spmd/Runtime/Core/Hash.h"
#include "spmd/Runtime/Core/Json.h"
#include "llvm/ADT/StringExtras.h"

using namespace mlir;
using namespace spmd;

std::shared_ptr<const Target> spmd::parseTarget(StringRef text, std::string &error) {
  SmallVector<StringRef> known = kernel::getKernelChips();
  auto fail = [&](const Twine &expected) {
    error = (expected + "; chips are " + llvm::join(known, ", ")).str();
    return nullptr;
  };
  if (text == "host")
    return makeHostTarget();
  auto [name, list] = text.split(':');
  bool isEmulated = name == "emulate";
  if (name != "cuda" && !isEmulated)
    return fail("expected host, cuda:CHIP[,CHIP...] or emulate:CHIP");
  SmallVector<StringRef> given;
  list.split(given, ',');
  for (StringRef chip : given)
    if (!llvm::is_contained(known, chip))
      return fail(chip.empty() ? "expected " + name + ":CHIP" : "unknown chip '" + chip + "'");
  if (isEmulated && given.size() > 1)
    return fail("expected one chip to emulate, found " + Twine(given.size()));
  if (isEmulated)
    return makeEmulateTarget(given.front().str());
  std::vector<std::string> chips;
  for (StringRef chip : known)
    if (llvm::is_contained(given, chip))
      chips.push_back(chip.str());
  return makeCudaTarget(std::move(chips));
}

std::string Target::findBadOption(const CodeOptions &options, StringRef text) const {
  return options.emulation ? "--emulation is for --target=cuda:CHIP, not for --target=" + text.str() : "";
}

LogicalResult Target::readUserKernels(ModuleOp module, const CodeOptions &options, UserKernelFiles &) const {
  llvm::DenseSet<Attribute> found;
  WalkResult walk = module.walk([&](kernel::CustomCallOp op) -> WalkResult {
    Attribute what = ArrayAttr::get(
        op.getContext(), SmallVector<Attribute>(llvm::make_filter_range(
                             ArrayRef<Attribute>{op.getLibraryAttr(), op.getFunctionAttr(), op.getLaunchAttr()},
                             [](Attribute a) { return !!a; })));
    return !found.insert(what).second || succeeded(checkUserKernel(op, options)) ? WalkResult::advance()
                                                                                 : WalkResult::interrupt();
  });
  return failure(walk.wasInterrupted());
}

bool spmd::hasGemms(const runtime::Plan &plan, std::optional<runtime::DType> dtype) {
  return llvm::any_of(plan.commands, [&](const runtime::Command &command) {
    const auto *gemm = command.as<runtime::GemmCommand>();
    return gemm && (!dtype || gemm->dtype == *dtype);
  });
}

std::vector<runtime::OutsideArena> Target::findOutsideArena(const runtime::Plan &plan) const {
  std::vector<runtime::OutsideArena> outside;
  bool hasBF16 = hasGemms(plan, runtime::DType::BF16), hasF16 = hasGemms(plan, runtime::DType::F16);
  // GEMMs of f16, and of bf16 on processors without a unit for it, are GEMMs of f32 of widened blocks.
  if (hasBF16 || hasF16 || hasGemms(plan, runtime::DType::F32))
    outside.push_back({"workspace of f32 GEMMs, per thread", runtime::kF32WorkspaceBytes});
  if (hasGemms(plan, runtime::DType::F64))
    outside.push_back({"workspace of f64 GEMMs, per thread", runtime::kF64WorkspaceBytes});
  if (hasBF16)
    outside.push_back({"workspace of bf16 GEMMs, per thread", runtime::kBF16WorkspaceBytes});
  if (hasF16)
    outside.push_back({"workspace of f16 GEMMs, per thread", runtime::kF16WorkspaceBytes});
  outside.push_back({"thread stacks", std::nullopt});
  return outside;
}

InFlightDiagnostic spmd::emitUserKernelError(kernel::CustomCallOp op) {
  return op.getFunction()
             ? op->emitError() << "the function '" << *op.getFunction() << "' of '" << *op.getLibrary() << "' "
             : op->emitError() << "the kernel '" << op.getLaunch()->getFunction() << "' ";
}

LogicalResult spmd::checkHasLibraries(kernel::CustomCallOp op, const CodeOptions &options) {
  if (options.libraries.empty())
    return emitUserKernelError(op) << "is called here; --libraries says where that file is";
  return success();
}

LogicalResult spmd::writeSharedObjects(ArtifactFolder &folder, ArtifactKernels &kernels, const CodeOptions &options,
                                       StringRef chip,
                                       llvm::function_ref<LogicalResult(StringRef cpu, StringRef file)> emit) {
  std::vector<std::string> cpus = options.cpus.empty() ? options.usualCpus : options.cpus;
  if (cpus.empty())
    for (StringRef cpu : kernel::getKernelCpus())
      cpus.push_back(cpu.str());
  for (const std::string &cpu : cpus) {
    runtime::KernelFile entry{cpu, chip.str(), "kernels." + cpu + ".so", "", "", ""};
    std::string file = folder.pathOf(entry.file);
    if (failed(emit(cpu, file)))
      return failure();
    auto bytes = runtime::readFile(file);
    if (!bytes)
      return folder.fail(bytes.error().message);
    entry.hash = runtime::formatHash(runtime::hashBytes(*bytes));
    kernels.files.push_back(std::move(entry));
  }
  return success();
}

llvm::StringMap<int64_t> spmd::getBlocks(const ArtifactKernels &kernels) {
  llvm::StringMap<int64_t> blocks;
  for (const auto &[chip, kernel] : kernels.launches)
    blocks[kernel.symbol] = kernel.blocks;
  return blocks;
}

int64_t spmd::getGemmWorkspace(ArrayRef<std::string> chips) {
  auto isHopper = [](StringRef chip) { return kernel::getCapability(chip) >= 90; };
  return llvm::any_of(chips, isHopper) ? 32 << 20 : 4 << 20;
}

int64_t spmd::getCollectiveBlocks(ArrayRef<std::string> chips) {
  int64_t multiprocessors = INT64_MAX;
  for (const std::string &chip : chips)
    multiprocessors = std::min(multiprocessors, kernel::getMultiprocessors(chip));
  constexpr int64_t kMostUseful = 32; // more do not send faster
  return std::min(kMostUseful, multiprocessors / (runtime::kMostInFlight + 1));
}

int64_t spmd::getReductionBlocks(ArrayRef<std::string> chips) {
  int64_t multiprocessors = 0;
  for (const std::string &chip : chips)
    multiprocessors = std::max(multiprocessors, kernel::getMultiprocessors(chip));
  return 2 * multiprocessors;
}
