//===- Kernels.cpp - Modules and launches ---------------------------------===//
//
// A cubin is loaded and read: that it is one, which kernels it has and how many
// parameters each takes. What runs is the emulator's code of the same kernels
// (docs/emulation.md), from a shared object beside the file that the image is
// mapped from ("kernels.sm_90.a", "kernels.sm_90.emulated.so").
//
//===----------------------------------------------------------------------===//

#include "../../lib/Kernels/Emulate/Runtime/Descriptors.h"
#include "Core.h"
#include "spmd/Runtime/Emulation.h"

#include <algorithm>
#include <array>
#include <cinttypes>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <map>

using namespace standin;
namespace emulation = spmd::emulation;

#define LOCK std::lock_guard<std::recursive_mutex> lock(mutex)
#define ENTER(function)                                                                                                \
  LOCK;                                                                                                                \
  if (Result result = standInEnter(function))                                                                          \
  return result == kLeftOut ? kSuccess : result

namespace standin {
extern thread_local Context current;
size_t numModules = 0;
} // namespace standin

namespace {

using Entry = void (*)(void *const *, const int64_t *, int64_t, int64_t);

/// The emulated kernels of one file.
struct Emulated {
  void *handle = nullptr;
  std::map<std::string, const emulation::Kernel *> kernels;
  decltype(&spmd_emulation_error) error = nullptr;
};

/// What stands in for a kernel of somebody else's: NAME of the setting foreign=LIBRARY, of grid and block, and of
/// parameters as cuLaunchKernel gets them, with addresses that may be read. NAME_extent says of parameter number I how
/// many bytes are read (> 0) or written (< 0) from where it points; 0: it is a number.
struct Foreign {
  void (*run)(const unsigned *grid, const unsigned *block, void *const *parameters) = nullptr;
  int64_t (*extent)(int parameter, void *const *parameters) = nullptr;
};

struct LoadedFunction {
  std::string name;
  Entry entry;
  const emulation::Kernel *about;
  const Emulated *code;
  std::vector<int> parameters; ///< bytes of each
  Foreign foreign;
  int maxShared = 48 << 10;
};

struct LoadedModule {
  std::vector<char> image;
  Emulated *code;
  std::map<std::string, std::unique_ptr<LoadedFunction>> functions;
};

constexpr uint16_t kMachineCuda = 190;

/// The file that holds the byte at `address`, as the system maps it.
std::string findFile(const void *address) {
  FILE *maps = std::fopen("/proc/self/maps", "r");
  std::string found;
  char line[4096];
  while (maps && std::fgets(line, sizeof line, maps)) {
    uint64_t begin, end;
    int at = 0;
    if (std::sscanf(line, "%" SCNx64 "-%" SCNx64 " %*s %*s %*s %*s %n", &begin, &end, &at) < 2)
      continue;
    auto value = reinterpret_cast<uint64_t>(address);
    if (value >= begin && value < end && at && line[at] == '/')
      found = std::string(line + at, std::strcspn(line + at, "\n"));
  }
  if (maps)
    std::fclose(maps);
  return found;
}

/// The emulator's descriptors are a section of the object.
void readDescriptors(const std::string &path, Emulated &code) {
  std::vector<char> bytes;
  if (FILE *file = std::fopen(path.c_str(), "rb")) {
    char buffer[65536];
    while (size_t n = std::fread(buffer, 1, sizeof buffer, file))
      bytes.insert(bytes.end(), buffer, buffer + n);
    std::fclose(file);
  }
  auto *header = reinterpret_cast<Elf64_Ehdr *>(bytes.data());
  auto *section = reinterpret_cast<Elf64_Shdr *>(bytes.data() + header->e_shoff);
  const char *names = bytes.data() + section[header->e_shstrndx].sh_offset;
  auto *map = static_cast<link_map *>(code.handle);
  for (int i = 0; i < header->e_shnum; ++i) {
    if (std::strcmp(names + section[i].sh_name, "spmd_kernels") != 0)
      continue;
    auto *kernel = reinterpret_cast<const emulation::Kernel *>(map->l_addr + section[i].sh_addr);
    for (size_t k = 0; k < section[i].sh_size / sizeof(emulation::Kernel); ++k)
      code.kernels[kernel[k].name] = &kernel[k];
  }
}

Emulated *openEmulated(const std::string &archive) {
  static std::map<std::string, Emulated> opened;
  std::string path = archive.substr(0, archive.rfind(".")) + ".emulated.so";
  Emulated &code = opened[path];
  if (code.handle)
    return &code;
  code.handle = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (!code.handle) {
    std::fprintf(stderr, "stand-in: no emulated kernels: %s; compile with --emulation\n", ::dlerror());
    return nullptr;
  }
  readDescriptors(path, code);
  code.error = reinterpret_cast<decltype(code.error)>(::dlsym(code.handle, "spmd_emulation_error"));
  auto configure =
      reinterpret_cast<decltype(&spmd_emulation_configure)>(::dlsym(code.handle, "spmd_emulation_configure"));
  const char *strength = standInSetting("kernels");
  configure(strength && std::strcmp(strength, "checked") == 0, SPMD_SCHEDULE_FORWARD, 0);
  return &code;
}

/// Bytes of the parameters of a kernel, as its cubin says: entries EIATTR_KPARAM_INFO in .nv.info.NAME. False: there is
/// no such kernel.
bool readParameters(const std::vector<char> &image, const std::string &name, std::vector<int> &parameters) {
  auto *header = reinterpret_cast<const Elf64_Ehdr *>(image.data());
  auto *section = reinterpret_cast<const Elf64_Shdr *>(image.data() + header->e_shoff);
  const char *names = image.data() + section[header->e_shstrndx].sh_offset;
  for (int i = 0; i < header->e_shnum; ++i) {
    if (names + section[i].sh_name != ".nv.info." + name)
      continue;
    const char *end = image.data() + section[i].sh_offset + section[i].sh_size;
    for (const char *at = image.data() + section[i].sh_offset; at + 4 <= end;) {
      uint16_t size;
      std::memcpy(&size, at + 2, 2);
      if (static_cast<uint8_t>(at[1]) == 0x17) {
        uint16_t number;
        uint32_t bits;
        std::memcpy(&number, at + 8, 2);
        std::memcpy(&bits, at + 12, 4);
        parameters.resize(std::max<size_t>(parameters.size(), number + 1));
        parameters[number] = static_cast<int>(bits >> 18);
      }
      at += 4 + (static_cast<uint8_t>(at[0]) == 4 ? size : 0);
    }
    return true;
  }
  return false;
}

Foreign findForeign(const std::string &name) {
  const char *library = standInSetting("foreign");
  void *handle = library ? ::dlopen(library, RTLD_NOW | RTLD_LOCAL) : nullptr;
  Foreign foreign;
  if (handle) {
    foreign.run = reinterpret_cast<decltype(foreign.run)>(::dlsym(handle, name.c_str()));
    foreign.extent = reinterpret_cast<decltype(foreign.extent)>(::dlsym(handle, (name + "_extent").c_str()));
  }
  return foreign;
}

/// "sm_90": what the cubin is for.
int chipOf(const Elf64_Ehdr *header) {
  // The low byte of the flags up to CUDA 12, the second since.
  int low = static_cast<int>(header->e_flags & 0xff), second = static_cast<int>(header->e_flags >> 8 & 0xff);
  return second >= 50 ? second : low;
}

int deviceChip() {
  const char *given = standInSetting("chip");
  return given ? std::atoi(given) : 90;
}

} // namespace

