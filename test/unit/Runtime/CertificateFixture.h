//===- CertificateFixture.h - A plan to be damaged ----------------*- C++ -*-===//

#ifndef SPMD_TEST_UNIT_RUNTIME_CERTIFICATEFIXTURE_H
#define SPMD_TEST_UNIT_RUNTIME_CERTIFICATEFIXTURE_H

#include "TestSupport.h"
#include "spmd/Runtime/Core/Certificate.h"

#include <functional>

namespace spmd::runtime {

/// The plan for two ranks, to be damaged.
struct Certificate : ::testing::Test {
  Artifact artifact = loadTiny(2);
  Manifest &manifest = artifact.manifest;
  Plan &plan = artifact.plan;

  /// The `nth` command for which `is` holds.
  Command &command(const std::function<bool(const Command &)> &is, size_t nth = 0) {
    for (Command &candidate : plan.commands)
      if (is(candidate) && nth-- == 0)
        return candidate;
    ADD_FAILURE() << "no such command";
    std::abort();
  }
  Command &kernel(const std::string &name) {
    return command([&](const Command &c) {
      const auto *kernel = c.as<KernelCommand>();
      return kernel && kernel->symbol == name;
    });
  }
  /// The `nth` command that does a `Kind`, and what it does.
  template <typename Kind>
  Command &of(size_t nth = 0) {
    return command([](const Command &c) { return c.is<Kind>(); }, nth);
  }
  template <typename Kind>
  Kind &actionOf(size_t nth = 0) {
    return *of<Kind>(nth).template as<Kind>();
  }
  /// The `nth` collective of this kind.
  Command &of(CollectiveKind kind, size_t nth = 0) {
    return command(
        [&](const Command &c) {
          const auto *collective = c.as<CollectiveCommand>();
          return collective && collective->kind == kind;
        },
        nth);
  }
  CollectiveCommand &actionOf(CollectiveKind kind, size_t nth = 0) { return *of(kind, nth).as<CollectiveCommand>(); }
  Command &waitOn(const std::string &stream, size_t nth = 0) {
    return command(
        [&](const Command &c) { return c.is<WaitCommand>() && plan.streams[static_cast<size_t>(c.stream)] == stream; },
        nth);
  }
  Buffer &buffer(const std::string &name) {
    for (Buffer &candidate : plan.buffers)
      if (candidate.name == name)
        return candidate;
    ADD_FAILURE() << "no such buffer";
    std::abort();
  }
  static void remove(Command &command) {
    command.action = FillCommand();
    command.refs.clear();
  }

  void expectError(int rule, const std::string &part) {
    Status status = checkCertificate(manifest, plan);
    EXPECT_EQ(status.code, StatusCode::BadInput);
    expectContains(status.message, "certificate rule " + std::to_string(rule) + ": ");
    expectContains(status.message, part);
  }
};

} // namespace spmd::runtime

#endif // SPMD_TEST_UNIT_RUNTIME_CERTIFICATEFIXTURE_H
