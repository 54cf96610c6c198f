//===- IdleWaitsTest.cpp --------------------------------------------------===//

#include "spmd/Runtime/Core/IdleWaits.h"
#include "TestSupport.h"
#include "spmd/Runtime/Core/Certificate.h"

#include <algorithm>

using namespace spmd::runtime;

/// A command that does nothing in the place of wait `id`.
static void leaveOut(Plan &plan, int32_t id) {
  Command &command = plan.commands[static_cast<size_t>(id)];
  command.action = FillCommand();
  command.refs = {{0, 0, {}, 0, Access::Write}};
}

/// The certificate holds without the idle waits, and not without any other one besides.
static void expectOthersMatter(const Artifact &artifact, const Plan &plan) {
  std::vector<int32_t> idle = findIdleWaits(artifact.manifest, plan);
  Plan left = plan;
  for (int32_t id : idle)
    leaveOut(left, id);
  Status status = checkCertificate(artifact.manifest, left);
  EXPECT_TRUE(status.ok()) << status.message;
  for (size_t id = 0; id < left.commands.size(); ++id)
    if (left.commands[id].is<WaitCommand>()) {
      Plan without = left;
      leaveOut(without, static_cast<int32_t>(id));
      EXPECT_FALSE(checkCertificate(artifact.manifest, without).ok()) << "wait " << id;
    }
}

TEST(IdleWaits, WhatIsLeftMatters) {
  for (int64_t ranks : {1, 2, 3, 4, 8}) {
    Artifact artifact = loadTiny(ranks);
    expectOthersMatter(artifact, artifact.plan);
  }
}

/// A wait for something on stream `stream` right behind command `id`.
static Plan withWait(Plan plan, int32_t id, int32_t stream) {
  for (Command &command : plan.commands)
    if (auto *wait = command.as<WaitCommand>(); wait && wait->awaited > id)
      ++wait->awaited;
  plan.commands.insert(plan.commands.begin() + id + 1, {stream, "", {}, WaitCommand{id}});
  return plan;
}

TEST(IdleWaits, OneThatOrdersNothingIsIdle) {
  Artifact artifact = loadTiny(2);
  std::vector<int32_t> before = findIdleWaits(artifact.manifest, artifact.plan);
  size_t found = 0;
  for (size_t id = 0; id < artifact.plan.commands.size(); ++id) {
    const Command &command = artifact.plan.commands[id];
    auto scalar = static_cast<int32_t>(artifact.plan.streams.size()) - 1;
    if (command.stream == scalar || command.is<WaitCommand>())
      continue;
    Plan more = withWait(artifact.plan, static_cast<int32_t>(id), scalar);
    std::vector<int32_t> idle = findIdleWaits(artifact.manifest, more);
    found += idle.size() == before.size() + 1;
    expectOthersMatter(artifact, more);
  }
  EXPECT_GT(found, 10u);
}
