// Rule 8: the plan computes the table of values.
#include "CertificateFixture.h"
#include "TableChanges.h"

using namespace spmd::runtime;

TEST_F(Certificate, Rule8OperandsExchanged) {
  std::swap(kernel("sgd_embed").refs[0], kernel("sgd_embed").refs[1]);
  expectError(8, "operand 0 of 'kernel sgd_embed bbrrrr' is 192 bytes from 0 on of shard momentum_buffer of embed "
                 "f32; the compiled step has 192 bytes from 0 on of shard param of embed f32");
}

TEST_F(Certificate, Rule8OtherKernel) {
  kernel("norm_embed").as<KernelCommand>()->symbol = "norm_fc";
  expectError(8, "operand 0 of 'kernel norm_fc rww' is");
}

/// Rule 9 compares how often a kernel runs with its file (KernelTableTest).
TEST_F(Certificate, Rule8IterationsAreFree) {
  kernel("sgd_fc").as<KernelCommand>()->parallel -= 1;
  kernel("sgd_fc").as<KernelCommand>()->grain += 1;
  EXPECT_TRUE(checkCertificate(manifest, plan).ok());
}

TEST_F(Certificate, Rule8Access) {
  kernel("bias_relu").refs[1].access = Access::ReadWrite;
  expectError(8, "has no operation 'kernel bias_relu bb'");
}

TEST_F(Certificate, Rule8GemmSizes) {
  actionOf<GemmCommand>().shape.k -= 1;
  expectError(8, "has no operation 'gemm f32 4,5,5 ld");
}

TEST_F(Certificate, Rule8ReductionKind) {
  actionOf(CollectiveKind::AllReduce, 1).kinds[0] = ReductionKind::Sum;
  expectError(8, "has no operation 'all_reduce f32 sum,max 2,2'");
}

TEST_F(Certificate, Rule8UnitOfAGather) {
  actionOf(CollectiveKind::AllGather).unit = "fc";
  expectError(8, "operand 0 of 'all_gather f32 48 of fc' is");
}

TEST_F(Certificate, Rule8PaddingIsZero) {
  actionOf<FillCommand>(1).value = 1;
  expectError(8, "(reduce_scatter of fc): operand 0");
}

TEST_F(Certificate, Rule8CopyOfOtherBytes) {
  of<CopyCommand>().refs[0].buffer = buffer("t").id;
  expectError(8, "at the end of the step, output 1 f32 is 48 bytes from 0 on of batch t f32");
}

TEST_F(Certificate, Rule8StateIsNotUpdated) {
  remove(kernel("count_steps_embed"));
  expectError(8, "at the end of the step, table step of embed f32 is 4 bytes from 0 on of table step of embed f32");
}

TEST_F(Certificate, Rule8ReducedTwice) {
  Command again = of(CollectiveKind::AllReduce, 1);
  Command &wait = waitOn("scalar", 1);
  again.stream = wait.stream;
  plan.commands.push_back(again);
  EXPECT_FALSE(checkCertificate(manifest, plan).ok());
}

TEST_F(Certificate, Rule8StatesExchanged) {
  std::swap(manifest.state[0].offset, manifest.state[1].offset);
  std::swap(manifest.state[0].buffer, manifest.state[1].buffer);
  expectError(8, "");
}

TEST_F(Certificate, Rule8ParametersExchanged) {
  // A named part of the gathered buffer lies where the unit has the parameter.
  for (ValueEntry &entry : manifest.values->entries)
    if (entry.kind == ValueEntry::Kind::Part) {
      entry.segments = {"fc2.bias"};
      entry.unit = "fc";
    }
  expectError(8, "are not the 3 elements from");
}

TEST_F(Certificate, Rule8ComputingAgainIsFree) {
  plan.commands.push_back(of<CopyCommand>());
  Status status = checkCertificate(manifest, plan);
  EXPECT_TRUE(status.ok()) << status.message;
}

