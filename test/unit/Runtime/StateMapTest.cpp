#include "spmd/Runtime/Train/StateMap.h"
#include "TestSupport.h"
#include "spmd/Runtime/Host/HostMemory.h"
#include "spmd/Runtime/Host/ThreadsCommunicator.h"

using namespace spmd::runtime;

namespace {
/// One tensor, the same on both ranks, between two others.
struct State {
  State(DType dtype, double init) {
    manifest.ranks = 2;
    StateEntry entry;
    entry.kind = StateEntry::Kind::Replicated;
    entry.name = "sum";
    entry.state = "sum";
    entry.dtype = dtype;
    entry.offset = 64;
    entry.shape = {100003};
    entry.numel = 100003;
    entry.init = init;
    manifest.state.push_back(entry);
    memory = std::move(*HostMemory::allocate(RanksHere::all(2), 64 + entry.bytes() + 64, threads));
  }

  Manifest manifest;
  ThreadsFactory threads;
  std::unique_ptr<RankMemory> memory;
};
} // namespace

TEST(StateMap, FillsWithInitialValues) {
  for (double init : {0.0, 0.1, -0.0, 1.0})
    for (DType dtype : {DType::F32, DType::BF16, DType::F64, DType::I64, DType::U8}) {
      State state(dtype, init);
      StateMap map(state.manifest);
      ASSERT_TRUE(map.initialize(nullptr, *state.memory).ok());
      std::vector<char> expected(8), found(state.memory->bytes());
      storeFromDouble(expected.data(), dtype, 0, init);
      expected.resize(static_cast<size_t>(sizeOf(dtype)));
      for (int64_t rank : {0, 1}) {
        ASSERT_TRUE(state.memory->copyOut(rank, 0, found.data(), state.memory->bytes()).ok());
        int64_t bytes = state.manifest.state[0].bytes();
        for (int64_t i = 0; i < state.memory->bytes(); ++i) {
          bool isInside = i >= 64 && i < 64 + bytes;
          ASSERT_EQ(found[static_cast<size_t>(i)],
                    isInside ? expected[static_cast<size_t>((i - 64) % sizeOf(dtype))] : 0)
              << nameOf(dtype) << " " << init << " at byte " << i << " of rank " << rank;
        }
      }
    }
}

TEST(StateMap, ReadsAndWritesInPlace) {
  State state(DType::F32, 1);
  StateMap map(state.manifest);
  std::vector<float> values(100003), found(100003);
  for (size_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<float>(i);
  ASSERT_TRUE(map.write(map.tensors()[0], *state.memory, values.data()).ok());
  ThreadsFactory processes;
  AbortState abort;
  ASSERT_TRUE(map.read(map.tensors()[0], {*state.memory, processes, abort}, found.data()).ok());
  EXPECT_EQ(found, values);
  ASSERT_TRUE(state.memory->copyOut(1, 64, found.data(), 4 * 100003).ok());
  EXPECT_EQ(found, values) << "every rank has it";
}

TEST(StateMap, WhoWritesAParameterWritesItsMaster) {
  Manifest manifest;
  manifest.ranks = 2;
  for (auto [state, dtype, offset] : {std::tuple("param", DType::BF16, 0), std::tuple("master", DType::F32, 64)}) {
    StateEntry entry;
    entry.kind = StateEntry::Kind::Replicated;
    entry.name = "w", entry.state = state, entry.dtype = dtype, entry.offset = offset;
    entry.shape = {3}, entry.numel = 3;
    manifest.state.push_back(entry);
  }
  ThreadsFactory threads;
  std::unique_ptr<RankMemory> memory = std::move(*HostMemory::allocate(RanksHere::all(2), 128, threads));
  StateMap map(manifest);
  const StateTensor &param = *map.find("param", "w"), &master = *map.find("master", "w");
  auto narrow = [](std::vector<double> values) {
    std::vector<char> bytes(2 * values.size());
    for (size_t i = 0; i < values.size(); ++i)
      storeFromDouble(bytes.data(), DType::BF16, static_cast<int64_t>(i), values[i]);
    return bytes;
  };
  auto masters = [&](int64_t rank) {
    std::vector<float> found(3);
    EXPECT_TRUE(memory->copyOut(rank, 64, found.data(), 12).ok());
    return found;
  };
  // What rounds to the parameter stays, the rest is what the parameter gets; on each rank.
  std::vector<float> wide = {1.001f, -2.0f, 0.5f};
  ASSERT_TRUE(map.write(master, *memory, wide.data()).ok());
  ASSERT_TRUE(map.write(param, *memory, narrow({1, -2, 0.75}).data()).ok());
  EXPECT_EQ(masters(0), (std::vector<float>{1.001f, -2.0f, 0.75f}));
  ThreadsFactory processes;
  AbortState abort;
  Expected<bool> changes = map.replace(param, {*memory, processes, abort}, narrow({1, 4, 0.75}).data());
  ASSERT_TRUE(changes && *changes);
  EXPECT_EQ(masters(1), (std::vector<float>{1.001f, 4.0f, 0.75f}));
}
