//===- ShardingRuleTest.cpp - The rule of each family of ops --------------===//
//
// A rule as text: operands -> results, a letter per factor in the order of
// first use, behind it how many elements go together if it is not one, '!' for a dimension that is whole, '1' for one
// without factor; then the linearity, reductions other than sum, neutral elements, and operands whose value does not
// matter.
//
//===----------------------------------------------------------------------===//

#include "dialects/Aten/AtenDialect.h"
#include "mlir/Dialect/Func/IR/FuncOps.h"
#include "mlir/IR/BuiltinOps.h"
#include "mlir/Parser/Parser.h"
#include "llvm/ADT/DenseMap.h"
#include "llvm/Support/raw_ostream.h"
#include "gtest/gtest.h"

using namespace mlir;
using namespace spmd::aten;

static std::string format(const ShardingRule &rule) {
  llvm::DenseMap<int64_t, char> letters;
  auto side = [&](ArrayRef<ShardingRule::Value> values) {
    std::string text;
    for (const ShardingRule::Value &value : values) {
      if (&value != values.begin())
        text += ",";
      for (auto [index, dim] : llvm::enumerate(value.dims)) {
        if (dim == ShardingRule::kWhole)
          text += '!';
        else if (dim == ShardingRule::kNone)
          text += '1';
        else
          text += letters.try_emplace(dim, 'a' + letters.size()).first->second;
        if (value.getStep(index) != 1)
          text += std::to_string(value.getStep(index));
      }
    }
    return text;
  };
  std::string text = side(rule.operands) + "->";
  text += side(rule.results);
  if (rule.linearity == Linearity::additive)
    text += " additive";
  if (rule.linearity == Linearity::multilinear) {
    text += " linear in";
    for (unsigned operand : rule.multilinearOperands)
      text += " " + std::to_string(operand);
  }
  for (ReductionKind kind : rule.resultReduction) {
    if (kind == ReductionKind::max)
      text += " max";
    if (kind == ReductionKind::min)
      text += " min";
    if (kind == ReductionKind::norm2)
      text += " norm2";
  }
  for (auto [index, neutral] : llvm::enumerate(rule.neutral))
    if (neutral)
      text += " " + std::to_string(index) + " filled with " + std::to_string(static_cast<int>(*neutral));
  for (auto [index, ignored] : llvm::enumerate(rule.dontCare))
    if (ignored)
      text += " " + std::to_string(index) + " ignored";
  return text;
}

/// The rule of the op in "NAME {attributes} : (types) -> types"; "none".
static std::string ruleOf(StringRef name, StringRef attributes, StringRef operands, StringRef results) {
  MLIRContext context;
  context.loadDialect<AtenDialect, func::FuncDialect>();
  std::string text = "func.func @f(";
  SmallVector<StringRef> types;
  // Types hold no commas.
  operands.split(types, ',', -1, false);
  std::string uses;
  for (auto [index, type] : llvm::enumerate(types)) {
    std::string arg = "%a" + std::to_string(index);
    text += (index ? ", " : "") + arg + ": " + type.str();
    uses += (index ? ", " : "") + arg;
  }
  SmallVector<StringRef> resultTypes;
  results.split(resultTypes, ',', -1, false);
  text += ") {\n %r:" + std::to_string(resultTypes.size()) + " = aten." + name.str() + " " + uses + " {" +
          attributes.str() + "} : (" + operands.str() + ") -> (" + results.str() + ")\n return\n}\n";
  OwningOpRef<ModuleOp> module = parseSourceString<ModuleOp>(text, &context);
  if (!module)
    return "does not parse";
  std::string rule = "none";
  module->walk([&](AtenOpInterface op) {
    if (FailureOr<ShardingRule> found = op.getShardingRule(); succeeded(found))
      rule = format(*found);
  });
  return rule;
}

#define T(shape) "tensor<" shape "xf32>"

TEST(ShardingRule, Pointwise) {
  EXPECT_EQ(ruleOf("add.Tensor", "", T("4x6") "," T("6"), T("4x6")), "ab,b->ab additive");
  EXPECT_EQ(ruleOf("mul.Tensor", "", T("4x6") "," T("4x1"), T("4x6")), "ab,a1->ab linear in 0 1");
  EXPECT_EQ(ruleOf("div.Tensor", "", T("4x6") ",tensor<f32>", T("4x6")), "ab,->ab linear in 0");
  EXPECT_EQ(ruleOf("add.Scalar", "other = 1 : i64", T("4x6"), T("4x6")), "ab->ab");
  EXPECT_EQ(ruleOf("exp", "", T("4x6"), T("4x6")), "ab->ab");
  EXPECT_EQ(ruleOf("gelu_backward", "", T("4x6") "," T("4x6"), T("4x6")), "ab,ab->ab linear in 0");
  EXPECT_EQ(ruleOf("_to_copy", "dtype = bf16", T("4"), "tensor<4xbf16>"), "a->a additive");
  EXPECT_EQ(ruleOf("_to_copy", "dtype = i64", T("4"), "tensor<4xi64>"), "a->a");
}

