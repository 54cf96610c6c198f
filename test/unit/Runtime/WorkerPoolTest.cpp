#include "spmd/Runtime/Host/WorkerPool.h"
#include "TestSupport.h"

using namespace spmd::runtime;

TEST(WorkerPool, RunsEveryIterationOnce) {
  for (int64_t threads : {1, 2, 3, 5}) {
    WorkerPool pool(threads, 50, "test");
    EXPECT_EQ(pool.threads(), threads);
    for (int64_t trips : {0, 1, 7, 100, 1000})
      for (int64_t grain : {1, 8, 300}) {
        struct Loop {
          std::vector<std::atomic<int>> visits;
          int64_t trips, grain;
          std::atomic<bool> aligned{true};
        } loop{std::vector<std::atomic<int>>(static_cast<size_t>(trips)), trips, grain, {true}};
        pool.parallelFor(
            trips, grain,
            [](void *context, int64_t begin, int64_t end) {
              Loop &loop = *static_cast<Loop *>(context);
              if (begin % loop.grain != 0 || (end % loop.grain != 0 && end != loop.trips))
                loop.aligned = false;
              for (int64_t i = begin; i < end; ++i)
                ++loop.visits[static_cast<size_t>(i)];
            },
            &loop);
        EXPECT_TRUE(loop.aligned);
        for (std::atomic<int> &visits : loop.visits)
          ASSERT_EQ(visits, 1);
      }
  }
}

TEST(WorkerPool, ManyShortLoops) {
  WorkerPool pool(3, 50, "test");
  std::atomic<int64_t> sum{0};
  for (int i = 0; i < 5000; ++i)
    pool.parallelFor(
        12, 1,
        [](void *context, int64_t begin, int64_t end) { *static_cast<std::atomic<int64_t> *>(context) += end - begin; },
        &sum);
  EXPECT_EQ(sum, 5000 * 12);
}
