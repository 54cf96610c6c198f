// An attention and its backward as commands: what plans have of them, what the certificate asks, and that no library's
// plan is run.
#include "TableChanges.h"
#include "TestSupport.h"
#include "spmd/Runtime/Core/Certificate.h"

#include <filesystem>

using namespace spmd::runtime;

namespace {
/// A forward and its backward on one rank: 2 batches, 2 heads that share a key/value head, 4 queries, 6 keys.
struct AttentionCommands : ::testing::Test {
  Manifest manifest;
  Plan plan;

  AttentionCommands() {
    manifest.mesh = {{"data", 1}};
    plan.streams = {"compute"};
    for (const char *name : {"q", "k", "v", "mask", "dout"})
      addBatch(name, sizeOfBuffer(name));
    for (const char *name : {"out", "lse", "dq", "dk", "dv", "dmask"})
      addOutput(name, sizeOfBuffer(name));
    manifest.arenaBytes = manifest.transientBytes = end;

    AttentionCommand attention;
    attention.symbol = "k0";
    AttentionShape &shape = attention.shape;
    shape.batch = 2, shape.heads = 2, shape.kvHeads = 1, shape.qLen = 4, shape.kvLen = 6;
    shape.headDim = 8, shape.vDim = 4, shape.scale = 0.5;
    shape.mask = AttentionMask::Added;
    shape.windowHigh = 2;
    shape.q = {0, 64, 32, 8};
    shape.k = {0, 48, 48, 8};
    shape.v = {0, 24, 24, 4};
    shape.out = {0, 32, 16, 4};
    attention.maskInputs = 1;
    AttentionCommand backward = attention;
    backward.symbol = "k1";
    backward.shape.isBackward = true;
    backward.shape.dout = backward.shape.out;
    backward.shape.dq = shape.q, backward.shape.dk = shape.k, backward.shape.dv = shape.v;
    backward.gradients = 3;
    backward.hasMaskGradient = true;

    manifest.values.emplace();
    for (const BatchInput &input : manifest.batch)
      addValue(manifest, ValueEntry::Kind::Source, {}, {sizeOfBuffer(input.name)}).binding = bindingOf(input);
    compute(attention, {"q", "k", "v", "mask"}, {"out", "lse"}, {0, 1, 2, 3});
    compute(backward, {"dout", "q", "k", "v", "mask", "out", "lse"}, {"dq", "dk", "dv", "dmask"},
            {4, 0, 1, 2, 3, 5, 6});
    for (size_t i = 0; i < manifest.outputs.size(); ++i)
      addValue(manifest, ValueEntry::Kind::Target, {static_cast<int32_t>(5 + i)}, {}).binding =
          bindingOf(manifest.outputs[i]);
  }

  static int64_t sizeOfBuffer(const std::string &name) {
    static const std::map<std::string, int64_t> elements = {{"q", 128},   {"k", 96},   {"v", 48},    {"mask", 24},
                                                            {"dout", 64}, {"out", 64}, {"lse", 16},  {"dq", 128},
                                                            {"dk", 96},   {"dv", 48},  {"dmask", 24}};
    return elements.at(name) * 4;
  }
  void addBuffer(const std::string &name, int64_t bytes) {
    numbers[name] = static_cast<int32_t>(plan.buffers.size());
    Buffer buffer;
    buffer.id = numbers[name];
    buffer.name = name;
    buffer.memoryClass = "io";
    buffer.offset = end;
    buffer.bytes = bytes;
    plan.buffers.push_back(buffer);
    end += (bytes + 63) / 64 * 64;
  }
  void addBatch(const std::string &name, int64_t bytes) {
    BatchInput input;
    input.name = name;
    input.shape = input.localShape = {bytes / 4};
    input.offset = end;
    addBuffer(name, bytes);
    manifest.batch.push_back(input);
  }
  void addOutput(const std::string &name, int64_t bytes) {
    Output output;
    output.path = name;
    output.kind = Binding::Kind::Output;
    output.shape = output.localShape = {bytes / 4};
    output.offset = end;
    addBuffer(name, bytes);
    manifest.outputs.push_back(output);
  }
  void compute(const AttentionCommand &attention, const std::vector<std::string> &reads,
               const std::vector<std::string> &writes, std::vector<int32_t> of) {
    Command command;
    command.action = attention;
    std::vector<int64_t> bytes;
    for (const std::string &name : reads)
      command.refs.push_back({numbers[name], 0, {}, sizeOfBuffer(name), Access::Read});
    for (const std::string &name : writes) {
      command.refs.push_back({numbers[name], 0, {}, sizeOfBuffer(name), Access::Write});
      bytes.push_back(sizeOfBuffer(name));
    }
    addValue(manifest, ValueEntry::Kind::Compute, std::move(of), bytes).operation = *operationOf(plan, command);
    plan.commands.push_back(std::move(command));
  }
  AttentionCommand &attention(size_t command) { return *plan.commands[command].as<AttentionCommand>(); }
  std::string error() const { return checkCertificate(manifest, plan).message; }
  std::string parseError(const std::string &from, const std::string &to) const {
    std::string text = writePlan(plan);
    size_t at = text.find(from);
    EXPECT_NE(at, std::string::npos) << from;
    Expected<Plan> parsed = parsePlan("plan", text.replace(at, from.size(), to));
    return parsed ? "" : parsed.error().message;
  }

