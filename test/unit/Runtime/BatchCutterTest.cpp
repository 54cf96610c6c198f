#include "spmd/Runtime/Host/BatchCutter.h"
#include "spmd/Runtime/Host/CheckIndex.h"
#include "TestSupport.h"

#include <cstring>
#include <numeric>

using namespace spmd::runtime;

TEST(BatchCutter, PadsMissingRowsWithZeros) {
  DimSplit split{0, 1, 2};
  std::vector<int32_t> global = {1, 2, 3, 4, 5, 6}; // 3 rows of 2
  std::vector<int32_t> local(4, -1);
  cutRows(split, {3, 2}, DType::I32, 1, global.data(), local.data());
  EXPECT_EQ(local, (std::vector<int32_t>{5, 6, 0, 0}));
  cutRows(split, {3, 2}, DType::I32, 2, global.data(), local.data());
  EXPECT_EQ(local, (std::vector<int32_t>{0, 0, 0, 0}));
}

TEST(BatchCutter, CutsInsideADim) {
  // Dim 1 of [2, 6] seen as [pre = 2][total = 3], chunks of 2.
  DimSplit split{1, 2, 2};
  std::vector<int32_t> global(12);
  std::iota(global.begin(), global.end(), 0);
  std::vector<int32_t> local(8, -1), joined(12, -1);
  cutRows(split, {2, 6}, DType::I32, 0, global.data(), local.data());
  EXPECT_EQ(local, (std::vector<int32_t>{0, 1, 3, 4, 6, 7, 9, 10}));
  joinRows(split, {2, 6}, DType::I32, 0, local.data(), joined.data());
  cutRows(split, {2, 6}, DType::I32, 1, global.data(), local.data());
  EXPECT_EQ(local, (std::vector<int32_t>{2, 0, 5, 0, 8, 0, 11, 0}));
  joinRows(split, {2, 6}, DType::I32, 1, local.data(), joined.data());
  EXPECT_EQ(joined, global);
}

TEST(BatchCutter, ReplicatesWithoutDim) {
  std::vector<int32_t> global = {1, 2}, local(2);
  cutRows({}, {2}, DType::I32, 3, global.data(), local.data());
  EXPECT_EQ(local, global);
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
  EXPECT_TRUE(checkRowIds(input, ids.data()).ok()) << "no bound";
  input.indexBound = 6;
  EXPECT_TRUE(checkRowIds(input, ids.data()).ok());
  ids[4] = 6;
  EXPECT_EQ(checkRowIds(input, ids.data()).message, "input 'x': value 6 at position [1, 1] is not a row id in [0, 6)");
  ids[4] = -100;
  EXPECT_FALSE(checkRowIds(input, ids.data()).ok());
  input.ignoreIndex = -100;
  EXPECT_TRUE(checkRowIds(input, ids.data()).ok());
}
