//===- CommandList.cpp ----------------------------------------------------===//

#include "spmd/Cost/CommandList.h"

#include <algorithm>
#include <tuple>
#include <unordered_map>

using namespace spmd;
using namespace spmd::cost;
using namespace spmd::runtime;

namespace {

struct KindTraits {
  const char *name;
  bool isKernel;
};

} // namespace

static constexpr KindTraits kKindTraits[] = {
    {"gemm", true}, {"grouped gemm", true}, {"attention", true},     {"attention backward", true}, {"kernel", true},
    {"copy", true}, {"collective", false},  {"copy to host", false}, {"copy from host", false},    {"wait", false},
};

const char *spmd::cost::nameOf(CommandKind kind) { return kKindTraits[static_cast<size_t>(kind)].name; }
bool spmd::cost::isKernel(CommandKind kind) { return kKindTraits[static_cast<size_t>(kind)].isKernel; }

int32_t CommandList::add(CommandKind addedKind, int32_t addedStream) {
  kind.push_back(addedKind);
  stream.push_back(addedStream);
  awaited.push_back(-1);
  bytes.push_back(0);
  flops.push_back(0);
  side.push_back(0);
  dtype.push_back(DType::F32);
  collective.push_back(CollectiveKind::AllGather);
  communicator.push_back(-1);
  unit.push_back(-1);
  return static_cast<int32_t>(size()) - 1;
}

int32_t CommandList::addWait(int32_t addedStream, int32_t awaitedCommand) {
  int32_t wait = add(CommandKind::Wait, addedStream);
  awaited.back() = awaitedCommand;
  return wait;
}

double spmd::cost::countPairs(const AttentionShape &shape) {
  double queries = static_cast<double>(shape.qLen), keys = static_cast<double>(shape.kvLen);
  if (!shape.windowLow && !shape.windowHigh)
    return queries * keys;
  double pairs = 0;
  for (int64_t query = 0; query < shape.qLen; ++query) {
    int64_t first = shape.windowLow ? std::max<int64_t>(query + *shape.windowLow, 0) : 0;
    int64_t last = shape.windowHigh ? std::min(query + *shape.windowHigh, shape.kvLen - 1) : shape.kvLen - 1;
    pairs += static_cast<double>(std::max<int64_t>(last - first + 1, 0));
  }
  return pairs;
}

/// Two products forward (q k^T and p v); backward the first of them again, and the gradients of q, k, p and v.
static int64_t attentionFlops(const AttentionShape &shape) {
  double width = shape.isBackward ? static_cast<double>(3 * shape.headDim + 2 * shape.vDim)
                                  : static_cast<double>(shape.headDim + shape.vDim);
  double heads = static_cast<double>(shape.batch) * static_cast<double>(shape.heads);
  return static_cast<int64_t>(2 * countPairs(shape) * heads * width);
}

namespace {

/// Fills the last command of the list.
class Translator {
public:
  Translator(const Manifest &manifest, const Plan &plan);

  void add(const Command &command);

  CommandList list;

private:
  void addProduct(CommandKind kind, int64_t flops, DType dtype, int64_t bytes);
  void addKernel(const Command &command, const KernelCommand &kernel);
  void addGemm(const Command &command, const GemmCommand &gemm);
  void addCollective(const Command &command, const CollectiveCommand &collective);

  /// Bytes of the references, each that is read counted once; `except` is one that does not count.
  int64_t countBytes(const Command &command, int32_t except = -1);

  std::unordered_map<std::string, const KernelInfo *> kernels;
  std::unordered_map<std::string, int32_t> units;
  std::vector<std::tuple<int32_t, int64_t, int64_t>> reads; ///< of a command; kept for its memory
};

} // namespace

Translator::Translator(const Manifest &manifest, const Plan &plan) {
  list.streams = plan.streams;
  list.communicators = plan.communicators;
  for (size_t i = 0; i < plan.communicators.size(); ++i)
    list.groups.push_back(manifest.groupsAlong(plan.axesOf(static_cast<int32_t>(i))));
  for (const Unit &unit : manifest.units) {
    units.emplace(unit.name, static_cast<int32_t>(list.units.size()));
    list.units.push_back(unit.name);
  }
  for (const KernelInfo &info : manifest.kernelTable)
    kernels.emplace(info.kernel, &info);
}