  std::map<std::string, int32_t> numbers; ///< of buffers
  int64_t end = 0;
};
} // namespace

TEST_F(AttentionCommands, Hold) { EXPECT_EQ(error(), ""); }

TEST_F(AttentionCommands, AreKernelCommands) {
  const Command &command = plan.commands[1];
  ASSERT_NE(command.as<KernelCommand>(), nullptr);
  EXPECT_EQ(command.as<KernelCommand>()->symbol, "k1");
  EXPECT_STREQ(nameOf(command), "attention_backward");
  EXPECT_EQ(command.describe(), "attention_backward k1");
  Command kernel;
  kernel.action = KernelCommand{"k0", 1, 1};
  EXPECT_TRUE(kernel.is<KernelCommand>());
  EXPECT_FALSE(kernel.is<AttentionCommand>());
  // The last reference is where the positions say.
  EXPECT_EQ(attention(0).numRefs(), plan.commands[0].refs.size());
  EXPECT_EQ(attention(1).numRefs(), command.refs.size());
}

TEST_F(AttentionCommands, AreReadAsTheyAreWritten) {
  attention(1).libraryPlan = LibraryPlan{"cudnn", "7f45"};
  attention(0).shape.windowLow = -3;
  attention(0).shape.mask = AttentionMask::Condition;
  std::string text = writePlan(plan);
  Expected<Plan> parsed = parsePlan("plan", text);
  ASSERT_TRUE(parsed) << parsed.error().message;
  EXPECT_EQ(writePlan(*parsed), text);
  EXPECT_EQ(parsed->commands[1].as<AttentionCommand>()->libraryPlan->library, "cudnn");
  // One range may hold the three gradients.
  attention(1).gradients = 1;
  plan.commands[1].refs.erase(plan.commands[1].refs.begin() + 8, plan.commands[1].refs.begin() + 10);
  text = writePlan(plan);
  parsed = parsePlan("plan", text);
  ASSERT_TRUE(parsed) << parsed.error().message;
  EXPECT_EQ(writePlan(*parsed), text);
}

TEST_F(AttentionCommands, NameTheBadPlace) {
  expectContains(parseError("\"kv_heads\":1", "\"kv_heads\":0"), "/commands/0/kv_heads: expected at least 1, found 0");
  expectContains(parseError("\"heads\":2,\"kv_heads\":1", "\"heads\":2,\"kv_heads\":3"),
                 "/commands/0/kv_heads: is no divisor of the 2 heads");
  expectContains(parseError("\"mask\":\"added\"", "\"mask\":\"add\""),
                 "/commands/0/mask: expected condition or added, found 'add'");
  expectContains(parseError("\"mask\":\"added\",", ""), "/commands/0/mask_inputs: there is no mask");
  expectContains(parseError("\"row\":8", "\"rows\":8"), "/commands/0/views/q");
  expectContains(parseError("\"dtype\":\"f32\"", "\"dtype\":\"i32\""), "/commands/0/dtype: expected f32");
}

TEST_F(AttentionCommands, Rule2EveryRangeHoldsItsView) {
  for (Command &command : plan.commands) {
    auto id = std::to_string(&command - plan.commands.data());
    size_t mask = command.as<AttentionCommand>()->mask();
    for (size_t ref = 0; ref < command.refs.size(); ++ref) {
      if (ref == mask) // of which the kernel alone knows what it reads
        continue;
      command.refs[ref].bytes -= 4;
      expectContains(error(), "certificate rule 2: command " + id + " (attention");
      expectContains(error(), " bytes, its reference has " + std::to_string(command.refs[ref].bytes));
      command.refs[ref].bytes += 4;
    }
  }
  attention(0).shape.k.batch = int64_t{1} << 50;
  attention(0).shape.k.offset = int64_t{1} << 50;
  expectContains(error(), "certificate rule 2: command 0 (attention k0): k needs ");
}

TEST_F(AttentionCommands, Rule2PackedGradientsHoldTheirViews) {
  AttentionCommand &backward = attention(1);
  backward.gradients = 1;
  plan.commands[1].refs.erase(plan.commands[1].refs.begin() + 8, plan.commands[1].refs.begin() + 10);
  backward.shape.dv.offset = 1 << 10;
  expectContains(error(), "certificate rule 2: command 1 (attention_backward k1): dv needs ");
}

