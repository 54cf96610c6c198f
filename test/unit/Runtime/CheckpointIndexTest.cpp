#include "spmd/Runtime/Run/CheckpointIndex.h"
#include "spmd/Runtime/Train/StateMap.h"
#include "TestSupport.h"

using namespace spmd::runtime;

namespace {
/// The index of a tensor of 4 x 6 elements, of which two files of 48 bytes have `pieces`.
Expected<CheckpointIndex> parse(const std::string &pieces) {
  std::string files;
  for (const char *name : {"a", "b"})
    files += std::string(files.empty() ? "" : ", ") + R"({"name": ")" + name +
             R"(", "bytes": 48, "blocks": "0000000000000000"})";
  return CheckpointIndex::parse("index.json", R"({"block_bytes": 1048576, "block_hash": "xxh3", "files": [)" + files +
                                                  R"(], "tensors": {"w": {"dtype": "f32", "shape": [4, 6], "pieces": )" +
                                                  pieces + "}}}");
}

std::string errorOf(const std::string &pieces) {
  Expected<CheckpointIndex> index = parse(pieces);
  return index ? "" : index.error().message;
}
} // namespace

TEST(CheckpointIndex, PiecesMayHaveStrides) {
  // Columns 0 to 2 of all rows, and columns 3 to 5: the first of them alone, and the last.
  std::string columns = "[[0,0,3,0,6,4],[1,3,3,0],[1,9,3,12,6,2],[1,21,3,36]]";
  Expected<CheckpointIndex> index = parse(columns);
  ASSERT_TRUE(index) << index.error().message;
  EXPECT_TRUE(index->hasStrides());
  EXPECT_NE(index->format().find(columns), std::string::npos) << index->format();
  EXPECT_FALSE(parse("[[1,12,12,0],[0,0,12,0]]")->hasStrides());
}

TEST(CheckpointIndex, EachElementIsInOnePiece) {
  EXPECT_NE(errorOf("[[0,0,3,0,6,4],[1,3,3,0,6,3]]").find("have 21 elements, the tensor 24"), std::string::npos);
  EXPECT_NE(errorOf("[[0,0,3,0,6,4],[1,2,3,0,6,4]]").find("begins at element 2, those before it end at 3"),
            std::string::npos);
  EXPECT_NE(errorOf("[[0,0,3,0,6,4],[1,4,2,0,6,4]]").find("begins at element 4, those before it end at 3"),
            std::string::npos);
  for (const char *outside : {"[[0,0,3,0,6,5]]", "[[0,0,3,0,2,4]]", "[[0,0,0,0,6,4]]", "[[0,0,3,0,0,4]]", "[[0,0,3,0,6,0]]",
                              "[[0,30,3,0,6,2]]", "[[0,0,3,0,1099511627776,3]]",
                              "[[0,0,3,0,6,1099511627776]]", "[[0,20,6,0]]"})
    EXPECT_NE(errorOf(outside).find("is not in the tensor, which has 24 elements"), std::string::npos) << outside;
  EXPECT_NE(errorOf("[[0,0,3,4,6,4]]").find("is not in a file of the checkpoint"), std::string::npos);
  EXPECT_NE(errorOf("[[0,0,3,0,6]]").find("expected [file, first element"), std::string::npos);
}

TEST(CheckpointIndex, RunsOfAPieceAreCountedTogether) {
  StatePiece piece;
  for (auto [first, count] : {std::pair(4, 2), {9, 3}, {15, 3}, {21, 3}, {27, 1}})
    piece.add(first, count);
  ASSERT_EQ(piece.runs.size(), 3u);
  EXPECT_EQ(piece.runs[1].first, 9);
  EXPECT_EQ(piece.runs[1].stride, 6);
  EXPECT_EQ(piece.runs[1].repeat, 3);
  EXPECT_EQ(piece.count(), 12);
  EXPECT_FALSE(piece.isOneRun());
  StatePiece uneven;
  for (auto first : {0, 5, 11})
    uneven.add(first, 2);
  EXPECT_EQ(uneven.runs.size(), 2u);
}