TEST(ShardingRule, Products) {
  EXPECT_EQ(ruleOf("mm", "", T("4x8") "," T("8x6"), T("4x6")), "ab,bc->ac linear in 0 1");
  EXPECT_EQ(ruleOf("bmm", "", T("2x4x8") "," T("2x8x6"), T("2x4x6")), "abc,acd->abd linear in 0 1");
  // The bias would be added once per rank.
  EXPECT_EQ(ruleOf("addmm", "", T("6") "," T("4x8") "," T("8x6"), T("4x6")), "a,b!,!a->ba");
  EXPECT_EQ(ruleOf("baddbmm", "", T("1x6") "," T("2x4x8") "," T("2x8x6"), T("2x4x6")), "1a,bc!,b!a->bca");
}

TEST(ShardingRule, Layout) {
  EXPECT_EQ(ruleOf("permute", "dims = array<i64: 1, 0>", T("4x6"), T("6x4")), "ab->ba additive");
  EXPECT_EQ(ruleOf("expand", "size = array<i64: 2, 4, 6>", T("4x1"), T("2x4x6")), "a1->bac additive");
  EXPECT_EQ(ruleOf("slice.Tensor", "dim = 0 : i64, start = 1 : i64, end = 3 : i64", T("4x6"), T("2x6")),
            "!a->!a additive");
  EXPECT_EQ(ruleOf("slice.Tensor", "dim = 0 : i64, start = 0 : i64, end = 4 : i64", T("4x6"), T("4x6")),
            "ab->ab additive");
  EXPECT_EQ(ruleOf("select.int", "dim = 0 : i64, index = 1 : i64", T("4x6"), T("6")), "!a->a additive");
  EXPECT_EQ(ruleOf("split.Tensor", "dim = 1 : i64, split_size = 3 : i64", T("4x6"), T("4x3") "," T("4x3")),
            "a!->a!,a! additive");
  EXPECT_EQ(ruleOf("cat", "dim = 0 : i64", T("1x6") "," T("3x6"), T("4x6")), "!a,!a->!a additive");
  EXPECT_EQ(ruleOf("stack", "dim = 0 : i64", T("6") "," T("6"), T("2x6")), "a,a->!a additive");
  EXPECT_EQ(ruleOf("flip", "dims = array<i64: 1>", T("4x6"), T("4x6")), "a!->a! additive");
  EXPECT_EQ(ruleOf("full", "size = array<i64: 4, 6>, fill_value = 0.0", "", T("4x6")), "->ab");
  EXPECT_EQ(ruleOf("view", "size = array<i64: 24>", T("4x6"), T("24")), "none");
}

TEST(ShardingRule, RowsByNumber) {
  EXPECT_EQ(ruleOf("gather_rows", "", T("4x6") ",tensor<3xi64>", T("3x6")), "!a,b->ba linear in 0");
  EXPECT_EQ(ruleOf("gather_rows", "batch_dims = 1", T("4x6x2") ",tensor<4x3xi64>", T("4x3x2")),
            "a!b,ac->acb linear in 0");
  EXPECT_EQ(ruleOf("scatter_rows", "rows = 6, reduce = \"sum\"", "tensor<3xi64>," T("3x2"), T("6x2")),
            "a,ab->!b linear in 1");
  EXPECT_EQ(ruleOf("scatter_rows", "rows = 6, reduce = \"sum\"", T("6x2") ",tensor<3xi64>," T("3x2"), T("6x2")),
            "!a,!,!a->!a");
}

TEST(ShardingRule, Reductions) {
  EXPECT_EQ(ruleOf("sum.dim_IntList", "dim = array<i64: 0>", T("4x6"), T("6")), "ab->b additive");
  EXPECT_EQ(ruleOf("sum.dim_IntList", "dim = array<i64: 0>, keepdim = true", T("4x6"), T("1x6")), "ab->1b additive");
  EXPECT_EQ(ruleOf("sum.dim_IntList", "dim = array<i64: 0>", "tensor<4x6xi1>", "tensor<6xi64>"), "ab->b");
  EXPECT_EQ(ruleOf("amax", "dim = array<i64: 1>", T("4x6"), T("4")), "ab->a max");
  EXPECT_EQ(ruleOf("linalg_vector_norm", "dim = array<i64: 0, 1>", T("4x6"), "tensor<f32>"), "ab-> norm2");
  EXPECT_EQ(ruleOf("linalg_vector_norm", "dim = array<i64: 0>, ord = 0x7FF0000000000000 : f64", T("4x6"), T("6")),
            "ab->b max 0 filled with 0");
  EXPECT_EQ(ruleOf("linalg_vector_norm", "dim = array<i64: 0>, ord = 3 : i64", T("4x6"), T("6")), "!a->a");
  // A mean divides by a count of rows: they must be the global ones.
  EXPECT_EQ(ruleOf("mean.dim", "dim = array<i64: 1>", T("4x6"), T("4")), "a!->a additive");
}

