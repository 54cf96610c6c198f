//===- Packaging.cpp - Writing an artifact --------------------------------===//

#include "spmd/Pipelines/Packaging.h"
#include "dialects/Kernel/Kernel.h"
#include "dialects/Spmd/Spmd.h"
#include "spmd/Conversion/PlanToRuntime/PlanToRuntime.h"
#include "spmd/Kernels/EmulatedObject.h"
#include "spmd/Kernels/KernelTable.h"
#include "spmd/Kernels/SharedObject.h"
#include "spmd/Runtime/Core/Externals.h"
#include "spmd/Runtime/Core/Hash.h"
#include "spmd/Runtime/Core/Json.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/ADT/StringSet.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace spmd;
namespace fs = llvm::sys::fs;
namespace path = llvm::sys::path;

namespace {

std::string pathIn(StringRef folder, StringRef name) {
  SmallString<256> joined(folder);
  path::append(joined, name);
  return joined.str().str();
}

/// Writes one artifact into a folder.
class Packager {
public:
  Packager(ModuleOp module, const PackagingOptions &options, llvm::StringMap<kernel::UserKernels> user,
           StringRef folder)
      : module(module), options(options), user(std::move(user)), folder(folder) {}

  LogicalResult write();

private:
  LogicalResult writeText(StringRef name, StringRef text);
  LogicalResult writeKernels();
  LogicalResult writeSharedObjects(ModuleOp module);
  LogicalResult writeCubins(StringRef chip);
  LogicalResult writeEmulation(ModuleOp code, StringRef file);
  LogicalResult writeCode(StringRef name, StringRef code, std::string &hash);
  LogicalResult copyFromStep(StringRef name);
  LogicalResult copyLibraries();
  LogicalResult fail(const Twine &message) { return module.emitError(message); }

  ModuleOp module;
  const PackagingOptions &options;
  llvm::StringMap<kernel::UserKernels> user; ///< by chip
  StringRef folder;
  ArtifactKernels kernels;
};

} // namespace

LogicalResult Packager::writeText(StringRef name, StringRef text) {
  std::string file = pathIn(folder, name);
  std::error_code error;
  llvm::raw_fd_ostream os(file, error);
  if (!error) {
    os << text;
    os.close();
    error = os.error();
    os.clear_error();
  }
  if (error)
    return fail("cannot write '" + file + "': " + error.message());
  return success();
}

/// The blocks of the grid of each kernel for a GPU.
static llvm::StringMap<int64_t> getBlocks(const ArtifactKernels &kernels) {
  llvm::StringMap<int64_t> blocks;
  for (const auto &[chip, kernel] : kernels.launches)
    blocks[kernel.symbol] = kernel.blocks;
  return blocks;
}

/// Shared objects for the CPUs that were asked for. `code` holds kernel ops, or the kernels of a GPU to emulate.
LogicalResult Packager::writeSharedObjects(ModuleOp code) {
  bool isEmulated = options.target.kind == kernel::Target::Kind::emulate;
  FailureOr<std::string> table = kernel::getKernelTable(module, getBlocks(kernels));
  if (failed(table))
    return failure();
  std::vector<std::string> cpus = options.cpus;
  if (cpus.empty())
    for (StringRef cpu : kernel::getKernelCpus())
      cpus.push_back(cpu.str());
  for (const std::string &cpu : cpus) {
    runtime::KernelFile entry{cpu, isEmulated ? options.target.chips.front() : "", "kernels." + cpu + ".so", "", "",
                              ""};
    std::string file = pathIn(folder, entry.file);
    kernels.hostKernels.clear();
    if (failed(isEmulated ? kernel::emitEmulatedObject(code, cpu, file, /*checkedOnly=*/false, *table)
                          : kernel::emitSharedObject(code, cpu, file, &kernels.hostKernels)))
      return failure();
    auto bytes = runtime::readFile(file);
    if (!bytes)
      return fail(bytes.error().message);
    entry.hash = runtime::formatHash(runtime::hashBytes(*bytes));
    kernels.files.push_back(std::move(entry));
  }
  return success();
}

LogicalResult Packager::writeCode(StringRef name, StringRef code, std::string &hash) {
  hash = runtime::formatHash(runtime::hashBytes(code));
  return writeText(name, code);
}

