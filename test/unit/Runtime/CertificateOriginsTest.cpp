// Rule 10: what ranks have apart is combined before it counts for all of them. The plan is as before: these are tables
// of a compiler that forgot a collective.
#include "../../../lib/Runtime/Core/CertificateOrigins.h"
#include "CertificateFixture.h"

#include <algorithm>

using namespace spmd::runtime;

namespace {
struct Origins : Certificate {
  /// Whether people see a line that begins so.
  static bool begins(const ValueEntry &entry, const std::string &text) {
    using Kind = ValueEntry::Kind;
    bool isBound = entry.kind == Kind::Source || entry.kind == Kind::Target;
    return (isBound || entry.kind == Kind::Compute) &&
           (isBound ? toText(entry.binding) : toText(entry.operation)).rfind(text, 0) == 0;
  }
  /// The `nth` line that begins so.
  ValueEntry &line(const std::string &text, size_t nth = 0) {
    for (ValueEntry &entry : manifest.values->entries)
      if (begins(entry, text) && nth-- == 0)
        return entry;
    ADD_FAILURE() << "no line " << text;
    std::abort();
  }
  ValueEntry &target(const std::string &text) { return line(text, text.rfind("loss", 0) == 0 ? 0 : 1); }
  static CollectiveOperation &collectiveOf(ValueEntry &entry) { return std::get<CollectiveOperation>(entry.operation); }
  static Operation kernel(const std::string &symbol, size_t reads, size_t writes) {
    KernelOperation operation{symbol, std::vector<Access>(reads, Access::Read)};
    operation.arguments.insert(operation.arguments.end(), writes, Access::Write);
    return operation;
  }
  /// The operation that a collective becomes.
  static void forget(ValueEntry &entry) { entry.operation = kernel("copy", 1, 1); }
  void expectError(const std::string &part) {
    Status status = checkOrigins(manifest, manifest.values->entries);
    expectContains(status.message, "certificate rule 10: the manifest's /values/");
    expectContains(status.message, part);
  }
};
} // namespace

TEST_F(Origins, Hold) {
  Status status = checkOrigins(manifest, manifest.values->entries);
  EXPECT_TRUE(status.ok()) << status.message;
}

TEST_F(Origins, LossIsNotReduced) {
  forget(line("all_reduce f32 sum 1"));
  expectError("loss 0 f32 is the same on all ranks, but computed from batch");
}

TEST_F(Origins, GradientsAreNotReduced) {
  forget(line("reduce_scatter f32 sum 48 of embed"));
  expectError("f32 is computed from batch x i64, which no collective has combined");
}

TEST_F(Origins, NormIsNotReduced) {
  line("all_reduce f32 norm2,max").operation = kernel("copy", 2, 2);
  expectError("is computed from the result of reduce_scatter f32 sum");
}

TEST_F(Origins, GatherOfAnotherUnit) {
  ValueEntry &gather = line("all_gather");
  collectiveOf(gather).unit = "fc";
  expectError("gathers what is computed from shard param of embed f32");
}

TEST_F(Origins, GatherOfWhatIsWhole) {
  ValueEntry &gather = line("all_gather");
  for (size_t value = 0; value < manifest.values->entries.size(); ++value)
    if (begins(manifest.values->entries[value], "hyper"))
      gather.of = {static_cast<int32_t>(value)};
  expectError("gathers what is computed from no chunk of embed");
}

TEST_F(Origins, StateOfAnotherUnit) {
  target("shard momentum_buffer of embed").of = target("shard momentum_buffer of fc").of;
  expectError("shard momentum_buffer of embed f32 is computed from");
}

TEST_F(Origins, TableFromRows) {
  for (size_t value = 0; value < manifest.values->entries.size(); ++value)
    if (begins(manifest.values->entries[value], "batch x"))
      target("table step of embed").of = {static_cast<int32_t>(value)};
  expectError("table step of embed f32 is the same on all ranks, but computed from batch x i64");
}

/// A gradient that outlives the step, of which ranks have summands, may differ, and must: else it would count once for
/// each rank.
TEST_F(Origins, ASumIsOfWhatRanksHaveApart) {
  StateEntry sum;
  sum.kind = StateEntry::Kind::Replicated;
  sum.state = "grad";
  sum.name = "w";
  sum.isSum = true;
  manifest.state.push_back(sum);
  int32_t next = 0, rows = -1, hyper = -1;
  for (const ValueEntry &entry : manifest.values->entries) {
    if (begins(entry, "batch x"))
      rows = next;
    if (begins(entry, "hyper"))
      hyper = next;
    next += static_cast<int32_t>(entry.bytes.size());
  }
  ASSERT_TRUE(rows >= 0 && hyper >= 0);
  ValueEntry target;
  target.kind = ValueEntry::Kind::Target;
  target.pointer = "/values/" + std::to_string(manifest.values->entries.size());
  target.binding = bindingOf(sum);
  target.of = {rows};
  manifest.values->entries.push_back(target);
  Status status = checkOrigins(manifest, manifest.values->entries);
  EXPECT_TRUE(status.ok()) << status.message;
  manifest.state.back().isSum = false;
  expectError("is the same on all ranks, but computed from batch x");
  manifest.state.back().isSum = true;
  manifest.values->entries.back().of = {hyper};
  expectError("is the sum of what ranks have, but computed from what all have alike");
}

