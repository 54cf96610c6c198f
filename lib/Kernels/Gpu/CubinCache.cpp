//===- CubinCache.cpp - machine code by what it was made from -------------===//

#include "CubinCache.h"
#include "spmd/Kernels/Cubin.h"
#include "llvm/ADT/SmallString.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Support/CachePruning.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/SHA256.h"
#include "llvm/Support/raw_ostream.h"

using namespace llvm;
namespace fs = sys::fs;
namespace path = sys::path;

namespace spmd::kernel {

/// Changes with the format of entries and with the arguments of ptxas.
static constexpr StringLiteral kFormat = "spmd-cubin 1\n";

static std::string hash(ArrayRef<StringRef> texts) {
  SHA256 hasher;
  for (StringRef text : texts) {
    // Lengths keep ("ab", "c") and ("a", "bc") apart.
    hasher.update(utostr(text.size()) + ":");
    hasher.update(text);
  }
  return toHex(hasher.final(), /*LowerCase=*/true);
}

std::string getUserKernelCache() {
  SmallString<128> folder;
  if (!path::cache_directory(folder))
    return "";
  path::append(folder, "spmd");
  return folder.str().str();
}

std::string CubinCache::getKey(StringRef ptx, StringRef chip, StringRef version) {
  return hash({kFormat, ptx, chip, version});
}

std::string CubinCache::getPath(StringRef key) const {
  // The prefix is that of LLVM's caches, which prune() goes by.
  SmallString<128> file(folder);
  path::append(file, "llvmcache-" + key);
  return file.str().str();
}

// An entry: the format, the hash of the rest, the length of the log, the log, the code.

std::optional<Cubin> CubinCache::get(StringRef key) const {
  if (folder.empty())
    return std::nullopt;
  ErrorOr<std::unique_ptr<MemoryBuffer>> file = MemoryBuffer::getFile(getPath(key), /*IsText=*/false,
                                                                      /*RequiresNullTerminator=*/false);
  if (!file)
    return std::nullopt;
  StringRef text = (*file)->getBuffer();
  if (!text.consume_front(kFormat))
    return std::nullopt;
  auto [expected, content] = text.split('\n');
  if (hash({content}) != expected)
    return std::nullopt;
  auto [digits, rest] = content.split('\n');
  size_t length;
  if (digits.getAsInteger(10, length) || length > rest.size())
    return std::nullopt;
  return Cubin{rest.drop_front(length).str(), rest.take_front(length).str()};
}

void CubinCache::put(StringRef key, const Cubin &cubin) const {
  if (folder.empty() || fs::create_directories(folder))
    return;
  std::string content = utostr(cubin.log.size()) + "\n" + cubin.log + cubin.code;
  // Readers see a whole entry or none: it takes its name when it is complete.
  Expected<fs::TempFile> file = fs::TempFile::create(getPath(key) + ".%%%%%%");
  if (!file)
    return consumeError(file.takeError());
  raw_fd_ostream os(file->FD, /*shouldClose=*/false);
  os << kFormat << hash({content}) << '\n' << content;
  os.flush();
  bool isWritten = !os.has_error();
  os.clear_error();
  consumeError(isWritten ? file->keep(getPath(key)) : file->discard());
}

void CubinCache::prune() const {
  if (folder.empty())
    return;
  CachePruningPolicy policy;
  policy.Expiration = std::chrono::hours(30 * 24);
  pruneCache(folder, policy);
}

} // namespace spmd::kernel
