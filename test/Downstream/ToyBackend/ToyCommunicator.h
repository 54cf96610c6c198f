//===- ToyCommunicator.h - Ranks that talk through sockets -----------*- C++ -*-===//

#ifndef SPMD_TEST_DOWNSTREAM_TOYBACKEND_TOYCOMMUNICATOR_H
#define SPMD_TEST_DOWNSTREAM_TOYBACKEND_TOYCOMMUNICATOR_H

#include "Mail.h"
#include "spmd/Runtime/Train/Communicator.h"

namespace toy {

/// One rank in each process.
class ToyFactory final : public spmd::runtime::CommunicatorFactory {
public:
  ToyFactory(std::shared_ptr<Mail> mail, Clock::duration timeout) : mail(std::move(mail)), timeout(timeout) {}

  int64_t numProcesses() const override { return mail->ranks(); }
  int64_t process() const override { return mail->rank(); }
  spmd::runtime::Expected<spmd::runtime::RanksHere> ranksHere(int64_t total) const override;
  spmd::runtime::Expected<std::unique_ptr<spmd::runtime::CommunicatorGroup>>
  make(const std::string &name, const spmd::runtime::RanksHere &ranks, const spmd::runtime::RankGroups &groups,
       spmd::runtime::AbortState &abort,
       const spmd::runtime::CommunicatorOptions &options) override;
  spmd::runtime::Status share(int64_t process, void *data, int64_t bytes, const spmd::runtime::AbortState &abort) override;

private:
  std::shared_ptr<Mail> mail;
  Clock::duration timeout;
};

} // namespace toy

#endif // SPMD_TEST_DOWNSTREAM_TOYBACKEND_TOYCOMMUNICATOR_H
