#include "spmd/Runtime/Core/Plan.h"
#include "TestSupport.h"

using namespace spmd::runtime;

static std::string errorOf(const std::string &from, const std::string &to) {
  Expected<Plan> plan = parsePlan("plan", edited(tinyArtifact(2) + "/train_step.plan.json", from, to));
  EXPECT_FALSE(plan) << from << " -> " << to;
  return plan ? "" : plan.error().message;
}

TEST(Plan, Trace) {
  Plan plan = loadTiny(2).plan;
  EXPECT_EQ(collectiveTrace(plan), "gather all_gather f32 48 - embed\n"
                                   "gather all_gather f32 48 - fc\n"
                                   "scalar all_reduce f32 1 sum -\n"
                                   "reduce reduce_scatter f32 48 sum fc\n"
                                   "reduce reduce_scatter f32 48 sum embed\n"
                                   "scalar all_reduce f32 2,2 norm2,max -\n");
}

TEST(Plan, OffsetsAreAffine) {
  Ref ref;
  ref.offset = 8;
  ref.coord = {100, -4};
  EXPECT_EQ(ref.offsetAt({2, 3, 9}), 8 + 200 - 12);
  EXPECT_TRUE(ref.dependsOnRank());
}

TEST(Plan, NamesTheBadPlace) {
  expectContains(errorOf("\"version\": 2", "\"version\": 7"),
                 "plan: /version: this runtime reads version 2, the plan has "
                 "version 7");
  expectContains(errorOf("\"op\": \"kernel\"", "\"op\": \"kernle\""), "/op: unknown command 'kernle'");
  expectContains(errorOf("\"stream\": \"reduce\"", "\"stream\": \"reduec\""),
                 "/stream: no stream is named 'reduec'; there are: compute, "
                 "gather, reduce, scalar");
  expectContains(errorOf("\"comm\": \"scalar\"", "\"comm\": \"s\""), "/comm: no communicator is named 's'");
  expectContains(errorOf("\"access\": \"rw\"", "\"access\": \"wr\""), "/access: expected r, w or rw, found 'wr'");
  expectContains(errorOf("\"norm2\"", "\"norm3\""), "/kinds/0: expected sum, max, min or norm2, found 'norm3'");
  expectContains(errorOf("\"beta\": 0.0", "\"beta\": 0.5"), "/beta: ");
  std::string gradient = "\"activation\": \"gelu_tanh_backward\"";
  expectContains(errorOf("\"beta\": 0.0", "\"beta\": 0.0, " + gradient),
                 "expected pre_activation, where the gradient of the activation is taken");
  gradient += R"(, "pre_activation": {"buffer": 0, "offset": 0, "bytes": 4, "access": "r"})";
  expectContains(errorOf("\"beta\": 0.0", "\"beta\": 1.0, " + gradient),
                 "/activation: is without bias, residual and beta");
  gradient += R"(, "bias_gradient": {"buffer": 0, "offset": 0, "bytes": 4, "access": "w"}, "bias_gradient_of": "a")";
  expectContains(
      errorOf("\"beta\": 0.0", "\"beta\": 0.0, " + gradient),
      "/bias_gradient: is for one GEMM, of a and b without bias and activation, of c with gelu_tanh_backward");
  expectContains(errorOf("\"id\": 3", "\"id\": 4"), "/buffers/3/id: expected the position 3, found 4");
  expectContains(errorOf("\"grain\": 1", "\"grain\": 0"), "/grain: expected at least 1");
  expectContains(errorOf("\"k\": 6", "\"k\": 0"), "/k: expected at least 1, found 0");
  expectContains(errorOf("\"value\": 0", "\"value\": 256"), "/value: expected a byte, found 256");
  expectContains(errorOf("\"value\": 0", "\"value\": 4294967296"), "/value: expected a byte, found 4294967296");
}