TEST(ShardingRule, Norms) {
  constexpr StringLiteral kShape =
      "eps = 1.0e-05, normalized_shape = array<i64: 8>, operandSegmentSizes = array<i32: 1, 1, 1>";
  EXPECT_EQ(
      ruleOf("native_layer_norm", kShape, T("2x3x8") "," T("8") "," T("8"), T("2x3x8") "," T("2x3x1") "," T("2x3x1")),
      "ab!,!,!->ab!,ab1,ab1");
  // Weight and bias gradients contract the rows.
  EXPECT_EQ(ruleOf("native_layer_norm_backward",
                   "normalized_shape = array<i64: 8>, operandSegmentSizes = array<i32: 1, 1, 1, 1, 1, 1>, "
                   "output_mask = array<i1: true, true, true>, resultSegmentSizes = array<i32: 1, 1, 1>",
                   T("2x3x8") "," T("2x3x8") "," T("2x3x1") "," T("2x3x1") "," T("8") "," T("8"),
                   T("2x3x8") "," T("8") "," T("8")),
            "ab!,ab!,ab1,ab1,!,!->ab!,!,!");
  EXPECT_EQ(ruleOf("_softmax", "dim = 1 : i64", T("4x6"), T("4x6")), "a!->a!");
}

TEST(ShardingRule, Embedding) {
  EXPECT_EQ(ruleOf("embedding", "", T("10x8") ",tensor<2x3xi64>", T("2x3x8")), "!a,bc->bca linear in 0");
  EXPECT_EQ(ruleOf("embedding_dense_backward", "num_weights = 10 : i64, padding_idx = -1 : i64",
                   T("2x3x8") ",tensor<2x3xi64>", T("10x8")),
            "abc,ab->!c linear in 0");
  EXPECT_EQ(ruleOf("embedding_dense_backward",
                   "num_weights = 10 : i64, padding_idx = -1 : i64, scale_grad_by_freq = true",
                   T("2x3x8") ",tensor<2x3xi64>", T("10x8")),
            "none");
}

TEST(ShardingRule, Losses) {
  // Padded targets are ignored, not class 0.
  EXPECT_EQ(ruleOf("nll_loss_forward", "ignore_index = -100 : i64, reduction = 2 : i64", T("4x6") ",tensor<4xi64>",
                   "tensor<f32>,tensor<f32>"),
            "a!,a->, 1 filled with -100");
  EXPECT_EQ(ruleOf("nll_loss_forward", "ignore_index = -100 : i64, reduction = 1 : i64", T("4x6") ",tensor<4xi64>",
                   "tensor<f32>,tensor<f32>"),
            "none");
  EXPECT_EQ(ruleOf("nll_loss_backward", "ignore_index = -100 : i64, reduction = 1 : i64",
                   "tensor<f32>," T("4x6") ",tensor<4xi64>,tensor<f32>", T("4x6")),
            ",a!,a,->a! linear in 0");
  EXPECT_EQ(ruleOf("nll_loss_backward", "ignore_index = -100 : i64, reduction = 2 : i64",
                   "tensor<f32>," T("4x6") ",tensor<4xi64>,tensor<f32>", T("4x6")),
            ",a!,a,->a! linear in 0 3 ignored");
  EXPECT_EQ(ruleOf("mse_loss", "reduction = 2 : i64", T("4x6") "," T("4x6"), "tensor<f32>"), "ab,ab->");
  EXPECT_EQ(ruleOf("mse_loss", "reduction = 1 : i64", T("4x6") "," T("4x6"), "tensor<f32>"), "none");
}

TEST(ShardingRule, Attention) {
  EXPECT_EQ(ruleOf("sdpa", "dropout_p = 0.0, enable_gqa = true",
                   T("2x4x5x8") "," T("2x2x7x8") "," T("2x2x7x6") "," T("2x1x5x7"), T("2x4x5x6") "," T("2x4x5")),
            "ab2!!,ab!!,ab!!,a1!!->ab2!!,ab2!");
  EXPECT_EQ(ruleOf("sdpa", "dropout_p = 0.0, enable_gqa = true",
                   T("2x4x5x8") "," T("2x1x7x8") "," T("2x1x7x6") "," T("1x4x5x7"), T("2x4x5x6") "," T("2x4x5")),
            "ab!!,a1!!,a1!!,1b!!->ab!!,ab!");
  EXPECT_EQ(
      ruleOf("sdpa", "dropout_p = 0.1", T("2x4x5x8") "," T("2x4x7x8") "," T("2x4x7x6"), T("2x4x5x6") "," T("2x4x5")),
      "none");
}
