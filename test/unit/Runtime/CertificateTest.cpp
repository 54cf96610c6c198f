#include "CertificateFixture.h"
#include "spmd/Runtime/Core/HappensBefore.h"

#include <chrono>

using namespace spmd::runtime;

TEST(CertificateOfTiny, Holds) {
  for (int64_t ranks : {1, 2, 3, 4, 8}) {
    Artifact artifact = loadTiny(ranks);
    Status status = checkCertificate(artifact.manifest, artifact.plan);
    EXPECT_TRUE(status.ok()) << status.message;
  }
}

TEST_F(Certificate, Rule1BufferOutsideTheArena) {
  buffer("dz").offset = manifest.arenaBytes - 8;
  expectError(1, "('dz'): bytes [");
}

TEST_F(Certificate, Rule1StateBufferOutsideTheStateRegion) {
  buffer("dz").state = true;
  expectError(1, "a state buffer outside the state region");
}

TEST_F(Certificate, Rule1TransientBufferInTheStateRegion) {
  buffer("dz").offset = 0;
  expectError(1, "not a state buffer, but in the state region");
}

TEST_F(Certificate, Rule1ReferenceLeavesItsBuffer) {
  kernel("output").refs[1].offset += 100000;
  expectError(1, "leaves buffer");
}

TEST_F(Certificate, Rule1ReferenceLeavesItsBufferOnOneRank) {
  kernel("relu_backward").refs[0].coord = {4}; // fits on rank 0 only
  expectError(1, "leaves buffer");
}

TEST_F(Certificate, Rule1NegativeOffsetOnOneRank) {
  kernel("loss").refs[2].coord = {-4};
  expectError(1, "on some rank");
}

TEST_F(Certificate, Rule1MoreCoordinatesThanAxes) {
  kernel("loss").refs[2].coord = {0, 0};
  expectError(1, "has 2 coordinates, the mesh 1 axes");
}

TEST_F(Certificate, Rule1Alignment) {
  buffer("dz").alignment = 64;
  EXPECT_TRUE(checkCertificate(manifest, plan).ok());
  buffer("dz").alignment = int64_t{1} << 40;
  expectError(1, "is no multiple of its alignment, 1099511627776");
}

TEST_F(Certificate, Rule2CollectiveCount) {
  actionOf(CollectiveKind::AllGather).counts[0] -= 1;
  expectError(2, "its count asks for");
}

TEST_F(Certificate, Rule2CollectiveDType) {
  actionOf(CollectiveKind::ReduceScatter).dtype = DType::F64;
  expectError(2, "its count asks for");
}

TEST_F(Certificate, Rule2InPlaceAtTheWrongChunk) {
  Command &gather = of(CollectiveKind::AllGather);
  gather.refs[0].buffer = gather.refs[1].buffer; // chunk 0 on both ranks
  expectError(2, "not at the chunk of rank 1");
}

TEST_F(Certificate, Rule2GemmShape) {
  actionOf<GemmCommand>().shape.k += 1;
  actionOf<GemmCommand>().shape.lda += 1;
  expectError(2, "matrix a needs");
}

TEST_F(Certificate, Rule2GemmRow) {
  actionOf<GemmCommand>().shape.ldc = 1;
  expectError(2, "ldc 1 is less than a row");
}

TEST_F(Certificate, Rule2GemmBatchOverItself) {
  actionOf<GemmCommand>().shape.batch = int64_t{1} << 50; // all of them in one place
  expectError(2, "stride_c 0: matrices of the batch overlap");
}

TEST_F(Certificate, Rule2GemmBatchBehindItsOperand) {
  GemmShape &gemm = actionOf<GemmCommand>().shape;
  gemm.batch = 2;
  gemm.strideA = gemm.m * gemm.lda; // the second A begins where the reference ends
  expectError(2, "matrix a needs");
}

TEST_F(Certificate, Rule2GemmOverItsOperand) {
  Command &gemm = of<GemmCommand>();
  gemm.refs[2].buffer = gemm.refs[0].buffer;
  expectError(2, "operands overlap");
}

