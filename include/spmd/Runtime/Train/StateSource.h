//===- StateSource.h - Where the values of a state come from -----*- C++ -*-===//

#ifndef SPMD_RUNTIME_TRAIN_STATESOURCE_H
#define SPMD_RUNTIME_TRAIN_STATESOURCE_H

#include "spmd/Runtime/Core/DType.h"
#include "spmd/Runtime/Core/Status.h"

#include <map>
#include <string>
#include <vector>

namespace spmd::runtime {

/// `repeat` runs of `count` elements of a tensor, of which each begins `stride` elements behind the one before: what a
/// rank has of a tensor that is cut along another dim than the first.
struct ElementRuns {
  int64_t first = 0, count = 0;
  int64_t stride = 0, repeat = 1;

  int64_t total() const { return count * repeat; }
};

/// Full tensors by their keys in files (StateTensor::fileKey), of which any run of elements can be read alone.
class StateSource {
public:
  struct Tensor {
    DType dtype = DType::F32;
    std::vector<int64_t> shape;
  };

  virtual ~StateSource() = default;

  /// "checkpoint 'runs/a/step-00000500'", for errors.
  virtual std::string describe() const = 0;
  /// Tells that two processes were given different ones.
  virtual uint64_t fingerprint() const = 0;
  virtual const std::map<std::string, Tensor> &tensors() const = 0;

  const Tensor *find(const std::string &key) const {
    auto found = tensors().find(key);
    return found == tensors().end() ? nullptr : &found->second;
  }

  /// Looks whether elements [first, first + count) of a tensor are what was written; what is not is an error that names
  /// the place. The key is one of tensors(), and the elements are in it; of read() the same.
  virtual Status check(const std::string &key, int64_t first, int64_t count) const = 0;
  virtual Status read(const std::string &key, int64_t first, int64_t count, void *destination) const = 0;
};

} // namespace spmd::runtime

#endif // SPMD_RUNTIME_TRAIN_STATESOURCE_H