TEST_F(AttentionCommands, Rule2PackedGradientsOverlapNothing) {
  AttentionCommand &backward = attention(1);
  backward.gradients = 1;
  plan.commands[1].refs.erase(plan.commands[1].refs.begin() + 8, plan.commands[1].refs.begin() + 10);
  plan.buffers[static_cast<size_t>(numbers["dq"])].bytes = plan.commands[1].refs[backward.gradient()].bytes = 272 * 4;
  // One behind the other.
  backward.shape.dk.offset = 128, backward.shape.dv.offset = 224;
  EXPECT_EQ(error().find("overlap"), std::string::npos) << error();
  // Heads of queries, keys and values beside each other, which needs as many rows.
  AttentionShape blocks = backward.shape;
  backward.shape.qLen = backward.shape.kvLen = attention(0).shape.qLen;
  backward.shape.q = backward.shape.k = backward.shape.v = backward.shape.out = backward.shape.dout = {0, 0, 0, 4};
  backward.shape.dq = {0, 28 * 4, 8, 28}, backward.shape.dk = {16, 28 * 4, 8, 28};
  backward.shape.dv = {24, 28 * 4, 4, 28};
  EXPECT_EQ(error().find("overlap"), std::string::npos) << error();
  backward.shape.dv.offset = 23;
  expectContains(error(), "certificate rule 2: command 1 (attention_backward k1): dk and dv overlap");
  backward.shape.dv.offset = 24;
  backward.shape.dk.offset = 12;
  expectContains(error(), "certificate rule 2: command 1 (attention_backward k1): dq and dk overlap");
  backward.shape = blocks;
  backward.shape.dk.offset = 127;
  expectContains(error(), "certificate rule 2: command 1 (attention_backward k1): dq and dk overlap");
  backward.shape.dk.offset = 128;
  backward.shape.dq.row = 7;
  expectContains(error(), "certificate rule 2: command 1 (attention_backward k1): rows of dq overlap");
}

TEST_F(AttentionCommands, Rule2SizesBeyondAllBuffers) {
  AttentionShape &shape = attention(0).shape;
  // Their product is a multiple of 2^128.
  shape.batch = shape.heads = shape.qLen = int64_t{1} << 50;
  shape.q = shape.k = shape.v = shape.out = {};
  expectContains(error(),
                 "certificate rule 2: command 0 (attention k0): lse needs more than 4611686018427387904 bytes");
  shape.k.batch = int64_t{1} << 50;
  expectContains(error(), "certificate rule 2: command 0 (attention k0): k needs more than 4611686018427387904 bytes");
}

TEST_F(AttentionCommands, Rule2ResultsOverlapNothing) {
  for (Command &command : plan.commands)
    for (size_t ref = command.as<AttentionCommand>()->firstResult(); ref < command.refs.size(); ++ref) {
      Ref kept = command.refs[ref];
      command.refs[ref].buffer = numbers["q"];
      command.refs[ref].bytes = std::min(kept.bytes, sizeOfBuffer("q"));
      expectContains(error(), "(" + command.describe() + "): operands overlap");
      command.refs[ref] = kept;
    }
}

TEST_F(AttentionCommands, Rule8EveryFieldOfTheTableCounts) { expectEveryFieldToCount(manifest, plan); }

TEST_F(AttentionCommands, Rule8NamesTheOperation) {
  attention(0).shape.scale = 0.25;
  expectContains(error(),
                 "certificate rule 8: command 0 (attention k0): the compiled step has no operation 'attention k0 "
                 "rrrrww f32 2,2,1,4,6,8,4 scale 0.25 mask added to 2 q 0,64,32,8 k 0,48,48,8 v 0,24,24,4 out "
                 "0,32,16,4'");
}

TEST_F(AttentionCommands, LoaderRefusesPlansOfALibrary) {
  namespace fs = std::filesystem;
  attention(0).libraryPlan = LibraryPlan{"cudnn", "7f45"};
  std::string line = writePlan(plan);
  size_t begin = line.find("{\"op\":\"attention\"");
  line = line.substr(begin, line.find('\n', begin) - begin);
  // The command before all of an artifact that can be loaded.
  std::string folder = temporaryPath("spmd");
  fs::copy(tinyArtifact(2), folder, fs::copy_options::recursive);
  std::string path = folder + "/train_step.plan.json";
  std::string text = edited(path, "\"commands\": [", "\"commands\": [" + line);
  FILE *file = std::fopen(path.c_str(), "w");
  ASSERT_NE(file, nullptr);
  std::fputs(text.c_str(), file);
  std::fclose(file);
  Expected<Artifact> artifact = loadArtifact(folder);
  ASSERT_FALSE(artifact);
  EXPECT_EQ(artifact.error().code, StatusCode::BadInput);
  expectContains(
      artifact.error().message,
      "/commands/0/library_plan: attention k0 is to run a plan of 'cudnn', and this runtime runs no library's "
      "plans; compile the step again without them, and its own kernel computes it");
  fs::remove_all(folder);
}
