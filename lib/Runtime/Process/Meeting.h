//===- Meeting.h - Text that all processes exchange ---------------*- C++ -*-===//

#ifndef SPMD_LIB_RUNTIME_PROCESS_MEETING_H
#define SPMD_LIB_RUNTIME_PROCESS_MEETING_H

#include "spmd/Runtime/Core/Status.h"

#include <cstdint>
#include <string>
#include <vector>

namespace spmd::runtime {

/// The processes of a job before they can compute together.
class Meeting {
public:
  virtual ~Meeting() = default;

  virtual int64_t rank() const = 0;
  virtual int64_t world() const = 0;

  /// The values of all processes by rank. Every process calls it with the same `name`, once.
  virtual Expected<std::vector<std::string>> exchange(const std::string &name, const std::string &value) = 0;
};

} // namespace spmd::runtime

#endif // SPMD_LIB_RUNTIME_PROCESS_MEETING_H
