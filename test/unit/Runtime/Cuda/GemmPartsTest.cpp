// The parts of a GEMM compute what it does, and their sizes are multiples of a vector where matrices are contiguous.
#include "lib/Runtime/Cuda/GemmParts.h"
#include "spmd/Runtime/Core/HalfFloat.h"
#include "gtest/gtest.h"

#include <array>

using namespace spmd::runtime;
using namespace spmd::runtime::cuda;

namespace {

/// Small whole numbers, of which products and sums are exact.
std::vector<BFloat16> numbers(int64_t count, int64_t seed) {
  std::vector<BFloat16> made;
  for (int64_t i = 0; i < count; ++i)
    made.push_back(BFloat16(static_cast<float>((i * 7 + seed * 5) % 3 - 1)));
  return made;
}

/// m x n x k, each matrix in rows that begin at multiples of 16 bytes.
struct Problem {
  GemmPart whole;
  std::vector<BFloat16> a, b, c, bias, residual, preActivation;

  Problem(int64_t m, int64_t n, int64_t k, bool transA, bool transB) {
    auto up = [](int64_t size) { return (size + 7) / 8 * 8; };
    GemmCommand gemm;
    gemm.dtype = DType::BF16;
    GemmShape &g = gemm.shape;
    g.m = m, g.n = n, g.k = k, g.transA = transA, g.transB = transB;
    g.lda = up(transA ? m : k), g.ldb = up(transB ? k : n), g.ldc = up(n);
    a = numbers((transA ? k : m) * g.lda, 1), b = numbers((transB ? n : k) * g.ldb, 2);
    c = preActivation = residual = numbers(m * g.ldc, 3), bias = numbers(n, 4);
    whole.command.action = gemm;
    for (std::vector<BFloat16> *data : {&a, &b, &c, &bias, &residual, &preActivation})
      whole.addresses.push_back(reinterpret_cast<Address>(data->data()));
  }
  GemmShape &shape() { return whole.command.as<GemmCommand>()->shape; }
};

void run(const GemmPart &part) {
  const GemmShape &g = part.command.as<GemmCommand>()->shape;
  auto at = [&](int32_t ref) { return reinterpret_cast<BFloat16 *>(part.addresses[static_cast<size_t>(ref)]); };
  for (int64_t i = 0; i < g.m; ++i)
    for (int64_t j = 0; j < g.n; ++j) {
      float sum = g.beta != 0 ? static_cast<float>(at(2)[i * g.ldc + j]) : 0;
      for (int64_t l = 0; l < g.k; ++l)
        sum += static_cast<float>(at(0)[g.transA ? l * g.lda + i : i * g.lda + l]) *
               static_cast<float>(at(1)[g.transB ? j * g.ldb + l : l * g.ldb + j]);
      if (g.bias >= 0)
        sum += static_cast<float>(at(g.bias)[j]);
      if (g.residual >= 0)
        sum += static_cast<float>(at(g.residual)[i * g.ldc + j]);
      if (g.preActivation >= 0)
        at(g.preActivation)[i * g.ldc + j] = BFloat16(sum);
      at(2)[i * g.ldc + j] = BFloat16(g.activation == Activation::Relu ? std::max(sum, 0.0f) : sum);
    }
}

/// Runs the whole and the parts, whose number is given back.
size_t check(Problem &problem) {
  auto results = [&] {
    std::vector<float> all;
    for (const std::vector<BFloat16> *data : {&problem.c, &problem.preActivation})
      for (BFloat16 value : *data)
        all.push_back(static_cast<float>(value));
    return all;
  };
  std::vector<BFloat16> c = problem.c, preActivation = problem.preActivation;
  run(problem.whole);
  std::vector<float> expected = results();
  std::copy(c.begin(), c.end(), problem.c.begin());
  std::copy(preActivation.begin(), preActivation.end(), problem.preActivation.begin());
  std::vector<GemmPart> parts = splitGemm(problem.whole, 0);
  for (const GemmPart &part : parts)
    run(part);
  EXPECT_EQ(results(), expected);
  return parts.size();
}

} // namespace

TEST(GemmParts, EachDim) {
  for (bool transA : {false, true})
    for (bool transB : {false, true})
      for (auto [m, n, k] :
           {std::array<int64_t, 3>{16, 24, 32}, {19, 24, 32}, {16, 27, 32}, {16, 24, 33}, {21, 27, 35}}) {
        SCOPED_TRACE(std::to_string(m) + " " + std::to_string(n) + " " + std::to_string(k) + (transA ? " T" : " N") +
                     (transB ? "T" : "N"));
        Problem problem(m, n, k, transA, transB);
        bool splitsM = transA && m % 8, splitsK = (!transA || transB) && k % 8;
        EXPECT_EQ(check(problem), 1u + (n % 8 != 0) + splitsM + splitsK);
      }
}

TEST(GemmParts, Epilogues) {
  for (auto [n, k] : {std::array<int64_t, 2>{27, 32}, {24, 33}, {27, 33}}) {
    Problem problem(16, n, k, false, true);
    problem.shape().bias = 3, problem.shape().preActivation = 5, problem.shape().activation = Activation::Relu;
    EXPECT_EQ(check(problem), 1u + (n % 8 != 0) + (k % 8 != 0));
  }
  // What is added to is not rounded on the way.
  for (bool isResidual : {false, true}) {
    Problem problem(16, 27, 33, false, true);
    (isResidual ? problem.shape().residual = 4 : problem.shape().beta = 1);
    EXPECT_EQ(check(problem), 2u);
  }
}

TEST(GemmParts, Whole) {
  Problem small(16, 27, 32, false, false);
  EXPECT_EQ(splitGemm(small.whole).size(), 1u); // too small to pay
  Problem narrow(16, 7, 32, false, false);
  EXPECT_EQ(splitGemm(narrow.whole, 0).size(), 1u); // less than a vector
  Problem unaligned(16, 27, 32, false, false);
  unaligned.shape().ldb += 1;
  EXPECT_EQ(splitGemm(unaligned.whole, 0).size(), 1u);
  Problem moved(16, 27, 32, false, false);
  moved.whole.addresses[1] += 2;
  EXPECT_EQ(splitGemm(moved.whole, 0).size(), 1u);
  Problem wide(16, 27, 32, false, false);
  wide.whole.command.as<GemmCommand>()->dtype = DType::F32;
  EXPECT_EQ(splitGemm(wide.whole, 0).size(), 1u);
  Problem half(16, 24, 33, false, false);
  half.whole.command.as<GemmCommand>()->dtype = DType::F16;
  EXPECT_EQ(splitGemm(half.whole, 0).size(), 1u); // the last products' sum might be too large
  Problem sums(16, 27, 32, false, false);
  sums.shape().biasGradientOf = GemmOperand::A;
  EXPECT_EQ(splitGemm(sums.whole, 0).size(), 1u);
  Problem gradient(16, 24, 33, false, true);
  gradient.shape().activation = Activation::GeluTanhBackward, gradient.shape().preActivation = 5;
  EXPECT_EQ(splitGemm(gradient.whole, 0).size(), 1u); // that of a sum is no sum of those of its parts
}
