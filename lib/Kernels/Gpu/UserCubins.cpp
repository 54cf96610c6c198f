//===- UserCubins.cpp - Kernels of the user's, in cubins ------------------===//
//
// [Note: what a cubin says] A cubin is an ELF file. Its flags have the chip: in the low byte up to CUDA 12, in the
// second since. A section .nv.info.NAME is of kernel NAME: entries of a format, an attribute and 16 bits, which are a
// size in bytes of what follows where the format is 4. Attribute 0x17 (EIATTR_KPARAM_INFO) is a parameter: an index of
// 32 bits, number and offset of 16, and 32 bits of which those from 18 on are its size (cuobjdump -elf prints them).
//
//===----------------------------------------------------------------------===//

#include "../CollectKernels.h"
#include "spmd/Kernels/Cubin.h"
#include "spmd/Runtime/Core/Hash.h"
#include "llvm/Object/ELF.h"
#include "llvm/Support/Endian.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/MemoryBuffer.h"
#include "llvm/Support/Path.h"

using namespace mlir;
namespace endian = llvm::support::endian;

namespace spmd::kernel {

namespace {

constexpr uint16_t kMachineCuda = 190;

/// What is known of a kernel in a cubin.
struct KernelParameters {
  int chip = 0;
  SmallVector<int64_t> bytes; ///< of each parameter
};

} // namespace

/// 90 of "sm_90", "sm_90a".
static int numberOf(StringRef chip) {
  int number = 0;
  chip.drop_until([](char c) { return c == '_'; }).drop_front().take_while(llvm::isDigit).getAsInteger(10, number);
  return number;
}

/// Sizes of parameters by their number.
static SmallVector<int64_t> readParameters(ArrayRef<uint8_t> info) {
  constexpr uint8_t kSized = 4, kParameter = 0x17;
  constexpr size_t kHead = 4, kParameterBytes = 12;
  SmallVector<int64_t> sizes;
  while (info.size() >= kHead) {
    size_t bytes = info[0] == kSized ? endian::read16le(&info[2]) : 0;
    if (bytes > info.size() - kHead)
      break;
    ArrayRef<uint8_t> entry = info.slice(kHead, bytes);
    if (info[1] == kParameter && bytes == kParameterBytes) {
      size_t number = endian::read16le(&entry[4]);
      if (sizes.size() <= number)
        sizes.resize(number + 1);
      sizes[number] = endian::read32le(&entry[8]) >> 18;
    }
    info = info.drop_front(kHead + bytes);
  }
  return sizes;
}

/// What `code` says of its kernel `function`.
static llvm::Expected<KernelParameters> readCubin(StringRef code, StringRef function) {
  auto file = llvm::object::ELF64LEFile::create(code);
  if (!file || file->getHeader().e_machine != kMachineCuda) {
    llvm::consumeError(file.takeError());
    return llvm::createStringError("it is no cubin");
  }
  KernelParameters kernel;
  uint32_t flags = file->getHeader().e_flags, low = flags & 0xff, second = flags >> 8 & 0xff;
  kernel.chip = static_cast<int>(second >= 50 ? second : low);
  auto sections = file->sections();
  if (!sections)
    return sections.takeError();
  std::string has;
  for (const auto &section : *sections) {
    auto name = file->getSectionName(section);
    if (!name)
      return name.takeError();
    if (!name->consume_front(".nv.info."))
      continue;
    has += (has.empty() ? "" : ", ") + name->str();
    if (*name != function)
      continue;
    auto contents = file->getSectionContents(section);
    if (!contents)
      return contents.takeError();
    kernel.bytes = readParameters(*contents);
    return kernel;
  }
  return llvm::createStringError("it has no kernel '" + function + "'; kernels are " + (has.empty() ? "none" : has) +
                                 " (of C++, mangled unless it is extern \"C\")");
}

static int64_t sizeOf(Attribute parameter) {
  Type type = cast<TypedAttr>(parameter).getType();
  return isa<IndexType>(type) ? 8 : (type.getIntOrFloatBitWidth() + 7) / 8;
}

/// Compares what the kernel takes with what it is given.
static llvm::Error checkParameters(const KernelParameters &kernel, LaunchAttr launch) {
  if (kernel.bytes.size() != launch.getParameters().size())
    return llvm::createStringError("'" + launch.getFunction() + "' has " + Twine(kernel.bytes.size()) +
                                   " parameters, and the launch gives it " + Twine(launch.getParameters().size()));
  for (auto [number, size, parameter] : llvm::enumerate(kernel.bytes, launch.getParameters()))
    if (size != sizeOf(parameter))
      return llvm::createStringError("parameter " + Twine(number) + " of '" + launch.getFunction() + "' has " +
                                     Twine(size) + " bytes, and the launch gives it " + Twine(sizeOf(parameter)));
  return llvm::Error::success();
}

/// The entry that runs on `chip`: of its own, or of an earlier chip of its generation. Empty strings: none.
static std::array<StringRef, 3> findCubin(CustomCallOp op, StringRef chip) {
  std::array<StringRef, 3> best;
  for (StringRef entry : op.getCubins()->getAsValueRange<StringAttr>()) {
    auto [of, rest] = entry.split(' ');
    auto [hash, file] = rest.split(' ');
    bool isSpecific = !of.empty() && !llvm::isDigit(of.back()); // sm_90a: this chip only
    int number = numberOf(of), wanted = numberOf(chip);
    bool runs = isSpecific ? number == wanted : number / 10 == wanted / 10 && number <= wanted;
    if (runs && (best[0].empty() || number > numberOf(best[0])))
      best = {of, hash, file};
  }
  return best;
}

/// Everything but where its cubin is.
static GpuKernel describe(CustomCallOp op) {
  LaunchAttr launch = op.getLaunchAttr();
  auto product = [](ArrayRef<int64_t> sizes) { return sizes[0] * sizes[1] * sizes[2]; };
  GpuKernel kernel;
  kernel.symbol = op.getSymbolAttr().str();
  kernel.blocks = product(launch.getGrid());
  kernel.threads = product(launch.getBlock());
  kernel.dynamicSharedBytes = launch.getShared();
  kernel.pointers = static_cast<int64_t>(op.getInputs().size() + op.getNumResults());
  kernel.launch = launch;
  return kernel;
}

FailureOr<UserKernels> readUserKernels(ModuleOp module, StringRef chip, StringRef libraries) {
  UserKernels user;
  llvm::StringMap<size_t> known;
  auto kernels = collectKernels(module);
  if (failed(kernels))
    return failure();
  for (Operation *kernel : *kernels) {
    auto op = dyn_cast<CustomCallOp>(kernel);
    if (!op)
      continue;
    auto [of, hash, name] = findCubin(op, chip);
    auto fail = [&, file = name](const Twine &message) -> LogicalResult {
      return op->emitError("the kernel '")
             << op.getLaunchAttr().getFunction() << "' cannot come from '" << file << "': " << message;
    };
    if (of.empty()) {
      auto chips = llvm::map_range(op.getCubins()->getAsValueRange<StringAttr>(),
                                   [](StringRef entry) { return entry.split(' ').first; });
      return op->emitError("the kernel '") << op.getLaunchAttr().getFunction() << "' has cubins for "
                                           << llvm::join(chips, ", ") << ", of which none runs on " << chip;
    }
    SmallString<256> path(libraries);
    llvm::sys::path::append(path, name);
    auto [place, isNew] = known.try_emplace(name, user.cubins.size());
    if (isNew) {
      auto buffer = llvm::MemoryBuffer::getFile(path);
      if (!buffer)
        return fail(buffer.getError().message());
      StringRef bytes = (*buffer)->getBuffer();
      if (runtime::Status status = runtime::checkHash(path.str().str(), bytes, hash.str()); !status.ok())
        return fail(status.message);
      user.cubins.emplace_back(name.str(), bytes.str());
    }
    auto found = readCubin(user.cubins[place->second].second, op.getLaunchAttr().getFunction());
    if (!found)
      return fail(llvm::toString(found.takeError()));
    if (found->chip != numberOf(of))
      return fail("it is declared to be for " + of + ", and is for sm_" + Twine(found->chip));
    if (llvm::Error error = checkParameters(*found, op.getLaunchAttr()))
      return fail(llvm::toString(std::move(error)));
    user.kernels.push_back(describe(op));
    user.cubinOf.push_back(place->second);
  }
  return user;
}

} // namespace spmd::kernel
