//===- CompareTest.cpp - how far two runs are apart -----------------------===//

#include "spmd/Interpreter/Compare.h"

#include "mlir/IR/Diagnostics.h"
#include "mlir/IR/MLIRContext.h"
#include "gtest/gtest.h"
#include <cmath>

using namespace mlir;
using namespace spmd::interp;

static Tensor vectorOf(std::vector<double> values) {
  int64_t size = values.size();
  return Tensor(DType::f64, {size}, std::move(values));
}

TEST(RelativeDifference, IsOfNorms) {
  EXPECT_EQ(relativeDifference(vectorOf({3, 4}), vectorOf({3, 4})), 0);
  EXPECT_DOUBLE_EQ(relativeDifference(vectorOf({3, 4.5}), vectorOf({3, 4})), 0.1);
  EXPECT_EQ(relativeDifference(vectorOf({1}), vectorOf({0})), INFINITY);
  EXPECT_EQ(relativeDifference(vectorOf({0}), vectorOf({0})), 0);
  EXPECT_EQ(relativeDifference(vectorOf({1, 2}), vectorOf({1})), INFINITY);
}

TEST(RelativeDifference, NonfiniteElementsMustBeTheSame) {
  EXPECT_EQ(relativeDifference(vectorOf({NAN, 1}), vectorOf({NAN, 1})), 0);
  EXPECT_EQ(relativeDifference(vectorOf({INFINITY, 1}), vectorOf({INFINITY, 1})), 0);
  EXPECT_EQ(relativeDifference(vectorOf({INFINITY, 1}), vectorOf({-INFINITY, 1})), INFINITY);
  EXPECT_EQ(relativeDifference(vectorOf({1, 1}), vectorOf({NAN, 1})), INFINITY);
}

TEST(RelativeDifference, CountsSmallNormsAsTheFloor) {
  EXPECT_DOUBLE_EQ(relativeDifference(vectorOf({2e-9}), vectorOf({1e-9}), 1e-3), 1e-6);
  EXPECT_DOUBLE_EQ(relativeDifference(vectorOf({2}), vectorOf({1}), 1e-3), 1);
}

namespace {

class CompareResults : public ::testing::Test {
protected:
  CompareResults() : module(ModuleOp::create(UnknownLoc::get(&context))) {}

  Differences compare(const Results &ours, const Results &expected) {
    auto differences = compareResults(*module, ours, expected, zeroGradient, 1e-6);
    EXPECT_TRUE(succeeded(differences));
    return succeeded(differences) ? *differences : Differences();
  }

  /// A run of one step: two parameters with a momentum each.
  static Results run(double noise) {
    Results results;
    results.steps.emplace_back();
    results.steps[0]["loss/"] = {"loss", Tensor::scalar(DType::f64, 1)};
    results.state["w"] = {"parameters", vectorOf({1, 2})};
    results.state["bias"] = {"parameters", vectorOf({1 + 1e3 * noise})};
    results.state["optimizer/momentum/w"] = {"momentum", vectorOf({0.6, 0.8})};
    results.state["optimizer/momentum/bias"] = {"momentum", vectorOf({noise})};
    return results;
  }

  MLIRContext context;
  OwningOpRef<ModuleOp> module;
  llvm::StringSet<> zeroGradient;
};

} // namespace

TEST_F(CompareResults, NamesTheWorstTensorOfEachKind) {
  Differences differences = compare(run(2e-9), run(1e-9));
  EXPECT_EQ(differences["loss"].largest, 0);
  EXPECT_EQ(differences["parameters"].count, 2);
  EXPECT_EQ(differences["parameters"].worst, "bias");
  EXPECT_EQ(differences["momentum"].worst, "optimizer/momentum/bias");
  EXPECT_NEAR(differences["momentum"].largest, 1, 1e-6);
}

/// An adaptive optimizer amplifies the noise of a gradient that is zero: such a parameter is compared through its
/// state, relative to 1e-6 of the largest norm of that state (here 1).
TEST_F(CompareResults, ComparesZeroGradientsThroughStateWithAFloor) {
  zeroGradient.insert("bias");
  Differences differences = compare(run(2e-9), run(1e-9));
  EXPECT_EQ(differences["parameters"].count, 1);
  EXPECT_EQ(differences["parameters"].largest, 0);
  EXPECT_NEAR(differences["momentum"].largest, 1e-3, 1e-9);
}

/// Without state, by the value: noise is small beside the largest norm of a parameter (here sqrt 5), an error is not.
TEST_F(CompareResults, ComparesAZeroGradientWithoutStateByValueWithAFloor) {
  zeroGradient.insert("bias");
  auto runWith = [](double value) {
    Results results = run(0);
    results.state.erase("optimizer/momentum/bias");
    results.state["bias"] = {"parameters", vectorOf({value})};
    return results;
  };
  auto compareBias = [&](double ours, double expected) {
    return compare(runWith(ours), runWith(expected))["parameters"];
  };
  EXPECT_EQ(compareBias(2e-12, 1e-12).worst, "bias");
  EXPECT_NEAR(compareBias(2e-12, 1e-12).largest, 1e-6 / std::sqrt(5), 1e-9);
  EXPECT_NEAR(compareBias(2e-3, 1e-3).largest, 1, 1e-6);
}

TEST_F(CompareResults, FailsWhenATensorIsMissing) {
  std::string message;
  ScopedDiagnosticHandler handler(&context, [&](Diagnostic &diagnostic) { message = diagnostic.str(); });
  Results more = run(0);
  more.state["extra"] = {"parameters", vectorOf({1})};
  EXPECT_TRUE(failed(compareResults(*module, more, run(0), zeroGradient, 1e-6)));
  EXPECT_EQ(message, "only one of the programs gives 'extra'");
  EXPECT_TRUE(failed(compareResults(*module, run(0), more, zeroGradient, 1e-6)));
}