/// Cubins for one chip, and the PTX they were made from, which newer chips run.
LogicalResult Packager::writeCubins(StringRef chip) {
  FailureOr<OwningOpRef<ModuleOp>> lowered = kernel::lowerGpuKernels(module, chip);
  if (failed(lowered))
    return failure();
  std::string stem = ("kernels." + chip).str();
  OwningOpRef<ModuleOp> emulated;
  if (options.emulation)
    emulated = (*lowered)->clone();
  FailureOr<kernel::CubinArchive> archive = kernel::compileCubins(**lowered, chip, options.cuda, std::move(user[chip]));
  if (failed(archive))
    return failure();
  FailureOr<std::string> table = kernel::getKernelTable(module, {});
  if (failed(table))
    return failure();
  for (const kernel::GpuKernel &kernel : archive->kernels)
    *table += formatLaunch(chip, kernel);
  kernel::addKernelTable(*archive, *table);
  runtime::KernelFile entry{"", chip.str(), stem + ".a", "", stem + ".ptx", ""};
  if (failed(writeCode(entry.file, archive->code, entry.hash)) ||
      failed(writeCode(entry.ptx, archive->ptx, entry.ptxHash)))
    return failure();
  kernels.files.push_back(std::move(entry));
  for (kernel::GpuKernel &kernel : archive->kernels)
    kernels.launches.push_back({chip.str(), std::move(kernel)});
  return emulated ? writeEmulation(*emulated, stem + ".emulated.so") : success();
}

/// What stands in for the cubins on a machine without a GPU (test/StandIn). The manifest does not know of it.
LogicalResult Packager::writeEmulation(ModuleOp code, StringRef file) {
  FailureOr<std::string> table = kernel::getKernelTable(module, getBlocks(kernels));
  if (failed(table))
    return failure();
  return kernel::emitEmulatedObject(code, kernel::getKernelCpus().front(), pathIn(folder, file), /*checkedOnly=*/false,
                                    *table);
}

LogicalResult Packager::writeKernels() {
  switch (options.target.kind) {
  case kernel::Target::Kind::host:
    return writeSharedObjects(module);
  case kernel::Target::Kind::cuda:
    for (const std::string &chip : options.target.chips)
      if (failed(writeCubins(chip)))
        return failure();
    return success();
  case kernel::Target::Kind::emulate: {
    const std::string &chip = options.target.chips.front();
    FailureOr<OwningOpRef<ModuleOp>> lowered = kernel::lowerGpuKernels(module, chip);
    if (failed(lowered))
      return failure();
    for (kernel::GpuKernel &kernel : kernel::describeGpuKernels(**lowered))
      kernels.launches.push_back({chip, std::move(kernel)});
    return writeSharedObjects(**lowered);
  }
  }
  llvm_unreachable("unknown target");
}

/// The iterations of an emulated kernel are the blocks of its grid.
static void launchBlocks(plan::ProgramOp program, const ArtifactKernels &kernels) {
  llvm::StringMap<int64_t> blocks = getBlocks(kernels);
  program.walk([&](plan::KernelOp op) {
    op.setParallel(blocks.lookup(op.getKernel()));
    op.setGrain(1);
  });
}

LogicalResult Packager::copyFromStep(StringRef name) {
  std::string from = pathIn(options.step, name);
  if (options.step.empty() || !fs::exists(from))
    return success();
  if (std::error_code error = fs::copy_file(from, pathIn(folder, name)))
    return fail("cannot copy '" + from + "': " + error.message());
  return success();
}

/// The libraries whose functions kernels call: the very files that the step was captured with.
LogicalResult Packager::copyLibraries() {
  if (options.target.kind != kernel::Target::Kind::host)
    return success();
  std::string to = pathIn(folder, runtime::kLibraryFolder);
  llvm::StringSet<> copied;
  WalkResult walk = module.walk([&](kernel::CustomCallOp op) -> WalkResult {
    if (!copied.insert(*op.getLibrary()).second)
      return WalkResult::advance();
    fs::create_directory(to);
    std::string from = pathIn(options.libraries, *op.getLibrary());
    if (std::error_code error = fs::copy_file(from, pathIn(to, *op.getLibrary())))
      return op.emitOpError("cannot copy '") << from << "': " << error.message();
    return WalkResult::advance();
  });
  return failure(walk.wasInterrupted());
}

