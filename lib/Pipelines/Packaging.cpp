//===- Packaging.cpp - Writing an artifact --------------------------------===//

#include "spmd/Pipelines/Packaging.h"
#include "dialects/Kernel/Kernel.h"
#include "dialects/Spmd/Spmd.h"
#include "spmd/Conversion/PlanToJson/PlanToJson.h"
#include "spmd/Kernels/SharedObject.h"
#include "spmd/Runtime/Core/Hash.h"
#include "spmd/Runtime/Core/Json.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"

using namespace mlir;
using namespace spmd;
namespace fs = llvm::sys::fs;
namespace path = llvm::sys::path;

namespace {

std::string join(StringRef folder, StringRef name) {
  SmallString<256> joined(folder);
  path::append(joined, name);
  return joined.str().str();
}

/// Writes one artifact into a folder.
class Packager {
public:
  Packager(ModuleOp module, const PackagingOptions &options, StringRef folder)
      : module(module), options(options), folder(folder) {}

  LogicalResult write();

private:
  LogicalResult writeText(StringRef name, llvm::function_ref<LogicalResult(raw_ostream &)> write);
  LogicalResult writeKernels();
  LogicalResult copyFromStep(StringRef name);
  LogicalResult fail(const Twine &message) { return module.emitError(message); }

  ModuleOp module;
  const PackagingOptions &options;
  StringRef folder;
  std::vector<KernelFile> kernels;
};

} // namespace

LogicalResult Packager::writeText(StringRef name, llvm::function_ref<LogicalResult(raw_ostream &)> write) {
  std::string file = join(folder, name);
  std::error_code error;
  llvm::raw_fd_ostream os(file, error);
  if (!error) {
    if (failed(write(os)))
      return failure();
    os.close();
    error = os.error();
    os.clear_error();
  }
  if (error)
    return fail("cannot write '" + file + "': " + error.message());
  return success();
}

LogicalResult Packager::writeKernels() {
  if (options.target.kind != kernel::Target::Kind::host)
    return fail("no code is generated for target " + options.target.getText() +
                " yet; --compile-to=plan plans the step without code");
  std::vector<std::string> cpus = options.cpus;
  if (cpus.empty())
    for (StringRef cpu : kernel::getKernelCpus())
      cpus.push_back(cpu.str());
  for (const std::string &cpu : cpus) {
    kernels.push_back({cpu, "kernels." + cpu + ".so", ""});
    std::string file = join(folder, kernels.back().file);
    if (failed(kernel::emitSharedObject(module, cpu, file)))
      return failure();
    auto code = runtime::readFile(file);
    if (!code)
      return fail(code.error().message);
    kernels.back().hash = runtime::formatHash(runtime::hashBytes(*code));
  }
  return success();
}

LogicalResult Packager::copyFromStep(StringRef name) {
  std::string from = join(options.step, name);
  if (options.step.empty() || !fs::exists(from))
    return success();
  if (std::error_code error = fs::copy_file(from, join(folder, name)))
    return fail("cannot copy '" + from + "': " + error.message());
  return success();
}

LogicalResult Packager::write() {
  plan::ProgramOp program = getProgram(module);
  if (!program || failed(writeKernels()))
    return failure();
  std::string planName = (program.getSymName() + ".plan.json").str();
  if (failed(writeText(planName, [&](raw_ostream &os) { return writePlanJson(program, os), success(); })) ||
      failed(
          writeText("manifest.json", [&](raw_ostream &os) { return writeManifestJson(module, program, kernels, os); })))
    return failure();
  if (!options.firstStep.empty())
    if (std::error_code error = fs::rename(options.firstStep, join(folder, "first_step")))
      return fail("cannot rename '" + options.firstStep + "': " + error.message());
  return success(succeeded(copyFromStep("weights.safetensors")) && succeeded(copyFromStep("reference.safetensors")));
}

/// Options of shard units that only later targets can keep.
static LogicalResult checkUnits(ModuleOp module) {
  for (ShardUnitOp unit : module.getOps<ShardUnitOp>()) {
    std::string name = unit.getModules().empty() ? "" : cast<StringAttr>(unit.getModules()[0]).getValue().str();
    auto fail = [&] {
      return unit.emitError() << "shard unit '" << (name.empty() ? "(root)" : name) << "' (@" << unit.getSymName()
                              << ") ";
    };
    for (NamedAttribute entry :
         unit.getPrecisionAttr() ? unit.getPrecisionAttr().getValue() : ArrayRef<NamedAttribute>())
      if (Type type = cast<TypeAttr>(entry.getValue()).getValue(); type != unit.getLayout().getDtype())
        return fail() << "has mixed precision (" << entry.getName().getValue() << " = " << type << ", parameters are "
                      << unit.getLayout().getDtype() << "), for which no code can be generated yet";
    if (std::optional<int64_t> group = unit.getReshardGroup())
      return fail() << "reshards after forward to groups of " << *group
                    << " ranks, for which no code can be generated yet; use true or false";
  }
  return success();
}

LogicalResult spmd::writeArtifact(ModuleOp module, const PackagingOptions &options, bool &isInternal) {
  if (!getProgram(module) || failed(checkUnits(module)))
    return failure();
  StringRef target = StringRef(options.path).rtrim('/');
  auto fail = [&](const Twine &message) -> LogicalResult { return module.emitError(message); };
  if (fs::exists(target) && !fs::exists(join(target, "manifest.json")))
    return fail("'" + target + "' is there and is no artifact; remove it or choose another -o");

  // A folder beside the target is on the same file system, so that the rename is one step.
  SmallString<256> temporary;
  fs::createUniquePath(target + ".%%%%%%", temporary, /*MakeAbsolute=*/false);
  if (std::error_code error = fs::create_directories(temporary, /*IgnoreExisting=*/false, fs::all_all))
    return fail("cannot create '" + temporary + "': " + error.message());
  isInternal = true;
  llvm::scope_exit cleanup([&] { fs::remove_directories(temporary); });
  if (failed(Packager(module, options, temporary).write()))
    return failure();

  if (fs::exists(target))
    if (std::error_code error = fs::remove_directories(target, /*IgnoreErrors=*/false))
      return fail("cannot replace '" + target + "': " + error.message());
  if (std::error_code error = fs::rename(temporary, target))
    return fail("cannot rename '" + temporary + "' to '" + target + "': " + error.message());
  cleanup.release();
  return success();
}
