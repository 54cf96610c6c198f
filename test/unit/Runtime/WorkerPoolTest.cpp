#include "spmd/Runtime/Host/WorkerPool.h"
#include "TestSupport.h"

using namespace spmd::runtime;

TEST(WorkerPool, RunsEveryIterationOnce) {
  for (int64_t threads : {1, 2, 3, 5}) {
    WorkerPool pool(threads, 50, "test");
    EXPECT_EQ(pool.threads(), threads);
    for (int64_t iterations : {0, 1, 7, 100, 1000})
      for (int64_t grain : {1, 8, 300}) {
        struct Loop {
          std::vector<std::atomic<int>> visits;
          int64_t iterations, grain;
          std::atomic<bool> aligned{true};
        } loop{std::vector<std::atomic<int>>(static_cast<size_t>(iterations)), iterations, grain, {true}};
        pool.parallelFor(
            iterations, grain,
            [](void *context, int64_t begin, int64_t end) {
              Loop &loop = *static_cast<Loop *>(context);
              if (begin % loop.grain != 0 || (end % loop.grain != 0 && end != loop.iterations))
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

// Each of two threads holds its first range until both have one.
TEST(WorkerPool, CallersShareComesFirstAndIsNotTheSmaller) {
  WorkerPool pool(2, 50, "test");
  for (int64_t iterations : {2, 3, 5, 7, 8}) { // one range each
    struct Loop {
      std::thread::id caller = std::this_thread::get_id();
      std::atomic<int64_t> begun{0}, firstOfCaller{-1}, firstOfHelper{-1};
    } loop;
    pool.parallelFor(
        iterations, 1,
        [](void *context, int64_t begin, int64_t end) {
          Loop &loop = *static_cast<Loop *>(context);
          int64_t none = -1;
          (std::this_thread::get_id() == loop.caller ? loop.firstOfCaller : loop.firstOfHelper)
              .compare_exchange_strong(none, begin);
          ++loop.begun;
          while (loop.begun < 2)
            std::this_thread::yield();
        },
        &loop);
    EXPECT_EQ(loop.begun, iterations);
    EXPECT_EQ(loop.firstOfCaller, 0);
    EXPECT_EQ(loop.firstOfHelper, (iterations + 1) / 2);
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