TEST_F(Certificate, Rule2GemmBias) {
  Command &gemm = of<GemmCommand>();
  gemm.as<GemmCommand>()->shape.bias = static_cast<int32_t>(gemm.refs.size());
  gemm.refs.push_back(gemm.refs[0]);
  gemm.refs.back().bytes = 4;
  expectError(2, "matrix bias needs");
}

TEST_F(Certificate, Rule2GemmResidual) {
  Command &gemm = of<GemmCommand>();
  gemm.as<GemmCommand>()->shape.residual = static_cast<int32_t>(gemm.refs.size());
  gemm.refs.push_back(gemm.refs[0]);
  gemm.refs.back().bytes = 4;
  expectError(2, "matrix residual needs");
}

TEST_F(Certificate, Rule2GemmOverItsResidual) {
  Command &gemm = of<GemmCommand>();
  gemm.as<GemmCommand>()->shape.residual = static_cast<int32_t>(gemm.refs.size());
  gemm.refs.push_back(gemm.refs[2]);
  gemm.refs.back().access = Access::Read;
  expectError(2, "operands overlap");
}

TEST_F(Certificate, Rule2GemmPreActivationOverItsResult) {
  Command &gemm = of<GemmCommand>();
  gemm.as<GemmCommand>()->shape.activation = Activation::Relu;
  gemm.as<GemmCommand>()->shape.preActivation = static_cast<int32_t>(gemm.refs.size());
  gemm.refs.push_back(gemm.refs[2]);
  expectError(2, "operands overlap");
}

/// Makes the first GEMM one that takes the gradient of gelu at what it reads itself.
static Ref &addPreActivation(Command &gemm) {
  GemmShape &shape = gemm.as<GemmCommand>()->shape;
  shape.activation = Activation::GeluTanhBackward;
  shape.preActivation = static_cast<int32_t>(gemm.refs.size());
  gemm.refs.push_back(gemm.refs[0]);
  return gemm.refs.back();
}

TEST_F(Certificate, Rule2GemmGradientAtLess) {
  addPreActivation(of<GemmCommand>()).bytes = 4;
  expectError(2, "matrix pre_activation needs");
}

TEST_F(Certificate, Rule2GemmGradientAtItsResult) {
  Command &gemm = of<GemmCommand>();
  Ref &at = addPreActivation(gemm);
  at = gemm.refs[2];
  at.access = Access::Read;
  expectError(2, "operands overlap");
}

// What it is taken at is an operand: the compiled step has a GEMM with two.
TEST_F(Certificate, Rule8GemmGradient) {
  addPreActivation(of<GemmCommand>());
  expectError(8, "gelu_tanh_backward pre_activation'");
}

TEST_F(Certificate, Rule2GemmBiasGradient) {
  Command &gemm = of<GemmCommand>();
  GemmShape &shape = gemm.as<GemmCommand>()->shape;
  shape.biasGradientOf = GemmOperand::B;
  shape.biasGradient = static_cast<int32_t>(gemm.refs.size());
  gemm.refs.push_back(gemm.refs[2]);
  gemm.refs.back().access = Access::Write;
  expectError(2, "operands overlap");
}

TEST_F(Certificate, Rule2GemmBiasGradientOverWhatItSums) {
  Command &gemm = of<GemmCommand>();
  GemmShape &shape = gemm.as<GemmCommand>()->shape;
  shape.biasGradientOf = GemmOperand::A;
  shape.biasGradient = static_cast<int32_t>(gemm.refs.size());
  gemm.refs.push_back(gemm.refs[0]);
  gemm.refs.back().access = Access::Write;
  expectError(2, "operands overlap");
}

/// A workspace behind the arena, which then ends with it.
static int32_t addWorkspace(Manifest &manifest, Plan &plan, Command &gemm) {
  Buffer made;
  made.id = static_cast<int32_t>(plan.buffers.size());
  made.name = "workspace";
  made.memoryClass = "workspace";
  made.offset = manifest.arenaBytes;
  made.bytes = 256;
  manifest.transientBytes += made.bytes;
  manifest.arenaBytes += made.bytes;
  plan.buffers.push_back(made);
  gemm.as<GemmCommand>()->shape.workspace = static_cast<int32_t>(gemm.refs.size());
  gemm.refs.push_back({made.id, 0, {}, made.bytes, Access::Write});
  return made.id;
}

