#include "spmd/Runtime/Host/Progress.h"
#include "TestSupport.h"

#include <sys/resource.h>
#include <thread>

using namespace spmd::runtime;

/// How often the calling thread went to sleep since it began.
static long sleepsSoFar() {
  rusage usage{};
  ::getrusage(RUSAGE_THREAD, &usage);
  return usage.ru_nvcsw;
}

// Programs that are kept and not run take no time: their threads are not woken to look.
TEST(Progress, AnIdleThreadSleepsOnce) {
  Progress steps;
  long sleeps = 0;
  std::thread idle([&] {
    long before = sleepsSoFar();
    steps.awaitAdvance(1, 50);
    sleeps = sleepsSoFar() - before;
  });
  std::this_thread::sleep_for(std::chrono::milliseconds(300));
  steps.advance();
  idle.join();
  EXPECT_LE(sleeps, 3); // The wait, and perhaps the lock; slices of 20 ms would be 15.
}
