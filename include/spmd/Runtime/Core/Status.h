//===- Status.h - The result of everything that can fail ---------*- C++ -*-===//
//
// The runtime uses no exceptions: what can fail returns a Status, or an
// Expected<T>. A Status says what went wrong in one lower-case sentence and,
// where it applies, on which rank, at which command and at which source line.
//
//===----------------------------------------------------------------------===//

#ifndef SPMD_RUNTIME_CORE_STATUS_H
#define SPMD_RUNTIME_CORE_STATUS_H

#include <cstdint>
#include <string>
#include <utility>
#include <variant>

namespace spmd::runtime {

/// The values are the codes of the C interface (SPMD_OK and so on), and the exit codes of the command line tools, to
/// which another state is bad input.
enum class StatusCode : int32_t {
  Ok = 0,
  WrongResult = 1, ///< ran, but a comparison failed
  BadInput = 2,    ///< bad file, option, shape, dtype or value
  Failed = 3,      ///< failure while running
  OtherState = 4,  ///< two programs cannot share a state
};

struct [[nodiscard]] Status {
  StatusCode code = StatusCode::Ok;
  std::string message;
  int32_t rank = -1;    ///< -1: no particular rank
  int32_t command = -1; ///< position in the plan; -1: no particular command
  std::string location; ///< where the command comes from: module and user line
  bool isElsewhere = false; ///< another process found it, and says so

  bool ok() const { return code == StatusCode::Ok; }
  int exitCode() const { return static_cast<int>(code == StatusCode::OtherState ? StatusCode::BadInput : code); }

  static Status success() { return {}; }
  static Status badInput(std::string message) { return {StatusCode::BadInput, std::move(message), -1, -1, {}}; }
  static Status otherState(const std::string &difference) {
    return {StatusCode::OtherState, "the programs cannot share a state: " + difference, -1, -1, {}};
  }
  static Status failed(std::string message, int32_t rank = -1, int32_t command = -1, std::string location = {}) {
    return {StatusCode::Failed, std::move(message), rank, command, std::move(location)};
  }
};

/// A value, or the reason why there is none.
template <typename T>
class [[nodiscard]] Expected {
public:
  Expected(T value) : content(std::move(value)) {}
  Expected(Status error) : content(std::move(error)) {}

  explicit operator bool() const { return content.index() == 0; }
  T &operator*() { return std::get<0>(content); }
  const T &operator*() const { return std::get<0>(content); }
  T *operator->() { return &std::get<0>(content); }
  const T *operator->() const { return &std::get<0>(content); }

  /// Only when there is no value.
  const Status &error() const { return std::get<1>(content); }

private:
  std::variant<T, Status> content;
};

} // namespace spmd::runtime

#endif // SPMD_RUNTIME_CORE_STATUS_H