TEST_F(Certificate, GemmWorkspace) {
  addWorkspace(manifest, plan, of<GemmCommand>());
  Status status = checkCertificate(manifest, plan);
  EXPECT_TRUE(status.ok()) << status.message;
}

TEST_F(Certificate, Rule2GemmWorkspaceOverItsOperand) {
  Command &gemm = of<GemmCommand>();
  addWorkspace(manifest, plan, gemm);
  gemm.refs.back().buffer = gemm.refs[0].buffer;
  gemm.refs.back().bytes = 4;
  expectError(2, "operands overlap");
}

TEST_F(Certificate, Rule2GemmWorkspaceOffItsAlignment) {
  Command &gemm = of<GemmCommand>();
  plan.buffers[static_cast<size_t>(addWorkspace(manifest, plan, gemm))].alignment = 64;
  gemm.refs.back().bytes -= 4;
  EXPECT_TRUE(checkCertificate(manifest, plan).ok());
  gemm.refs.back().offset = 4;
  expectError(2, "its workspace begins at no multiple of 64");
}

TEST_F(Certificate, Rule4GemmWorkspaceWhereSomethingIsAlive) {
  int32_t workspace = addWorkspace(manifest, plan, of<GemmCommand>());
  plan.buffers[static_cast<size_t>(workspace)].offset = buffer("lr").offset;
  expectError(4, "share bytes of the arena and are alive together");
}

// What was there before a product ran is not there afterwards.
TEST_F(Certificate, Rule8WhatAWorkspaceHolds) {
  addWorkspace(manifest, plan, of<GemmCommand>());
  Command gemm = of<GemmCommand>();
  Ref workspace = gemm.refs.back(), operand = gemm.refs[0];
  ASSERT_LE(operand.bytes, workspace.bytes);
  workspace.bytes = operand.bytes;
  auto addCopy = [&](size_t at, Ref from, Ref to) {
    from.access = Access::Read;
    to.access = Access::Write;
    Command copy;
    copy.stream = gemm.stream;
    copy.refs = {from, to};
    copy.action = CopyCommand{from.bytes};
    plan.commands.insert(plan.commands.begin() + static_cast<int64_t>(at), copy);
    for (Command &command : plan.commands)
      if (auto *wait = command.as<WaitCommand>(); wait && wait->awaited >= static_cast<int32_t>(at))
        ++wait->awaited;
  };
  auto at = static_cast<size_t>(&of<GemmCommand>() - plan.commands.data());
  addCopy(at, operand, workspace);
  addCopy(at + 1, workspace, operand);
  Status status = checkCertificate(manifest, plan);
  EXPECT_TRUE(status.ok()) << status.message;
  std::swap(plan.commands[at + 1], plan.commands[at + 2]);
  expectError(8, "what nothing wrote");
}

TEST_F(Certificate, Rule2CopyBytes) {
  actionOf<CopyCommand>().bytes += 4;
  expectError(2, "moves");
}

TEST_F(Certificate, Rule2AllReduceBuffersOverlap) {
  Command &reduce = of(CollectiveKind::AllReduce, 1);
  reduce.refs[1] = reduce.refs[0];
  expectError(2, "operands overlap");
}

TEST_F(Certificate, Rule2UnknownUnit) {
  actionOf(CollectiveKind::AllGather).unit = "unit9";
  expectError(2, "no unit is named 'unit9'");
}

TEST_F(Certificate, Rule3OtherBytesOnOtherRanks) {
  // Rank 1's scalar is apart from rank 0's, and both are where they may be.
  Command &reduce = of(CollectiveKind::AllReduce, 1);
  plan.buffers[static_cast<size_t>(reduce.refs[0].buffer)].bytes += 64;
  reduce.refs[0].coord = {64};
  expectError(3, "lies at other bytes on rank 1 than on rank 0");
}

TEST_F(Certificate, Rule3SendsOtherBytesOnOtherRanks) {
  Command &gather = of(CollectiveKind::AllGather);
  Buffer &sent = plan.buffers[static_cast<size_t>(gather.refs[0].buffer)];
  gather.refs[0].coord = {64};
  sent.bytes = gather.refs[0].bytes + 64;
  expectError(3, "lies at other bytes on rank 1 than on rank 0");
}

