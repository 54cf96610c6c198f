//===- FlightRecord.h - What ranks did when they failed -----------*- C++ -*-===//
//
// [Note: flight record] The first error of any rank ends all ranks soon after, and what each was doing is gone. So
// where every stream stands is noted before anybody is told of the error (AbortState::watch), and written when the
// error comes to the one who trains: a file for each rank, and a line for people.
//
//===----------------------------------------------------------------------===//

#ifndef SPMD_RUNTIME_TRAIN_FLIGHTRECORD_H
#define SPMD_RUNTIME_TRAIN_FLIGHTRECORD_H

#include "spmd/Runtime/Core/Artifact.h"
#include "spmd/Runtime/Core/RanksHere.h"
#include "spmd/Runtime/Core/Status.h"
#include "spmd/Runtime/Train/Executor.h"

#include <mutex>
#include <string>
#include <vector>

namespace spmd::runtime {

/// Where all ranks of a process stood.
struct FlightRecord {
  const Artifact *artifact = nullptr; ///< null: nothing was noted
  std::string time;                   ///< UTC
  std::vector<RankPosition> ranks;    ///< with the step's number as the trainer counts

  /// A line for each rank.
  std::string formatText() const;
  /// The file of one rank, for which `error` ended the run.
  std::string formatJson(const RankPosition &rank, const RanksHere &here, const Status &error) const;
};

/// Notes where the ranks of a process stand, once, and writes it. For any thread.
class FlightRecorder {
public:
  /// Before all else: where the records of the ranks here are written; empty: nowhere.
  void setFolder(std::string folder, const RanksHere &ranks);

  /// From now on `executor` runs step number `step` of `artifact`, which it counts as its step `index`. Both stay until
  /// forget().
  void follow(const Executor &executor, const Artifact &artifact, int64_t step, int64_t index);
  /// What is noted of it and was not reported is gone, too.
  void forget(const Executor &executor);

  /// Notes where all ranks stand now, unless that was done before.
  void note();

  /// What failed a step, with a hint at the records, which are written.
  Status report(Status error);

  /// What report() had to say, for people.
  std::string text();

private:
  void noteLocked();

  std::mutex mutex;
  std::string folder;
  RanksHere here;
  const Executor *executor = nullptr;
  const Artifact *artifact = nullptr;
  int64_t step = 0, index = 0;
  FlightRecord noted;
  std::string reported;
  bool isReported = false;
};

/// Makes `folder`, where there is none, and sees that the files of the ranks here can be written; leaves none.
Status prepareFlightRecords(const std::string &folder, const RanksHere &here);

} // namespace spmd::runtime

#endif // SPMD_RUNTIME_TRAIN_FLIGHTRECORD_H
