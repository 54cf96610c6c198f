//===- SharedLibrary.cpp --------------------------------------------------===//

#include "SharedLibrary.h"

#include <cstdlib>
#include <dlfcn.h>
#include <unistd.h>

namespace spmd::runtime {

/// The folders that an environment variable lists.
static void addFolders(const char *variable, std::vector<std::string> &folders) {
  const char *given = std::getenv(variable);
  std::string list = given ? given : "";
  for (size_t begin = 0; begin <= list.size() && !list.empty();) {
    size_t end = std::min(list.find(':', begin), list.size());
    if (end > begin)
      folders.push_back(list.substr(begin, end - begin) + "/");
    begin = end + 1;
  }
}

static Status cannotLoad(const std::string &what, const std::string &reason) {
  return Status::badInput("cannot load " + what + " (" + reason +
                          "); name the folder that has it in SPMD_CUDA_LIBRARIES or LD_LIBRARY_PATH");
}

Expected<void *> openLibrary(const std::string &what, const std::vector<std::string> &names) {
  std::vector<std::string> folders;
  addFolders("SPMD_CUDA_LIBRARIES", folders);
  folders.push_back("");
  addFolders("SPMD_CUDA_PACKAGES", folders);
  std::string reason;
  for (const std::string &folder : folders)
    for (const std::string &name : names) {
      if (void *library = ::dlopen((folder + name).c_str(), RTLD_NOW | RTLD_LOCAL))
        return library;
      if (const char *text = ::dlerror(); text && reason.empty())
        reason = text;
      // One that was named is meant, not the next that is found.
      if (!folder.empty() && ::access((folder + name).c_str(), F_OK) == 0)
        return cannotLoad(what, reason);
    }
  return cannotLoad(what, reason);
}

void *findSymbol(void *library, const char *name) { return ::dlsym(library, name); }

std::string formatCudaVersion(int version) {
  return std::to_string(version / 1000) + "." + std::to_string(version % 1000 / 10);
}

} // namespace spmd::runtime
