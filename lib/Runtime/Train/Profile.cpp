//===- Profile.cpp --------------------------------------------------------===//

#include "spmd/Runtime/Train/Profile.h"
#include "spmd/Runtime/Core/Operation.h"
#include "spmd/Runtime/Core/Text.h"

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <map>

using namespace spmd::runtime;

Profile::Profile(const Artifact &artifact, const RanksHere &ranks)
    : artifact(artifact), ranks(ranks), streams(static_cast<int64_t>(artifact.plan.streams.size())),
      tracks(static_cast<size_t>(ranks.count * streams)), commandsOf(artifact.plan.streams.size()) {
  for (const Command &command : artifact.plan.commands)
    ++commandsOf[static_cast<size_t>(command.stream)];
}

int64_t Profile::now() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch())
      .count();
}

Profile::Span Profile::latest(int64_t rank, int32_t command) const {
  if (!ranks.has(rank))
    return {command, 0, 0};
  const std::vector<Span> &all = spans(rank, artifact.plan.commands[static_cast<size_t>(command)].stream);
  auto found = std::find_if(all.rbegin(), all.rend(), [&](const Span &span) { return span.command == command; });
  return found == all.rend() ? Span{command, 0, 0} : *found;
}

int64_t Profile::countSteps() const {
  for (size_t stream = 0; stream < commandsOf.size(); ++stream)
    if (commandsOf[stream])
      return static_cast<int64_t>(spans(ranks.first, static_cast<int64_t>(stream)).size() / commandsOf[stream]);
  return 0;
}

int64_t spmd::runtime::bytesOf(const Artifact &artifact, const Command &command) {
  const auto *kernel = command.as<KernelCommand>();
  if (kernel)
    for (const KernelInfo &info : artifact.manifest.kernelTable)
      if (info.kernel == kernel->symbol)
        return info.requiredBytes;
  int64_t bytes = 0;
  const Ref *workspace = workspaceOf(command); // of which it is not known what is used
  for (const Ref &ref : command.refs)
    bytes += &ref == workspace ? 0 : ref.bytes * (kernel && ref.access == Access::ReadWrite ? 2 : 1);
  return bytes;
}

double spmd::runtime::flopsOf(const Command &command) {
  const auto *gemm = command.as<GemmCommand>();
  if (!gemm)
    return 0;
  const GemmShape &g = gemm->shape;
  return 2.0 * static_cast<double>(g.m) * static_cast<double>(g.n) * static_cast<double>(g.k) *
         static_cast<double>(g.batch);
}

/// What is one row of the summary: a kernel, GEMMs of one shape, a kind.
static std::string labelOf(const Command &command) {
  const auto *gemm = command.as<GemmCommand>();
  if (!gemm)
    return command.is<CollectiveCommand>() ? nameOf(command) : command.describe();
  const GemmShape &g = gemm->shape;
  std::string label = "gemm " + std::to_string(g.m) + "x" + std::to_string(g.n) + "x" + std::to_string(g.k);
  label += std::string(" ") + (g.transA ? "T" : "N") + (g.transB ? "T" : "N");
  return g.batch > 1 ? label + " x" + std::to_string(g.batch) : label;
}

std::string Profile::formatSummary() const {
  struct Row {
    const Command *command;
    int64_t calls = 0, bytes = 0;
    double nanoseconds = 0, flops = 0;
    std::string label;
  };
  std::vector<Row> rows;
  std::map<std::pair<std::string, int32_t>, size_t> numbers;
  std::vector<size_t> rowOf;
  for (const Command &command : artifact.plan.commands) {
    // Waits of a stream are one row.
    bool isWait = command.is<WaitCommand>();
    std::string label = isWait ? "wait" : labelOf(command);
    auto [entry, isNew] = numbers.try_emplace({label, command.stream}, rows.size());
    if (isNew)
      rows.push_back({&command, 0, 0, 0, 0, label});
    Row &row = rows[entry->second];
    ++row.calls;
    row.bytes += isWait ? 0 : bytesOf(artifact, command);
    row.flops += flopsOf(command);
    rowOf.push_back(entry->second);
  }
  int64_t steps = countSteps(), skipped = steps > 1 ? 1 : 0;
  for (int64_t rank = ranks.first; rank < ranks.end(); ++rank)
    for (int64_t stream = 0; stream < streams; ++stream) {
      const std::vector<Span> &all = spans(rank, stream);
      for (size_t i = static_cast<size_t>(skipped) * commandsOf[static_cast<size_t>(stream)]; i < all.size(); ++i)
        rows[rowOf[static_cast<size_t>(all[i].command)]].nanoseconds += static_cast<double>(all[i].end - all[i].begin);
    }
  double samples = static_cast<double>(std::max<int64_t>(1, steps - skipped) * ranks.count), total = 0;
  for (Row &row : rows) {
    row.nanoseconds /= samples;
    total += row.command->stream == 0 ? row.nanoseconds : 0;
  }
  std::sort(rows.begin(), rows.end(), [](const Row &a, const Row &b) {
    if (a.command->stream != b.command->stream)
      return a.command->stream < b.command->stream;
    return a.nanoseconds != b.nanoseconds ? a.nanoseconds > b.nanoseconds : a.command < b.command;
  });
  auto fixed = [](double value, int digits) {
    char text[64];
    std::snprintf(text, sizeof text, "%.*f", digits, value);
    return std::string(text);
  };
  std::string text = "profile of " + formatCount(steps - skipped) + " steps, mean of " + formatCount(ranks.count) +
                     " ranks; stream " + artifact.plan.streams[0] + ": " + fixed(total * 1e-6, 3) + " ms per step\n";
  std::vector<std::vector<std::string>> table = {
      {"command", "stream", "calls", "ms", "share", "MB", "GB/s", "GFLOP/s", "where"}};
  for (const Row &row : rows) {
    bool timed = row.nanoseconds > 0;
    bool isWait = row.command->is<WaitCommand>();
    std::string location = isWait ? "" : formatPattern(row.command->location);
    table.push_back({row.label, artifact.plan.streams[static_cast<size_t>(row.command->stream)], formatCount(row.calls),
                     fixed(row.nanoseconds * 1e-6, 3),
                     total > 0 && row.command->stream == 0 ? fixed(100 * row.nanoseconds / total, 1) + "%" : "-",
                     row.bytes ? fixed(static_cast<double>(row.bytes) * 1e-6, 2) : "-",
                     timed && row.bytes ? fixed(static_cast<double>(row.bytes) / row.nanoseconds, 1) : "-",
                     timed && row.flops > 0 ? fixed(row.flops / row.nanoseconds, 1) : "-", location});
  }
  return text + formatTable(table);
}
