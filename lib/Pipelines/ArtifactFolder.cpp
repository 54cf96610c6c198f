//===- ArtifactFolder.cpp - files of an artifact --------------------------===//

#include "spmd/Pipelines/ArtifactFolder.h"
#include "spmd/Kernels/WriteFile.h"
#include "spmd/Runtime/Core/Hash.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"

using namespace mlir;
using namespace spmd;

std::string ArtifactFolder::pathOf(StringRef name) const {
  SmallString<256> joined(folder);
  llvm::sys::path::append(joined, name);
  return joined.str().str();
}

LogicalResult ArtifactFolder::writeText(StringRef name, StringRef text) const {
  std::string file = pathOf(name);
  std::string problem = kernel::writeFile(file, text);
  return problem.empty() ? success() : fail(problem);
}

LogicalResult ArtifactFolder::writeCode(StringRef name, StringRef code, std::string &hash) const {
  hash = runtime::formatHash(runtime::hashBytes(code));
  return writeText(name, code);
}

std::error_code ArtifactFolder::copyInto(StringRef below, StringRef from, StringRef name) const {
  std::string to = pathOf(below);
  llvm::sys::fs::create_directory(to);
  return llvm::sys::fs::copy_file(from, ArtifactFolder(to, op).pathOf(name));
}
