// The first infinity and nan, where only what is written counts.
#include "spmd/Runtime/Train/FiniteWatch.h"
#include "TestSupport.h"

#include <array>
#include <limits>

using namespace spmd::runtime;

namespace {
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

/// A kernel that writes rows of 3 of 4 elements, and a GEMM that does.
struct FiniteWatchOfRows : ::testing::Test {
  Plan plan;
  std::array<float, 8> rows = {1, 2, 3, kNan, 5, 6, 7, kNan};

  FiniteWatchOfRows() {
    GemmCommand gemm;
    gemm.dtype = DType::F32;
    gemm.shape.m = 2, gemm.shape.n = 3, gemm.shape.k = 1, gemm.shape.batch = 1, gemm.shape.ldc = 4;
    Ref read{0, 0, {}, 32, Access::Read}, write{0, 0, {}, 32, Access::Write};
    plan.commands = {{0, "", {read, write}, KernelCommand{"k0", 1, 1}}, {0, "", {read, read, write}, gemm}};
  }
  std::string look(int32_t id, const std::string &table) {
    FiniteWatch watch(plan);
    watch.setKernels(table);
    std::array<void *, 3> pointers = {rows.data(), rows.data(), rows.data()};
    watch.look(id, 0, pointers.data());
    return watch.describe().message;
  }
};
} // namespace

TEST_F(FiniteWatchOfRows, PaddingIsNobodys) {
  EXPECT_EQ(look(0, "k0 1 r:f32:32 w:f32:32:3/4\n"), "");
  EXPECT_EQ(look(1, ""), "");
}

TEST_F(FiniteWatchOfRows, WhatAGemmGivesBesides) {
  std::array<float, 8> other = {1, 2, 3, kNan, 5, 6, 7, kNan};
  Ref write{0, 0, {}, 32, Access::Write};
  Command &command = plan.commands[1];
  command.refs.push_back(write);
  for (bool isPreActivation : {true, false}) {
    GemmShape &shape = command.as<GemmCommand>()->shape;
    shape.preActivation = isPreActivation ? 3 : -1, shape.biasGradient = isPreActivation ? -1 : 3;
    shape.biasGradientOf = isPreActivation ? GemmOperand::None : GemmOperand::B; // 3 sums
    for (bool isFinite : {true, false}) {
      other[2] = isFinite ? 3 : kNan;
      FiniteWatch watch(plan);
      std::array<void *, 4> pointers = {rows.data(), rows.data(), rows.data(), other.data()};
      watch.look(1, 0, pointers.data());
      EXPECT_EQ(watch.describe().ok(), isFinite);
    }
  }
}

TEST_F(FiniteWatchOfRows, WhatAGemmReadsIsAnothers) {
  std::array<float, 8> other = {kNan, kNan, kNan, kNan, kNan, kNan, kNan, kNan};
  Command &command = plan.commands[1];
  command.refs.push_back({0, 0, {}, 32, Access::Read});
  GemmShape &shape = command.as<GemmCommand>()->shape;
  shape.preActivation = 3, shape.activation = Activation::GeluTanhBackward;
  FiniteWatch watch(plan);
  std::array<void *, 4> pointers = {rows.data(), rows.data(), rows.data(), other.data()};
  watch.look(1, 0, pointers.data());
  EXPECT_TRUE(watch.describe().ok());
}

TEST_F(FiniteWatchOfRows, ElementsAreLookedAt) {
  expectContains(look(0, "k0 1 r:f32:32 w:f32:32\n"), "the first nan is of command 0");
  rows[6] = std::numeric_limits<float>::infinity();
  expectContains(look(0, "k0 1 r:f32:32 w:f32:32:3/4\n"), "the first infinity is of command 0");
  expectContains(look(1, ""), "the first infinity is of command 1");
}