TEST_F(Origins, OneRankHasEverything) {
  forget(line("all_reduce f32 sum 1"));
  manifest.ranks = 1;
  EXPECT_TRUE(checkOrigins(manifest, manifest.values->entries).ok());
}

/// The rank's number makes of a whole flat buffer this rank's chunk of its unit, which may be gathered as that.
TEST_F(Origins, GatherOfAChunkThatIsCutFromTheWhole) {
  int32_t next = 0, hyper = -1;
  auto gather = manifest.values->entries.end();
  for (auto entry = manifest.values->entries.begin(); entry != manifest.values->entries.end(); ++entry) {
    if (begins(*entry, "hyper"))
      hyper = next;
    if (gather == manifest.values->entries.end() && begins(*entry, "all_gather"))
      gather = entry;
    next += static_cast<int32_t>(entry->bytes.size());
  }
  ASSERT_TRUE(gather != manifest.values->entries.end() && hyper >= 0);
  // After everything else, so that no number changes.
  std::string unit = collectiveOf(*gather).unit;
  std::string other = unit == "fc" ? "embed" : "fc";
  ValueEntry flat, cut, again = *gather;
  flat.kind = ValueEntry::Kind::Join;
  flat.unit = unit;
  flat.of = {hyper};
  flat.at = {0};
  flat.bytes = gather->bytes;
  cut.kind = ValueEntry::Kind::Compute;
  cut.operation = kernel("cut", 1, 1);
  cut.of = {next};
  cut.bytes = {gather->bytes[0] / 2};
  again.of = {next + 1};
  size_t at = manifest.values->entries.size();
  manifest.values->entries.insert(manifest.values->entries.end(), {flat, cut, again});
  // Without the rank's number, all ranks send the same.
  expectError("gathers what is computed from no chunk of " + unit);
  manifest.values->entries[at + 1].byRank = {0};
  Status status = checkOrigins(manifest, manifest.values->entries);
  EXPECT_TRUE(status.ok()) << status.message;
  manifest.values->entries[at].unit = other;
  expectError("gathers what is computed from what kernel cut rw makes of the rank's number");
  // Of no whole buffer of a unit, it is a piece of nobody knows what, of which a chunk may be made.
  manifest.values->entries[at + 1].of = {hyper};
  status = checkOrigins(manifest, manifest.values->entries);
  EXPECT_TRUE(status.ok()) << status.message;
}

TEST_F(Origins, WhatIsMadeOfTheRanksNumberIsNotCombined) {
  ValueEntry &loss = target("loss");
  int32_t next = 0;
  for (const ValueEntry &entry : manifest.values->entries)
    next += static_cast<int32_t>(entry.bytes.size());
  ValueEntry made;
  made.kind = ValueEntry::Kind::Compute;
  made.operation = kernel("made", 1, 1);
  made.of = loss.of;
  made.bytes = {4};
  loss.of = {next};
  ValueEntry last = loss;
  manifest.values->entries.erase(manifest.values->entries.begin() + (&loss - manifest.values->entries.data()));
  manifest.values->entries.push_back(made);
  manifest.values->entries.push_back(last);
  EXPECT_TRUE(checkOrigins(manifest, manifest.values->entries).ok());
  manifest.values->entries[manifest.values->entries.size() - 2].byRank = {0};
  expectError("is the same on all ranks, but computed from what kernel made rw makes of the rank's number");
}

/// A kernel of two loops that share nothing: one result is of what all ranks have, the other of this rank's rows.
TEST_F(Origins, OfEachResultOfAKernel) {
  int32_t next = 0, whole = -1, rows = -1;
  for (const ValueEntry &entry : manifest.values->entries) {
    if (begins(entry, "hyper"))
      whole = next;
    if (begins(entry, "batch"))
      rows = next;
    next += static_cast<int32_t>(entry.bytes.size());
  }
  ASSERT_GE(std::min(whole, rows), 0);
  ValueEntry both;
  both.kind = ValueEntry::Kind::Compute;
  both.operation = kernel("both", 2, 2);
  both.of = {whole, rows};
  both.bytes = {4, 4};
  auto loss = std::find_if(manifest.values->entries.begin(), manifest.values->entries.end(),
                           [](const ValueEntry &entry) { return begins(entry, "loss"); });
  loss->of = {next};
  loss = manifest.values->entries.insert(loss, both);
  // Nothing says which operand a result is made of: it is all of them.
  expectError("loss 0 f32 is the same on all ranks, but computed from batch");
  loss->reads = {{0}, {1}};
  Status status = checkOrigins(manifest, manifest.values->entries);
  EXPECT_TRUE(status.ok()) << status.message;
  loss->reads = {{1}, {0}};
  expectError("loss 0 f32 is the same on all ranks, but computed from batch");
}

/// What a collective gives has no list of its own: its operands are those of the call.
TEST_F(Origins, ACollectiveIsHeldToAllOfItsOperands) {
  ValueEntry &gather = line("all_gather");
  gather.reads = {{}};
  for (size_t value = 0; value < manifest.values->entries.size(); ++value)
    if (begins(manifest.values->entries[value], "hyper"))
      gather.of = {static_cast<int32_t>(value)};
  expectError("gathers what is computed from no chunk of embed");
}
