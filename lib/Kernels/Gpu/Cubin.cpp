//===- Cubin.cpp - GPU kernels as machine code ----------------------------===//

#include "spmd/Kernels/Cubin.h"
#include "ConvertToNVVM.h"
#include "CubinCache.h"
#include "LowerGpuKernels.h"
#include "Ptx.h"
#include "mlir/Dialect/GPU/IR/GPUDialect.h"
#include "mlir/Dialect/LLVMIR/LLVMTypes.h"
#include "llvm/ADT/StringExtras.h"
#include "llvm/Object/ArchiveWriter.h"
#include "llvm/Support/Parallel.h"
#include "llvm/Support/Regex.h"

using namespace mlir;

namespace spmd::kernel {

std::string findCudaProblem(const CudaOptions &options) {
  llvm::Expected<Ptxas> ptxas = Ptxas::find(options.toolkit);
  return ptxas ? "" : llvm::toString(ptxas.takeError());
}

/// The number in front of or behind what `pattern` describes; 0 when the log does not have it.
static int64_t readNumber(StringRef log, StringRef pattern) {
  SmallVector<StringRef> groups;
  int64_t number = 0;
  if (llvm::Regex(pattern).match(log, &groups))
    groups[1].getAsInteger(10, number);
  return number;
}

/// Reads `ptxas -v`. False when it says nothing of the kernel.
static bool readLog(StringRef log, GpuKernel &kernel) {
  if (!llvm::Regex("Used [0-9]+ registers").match(log))
    return false;
  kernel.registers = readNumber(log, "Used ([0-9]+) registers");
  kernel.barriers = readNumber(log, "used ([0-9]+) barriers");
  kernel.staticSharedBytes = readNumber(log, "([0-9]+) bytes smem");
  kernel.localBytes = readNumber(log, "([0-9]+) bytes stack frame");
  kernel.spillStoreBytes = readNumber(log, "([0-9]+) bytes spill stores");
  kernel.spillLoadBytes = readNumber(log, "([0-9]+) bytes spill loads");
  return true;
}

/// What the function itself says of its launch.
static GpuKernel describe(gpu::GPUFuncOp function) {
  GpuKernel kernel;
  kernel.symbol = function.getName().str();
  auto getSize = [](std::optional<ArrayRef<int32_t>> size) { return size ? int64_t(size->front()) : 1; };
  kernel.threads = getSize(function.getKnownBlockSize());
  kernel.blocks = getSize(function.getKnownGridSize());
  auto getInt = [&](StringRef name) -> std::optional<int64_t> {
    auto attribute = function->getAttrOfType<IntegerAttr>(name);
    return attribute ? std::optional(attribute.getInt()) : std::nullopt;
  };
  kernel.dynamicSharedBytes = getInt("spmd.shared_bytes").value_or(0);
  kernel.movedBytes = getInt("spmd.moved_bytes");
  for (Type type : function.getArgumentTypes())
    ++(isa<LLVM::LLVMPointerType>(type) ? kernel.pointers : kernel.coordinates);
  return kernel;
}

std::vector<GpuKernel> describeGpuKernels(ModuleOp module) {
  std::vector<GpuKernel> kernels;
  module.walk([&](gpu::GPUFuncOp function) { kernels.push_back(describe(function)); });
  return kernels;
}

FailureOr<OwningOpRef<ModuleOp>> lowerGpuKernels(ModuleOp module, StringRef chip) {
  loadNVVMDependencies(module.getContext());
  const Device *device = findDevice(chip);
  if (!device)
    return module.emitError("unknown chip '") << chip << "'; chips are " << llvm::join(getKernelChips(), ", ");
  return lowerGpuKernels(module, *device);
}

/// An archive of the cubins, a kernel's each, then the user's; and where each lies in it.
static llvm::Error writeArchive(ArrayRef<std::string> codes, UserKernels user, CubinArchive &archive) {
  std::vector<std::string> names;
  for (const GpuKernel &kernel : archive.kernels)
    names.push_back(kernel.symbol + ".cubin");
  std::vector<llvm::NewArchiveMember> members;
  for (auto [name, code] : llvm::zip_equal(names, codes))
    members.emplace_back(llvm::MemoryBufferRef(code, name));
  for (const auto &[name, code] : user.cubins)
    members.emplace_back(llvm::MemoryBufferRef(code, name));
  auto buffer = llvm::writeArchiveToBuffer(members, llvm::SymtabWritingMode::NoSymtab, llvm::object::Archive::K_GNU,
                                           /*Deterministic=*/true, /*Thin=*/false);
  if (!buffer)
    return buffer.takeError();
  archive.code = (*buffer)->getBuffer().str();
  auto opened = llvm::object::Archive::create((*buffer)->getMemBufferRef());
  if (!opened)
    return opened.takeError();
  llvm::Error error = llvm::Error::success();
  std::vector<int64_t> offsets;
  for (const llvm::object::Archive::Child &child : (*opened)->children(error))
    offsets.push_back(static_cast<int64_t>(child.getDataOffset()));
  if (error)
    return error;
  for (auto [kernel, offset, code] : llvm::zip_first(archive.kernels, offsets, codes)) {
    kernel.offset = offset;
    kernel.bytes = static_cast<int64_t>(code.size());
  }
  for (auto [kernel, cubin] : llvm::zip_equal(user.kernels, user.cubinOf)) {
    kernel.offset = offsets[codes.size() + cubin];
    kernel.bytes = static_cast<int64_t>(user.cubins[cubin].second.size());
    archive.kernels.push_back(std::move(kernel));
  }
  return error;
}

namespace {

/// Assembles kernels; used by several threads.
struct Assembler {
  /// The machine code of `ptx`, and what is said of it in `kernel`.
  llvm::Expected<std::string> assemble(StringRef ptx, GpuKernel &kernel) const;
  /// The same; when registers were spilled, of a `ptx` that asks for fewer blocks per SM.
  llvm::Expected<std::string> assembleUnspilled(std::string &ptx, GpuKernel &kernel) const;

