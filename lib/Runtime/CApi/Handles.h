//===- Handles.h - What the files of the C interface share --------*- C++ -*-===//

#ifndef SPMD_LIB_RUNTIME_CAPI_HANDLES_H
#define SPMD_LIB_RUNTIME_CAPI_HANDLES_H

#include "spmd/Runtime/Core/SizedStruct.h"
#include "spmd/Runtime/Run/BackgroundSave.h"
#include "spmd/Runtime/Train/Trainer.h"
#include "spmd/Runtime/spmd.h"

#include <algorithm>
#include <cstring>
#include <exception>
#include <memory>
#include <string>
#include <vector>

struct spmd_trainer {
  std::unique_ptr<spmd::runtime::Trainer> trainer;
  std::vector<spmd::runtime::HostTensor> inputs; ///< scratch, so that steps do not allocate
  std::vector<spmd::runtime::Place> places;      ///< likewise
  std::vector<size_t> collectives; ///< positions in the plan
  mutable std::string flight;      ///< what spmd_describe_flight gave
  mutable std::unique_ptr<spmd::runtime::BackgroundSave> saving; ///< made with the first checkpoint beside the run
};

namespace spmd::runtime {

inline void copyText(char *destination, size_t size, const std::string &text) {
  size_t length = std::min(size - 1, text.size());
  std::memcpy(destination, text.data(), length);
  destination[length] = 0;
}

inline int32_t report(const Status &from, spmd_status *to) {
  if (to) {
    to->code = static_cast<int32_t>(from.code);
    to->rank = from.rank;
    to->command = from.command;
    copyText(to->message, sizeof to->message, from.message);
    copyText(to->location, sizeof to->location, from.location);
  }
  return static_cast<int32_t>(from.code);
}

/// Runs `body`, and turns what the standard library throws (no memory) into a
/// status.
template <typename Body>
inline int32_t guarded(spmd_status *status, const Body &body) {
  try {
    return report(body(), status);
  } catch (const std::exception &problem) {
    return report(Status::failed(problem.what()), status);
  }
}

inline Status missing(const char *what, size_t index, size_t count) {
  return Status::badInput(std::string(what) + " " + std::to_string(index) + ": there are " + std::to_string(count));
}

inline std::string textOrEmpty(const char *text) { return text ? text : ""; }

/// Gives a caller's `info`, a struct `type`, what it knows of `filled`.
template <typename T>
inline Status fillInfo(T *info, const T &filled, const char *type) {
  if (fillSized(info, filled))
    return Status::success();
  return Status::badInput(std::string("the info must be a ") + type + " whose size is set: " + type +
                          " info = {.size = sizeof info}");
}

/// Inputs, outputs and state tensors have the same description.
inline Status describe(const std::string &name, const char *state, DType dtype, const std::vector<int64_t> &shape,
                       size_t aliases, spmd_tensor_info *info) {
  spmd_tensor_info filled = {};
  filled.name = name.c_str();
  filled.state = state;
  filled.dtype = static_cast<int32_t>(dtype);
  filled.rank = static_cast<int32_t>(shape.size());
  filled.shape = shape.data();
  filled.bytes = static_cast<size_t>(numElements(shape) * sizeOf(dtype));
  filled.num_aliases = aliases;
  return fillInfo(info, filled, "spmd_tensor_info");
}

} // namespace spmd::runtime

#endif // SPMD_LIB_RUNTIME_CAPI_HANDLES_H