STANDIN_API Result cuModuleLoadData(Module *module, const void *image) {
  ENTER("cuModuleLoadData");
  if (Result result = forbiddenInCapture())
    return result;
  auto *header = static_cast<const Elf64_Ehdr *>(image);
  if (std::memcmp(header->e_ident, ELFMAG, 4) != 0)
    return kInvalidImage; // PTX: nothing here compiles it
  if (header->e_machine != kMachineCuda)
    return kInvalidImage;
  if (chipOf(header) != deviceChip())
    return kNoBinaryForGpu;
  auto loaded = std::make_unique<LoadedModule>();
  size_t bytes = std::max<size_t>(header->e_shoff + size_t(header->e_shnum) * header->e_shentsize,
                                  header->e_phoff + size_t(header->e_phnum) * header->e_phentsize);
  loaded->image.assign(static_cast<const char *>(image), static_cast<const char *>(image) + bytes);
  loaded->code = openEmulated(findFile(image));
  if (!loaded->code)
    return kNoBinaryForGpu;
  *module = reinterpret_cast<Module>(loaded.release());
  ++numModules;
  return kSuccess;
}

STANDIN_API Result cuModuleUnload(Module module) {
  ENTER("cuModuleUnload");
  delete reinterpret_cast<LoadedModule *>(module);
  --numModules;
  return kSuccess;
}