TEST_F(Certificate, Rule3InPlaceOnOneRankOnly) {
  // Rank 0 sends its chunk in place, rank 1 what lies behind the gathered buffer.
  Command &gather = of(CollectiveKind::AllGather);
  Buffer &whole = plan.buffers[static_cast<size_t>(gather.refs[1].buffer)];
  int64_t bytes = gather.refs[0].bytes;
  gather.refs[0] = {gather.refs[1].buffer, gather.refs[1].offset, {whole.bytes}, bytes, Access::Read};
  whole.bytes += bytes;
  expectError(3, "lies at other bytes on rank 1 than on rank 0");
}

TEST_F(Certificate, Rule3WaitForALaterCommand) {
  waitOn("compute").as<WaitCommand>()->awaited = 30;
  expectError(3, "waits for a command that is not before it");
}

TEST_F(Certificate, Rule3WaitForItsOwnStream) {
  Command &wait = waitOn("reduce", 1);
  wait.stream = 0;
  expectError(3, "waits for a command of its own stream");
}

TEST_F(Certificate, Rule3CommunicatorOnTwoStreams) {
  of(CollectiveKind::AllGather, 1).stream = 3;
  expectError(3, "communicator 'gather' is used on stream 'scalar' and, by "
                 "command 0 (all_gather of embed at train.py:100), on stream "
                 "'gather'");
}

TEST_F(Certificate, Rule4LiveBytesOverlap) {
  buffer("dz").offset = buffer("e").offset;
  expectError(4, "('dz') share bytes of the arena and are alive together");
}

TEST_F(Certificate, Rule4GatheredBufferOverwrittenBeforeItsLastRead) {
  // The gradient takes the gathered embedding's bytes; read that later.
  kernel("embed_backward").refs[1] = kernel("embed").refs[1];
  expectError(4, "'embed gathered'");
}

TEST(HappensBeforeOfAPlan, WhoWaitsForAWaitSeesWhatThatOneWaitedFor) {
  Plan plan;
  plan.streams = {"reduce", "compute", "gather"};
  plan.commands = {
      {0, "", {}, FillCommand()}, {1, "", {}, WaitCommand{0}}, {2, "", {}, WaitCommand{1}}, {2, "", {}, FillCommand()}};
  HappensBefore order(plan);
  EXPECT_TRUE(order.ordered(0, 3));
  EXPECT_TRUE(order.ordered(1, 3));
  EXPECT_FALSE(order.ordered(0, 2)); // a wait starts before what it waits for is complete
  EXPECT_FALSE(order.ordered(3, 1));
}

TEST_F(Certificate, Rule4OverlapWithState) {
  buffer("fc step").offset = buffer("embed step").offset;
  manifest.state.back().offset = manifest.state[2].offset;
  manifest.state.back().buffer = buffer("fc step").id;
  manifest.state[2].buffer = buffer("embed step").id;
  expectError(4, "alive together");
}

TEST_F(Certificate, Rule4OutputInNoIoBuffer) {
  buffer("loss").memoryClass = "activations";
  manifest.outputs[0].buffer.reset(); // it is found by its place
  expectError(4, "output '0'");
}

TEST_F(Certificate, Rule4BatchInTwoBuffers) {
  plan.buffers.push_back(buffer("x"));
  plan.buffers.back().id = static_cast<int32_t>(plan.buffers.size()) - 1;
  manifest.batch[0].buffer.reset();
  expectError(4, "batch input 'x' lies in several buffers");
  manifest.batch[0].buffer = buffer("x").id;
  EXPECT_TRUE(checkCertificate(manifest, plan).ok());
}

TEST_F(Certificate, Rule5MissingWaitBeforeAGatheredRead) {
  remove(waitOn("compute", 1));
  expectError(5, "is not ordered with command 1 (all_gather of fc at "
                 "train.py:101)");
}

