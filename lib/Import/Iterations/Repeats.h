//===- Repeats.h - Iterations that a step.json has once ---------*- C++ -*-===//
//
// A range of nodes that is run several times is a program with every iteration
// spelled out, in which the numbers of one iteration are put in place of
// another's. So it is defined, and so it is imported: unroll gives that program.
//
//===----------------------------------------------------------------------===//

#ifndef SPMD_LIB_IMPORT_PACKAGE_REPEATS_H
#define SPMD_LIB_IMPORT_PACKAGE_REPEATS_H

#include "../Package/StepPackage.h"

#include <functional>

namespace spmd::step {

/// As many nodes as a step may have when its iterations are spelled out.
constexpr int64_t kMaxUnrolledNodes = int64_t(1) << 20;

/// Reads `repeats` of step.json, while the nodes are read.
class RepeatReader {
public:
  /// Reads the entries into `step`; they are checked later.
  RepeatReader(Step &step, runtime::JsonValue root);

  /// After a node was read: calls `define` for the numbers that the iterations' results have from here on.
  void nameIterations(const std::function<void(int64_t, runtime::JsonValue)> &define);

  /// After all nodes were read without an error: each entry that is not as docs/step-format.md says is an error.
  void check() const;

private:
  Step &step;
  std::vector<runtime::JsonValue> entries;
  size_t named = 0; ///< entries whose numbers are defined
};

/// The step with all iterations spelled out, without repeats. Results of the last iteration keep their numbers, those
/// of the others get new ones.
Step unroll(const Step &step);

/// The range of nodes, of those that are run more than `kept` times the longest, of which the first `kept`
/// iterations may stand for all: it is fed inputs of the batch that nothing else reads, and behind it only what the
/// last one has is read. Null where there is none.
const Repeat *findUniformLoop(const Step &step, int64_t kept);

/// The step with `loop`, one of its ranges, run `kept` times only; the inputs stay.
Step keepIterations(const Step &step, const Repeat &loop, int64_t kept);

} // namespace spmd::step

#endif // SPMD_LIB_IMPORT_PACKAGE_REPEATS_H
