#include "spmd/Runtime/Train/BatchCutter.h"
#include "TestSupport.h"
#include "spmd/Runtime/Train/CheckIndex.h"
#include "spmd/Runtime/Host/HostMemory.h"
#include "spmd/Runtime/Host/ThreadsCommunicator.h"

#include <cstring>
#include <numeric>

using namespace spmd::runtime;

namespace {
/// The arenas of `ranks` ranks, on the CPU.
struct Arenas {
  explicit Arenas(int64_t ranks) : memory(std::move(*HostMemory::allocate(RanksHere::all(ranks), 64, processes))) {
    for (int64_t rank = 0; rank < ranks; ++rank)
      (void)memory->fill(rank, 0, 0xff, 64);
  }

  std::vector<int32_t> local(int64_t rank, size_t count) const {
    std::vector<int32_t> values(count);
    EXPECT_TRUE(memory->copyOut(rank, 8, values.data(), static_cast<int64_t>(count * 4)).ok());
    return values;
  }

  ThreadsFactory processes;
  std::unique_ptr<RankMemory> memory;
  AbortState abort;
  RankAccess reader{*memory, processes, abort};
};
} // namespace

TEST(BatchCutter, PadsMissingRowsWithZeros) {
  DimSplit split{0, 1, 2};
  Arenas arenas(3);
  std::vector<int32_t> global = {1, 2, 3, 4, 5, 6}; // 3 rows of 2
  for (int64_t rank : {1, 2})
    ASSERT_TRUE(cutRows(split, {3, 2}, DType::I32, rank, global.data(), *arenas.memory, rank, 8).ok());
  EXPECT_EQ(arenas.local(1, 5), (std::vector<int32_t>{5, 6, 0, 0, -1}));
  EXPECT_EQ(arenas.local(2, 5), (std::vector<int32_t>{0, 0, 0, 0, -1}));
}

TEST(BatchCutter, CutsInsideADim) {
  // Dim 1 of [2, 6] seen as [pre = 2][total = 3], chunks of 2.
  DimSplit split{1, 2, 2};
  Arenas arenas(2);
  std::vector<int32_t> global(12), joined(12, -1);
  std::iota(global.begin(), global.end(), 0);
  for (int64_t rank : {0, 1})
    ASSERT_TRUE(cutRows(split, {2, 6}, DType::I32, rank, global.data(), *arenas.memory, rank, 8).ok());
  EXPECT_EQ(arenas.local(0, 9), (std::vector<int32_t>{0, 1, 3, 4, 6, 7, 9, 10, -1}));
  EXPECT_EQ(arenas.local(1, 9), (std::vector<int32_t>{2, 0, 5, 0, 8, 0, 11, 0, -1}));
  for (int64_t rank : {0, 1})
    ASSERT_TRUE(joinRows(split, {2, 6}, DType::I32, rank, rank, arenas.reader, 8, joined.data()).ok());
  EXPECT_EQ(joined, global);
}

TEST(BatchCutter, ReplicatesWithoutDim) {
  Arenas arenas(4);
  std::vector<int32_t> global = {1, 2};
  ASSERT_TRUE(cutRows({}, {2}, DType::I32, 3, global.data(), *arenas.memory, 3, 8).ok());
  EXPECT_EQ(arenas.local(3, 2), global);
}

TEST(BatchCutter, ReadsRowIdsAtAnyByte) {
  int64_t ids[] = {1, 2, 9};
  char storage[sizeof ids + 1];
  std::memcpy(storage + 1, ids, sizeof ids);
  EXPECT_EQ(findBadIndex(storage + 1, DType::I64, 3, 0, 9, std::nullopt), 2);
  EXPECT_EQ(findBadIndex(storage + 1, DType::I64, 3, 0, 9, 9), -1);
}

TEST(BatchCutter, NamesBadRowIds) {
  BatchInput input;
  input.name = "x";
  input.dtype = DType::I64;
  input.shape = {2, 3};
  std::vector<int64_t> ids = {0, 1, 2, 3, 4, 5};
  EXPECT_TRUE(checkRowIds(input, input.shape, ids.data()).ok()) << "no bound";
  input.indexBound = 6;
  EXPECT_TRUE(checkRowIds(input, input.shape, ids.data()).ok());
  ids[4] = 6;
  EXPECT_EQ(checkRowIds(input, input.shape, ids.data()).message, "input 'x': value 6 at position [1, 1] is not a row id in [0, 6)");
  ids[4] = -100;
  EXPECT_FALSE(checkRowIds(input, input.shape, ids.data()).ok());
  input.ignoreIndex = -100;
  EXPECT_TRUE(checkRowIds(input, input.shape, ids.data()).ok());
}