// The GEMM takes the gradient of gelu at what an all_gather brings.
TEST_F(Certificate, Rule5MissingWaitBeforeAGradient) {
  manifest.values.reset();
  Command &gemm = kernel("embed"); // between the waits for both gathers
  Ref gathered = gemm.refs[1], out = gemm.refs[2];
  gathered.bytes = out.bytes;
  GemmCommand row;
  row.shape.m = row.shape.k = row.shape.lda = 1;
  row.shape.n = row.shape.ldb = row.shape.ldc = out.bytes / sizeOf(DType::F32);
  row.shape.activation = Activation::GeluTanhBackward;
  row.shape.preActivation = 3;
  gemm.refs = {gathered, gathered, out, gathered};
  gemm.action = row;
  Status status = checkCertificate(manifest, plan);
  EXPECT_TRUE(status.ok()) << status.message;
  gemm.refs[3].buffer = of(CollectiveKind::AllGather, 1).refs[1].buffer;
  gemm.refs[3].offset = 0;
  expectError(5, "is not ordered with command 1 (all_gather of fc at train.py:101)");
}

TEST_F(Certificate, Rule5MissingWaitBeforeACollective) {
  remove(waitOn("scalar"));
  expectError(5, "of buffer");
}

TEST_F(Certificate, Rule5MissingWaitAfterTheNorm) {
  Command &last = waitOn("compute", 4);
  remove(last);
  expectError(5, "(all_reduce");
}

TEST_F(Certificate, Rule5RacesOfOneRankAreFound) {
  // Rank 1 writes where the copy stream of rank 1 reads; rank 0 does not.
  Command &written = of(CollectiveKind::AllReduce, 0);
  written.refs = {kernel("norm_embed").refs[1]}; // norms[0], never written yet
  written.refs[0].coord = {4};
  written.action = FillCommand{written.refs[0].bytes, 0};
  expectError(5, "");
}

TEST_F(Certificate, Rule6PaddingNeverWritten) {
  Command &fill = of<FillCommand>(1); // the gradients of fc
  fill.as<FillCommand>()->bytes -= 4;
  fill.refs[0].bytes -= 4;
  expectError(6, "(reduce_scatter of fc): reads byte");
}

TEST_F(Certificate, Rule6OutputNeverWritten) {
  remove(of<CopyCommand>());
  expectError(6, "the end of the step reads byte 0");
}

TEST_F(Certificate, Rule6StateThatNobodyProvides) {
  manifest.state.erase(manifest.state.begin());
  expectError(6, "'embed param'");
}

TEST_F(Certificate, Rule7NeverReduced) {
  actionOf(CollectiveKind::ReduceScatter).unit.clear();
  expectError(7, "the gradients of fc are never reduced");
}

TEST_F(Certificate, Rule7ReducedTwice) {
  actionOf(CollectiveKind::AllReduce, 1).unit = "embed";
  expectError(7, "are reduced again, first by command");
}

TEST_F(Certificate, Rule7NotSummed) {
  actionOf(CollectiveKind::ReduceScatter).kinds[0] = ReductionKind::Max;
  expectError(7, "gradients are summed, not reduced by max");
}

TEST_F(Certificate, Rule7FrozenUnitsNeedNone) {
  for (Segment &segment : manifest.units[1].segments)
    segment.trainable = false;
  actionOf(CollectiveKind::ReduceScatter).unit.clear();
  manifest.values.reset(); // they say that it is reduced
  EXPECT_TRUE(checkCertificate(manifest, plan).ok());
}

TEST_F(Certificate, ErrorsCarryCommandAndLocation) {
  actionOf(CollectiveKind::AllGather, 1).counts[0] = 1;
  Status status = checkCertificate(manifest, plan);
  EXPECT_EQ(status.command, 1);
  EXPECT_EQ(status.location, "train.py:101");
}

