#include "spmd/Runtime/Core/Plan.h"
#include "spmd/Runtime/Core/Values.h"
#include "TestSupport.h"

using namespace spmd::runtime;

namespace {

constexpr int32_t kX = 0, kState = 6, kOut = 7, kOwn = 8; ///< buffers: inputs 0 to 5, and what iterations have

Buffer makeBuffer(int32_t id, const char *name, int64_t offset, bool isState = false) {
  Buffer buffer;
  buffer.id = id;
  buffer.name = name;
  buffer.memoryClass = isState ? "parameters" : "activations";
  buffer.offset = offset;
  buffer.bytes = 64;
  buffer.state = isState;
  return buffer;
}

Command makeCopy(int32_t from, int32_t to, int32_t stream = 0) {
  Command command;
  command.stream = stream;
  command.refs = {{from, 0, {}, 64, Access::Read}, {to, 0, {}, 64, Access::Write}};
  command.action = CopyCommand{64};
  return command;
}

Command makeWait(int32_t awaited) {
  Command command;
  command.stream = 1;
  command.action = WaitCommand{awaited};
  return command;
}

/// Of six iterations three: each copies its input into a buffer of its own, and that, when it is there, into the state,
/// on another stream. Behind the loop the last one's buffer is copied out.
PlanFile makeLoop() {
  PlanFile file;
  file.plan.streams = {"compute", "gather"};
  for (int32_t i = 0; i < 6; ++i)
    file.plan.buffers.push_back(makeBuffer(i, "x", 1024 + 64 * i));
  file.plan.buffers.push_back(makeBuffer(kState, "state", 0, true));
  file.plan.buffers.push_back(makeBuffer(kOut, "out", 2048));
  for (int32_t i = 0; i < 3; ++i) {
    auto first = static_cast<int32_t>(file.plan.commands.size());
    file.plan.buffers.push_back(makeBuffer(kOwn + i, "own", 4096));
    file.plan.commands.push_back(makeCopy(kX + i, kOwn + i));
    file.plan.commands.push_back(makeWait(first));
    file.plan.commands.push_back(makeCopy(kOwn + i, kState, 1));
  }
  file.plan.commands.push_back(makeWait(6));
  file.plan.commands.push_back(makeCopy(kOwn + 2, kOut, 1));
  file.repeats = Repeats{6, 9, 3, {{0, 1, 2, 3, 4, 5}}};
  return file;
}

std::string errorOf(PlanFile file) {
  Expected<Plan> plan = unroll(std::move(file));
  EXPECT_FALSE(plan);
  return plan ? "" : plan.error().message;
}

/// An input, three iterations that add one to what the one before made, and a result.
ValueTable makeTable() {
  ValueTable table;
  auto add = [&](ValueEntry::Kind kind, std::vector<int32_t> of) {
    ValueEntry entry;
    entry.kind = kind;
    entry.of = std::move(of);
    entry.bytes.assign(kind == ValueEntry::Kind::Target ? 0 : 1, 64);
    entry.pointer = "/values/" + std::to_string(table.entries.size());
    table.entries.push_back(std::move(entry));
  };
  for (int i = 0; i < 6; ++i)
    add(ValueEntry::Kind::Source, {});
  for (int32_t i = 0; i < 3; ++i)
    add(ValueEntry::Kind::Compute, {i, i == 0 ? 0 : 5 + i});
  add(ValueEntry::Kind::Target, {8});
  table.repeats = Repeats{8, 9, 3, {{0, 1, 2, 3, 4, 5}}};
  return table;
}

std::string errorOf(const ValueTable &table) {
  auto values = unroll(table);
  EXPECT_FALSE(values);
  return values ? "" : values.error().message;
}

} // namespace

