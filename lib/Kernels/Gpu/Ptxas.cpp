//===- Ptxas.cpp - NVIDIA's assembler -------------------------------------===//

#include "Ptxas.h"
#include "llvm/ADT/ScopeExit.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/FileUtilities.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/Process.h"
#include "llvm/Support/Program.h"
#include "spmd/Kernels/WriteFile.h"
#include <algorithm>
#include <vector>

using namespace llvm;
namespace fs = sys::fs;
namespace path = sys::path;

namespace spmd::kernel {

static Error fail(const Twine &message) { return createStringError(inconvertibleErrorCode(), message); }

static constexpr StringLiteral kHint =
    "install the CUDA toolkit 13, run scripts/setup --cuda, or name a toolkit with --cuda=DIR";

/// ptxas in a toolkit's folder.
static std::string getProgram(StringRef toolkit) {
  SmallString<128> program(toolkit);
  path::append(program, "bin", "ptxas");
  return program.str().str();
}

/// Where the toolkits of NVIDIA's Python package under `root` have it, newest first: nvidia/cu13.
static std::vector<std::string> findPackages(const Twine &root) {
  std::vector<std::string> found;
  std::error_code error;
  for (fs::directory_iterator entry(root + "/nvidia", error), end; !error && entry != end; entry.increment(error))
    if (path::filename(entry->path()).starts_with("cu"))
      found.push_back(getProgram(entry->path()));
  // Folders come in no order of their own.
  std::sort(found.rbegin(), found.rend());
  return found;
}

/// Where ptxas may be, the preferred first.
static std::vector<std::string> getPrograms() {
  std::vector<std::string> programs;
  if (std::optional<std::string> home = sys::Process::GetEnv("CUDA_HOME"); home && !home->empty())
    programs.push_back(getProgram(*home));
  if (ErrorOr<std::string> program = sys::findProgramByName("ptxas"))
    programs.push_back(*program);
  programs.push_back(getProgram("/usr/local/cuda"));
  std::vector<std::string> packages = findPackages(SPMD_CUDA_PACKAGES_DIR);
  if (std::optional<std::string> environment = sys::Process::GetEnv("VIRTUAL_ENV")) {
    std::error_code error;
    std::vector<std::string> versions;
    for (fs::directory_iterator entry(*environment + "/lib", error), end; !error && entry != end;
         entry.increment(error))
      versions.push_back(entry->path());
    std::sort(versions.begin(), versions.end());
    for (const std::string &version : versions)
      append_range(packages, findPackages(version + "/site-packages"));
  }
  append_range(programs, packages);
  return programs;
}

/// Runs a program and returns what it prints; an error has that text.
static Expected<std::string> execute(ArrayRef<StringRef> arguments) {
  SmallString<128> output;
  if (std::error_code code = fs::createTemporaryFile("spmd-ptxas", "txt", output))
    return fail("cannot make a temporary file: " + code.message());
  FileRemover remove(output);
  std::string failure;
  int status = sys::ExecuteAndWait(arguments[0], arguments, std::nullopt,
                                   {std::nullopt, StringRef(output), StringRef(output)}, /*SecondsToWait=*/0,
                                   /*MemoryLimit=*/0, &failure);
  ErrorOr<std::unique_ptr<MemoryBuffer>> text = MemoryBuffer::getFile(output);
  std::string printed = text ? (*text)->getBuffer().str() : "";
  if (status != 0)
    return fail(arguments[0] + " failed: " + (StringRef(printed).trim().empty() ? failure : StringRef(printed).trim()));
  return printed;
}

Expected<Ptxas> Ptxas::find(StringRef toolkit) {
  std::vector<std::string> programs = toolkit.empty() ? getPrograms() : std::vector<std::string>{getProgram(toolkit)};
  Ptxas ptxas;
  if (auto program = find_if(programs, [](const std::string &path) { return fs::can_execute(path); });
      program != programs.end())
    ptxas.path = *program;
  if (ptxas.path.empty())
    return toolkit.empty() ? fail("no ptxas is in CUDA_HOME, on the PATH, in /usr/local/cuda or in NVIDIA's Python "
                                  "package; " +
                                  kHint)
                           : fail("no bin/ptxas is in '" + toolkit + "'; " + kHint);
  Expected<std::string> printed = execute({ptxas.path, "--version"});
  if (!printed)
    return printed.takeError();
  size_t begin = printed->find("release ");
  if (begin == std::string::npos)
    return fail(ptxas.path + " --version tells no release");
  ptxas.version = printed->substr(begin, printed->find('\n', begin) - begin);
  return ptxas;
}

Expected<Cubin> Ptxas::run(StringRef ptx, StringRef chip) const {
  SmallString<128> folder;
  if (std::error_code code = fs::createUniqueDirectory("spmd-ptxas", folder))
    return fail("cannot make a temporary folder: " + code.message());
  scope_exit remove([&] { fs::remove_directories(folder); });
  std::string input = (folder + "/kernel.ptx").str(), output = (folder + "/kernel.cubin").str();
  if (std::string problem = writeFile(input, ptx); !problem.empty())
    return fail(problem);
  std::string architecture = ("--gpu-name=" + chip).str();
  Expected<std::string> log = execute({path, "--verbose", architecture, "--output-file", output, input});
  if (!log)
    return log.takeError();
  ErrorOr<std::unique_ptr<MemoryBuffer>> bytes = MemoryBuffer::getFile(output);
  if (!bytes)
    return fail("cannot read what " + path + " wrote: " + bytes.getError().message());
  return Cubin{(*bytes)->getBuffer().str(), std::move(*log)};
}

} // namespace spmd::kernel