TEST_F(Certificate, Rule8TableNamesAValueBeforeItIsDefined) {
  manifest.values->entries.back().of = {1000000};
  expectError(8, "value 1000000 is not defined before");
}

TEST_F(Certificate, Rule8TableLeavesAValue) {
  ValueEntry part;
  part.kind = ValueEntry::Kind::Part;
  part.of = {0};
  part.at = {0};
  part.bytes = {1 << 20};
  manifest.values->entries.push_back(part);
  expectError(8, "leave a value of 192");
}

TEST_F(Certificate, Rule8TableJoinsOverlappingValues) {
  ValueEntry join;
  join.kind = ValueEntry::Kind::Join;
  join.of = {0, 0};
  join.at = {0, 4};
  join.bytes = {1 << 20};
  manifest.values->entries.push_back(join);
  expectError(8, "overlaps what is before it");
}

TEST_F(Certificate, Rule8EveryFieldOfTheTableCounts) { expectEveryFieldToCount(manifest, plan); }

namespace {
/// Row numbers that a check looks at before a kernel reads them.
struct CheckedRows : ::testing::Test {
  Manifest manifest;
  Plan plan;

  CheckedRows() {
    manifest.mesh = {{"data", 1}};
    manifest.arenaBytes = manifest.transientBytes = 128;
    BatchInput ids;
    ids.name = "ids";
    ids.dtype = DType::I64;
    ids.shape = ids.localShape = {8};
    Output rows;
    rows.shape = rows.localShape = {16};
    rows.offset = 64;
    manifest.batch = {ids};
    manifest.outputs = {rows};
    plan.streams = {"compute"};
    plan.buffers.resize(2);
    for (int32_t id : {0, 1}) {
      plan.buffers[static_cast<size_t>(id)].id = id;
      plan.buffers[static_cast<size_t>(id)].memoryClass = "io";
      plan.buffers[static_cast<size_t>(id)].offset = 64 * id;
      plan.buffers[static_cast<size_t>(id)].bytes = 64;
    }
    Command check, take;
    check.action = CheckIndexCommand{8, DType::I64, 0, 65, std::nullopt, "embedding"};
    check.refs = {{0, 0, {}, 64, Access::Read}};
    take.action = KernelCommand{"take", 1, 1};
    take.refs = {{0, 0, {}, 64, Access::Read}, {1, 0, {}, 64, Access::Write}};
    plan.commands = {check, take};
    manifest.values.emplace();
    addValue(manifest, ValueEntry::Kind::Source, {}, {64}).binding = bindingOf(ids);
    addValue(manifest, ValueEntry::Kind::Compute, {0}, {}).operation = *operationOf(plan, check);
    addValue(manifest, ValueEntry::Kind::Compute, {0}, {64}).operation = *operationOf(plan, take);
    addValue(manifest, ValueEntry::Kind::Target, {1}, {}).binding = bindingOf(rows);
  }
};
} // namespace

TEST_F(CheckedRows, Hold) {
  Status status = checkCertificate(manifest, plan);
  EXPECT_TRUE(status.ok()) << status.message;
}

TEST_F(CheckedRows, EveryFieldOfTheTableCounts) { expectEveryFieldToCount(manifest, plan); }

TEST_F(CheckedRows, AreCheckedBeforeTheyAreRead) {
  std::swap(plan.commands[0], plan.commands[1]);
  expectContains(checkCertificate(manifest, plan).message,
                 "certificate rule 8: command 0 (kernel take): reads row numbers that are not checked before; the "
                 "compiled step has 'check_index i64 8,0,65 for embedding'");
}

TEST_F(CheckedRows, AreCheckedAtAll) {
  manifest.values->entries.erase(manifest.values->entries.begin() + 2);
  manifest.values->entries.back().of = {0};
  plan.commands.erase(plan.commands.begin());
  plan.commands[0].action = CopyCommand{64};
  expectContains(checkCertificate(manifest, plan).message,
                 "certificate rule 8: 'check_index i64 8,0,65 for embedding' of the compiled step never runs");
}