/// What the user declared runs on the target, and is at hand.
static LogicalResult checkCustomCall(kernel::CustomCallOp op, const PackagingOptions &options) {
  bool isForCpus = options.target.kind == kernel::Target::Kind::host;
  auto fail = [&]() -> InFlightDiagnostic {
    return op.getFunction()
               ? op->emitError() << "the function '" << *op.getFunction() << "' of '" << *op.getLibrary() << "' "
               : op->emitError() << "the kernel '" << op.getLaunch()->getFunction() << "' ";
  };
  if (options.target.kind == kernel::Target::Kind::emulate)
    return fail() << "cannot be emulated, as the compiler's own kernels can; declare what the operator computes by "
                     "spmd.register_decomposition";
  if (isForCpus && !op.getFunction())
    return fail() << "is for GPUs; for CPUs, declare a function by spmd.register_kernel(library=…, symbol=…)";
  if (!isForCpus && !op.getLaunch())
    return fail()
           << "runs on CPUs; for GPUs, declare a kernel by spmd.register_kernel(cubins=…, launch=…), or what the "
              "operator computes by spmd.register_decomposition";
  if (options.libraries.empty())
    return fail() << "is called here; --libraries says where that file is";
  if (!isForCpus) // their files are checked with what is in them
    return success();
  std::string file = pathIn(options.libraries, *op.getLibrary());
  auto bytes = runtime::readFile(file);
  runtime::Status status = bytes ? runtime::checkHash(file, *bytes, op.getHash()->str()) : bytes.error();
  if (!status.ok())
    return fail() << "is called here: " << status.message;
  return success();
}

/// Checks what the user declared; `user` is what GPUs launch of it.
static LogicalResult checkCustomCalls(ModuleOp module, const PackagingOptions &options,
                                      llvm::StringMap<kernel::UserKernels> &user) {
  llvm::DenseSet<Attribute> found;
  WalkResult walk = module.walk([&](kernel::CustomCallOp op) -> WalkResult {
    Attribute what = ArrayAttr::get(
        op.getContext(), SmallVector<Attribute>(llvm::make_filter_range(
                             ArrayRef<Attribute>{op.getLibraryAttr(), op.getFunctionAttr(), op.getLaunchAttr()},
                             [](Attribute a) { return !!a; })));
    return !found.insert(what).second || succeeded(checkCustomCall(op, options)) ? WalkResult::advance()
                                                                                 : WalkResult::interrupt();
  });
  if (walk.wasInterrupted())
    return failure();
  if (options.target.kind != kernel::Target::Kind::cuda)
    return success();
  for (const std::string &chip : options.target.chips) {
    FailureOr<kernel::UserKernels> read = kernel::readUserKernels(module, chip, options.libraries);
    if (failed(read))
      return failure();
    user[chip] = std::move(*read);
  }
  return success();
}

LogicalResult Packager::write() {
  plan::ProgramOp program = getProgram(module);
  if (!program || failed(copyLibraries()) || failed(writeKernels()))
    return failure();
  OwningOpRef<ModuleOp> launched;
  if (options.target.kind == kernel::Target::Kind::emulate) {
    launched = module.clone();
    program = getProgram(*launched);
    launchBlocks(program, kernels);
  }
  FailureOr<runtime::Plan> plan = translatePlan(program);
  if (failed(plan))
    return failure();
  FailureOr<runtime::Manifest> manifest = translateManifest(module, program, *plan, kernels);
  if (failed(manifest) || failed(writeText(manifest->programs.front().plan, runtime::writePlan(*plan))) ||
      failed(writeText("manifest.json", runtime::writeManifest(*manifest))))
    return failure();
  if (!options.firstStep.empty())
    if (std::error_code error = fs::rename(options.firstStep, pathIn(folder, "first_step")))
      return fail("cannot rename '" + options.firstStep + "': " + error.message());
  return success(succeeded(copyFromStep("weights.safetensors")) && succeeded(copyFromStep("reference.safetensors")));
}

LogicalResult spmd::writeArtifact(ModuleOp module, const PackagingOptions &options, bool &isInternal) {
  llvm::StringMap<kernel::UserKernels> user;
  if (!getProgram(module) || failed(checkCustomCalls(module, options, user)))
    return failure();
  StringRef target = StringRef(options.path).rtrim('/');
  auto fail = [&](const Twine &message) -> LogicalResult { return module.emitError(message); };
  if (fs::exists(target) && !fs::exists(pathIn(target, "manifest.json")))
    return fail("'" + target + "' is there and is no artifact; remove it or choose another -o");

  // A folder beside the target is on the same file system, so that the rename is one step.
  SmallString<256> temporary;
  fs::createUniquePath(target + ".%%%%%%", temporary, /*MakeAbsolute=*/false);
  if (std::error_code error = fs::create_directories(temporary, /*IgnoreExisting=*/false, fs::all_all))
    return fail("cannot create '" + temporary + "': " + error.message());
  isInternal = true;
  llvm::scope_exit cleanup([&] { fs::remove_directories(temporary); });
  if (failed(Packager(module, options, std::move(user), temporary).write()))
    return failure();

  if (fs::exists(target))
    if (std::error_code error = fs::remove_directories(target, /*IgnoreErrors=*/false))
      return fail("cannot replace '" + target + "': " + error.message());
  if (std::error_code error = fs::rename(temporary, target))
    return fail("cannot rename '" + temporary + "' to '" + target + "': " + error.message());
  cleanup.release();
  return success();
}