STANDIN_API Result cuModuleGetFunction(Function *function, Module module, const char *name) {
  ENTER("cuModuleGetFunction");
  auto *from = reinterpret_cast<LoadedModule *>(module);
  auto &slot = from->functions[name];
  if (!slot) {
    std::vector<int> parameters;
    bool isThere = readParameters(from->image, name, parameters);
    auto entry = reinterpret_cast<Entry>(::dlsym(from->code->handle, name));
    auto about = from->code->kernels.find(name);
    bool isOurs = entry && about != from->code->kernels.end();
    Foreign foreign = isOurs ? Foreign() : findForeign(name);
    if (!isThere || (!isOurs && (!foreign.run || !foreign.extent))) {
      if (isThere)
        std::fprintf(stderr, "stand-in: nothing stands in for kernel %s; say foreign=LIBRARY\n", name);
      from->functions.erase(name);
      return kNotFound;
    }
    slot.reset(new LoadedFunction{name, entry, isOurs ? about->second : nullptr, from->code, parameters, foreign});
  }
  *function = reinterpret_cast<Function>(slot.get());
  return kSuccess;
}

STANDIN_API Result cuFuncSetAttribute(Function function, int attribute, int value) {
  ENTER("cuFuncSetAttribute");
  if (attribute != kMaxDynamicSharedBytes || value > 227 << 10)
    return kInvalidValue;
  reinterpret_cast<LoadedFunction *>(function)->maxShared = value;
  return kSuccess;
}

STANDIN_API Result cuFuncLoad(Function) {
  ENTER("cuFuncLoad");
  return forbiddenInCapture();
}

/// A launch of a kernel of somebody else's.
static Result launchForeign(const LaunchConfig &config, const LoadedFunction &kernel, void **parameters) {
  if (config.sharedBytes > static_cast<unsigned>(kernel.maxShared))
    return kInvalidValue;
  auto work = std::make_shared<Work>();
  work->name = "kernel " + kernel.name;
  // Driver and runtime may change the values once the launch has returned.
  auto values = std::make_shared<std::vector<uint64_t>>(kernel.parameters.size());
  auto pointers = std::make_shared<std::vector<void *>>();
  for (size_t i = 0; i < values->size(); ++i) {
    std::memcpy(&(*values)[i], parameters[i], static_cast<size_t>(kernel.parameters[i]));
    pointers->push_back(&(*values)[i]);
  }
  for (size_t i = 0; i < values->size(); ++i) {
    int64_t extent = kernel.foreign.extent(static_cast<int>(i), pointers->data());
    if (extent == 0)
      continue;
    auto bytes = static_cast<uint64_t>(extent < 0 ? -extent : extent);
    uint64_t address = (*values)[i];
    if (!isDevice(address) || !standInReach(address) || !standInReach(address + bytes - 1))
      return kIllegalAddress;
    work->ranges.push_back({address, bytes, extent < 0});
    (*values)[i] = reinterpret_cast<uint64_t>(standInReach(address));
  }
  std::array<unsigned, 3> grid{config.gridX, config.gridY, config.gridZ},
      block{config.blockX, config.blockY, config.blockZ};
  work->run = [run = kernel.foreign.run, grid, block, values, pointers](uint64_t) {
    run(grid.data(), block.data(), pointers->data());
    return 1;
  };
  return enqueue(config.stream, std::move(work));
}

STANDIN_API Result cuLaunchKernelEx(const LaunchConfig *config, Function function, void **parameters, void **) {
  ENTER("cuLaunchKernelEx");
  auto *kernel = reinterpret_cast<LoadedFunction *>(function);
  const emulation::Kernel *about = kernel->about;
  if (!about)
    return launchForeign(*config, *kernel, parameters);
  if (config->gridX != about->gridSize || config->blockX != about->blockSize ||
      config->gridY * config->gridZ * config->blockY * config->blockZ != 1 ||
      config->sharedBytes > static_cast<unsigned>(kernel->maxShared))
    return kInvalidValue;
  std::vector<void *> arguments;
  std::vector<int64_t> coordinates;
  auto work = std::make_shared<Work>();
  work->name = "kernel " + kernel->name;
  for (int i = 0; i < static_cast<int>(kernel->parameters.size()); ++i) {
    uint64_t value;
    std::memcpy(&value, parameters[i], 8);
    if (i >= about->numArguments) {
      coordinates.push_back(static_cast<int64_t>(value));
      continue;
    }
    auto bytes = static_cast<uint64_t>(about->memories[i].bytes);
    if (!isDevice(value) || !standInReach(value) || (bytes && !standInReach(value + bytes - 1)))
      return kIllegalAddress;
    arguments.push_back(standInReach(value));
    work->ranges.push_back({value, bytes, i >= about->numOperands});
  }
  coordinates.resize(8);
  int64_t blocks = config->gridX;
  work->run = [kernel, arguments, coordinates, blocks](uint64_t) {
    kernel->entry(arguments.data(), coordinates.data(), 0, blocks);
    if (const char *message = kernel->code->error())
      standInReport(("kernel " + kernel->name + ": " + message).c_str());
    return 1;
  };
  return enqueue(config->stream, std::move(work));
}