int64_t Translator::countBytes(const Command &command, int32_t except) {
  reads.clear();
  int64_t bytes = 0;
  for (size_t i = 0; i < command.refs.size(); ++i) {
    const Ref &ref = command.refs[i];
    if (static_cast<int32_t>(i) == except)
      continue;
    if (ref.reads())
      reads.emplace_back(ref.buffer, ref.offset, ref.bytes);
    bytes += ref.writes() ? ref.bytes : 0;
  }
  std::sort(reads.begin(), reads.end());
  for (size_t i = 0; i < reads.size(); ++i)
    bytes += i > 0 && reads[i] == reads[i - 1] ? 0 : std::get<2>(reads[i]);
  return bytes;
}

void Translator::addProduct(CommandKind kind, int64_t flops, DType dtype, int64_t bytes) {
  list.kind.back() = kind;
  list.flops.back() = flops;
  list.dtype.back() = dtype;
  list.bytes.back() = bytes;
}

void Translator::addKernel(const Command &command, const KernelCommand &kernel) {
  auto known = kernels.find(kernel.symbol);
  // The table knows that a kernel reads a part of an operand, as a lookup of rows does.
  int64_t bytes = known == kernels.end() ? countBytes(command) : known->second->requiredBytes;
  if (known != kernels.end() && known->second->products)
    return addProduct(CommandKind::GroupedGemm, known->second->products->flops, known->second->products->dtype, bytes);
  list.bytes.back() = bytes;
}

void Translator::addGemm(const Command &command, const GemmCommand &gemm) {
  const GemmShape &s = gemm.shape;
  addProduct(CommandKind::Gemm, 2 * s.m * s.n * s.k * s.batch, gemm.dtype, countBytes(command, s.workspace));
  list.side.back() = std::min(s.m, s.n);
}

void Translator::addCollective(const Command &command, const CollectiveCommand &collective) {
  list.kind.back() = CommandKind::Collective;
  list.collective.back() = collective.kind;
  list.communicator.back() = collective.communicator;
  if (auto unit = units.find(collective.unit); unit != units.end())
    list.unit.back() = unit->second;
  int64_t largest = 0;
  for (const Ref &ref : command.refs)
    largest = std::max(largest, ref.bytes);
  list.bytes.back() = isInPlace(collective.kind) ? command.sentBytes() : largest;
}

void Translator::add(const Command &command) {
  list.add(CommandKind::Kernel, command.stream);
  command.visit([&](const KernelCommand &kernel) { addKernel(command, kernel); },
                [&](const AttentionCommand &attention) {
                  const AttentionShape &shape = attention.shape;
                  addProduct(shape.isBackward ? CommandKind::AttentionBackward : CommandKind::Attention,
                             attentionFlops(shape), shape.dtype, countBytes(command));
                },
                [&](const GemmCommand &gemm) { addGemm(command, gemm); },
                [&](const CollectiveCommand &collective) { addCollective(command, collective); },
                [&](const WaitCommand &wait) {
                  list.kind.back() = CommandKind::Wait;
                  list.awaited.back() = wait.awaited;
                },
                [&](const CopyCommand &copy) {
                  list.kind.back() = CommandKind::Copy;
                  list.bytes.back() = 2 * copy.bytes;
                },
                [&](const FillCommand &fill) {
                  list.kind.back() = CommandKind::Copy;
                  list.bytes.back() = fill.bytes;
                },
                [&](const CheckIndexCommand &) { list.bytes.back() = countBytes(command); });
}

CommandList spmd::cost::makeCommandList(const Manifest &manifest, const Plan &plan) {
  Translator translator(manifest, plan);
  for (const Command &command : plan.commands)
    translator.add(command);
  return std::move(translator.list);
}