/// 4,000 commands over buffers that share one megabyte, on 8 ranks.
TEST(CertificateOfALargePlan, IsQuick) {
  Manifest manifest;
  manifest.mesh = {{"data", 8}};
  manifest.ranks = 8;
  Plan plan;
  plan.streams = {"compute", "gather"};
  plan.communicators = {"gather"};
  constexpr int32_t layers = 500;
  constexpr int64_t size = 1 << 16;
  manifest.arenaBytes = manifest.transientBytes = 2 * size;
  for (int32_t layer = 0; layer < layers; ++layer) {
    Buffer buffer;
    buffer.id = layer;
    buffer.offset = layer % 2 * size;
    buffer.bytes = size;
    plan.buffers.push_back(buffer);
    for (int i = 0; i < 8; ++i) {
      Command command;
      command.refs = {{layer, 0, {}, size, Access::Write}};
      if (i > 0)
        command.refs[0].access = Access::Read;
      if (i == 7)
        command.refs[0] = {layer, 0, {size / 8}, size / 8, Access::ReadWrite};
      plan.commands.push_back(command);
    }
  }
  auto begin = std::chrono::steady_clock::now();
  Status status = checkCertificate(manifest, plan);
  EXPECT_TRUE(status.ok()) << status.message;
  EXPECT_LT(std::chrono::steady_clock::now() - begin, std::chrono::seconds(2));
}

namespace {

/// Four streams with collectives, each of a communicator of its own, behind a command of the first stream.
struct InFlight : ::testing::Test {
  Manifest manifest;
  Plan plan;

  InFlight() {
    manifest.mesh = {{"data", 2}};
    manifest.ranks = 2;
    manifest.arenaBytes = manifest.transientBytes = 4 * 64;
    plan.streams = {"compute"};
    for (int32_t i = 0; i < 4; ++i) {
      std::string name = "s" + std::to_string(i);
      plan.streams.push_back(name);
      plan.communicators.push_back(name);
      Buffer buffer;
      buffer.id = i;
      buffer.name = name;
      buffer.offset = 64 * i;
      buffer.bytes = 64;
      plan.buffers.push_back(buffer);
      plan.commands.push_back({0, "", {{i, 0, {}, 64, Access::Write}}, FillCommand{64, 0}});
    }
  }

  int32_t reduce(int32_t stream) {
    CollectiveCommand collective;
    collective.kind = CollectiveKind::AllReduce;
    collective.counts = {16};
    collective.kinds = {ReductionKind::Sum};
    collective.communicator = stream - 1;
    wait(stream, 3);
    plan.commands.push_back(
        {stream, "train.py:" + std::to_string(stream), {{stream - 1, 0, {}, 64, Access::ReadWrite}}, collective});
    return static_cast<int32_t>(plan.commands.size()) - 1;
  }
  void wait(int32_t stream, int32_t awaited) { plan.commands.push_back({stream, "", {}, WaitCommand{awaited}}); }

  std::string problem() const { return checkCertificate(manifest, plan).message; }
};

} // namespace

TEST_F(InFlight, Rule11ThreeHaveRoom) {
  for (int32_t stream : {1, 2, 3})
    reduce(stream);
  EXPECT_EQ(problem(), "");
}

TEST_F(InFlight, Rule11AFourthThatTakesTurns) {
  for (int32_t stream : {1, 2, 3})
    reduce(stream);
  int32_t second = 7; // the collective of the second stream
  ASSERT_TRUE(plan.commands[static_cast<size_t>(second)].is<CollectiveCommand>());
  wait(4, second);
  reduce(4);
  EXPECT_EQ(problem(), "");
  // And back: the second stream's next one waits for it.
  wait(2, static_cast<int32_t>(plan.commands.size()) - 1);
  reduce(2);
  EXPECT_EQ(problem(), "");
}

TEST_F(InFlight, Rule11AFourthThatNothingOrders) {
  for (int32_t stream : {1, 2, 3, 4})
    reduce(stream);
  EXPECT_EQ(problem(),
            "certificate rule 11: command 11 (all_reduce): collectives of streams 's0', 's1', 's2', 's3' may be in "
            "flight together; more than 3 of them can fill a GPU and keep out what another rank waits for");
}

TEST_F(InFlight, Rule11OneOfTwoThatTakeTurnsDoesNot) {
  int32_t first = reduce(1);
  reduce(2);
  reduce(3);
  wait(4, first);
  reduce(4);
  EXPECT_EQ(problem(), "");
  reduce(1); // beside that of the fourth
  EXPECT_NE(problem().find("certificate rule 11: command"), std::string::npos) << problem();
}
