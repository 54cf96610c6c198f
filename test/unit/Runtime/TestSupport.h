//===- TestSupport.h - Shared by the runtime's unit tests --------*- C++ -*-===//

#ifndef SPMD_TEST_UNIT_RUNTIME_TESTSUPPORT_H
#define SPMD_TEST_UNIT_RUNTIME_TESTSUPPORT_H

#include "spmd/Runtime/Core/Artifact.h"
#include "spmd/Runtime/Core/Json.h"
#include "spmd/Runtime/Core/Status.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <string>
#include <unistd.h>

namespace spmd::runtime {

/// A hand-written artifact for this many ranks (1, 2, 3, 4 or 8).
inline std::string tinyArtifact(int64_t ranks) {
  return std::string(SPMD_TEST_ARTIFACTS) + "/host/tiny" + std::to_string(ranks) + ".spmd";
}

inline Artifact loadTiny(int64_t ranks) {
  Expected<Artifact> artifact = loadArtifact(tinyArtifact(ranks));
  if (artifact)
    return std::move(*artifact);
  ADD_FAILURE() << artifact.error().message;
  std::abort();
}

/// The file's text with the first `from` replaced by `to`.
inline std::string edited(const std::string &path, const std::string &from, const std::string &to) {
  Expected<std::string> text = readFile(path);
  size_t at = text ? text->find(from) : std::string::npos;
  if (at == std::string::npos) {
    ADD_FAILURE() << "'" << from << "' is not in " << path;
    return "";
  }
  return text->replace(at, from.size(), to);
}

inline void expectContains(const std::string &text, const std::string &part) {
  EXPECT_NE(text.find(part), std::string::npos) << "'" << part << "' is not in '" << text << "'";
}

/// A file name of this test, in a temporary folder.
inline std::string temporaryPath(const std::string &name) {
  const auto *test = ::testing::UnitTest::GetInstance()->current_test_info();
  return ::testing::TempDir() + "/" + test->test_suite_name() + "." + test->name() + "." + std::to_string(::getpid()) +
         "." + name;
}

} // namespace spmd::runtime

#endif // SPMD_TEST_UNIT_RUNTIME_TESTSUPPORT_H
