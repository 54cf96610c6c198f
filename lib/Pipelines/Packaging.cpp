//===- Packaging.cpp - Writing an artifact --------------------------------===//

#include "spmd/Pipelines/Packaging.h"
#include "JoinKernels.h"
#include "spmd/Runtime/Core/Hash.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/Support/FileSystem.h"

using namespace mlir;
using namespace spmd;
namespace fs = llvm::sys::fs;

namespace {

/// Writes one artifact into a folder.
class Packager {
public:
  Packager(ModuleOp module, const PackagingOptions &options, UserKernelFiles userKernels, StringRef folder)
      : module(module), options(options), userKernels(std::move(userKernels)), folder(folder, module) {}

  LogicalResult write();

private:
  FailureOr<runtime::Manifest> writeProgram(ModuleOp of);
  LogicalResult addFirstStep(runtime::Manifest &manifest);
  LogicalResult copyFromStep(StringRef name);
  template <typename T>
  LogicalResult writeReadBack(StringRef name, StringRef text,
                              runtime::Expected<T> (*parse)(const std::string &, std::string_view),
                              std::string (*write)(const T &));

  ModuleOp module;
  const PackagingOptions &options;
  UserKernelFiles userKernels;
  ArtifactFolder folder;
  ArtifactKernels kernels;
};

} // namespace

LogicalResult Packager::copyFromStep(StringRef name) {
  std::string from = ArtifactFolder(options.step, module).pathOf(name);
  if (options.step.empty() || !fs::exists(from))
    return success();
  if (std::error_code error = fs::copy_file(from, folder.pathOf(name)))
    return folder.fail("cannot copy '" + from + "': " + error.message());
  return success();
}

/// Writes the text of `value`, once the runtime's reader has got all of it back: what is written and not read, or read
/// as something else, would train another program than the one that was verified.
template <typename T>
LogicalResult Packager::writeReadBack(StringRef name, StringRef text,
                                      runtime::Expected<T> (*parse)(const std::string &, std::string_view),
                                      std::string (*write)(const T &)) {
  runtime::Expected<T> read = parse(("'" + name + "'").str(), text);
  if (!read)
    return folder.fail("internal error of spmd-compile: the runtime rejects the written file: " + read.error().message);
  if (write(*read) != text)
    return folder.fail("internal error of spmd-compile: the runtime reads another '" + name + "' than was written");
  return folder.writeText(name, text);
}

/// Writes the plan of the program in `of`; returns what the manifest says of it.
FailureOr<runtime::Manifest> Packager::writeProgram(ModuleOp of) {
  plan::ProgramOp program = getProgram(of);
  FailureOr<runtime::PlanFile> file = program ? translatePlanFile(program) : FailureOr<runtime::PlanFile>();
  if (failed(file))
    return failure();
  options.target->adjustPlan(file->plan, kernels);
  runtime::Expected<runtime::Plan> plan = runtime::unroll(*file);
  if (!plan)
    return folder.fail("a mistake of spmd-compile: " + plan.error().message);
  FailureOr<runtime::Manifest> manifest = translateManifest(of, program, *plan, kernels);
  if (failed(manifest))
    return failure();
  manifest->outsideArena = options.target->findOutsideArena(*plan);
  manifest->needs = options.target->findNeeds(*plan);
  runtime::ProgramEntry &entry = manifest->programs.front();
  std::string text = runtime::writePlanFile(*file);
  entry.hash = runtime::formatHash(runtime::hashBytes(text));
  if (failed(writeReadBack(entry.plan, text, runtime::parsePlanFile, runtime::writePlanFile)))
    return failure();
  return manifest;
}

/// What all programs of an artifact share, as its manifest says it.
static std::string describeState(const runtime::Manifest &manifest) {
  runtime::Manifest shared;
  shared.stateBytes = manifest.stateBytes;
  shared.units = manifest.units;
  shared.state = manifest.state;
  return runtime::writeManifest(shared);
}

/// The first step is a program on the state of the step: the manifest says once where that lies.
LogicalResult Packager::addFirstStep(runtime::Manifest &manifest) {
  FailureOr<runtime::Manifest> first = writeProgram(options.firstStep);
  if (failed(first))
    return failure();
  if (describeState(*first) != describeState(manifest))
    return emitError(options.firstStep->getLoc(), "the first step lays out the state otherwise than the later ones");
  manifest.programs.push_back(first->programs.front());
  manifest.others.push_back(std::move(*first));
  return success();
}

LogicalResult Packager::write() {
  if (failed(options.target->writeKernels(module, options.code, userKernels, folder, kernels)))
    return failure();
  FailureOr<runtime::Manifest> manifest = writeProgram(module);
  if (failed(manifest) || (options.firstStep && failed(addFirstStep(*manifest))) ||
      failed(writeReadBack("manifest.json", runtime::writeManifest(*manifest), runtime::parseManifest,
                           runtime::writeManifest)))
    return failure();
  return success(succeeded(copyFromStep("weights.safetensors")) && succeeded(copyFromStep("reference.safetensors")));
}

LogicalResult spmd::writeArtifact(ModuleOp module, const PackagingOptions &options, bool &isInternal) {
  UserKernelFiles userKernels;
  if (!getProgram(module) || (options.firstStep && !getProgram(options.firstStep)))
    return failure();
  if (options.firstStep)
    joinKernels(options.firstStep, module);
  if (failed(options.target->readUserKernels(module, options.code, userKernels)))
    return failure();
  StringRef target = StringRef(options.path).rtrim('/');
  auto fail = [&](const Twine &message) -> LogicalResult { return module.emitError(message); };
  if (fs::exists(target) && !fs::exists(ArtifactFolder(target, module).pathOf("manifest.json")))
    return fail("'" + target + "' is there and is no artifact; remove it or choose another -o");

  // A folder beside the target is on the same file system, so that the rename is one step.
  SmallString<256> temporary;
  fs::createUniquePath(target + ".%%%%%%", temporary, /*MakeAbsolute=*/false);
  if (std::error_code error = fs::create_directories(temporary, /*IgnoreExisting=*/false, fs::all_all))
    return fail("cannot create '" + temporary + "': " + error.message());
  isInternal = true;
  llvm::scope_exit cleanup([&] { fs::remove_directories(temporary); });
  if (failed(Packager(module, options, std::move(userKernels), temporary).write()))
    return failure();

  if (fs::exists(target))
    if (std::error_code error = fs::remove_directories(target, /*IgnoreErrors=*/false))
      return fail("cannot replace '" + target + "': " + error.message());
  if (std::error_code error = fs::rename(temporary, target))
    return fail("cannot rename '" + temporary + "' to '" + target + "': " + error.message());
  cleanup.release();
  return success();
}
