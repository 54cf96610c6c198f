//===- TypePromotionTest.cpp - PyTorch's result element types -------------===//

#include "dialects/Aten/TypePromotion.h"
#include "mlir/IR/Builders.h"
#include "mlir/IR/MLIRContext.h"
#include "gtest/gtest.h"

using namespace mlir;
using namespace spmd::aten;

namespace {
struct TypePromotionTest : testing::Test {
  MLIRContext context;
  Builder b{&context};
  RankedTensorType vec(Type type) { return RankedTensorType::get({4}, type); }
  RankedTensorType zero(Type type) { return RankedTensorType::get({}, type); }
  Type promote(ArrayRef<RankedTensorType> tensors, ArrayRef<Attribute> scalars = {}) {
    return promoteTypes(tensors, scalars, &context);
  }
};

TEST_F(TypePromotionTest, DimensionedTensors) {
  EXPECT_EQ(promote({vec(b.getF32Type()), vec(b.getF64Type())}), b.getF64Type());
  EXPECT_EQ(promote({vec(b.getF16Type()), vec(b.getBF16Type())}), b.getF32Type());
  EXPECT_EQ(promote({vec(b.getI64Type()), vec(b.getBF16Type())}), b.getBF16Type());
  EXPECT_EQ(promote({vec(b.getI1Type()), vec(b.getIntegerType(8))}), b.getIntegerType(8));
  EXPECT_EQ(promote({vec(b.getIntegerType(8, false)), vec(b.getIntegerType(8))}), b.getIntegerType(16));
}

TEST_F(TypePromotionTest, ZeroDimensionalTensorsGiveWay) {
  EXPECT_EQ(promote({vec(b.getF32Type()), zero(b.getF64Type())}), b.getF32Type());
  EXPECT_EQ(promote({vec(b.getI64Type()), zero(b.getF64Type())}), b.getF64Type());
  EXPECT_EQ(promote({zero(b.getF32Type()), zero(b.getF64Type())}), b.getF64Type());
}

TEST_F(TypePromotionTest, ScalarsGiveWayToTensors) {
  EXPECT_EQ(promote({vec(b.getBF16Type())}, {b.getF64FloatAttr(1)}), b.getBF16Type());
  EXPECT_EQ(promote({vec(b.getI64Type())}, {b.getF64FloatAttr(1)}), b.getF32Type());
  EXPECT_EQ(promote({vec(b.getI32Type())}, {b.getI64IntegerAttr(1)}), b.getI32Type());
  EXPECT_EQ(promote({vec(b.getI1Type())}, {b.getI64IntegerAttr(1)}), b.getI64Type());
}
} // namespace