TEST(Repeats, PutsInCommands) {
  Expected<Plan> plan = unroll(makeLoop());
  ASSERT_TRUE(plan) << plan.error().message;
  ASSERT_EQ(plan->commands.size(), 20u);
  ASSERT_EQ(plan->buffers.size(), static_cast<size_t>(kOwn) + 6);
  for (int32_t i = 0; i < 6; ++i) {
    auto at = static_cast<size_t>(3 * i);
    EXPECT_EQ(plan->commands[at].refs[0].buffer, kX + i);
    EXPECT_EQ(plan->commands[at].refs[1].buffer, kOwn + i);
    EXPECT_EQ(plan->commands[at + 1].as<WaitCommand>()->awaited, 3 * i);
    EXPECT_EQ(plan->commands[at + 2].refs[0].buffer, kOwn + i);
    EXPECT_EQ(plan->commands[at + 2].refs[1].buffer, kState);
    EXPECT_EQ(plan->buffers[static_cast<size_t>(kOwn + i)].id, kOwn + i);
    EXPECT_EQ(plan->buffers[static_cast<size_t>(kOwn + i)].offset, 4096);
  }
  EXPECT_EQ(plan->commands[18].as<WaitCommand>()->awaited, 15);
  EXPECT_EQ(plan->commands[19].refs[0].buffer, kOwn + 5);
  EXPECT_EQ(plan->commands[19].refs[1].buffer, kOut);
}

TEST(Repeats, IsWrittenAndReadBack) {
  PlanFile file = makeLoop();
  std::string text = writePlanFile(file);
  Expected<PlanFile> read = parsePlanFile("plan", text);
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(writePlanFile(*read), text);
  Expected<Plan> whole = parsePlan("plan", text);
  ASSERT_TRUE(whole) << whole.error().message;
  EXPECT_EQ(writePlan(*whole), writePlan(*unroll(std::move(file))));
}

TEST(Repeats, KnowsWhereACommandComesFrom) {
  Repeats repeats = *makeLoop().repeats;
  for (auto [number, origin] : {std::pair(5, 5), {8, 8}, {9, 6}, {13, 7}, {17, 8}, {18, 9}, {19, 10}})
    EXPECT_EQ(repeats.originOf(number), origin);
}

TEST(Repeats, RefusesWhatIsNoLoop) {
  auto change = [](auto apply) {
    PlanFile file = makeLoop();
    apply(file);
    return errorOf(std::move(file));
  };
  expectContains(change([](PlanFile &file) { file.repeats->end = 12; }), "expected a range of 11, found 6 to 12");
  expectContains(change([](PlanFile &file) { file.repeats->end = 6; }), "expected a range of 11, found 6 to 6");
  expectContains(change([](PlanFile &file) { file.repeats->begin = 4; }), "no iteration before the one from 4 on");
  expectContains(change([](PlanFile &file) { file.repeats->more = 0; }), "further iterations, found 0");
  expectContains(change([](PlanFile &file) { file.repeats->more = 1 << 20; }), "further iterations, found 1048576");
  expectContains(change([](PlanFile &file) { file.repeats->more = 4; }), "command 18 is not fed so often");
  expectContains(change([](PlanFile &file) {
                   file.plan.commands[8].refs.resize(10000);
                   file.repeats->more = 1000;
                 }),
                 "1000 further iterations hold 10002 references or operands each");
  expectContains(change([](PlanFile &file) { file.repeats->fed.clear(); }), "command 6 has other bytes");
  expectContains(change([](PlanFile &file) { file.repeats->fed.push_back({3}); }), "fed in two places");
  expectContains(change([](PlanFile &file) { file.repeats->fed[0][5] = 99; }), "there is no buffer 99");
  expectContains(change([](PlanFile &file) { std::swap(file.repeats->fed[0][2], file.repeats->fed[0][3]); }),
                 "command 6 is fed out of turn");
  expectContains(change([](PlanFile &file) { file.plan.buffers[kOwn + 2].offset = 8192; }),
                 "command 6 has other bytes");
  expectContains(change([](PlanFile &file) { file.plan.commands[8].refs[0].buffer = kOwn + 1; }),
                 "iterations share buffer 9, and have one each");
  expectContains(change([](PlanFile &file) { file.plan.commands[8].refs[0].offset = 8; }),
                 "command 8 is another one in the iteration before");
  expectContains(change([](PlanFile &file) { file.plan.commands[6].stream = 1; }),
                 "command 6 is another one in the iteration before");
  expectContains(change([](PlanFile &file) { file.plan.commands[7].as<WaitCommand>()->awaited = 3; }),
                 "command 7 waits for something else");
  expectContains(change([](PlanFile &file) { file.plan.commands[9].as<WaitCommand>()->awaited = INT32_MAX; }),
                 "command 18 waits for a later one");
}