  const Ptxas &ptxas;
  CubinCache cache;
  const Device &device;
};

} // namespace

llvm::Expected<std::string> Assembler::assemble(StringRef ptx, GpuKernel &kernel) const {
  std::string key = CubinCache::getKey(ptx, device.chip, ptxas.getVersion());
  if (std::optional<Cubin> known = cache.get(key); known && readLog(known->log, kernel))
    return std::move(known->code);
  llvm::Expected<Cubin> made = ptxas.run(ptx, device.chip);
  if (!made)
    return made.takeError();
  if (!readLog(made->log, kernel))
    return llvm::createStringError("cannot read what " + ptxas.getPath() + " --verbose prints: " + made->log);
  cache.put(key, *made);
  return std::move(made->code);
}

// [Note: spills] Of its own accord ptxas keeps a kernel of 256 threads to 48 registers, and spills a few values more
// rather than run fewer blocks at once. Told how many blocks must fit it uses the registers there are: first as many
// as leave each thread 64, then half of that, and so on. What a skeleton asked for itself is tried before.
llvm::Expected<std::string> Assembler::assembleUnspilled(std::string &ptx, GpuKernel &kernel) const {
  llvm::Expected<std::string> code = assemble(ptx, kernel);
  size_t place = ptx.find(".maxntid ");
  if (!code || place == std::string::npos)
    return code;
  place = ptx.find('\n', place) + 1;
  constexpr int64_t kEnoughRegisters = 64;
  std::string first = llvm::Regex("\\.minnctapersm [0-9]+\n").sub("", ptx);
  for (int64_t blocks = device.registersPerSM / kEnoughRegisters / kernel.threads;
       code && kernel.spillStoreBytes + kernel.spillLoadBytes > 0 && blocks > 0; blocks /= 2) {
    ptx = first;
    ptx.insert(place, (".minnctapersm " + Twine(blocks) + "\n").str());
    code = assemble(ptx, kernel);
  }
  return code;
}

FailureOr<CubinArchive> compileCubins(ModuleOp module, StringRef chip, const CudaOptions &options, UserKernels user) {
  auto fail = [&](const Twine &message) -> LogicalResult {
    return module.emitError("cannot compile kernels for ") << chip << ": " << message;
  };
  const Device *device = findDevice(chip);
  if (!device)
    return fail("chips are " + llvm::join(getKernelChips(), ", "));
  // Before anything is compiled: without it, the rest is in vain.
  llvm::Expected<Ptxas> ptxas = Ptxas::find(options.toolkit);
  if (!ptxas)
    return fail(llvm::toString(ptxas.takeError()));

  CubinArchive archive;
  archive.kernels = describeGpuKernels(module);
  FailureOr<std::vector<KernelPtx>> ptx = emitPtx(module, *device);
  if (failed(ptx))
    return failure();
  Assembler assembler{*ptxas, CubinCache(options.cache), *device};
  std::vector<std::string> codes(ptx->size()), errors(ptx->size());
  llvm::parallelFor(0, ptx->size(), [&](size_t i) {
    llvm::Expected<std::string> code = assembler.assembleUnspilled((*ptx)[i].text, archive.kernels[i]);
    if (code)
      codes[i] = std::move(*code);
    else
      errors[i] = llvm::toString(code.takeError());
  });
  assembler.cache.prune();
  for (auto [kernel, error] : llvm::zip_equal(*ptx, errors))
    if (!error.empty())
      return fail("kernel " + kernel.symbol + ": " + error);
  archive.ptx = joinPtx(*ptx);
  if (llvm::Error error = writeArchive(codes, std::move(user), archive))
    return fail(llvm::toString(std::move(error)));
  return archive;
}

} // namespace spmd::kernel
