//===- FiniteWatch.cpp ----------------------------------------------------===//

#include "spmd/Runtime/Train/FiniteWatch.h"

#include <cmath>

using namespace spmd::runtime;

static void keepLess(std::atomic<uint64_t> &least, uint64_t value) {
  uint64_t before = least.load(std::memory_order_relaxed);
  while (value < before && !least.compare_exchange_weak(before, value, std::memory_order_relaxed))
    ;
}

void FiniteWatch::reset() {
  infinity.store(kNone, std::memory_order_relaxed);
  nan.store(kNone, std::memory_order_relaxed);
}

void FiniteWatch::lookAt(const void *data, DType dtype, int64_t count, int32_t id, int64_t rank) {
  if (!isFloating(dtype))
    return;
  bool hasInfinity = false, hasNan = false;
  for (int64_t i = 0; i < count; ++i) {
    double value = loadAsDouble(data, dtype, i);
    hasInfinity |= std::isinf(value);
    hasNan |= std::isnan(value);
  }
  uint64_t where = static_cast<uint64_t>(id) << 32 | static_cast<uint64_t>(rank);
  if (hasInfinity)
    keepLess(infinity, where);
  if (hasNan)
    keepLess(nan, where);
}

void FiniteWatch::look(int32_t id, int64_t rank, void *const *pointers) {
  const Command &command = plan.commands[static_cast<size_t>(id)];
  auto lookAtWhole = [&](size_t ref, DType dtype) {
    lookAt(pointers[ref], dtype, command.refs[ref].bytes / sizeOf(dtype), id, rank);
  };
  command.visit(
      [&](const KernelCommand &launched) {
        auto kernel = kernels.find(launched.symbol);
        for (size_t i = 0; kernel != kernels.end() && i < command.refs.size(); ++i) {
          const KernelEntry::Argument &argument = kernel->second.arguments[i];
          std::optional<DType> dtype = parseDType(argument.dtype);
          if (!dtype || !command.refs[i].writes())
            continue;
          if (argument.ld == 0)
            lookAtWhole(i, *dtype);
          for (int64_t at = 0, ld = argument.ld * sizeOf(*dtype); ld > 0 && at < command.refs[i].bytes; at += ld)
            lookAt(static_cast<const char *>(pointers[i]) + at, *dtype, argument.columns, id, rank);
        }
      },
      [&](const GemmCommand &gemm) {
        const GemmShape &shape = gemm.shape;
        auto lookAtRows = [&](const void *matrix) { // between rows is what is not the GEMM's
          for (int64_t batch = 0; batch < shape.batch; ++batch)
            for (int64_t row = 0; row < shape.m; ++row)
              lookAt(static_cast<const char *>(matrix) + (batch * shape.strideC + row * shape.ldc) * sizeOf(gemm.dtype),
                     gemm.dtype, shape.n, id, rank);
        };
        lookAtRows(pointers[2]);
        if (shape.preActivation >= 0 && !shape.readsPreActivation())
          lookAtRows(pointers[shape.preActivation]);
        if (shape.biasGradient >= 0)
          lookAt(pointers[shape.biasGradient], gemm.dtype, shape.numBiasGradients(), id, rank);
      },
      [&](const CollectiveCommand &collective) {
        // Unless it is in place, the first is what is sent.
        for (size_t i = isInPlace(collective.kind) ? 0 : 1; i < command.refs.size(); ++i)
          lookAtWhole(i, collective.dtype);
      },
      [](const WaitCommand &) {}, [](const CopyCommand &) {}, [](const FillCommand &) {},
      [](const CheckIndexCommand &) {});
}

Status FiniteWatch::describe() const {
  std::string text;
  const Command *first = nullptr;
  uint64_t earliest = kNone;
  for (auto [what, found] : {std::pair("infinity", infinity.load()), std::pair("nan", nan.load())}) {
    if (found == kNone)
      continue;
    auto id = static_cast<int32_t>(found >> 32);
    const Command &command = plan.commands[static_cast<size_t>(id)];
    text += (text.empty() ? "the first " : "; the first ") + std::string(what) + " is of command " +
            std::to_string(id) + " (" + command.describe() + ") on rank " +
            std::to_string(static_cast<uint32_t>(found));
    if (!command.location.empty())
      text += " at " + command.location;
    if (found < earliest) {
      earliest = found;
      first = &command;
    }
  }
  if (!first)
    return Status::success();
  return {StatusCode::WrongResult, text, static_cast<int32_t>(static_cast<uint32_t>(earliest)),
          static_cast<int32_t>(earliest >> 32), first->location};
}
