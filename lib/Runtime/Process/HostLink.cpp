//===- HostLink.cpp - Messages between hosts ------------------------------===//

#include "HostLink.h"

#include <algorithm>
#include <thread>

namespace spmd::runtime {

void Messages::note(const Status &status) {
  if (failure.ok())
    failure = status;
}

void Messages::send(const void *bytes, int64_t count, int64_t to, int32_t tag) {
  owners.push_back(-1);
  requests.push_back({0});
  note(link->send(space, bytes, count, to, tag, requests.back()));
}

void Messages::receive(void *bytes, int64_t count, int64_t from, int32_t tag, int64_t of) {
  owners.push_back(of);
  requests.push_back({0});
  note(link->receive(space, bytes, count, from, tag, requests.back()));
}

WaitResult Messages::wait(const AbortState &abort, Clock::time_point deadline) {
  WaitResult result = WaitResult::Reached;
  for (int turn = 0;; ++turn) {
    link->progress();
    bool done = true;
    for (HostLink::Request &request : requests)
      done &= test(request);
    if (failure.ok() && done)
      break;
    if (!failure.ok() || abort.isRaised())
      result = WaitResult::Aborted;
    else if (Clock::now() >= deadline)
      result = WaitResult::TimedOut;
    if (result != WaitResult::Reached) {
      giveUp();
      break;
    }
    // Messages move while somebody asks for them ([Note: waiting] in Progress.h).
    if (turn > 1000)
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    else if (turn > 100)
      std::this_thread::yield();
  }
  requests.clear();
  owners.clear();
  return result;
}

void Messages::giveUp() {
  for (size_t i = 0; i < requests.size(); ++i) {
    if (!test(requests[i]) && owners[i] >= 0)
      late.push_back(owners[i]);
  }
  std::sort(late.begin(), late.end());
  late.erase(std::unique(late.begin(), late.end()), late.end());
  for (HostLink::Request &request : requests)
    link->cancel(request);
}

/// Whether the message has come; moves it.
bool Messages::test(HostLink::Request &request) {
  Expected<bool> done = link->test(request);
  if (!done)
    note(done.error());
  return done && *done;
}

bool Messages::take(int32_t tag, std::string &bytes) {
  int64_t from = 0;
  Expected<int64_t> count = link->probe(space, tag, from);
  if (!count)
    note(count.error());
  if (!count || *count < 0)
    return false;
  bytes.resize(static_cast<size_t>(*count));
  receive(bytes.data(), *count, from, tag);
  return wait(AbortState(), Clock::now() + std::chrono::seconds(1)) == WaitResult::Reached;
}

} // namespace spmd::runtime
