// Rule 10: what ranks have apart is combined before it counts for all of them. The plan is as before: these are tables
// of a compiler that forgot a collective.
#include "../../../lib/Runtime/Core/CertificateOrigins.h"
#include "CertificateFixture.h"

#include <algorithm>

using namespace spmd::runtime;

namespace {
struct Origins : Certificate {
  /// The `nth` line whose `what` begins so.
  ValueEntry &line(const std::string &what, size_t nth = 0) {
    for (ValueEntry &entry : *manifest.values)
      if (entry.what.rfind(what, 0) == 0 && nth-- == 0)
        return entry;
    ADD_FAILURE() << "no line " << what;
    std::abort();
  }
  ValueEntry &target(const std::string &what) { return line(what, what.rfind("loss", 0) == 0 ? 0 : 1); }
  /// What an operation is called that a collective becomes.
  static void forget(ValueEntry &entry) { entry.what = "kernel copy rw"; }
  void expectError(const std::string &part) {
    Status status = checkOrigins(manifest);
    expectContains(status.message, "certificate rule 10: the manifest's /values/");
    expectContains(status.message, part);
  }
};
} // namespace

TEST_F(Origins, Hold) {
  Status status = checkOrigins(manifest);
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
  line("all_reduce f32 norm2,max").what = "kernel copy rrww";
  expectError("is computed from the result of reduce_scatter f32 sum");
}

TEST_F(Origins, GatherOfAnotherUnit) {
  ValueEntry &gather = line("all_gather");
  gather.what.replace(gather.what.rfind("embed"), 5, "fc");
  expectError("gathers what is computed from shard param of embed f32");
}

TEST_F(Origins, GatherOfWhatIsWhole) {
  ValueEntry &gather = line("all_gather");
  for (size_t value = 0; value < manifest.values->size(); ++value)
    if ((*manifest.values)[value].what.rfind("hyper", 0) == 0)
      gather.of = {static_cast<int32_t>(value)};
  expectError("gathers what is computed from no chunk of embed");
}

TEST_F(Origins, StateOfAnotherUnit) {
  target("shard momentum_buffer of embed").of = target("shard momentum_buffer of fc").of;
  expectError("shard momentum_buffer of embed f32 is computed from");
}

TEST_F(Origins, TableFromRows) {
  for (size_t value = 0; value < manifest.values->size(); ++value)
    if ((*manifest.values)[value].what.rfind("batch x", 0) == 0)
      target("table step of embed").of = {static_cast<int32_t>(value)};
  expectError("table step of embed f32 is the same on all ranks, but computed from batch x i64");
}

TEST_F(Origins, OneRankHasEverything) {
  forget(line("all_reduce f32 sum 1"));
  manifest.ranks = 1;
  EXPECT_TRUE(checkOrigins(manifest).ok());
}

/// A kernel of two loops that share nothing: one result is of what all ranks have, the other of this rank's rows.
TEST_F(Origins, OfEachResultOfAKernel) {
  int32_t next = 0, whole = -1, rows = -1;
  for (const ValueEntry &entry : *manifest.values) {
    if (entry.what.rfind("hyper", 0) == 0)
      whole = next;
    if (entry.what.rfind("batch", 0) == 0)
      rows = next;
    next += static_cast<int32_t>(entry.bytes.size());
  }
  ASSERT_GE(std::min(whole, rows), 0);
  ValueEntry both;
  both.kind = ValueEntry::Kind::Compute;
  both.what = "kernel both rrww";
  both.of = {whole, rows};
  both.bytes = {4, 4};
  auto loss = std::find_if(manifest.values->begin(), manifest.values->end(),
                           [](const ValueEntry &entry) { return entry.what.rfind("loss", 0) == 0; });
  loss->of = {next};
  loss = manifest.values->insert(loss, both);
  // Nothing says which operand a result is made of: it is all of them.
  expectError("loss 0 f32 is the same on all ranks, but computed from batch");
  loss->reads = {{0}, {1}};
  Status status = checkOrigins(manifest);
  EXPECT_TRUE(status.ok()) << status.message;
  loss->reads = {{1}, {0}};
  expectError("loss 0 f32 is the same on all ranks, but computed from batch");
}

/// What a collective gives has no list of its own: its operands are those of the call.
TEST_F(Origins, ACollectiveIsHeldToAllOfItsOperands) {
  ValueEntry &gather = line("all_gather");
  gather.reads = {{}};
  for (size_t value = 0; value < manifest.values->size(); ++value)
    if ((*manifest.values)[value].what.rfind("hyper", 0) == 0)
      gather.of = {static_cast<int32_t>(value)};
  expectError("gathers what is computed from no chunk of embed");
}
