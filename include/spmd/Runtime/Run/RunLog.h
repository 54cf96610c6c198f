//===- RunLog.h - What a run writes down of its steps ------------*- C++ -*-===//

#ifndef SPMD_RUNTIME_RUN_RUNLOG_H
#define SPMD_RUNTIME_RUN_RUNLOG_H

#include "spmd/Runtime/Core/Status.h"

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

namespace spmd::runtime {

/// One step, or one evaluation after it.
struct RunRecord {
  int64_t step = 0; ///< counted from 0
  double loss = 0;
  std::optional<double> rate; ///< the first learning rate
  double seconds = 0;
  double itemsPerSecond = 0; ///< tokens, or rows
  bool isEvaluation = false;
};

/// A file that grows by one line for each record: JSON objects (NAME.jsonl), or a table (NAME.csv). One that is there is
/// gone on with.
class RunLog {
public:
  static Expected<RunLog> open(const std::string &path);
  /// Without a file: nothing is written.
  RunLog() = default;

  Status write(const RunRecord &record);

private:
  std::shared_ptr<std::FILE> file;
  std::string path;
  bool isTable = false;
};

} // namespace spmd::runtime

#endif // SPMD_RUNTIME_RUN_RUNLOG_H
