//===- AlgorithmCache.cpp -------------------------------------------------===//
//
// The file: a line of format, version and device; a line for each problem, of the
// words of its algorithm and what it is; the hash of all that.
//
//===----------------------------------------------------------------------===//

#include "AlgorithmCache.h"
#include "spmd/Runtime/Core/AtomicFile.h"
#include "spmd/Runtime/Core/Hash.h"
#include "spmd/Runtime/Core/Json.h"

#include <cstdio>
#include <cstdlib>
#include <iterator>
#include <sys/stat.h>
#include <unistd.h>

namespace spmd::runtime::cuda {

static constexpr char kFormat[] = "spmd-cublaslt 1";

/// SPMD_CUBLASLT_CACHE, else where users keep such files; empty: nowhere.
static std::string findFolder() {
  const auto get = [](const char *name) {
    const char *value = std::getenv(name);
    return std::string(value ? value : "");
  };
  if (std::string given = get("SPMD_CUBLASLT_CACHE"); !given.empty())
    return given == "none" ? "" : given;
  if (std::string base = get("XDG_CACHE_HOME"); !base.empty())
    return base + "/spmd";
  std::string home = get("HOME");
  return home.empty() ? "" : home + "/.cache/spmd";
}

AlgorithmCache AlgorithmCache::open(size_t version, const Gpu &gpu) {
  AlgorithmCache cache;
  cache.folder = findFolder();
  if (cache.folder.empty())
    return cache;
  std::string device = gpu.name() + ", sm_" + std::to_string(gpu.chip()) + ", " +
                       std::to_string(gpu.multiprocessors()) + " multiprocessors";
  cache.header = std::string(kFormat) + ", " + std::to_string(version) + ", " + device + "\n";
  cache.path = cache.folder + "/cublaslt-" + std::to_string(version) + "-" + formatHash(hashBytes(device));
  if (::access(cache.path.c_str(), F_OK) != 0)
    return cache;
  Expected<std::string> text = readFile(cache.path);
  if (!text || !cache.read(*text)) {
    cache.known.clear();
    std::fprintf(stderr, "spmd: '%s' is no list of algorithms of cuBLASLt; they are chosen again\n",
                 cache.path.c_str());
  }
  return cache;
}

bool AlgorithmCache::read(std::string_view text) {
  size_t last = text.size() < 2 ? std::string_view::npos : text.rfind('\n', text.size() - 2);
  if (last == std::string_view::npos || text.back() != '\n')
    return false;
  std::string_view content = text.substr(0, last + 1), hash = text.substr(last + 1, text.size() - last - 2);
  if (hash != formatHash(hashBytes(content)) || content.substr(0, header.size()) != header)
    return false;
  content.remove_prefix(header.size());
  while (!content.empty()) {
    size_t end = content.find('\n');
    std::string line(content.substr(0, end));
    content.remove_prefix(end + 1);
    cublas::Algorithm algorithm = {};
    char *at = line.data();
    for (uint64_t &word : algorithm.data)
      word = std::strtoull(at, &at, 16);
    if (*at != ' ')
      return false;
    known[at + 1] = algorithm;
  }
  return true;
}

std::string AlgorithmCache::format() const {
  std::string text = header;
  for (const auto &[problem, algorithm] : known) {
    for (uint64_t word : algorithm.data)
      text += formatHash(word) + " ";
    text += problem + "\n";
  }
  return text + formatHash(hashBytes(text)) + "\n";
}

std::optional<cublas::Algorithm> AlgorithmCache::find(const std::string &problem) const {
  auto found = known.find(problem);
  return found == known.end() ? std::nullopt : std::optional(found->second);
}

void AlgorithmCache::add(const std::string &problem, const cublas::Algorithm &algorithm) {
  if (path.empty())
    return;
  known[problem] = algorithm;
  isChanged = true;
}

void AlgorithmCache::save() {
  if (!isChanged)
    return;
  isChanged = false;
  for (size_t end = folder.find('/', 1);; end = folder.find('/', end + 1)) { // each that is not there
    ::mkdir(folder.substr(0, end).c_str(), 0777);
    if (end == std::string::npos)
      break;
  }
  (void)writeFile(path, format());
}

} // namespace spmd::runtime::cuda