TEST(Repeats, PutsInValues) {
  auto values = unroll(makeTable());
  ASSERT_TRUE(values) << values.error().message;
  ASSERT_EQ(values->size(), 13u);
  for (int32_t i = 1; i < 6; ++i)
    EXPECT_EQ((*values)[static_cast<size_t>(6 + i)].of, (std::vector<int32_t>{i, 5 + i}));
  EXPECT_EQ((*values)[12].of, std::vector<int32_t>{11});
}

TEST(Repeats, WhatAllIterationsReadIsFedToNone) {
  ValueTable table = makeTable();
  table.entries[7].of[0] = table.entries[8].of[0] = 2;
  auto values = unroll(table);
  ASSERT_TRUE(values) << values.error().message;
  for (int32_t i = 1; i < 6; ++i)
    EXPECT_EQ((*values)[static_cast<size_t>(6 + i)].of, (std::vector<int32_t>{2, 5 + i}));
  PlanFile file = makeLoop();
  file.plan.commands[3].refs[0].buffer = file.plan.commands[6].refs[0].buffer = kX + 2;
  Expected<Plan> plan = unroll(std::move(file));
  ASSERT_TRUE(plan) << plan.error().message;
  for (size_t i = 1; i < 6; ++i)
    EXPECT_EQ(plan->commands[3 * i].refs[0].buffer, kX + 2);
}

TEST(Repeats, WhatIsSharedHereMayBeFedThere) {
  // All iterations read value 3, and are fed it in their turn.
  ValueTable table = makeTable();
  for (size_t i = 6; i < 9; ++i)
    table.entries[i].of.push_back(3);
  auto values = unroll(table);
  ASSERT_TRUE(values) << values.error().message;
  for (int32_t i = 1; i < 6; ++i)
    EXPECT_EQ((*values)[static_cast<size_t>(6 + i)].of, (std::vector<int32_t>{i, 5 + i, 3}));
  PlanFile file = makeLoop();
  for (size_t i = 2; i < 9; i += 3)
    file.plan.commands[i].refs.push_back({kX + 3, 0, {}, 64, Access::Read});
  Expected<Plan> plan = unroll(std::move(file));
  ASSERT_TRUE(plan) << plan.error().message;
  for (int32_t i = 0; i < 6; ++i) {
    EXPECT_EQ(plan->commands[static_cast<size_t>(3 * i)].refs[0].buffer, kX + i);
    EXPECT_EQ(plan->commands[static_cast<size_t>(3 * i + 2)].refs[2].buffer, kX + 3);
  }
}

TEST(Repeats, RefusesATableThatIsNoLoop) {
  auto change = [](auto apply) {
    ValueTable table = makeTable();
    apply(table);
    return errorOf(table);
  };
  expectContains(change([](ValueTable &table) { table.repeats->more = 4; }), "/values/8 is not fed so often");
  expectContains(change([](ValueTable &table) { table.entries[8].of[1] = 5; }),
                 "/values/8 has other operands than in the iteration before");
  expectContains(change([](ValueTable &table) { table.entries[8].of.pop_back(); }),
                 "/values/8 is another one in the iteration before");
  expectContains(change([](ValueTable &table) { table.entries[8].bytes[0] = 32; }),
                 "/values/8 is another one in the iteration before");
  expectContains(change([](ValueTable &table) { table.entries[8].kind = ValueEntry::Kind::Target; }),
                 "/values/8 is no computation");
  expectContains(change([](ValueTable &table) { table.entries[9].of[0] = INT32_MAX; }),
                 "/values/9 has an operand that is not defined");
  expectContains(change([](ValueTable &table) { table.repeats->begin = 0; }), "no iteration before the one from 0 on");
}
