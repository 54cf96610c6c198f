//===- WarpMatrices.cpp - products of warps on tensor cores ---------------===//

#include "WarpMatrices.h"
#include "mlir/Dialect/Arith/IR/Arith.h"
#include "mlir/Dialect/LLVMIR/NVVMDialect.h"

using namespace mlir;

namespace spmd::kernel {

WarpMatrices::WarpMatrices(GpuBuilder &b, Type element) : b(b), element(element) {
  Value thread = b.getThread();
  warp = b.floorDiv(thread, kWarpSize);
  lane = b.mod(thread, kWarpSize);
  g = b.floorDiv(lane, 4);
  t = b.mod(lane, 4);
}

/// Four matrices of 8 x 8; each lane names a row of one of them, and gets the word at its place of each.
SmallVector<Value> WarpMatrices::load(const SharedTile &tile, Value at, bool isTransposed) {
  Type word = b.getI32Type();
  Type four = LLVM::LLVMStructType::getLiteral(b.getContext(), {word, word, word, word});
  auto shape = NVVM::LdStMatrixShapeAttr::get(b.getContext(), 8, 8);
  Value loaded = NVVM::LdMatrixOp::create(b, four, b.address(tile.pointer, element, at), 4,
                                          isTransposed ? NVVM::MMALayout::col : NVVM::MMALayout::row, shape,
                                          NVVM::LdStMatrixEltType::B16);
  SmallVector<Value> words;
  for (int64_t i = 0; i < 4; ++i)
    words.push_back(LLVM::ExtractValueOp::create(b, loaded, i));
  return words;
}

SmallVector<Value> WarpMatrices::loadLeft(const SharedTile &tile, Value row, int64_t column) {
  // Upper and lower rows, then those of the next eight columns.
  Value own = b.add(row, b.mod(lane, 16)), side = b.mul(b.floorDiv(lane, 16), 8);
  return load(tile, b.add(b.add(b.mul(own, tile.stride), side), column), /*isTransposed=*/false);
}

SmallVector<Value> WarpMatrices::loadRight(const SharedTile &tile, int64_t row, int64_t column, bool isTransposed) {
  // Of each B its two halves along k.
  Value within = b.mod(lane, 8), half = b.mod(b.floorDiv(lane, 8), 2), which = b.floorDiv(lane, 16);
  Value down = isTransposed ? half : which, right = isTransposed ? which : half;
  Value own = b.mul(b.add(within, b.mul(down, 8)), tile.stride);
  return load(tile, b.add(b.add(own, b.mul(right, 8)), row * tile.stride + column), isTransposed);
}

SmallVector<Value> WarpMatrices::multiply(ValueRange left, ValueRange right, ValueRange sum) {
  bool isF16 = element.isF16();
  auto getOperands = [&](ValueRange words) {
    SmallVector<Value> operands(words);
    if (isF16)
      for (Value &word : operands)
        word = LLVM::BitcastOp::create(b, VectorType::get({2}, element), word);
    return operands;
  };
  Type f32 = b.getF32Type(), four = LLVM::LLVMStructType::getLiteral(b.getContext(), {f32, f32, f32, f32});
  NVVM::MMATypes type = isF16 ? NVVM::MMATypes::f16 : NVVM::MMATypes::bf16;
  Value product =
      NVVM::MmaOp::create(b, four, getOperands(left), getOperands(right), sum, {16, 8, 16}, std::nullopt, std::nullopt,
                          std::array{type, type}, std::array{NVVM::MMALayout::row, NVVM::MMALayout::col});
  SmallVector<Value> sums;
  for (int64_t i = 0; i < 4; ++i)
    sums.push_back(LLVM::ExtractValueOp::create(b, product, i));
  return sums;
}

Value WarpMatrices::pack(Value low, Value high) {
  Value rounded = arith::TruncFOp::create(b, VectorType::get({2}, element), b.pack({low, high}));
  return LLVM::BitcastOp::create(b, b.getI32Type(), rounded);
}

} // namespace spmd::kernel
