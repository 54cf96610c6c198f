//===- Matrices.cpp - fragments of a warp's matrices ----------------------===//
//
// Layouts as the PTX ISA has them ("Matrix fragments for mma.m16n8k16 with floating point type", "ldmatrix"); see
// [Note: matrices of a warp].
//
//===----------------------------------------------------------------------===//

#include "Matrices.h"
#include "Worker.h"

namespace spmd::emulation {

static float toFloat(uint32_t bits) {
  float value;
  __builtin_memcpy(&value, &bits, sizeof value);
  return value;
}

static float extendBF16(uint32_t bits) { return toFloat(bits << 16); }

/// Exact: a number 2^112 times too small, and the product.
static float extendF16(uint32_t bits) {
  uint32_t sign = (bits & 0x8000) << 16, magnitude = (bits & 0x7fff) << 13;
  if (magnitude >= 0x7c00u << 13)
    return toFloat(sign | magnitude | 0x7f800000);
  float number = toFloat(magnitude) * toFloat((127 + 112) << 23);
  return sign ? -number : number;
}

void loadMatrices(Thread *lanes, bool transposed) {
  for (int lane = 0; lane < kLanes; ++lane) {
    int g = lane / 4, t = lane % 4;
    for (int matrix = 0; matrix < 4; ++matrix) {
      auto get = [&](int row, int column) -> uint32_t {
        uint16_t element;
        __builtin_memcpy(&element, static_cast<const char *>(lanes[8 * matrix + row].row) + 2 * column, sizeof element);
        return element;
      };
      lanes[lane].words[matrix] =
          transposed ? get(2 * t, g) | get(2 * t + 1, g) << 16 : get(g, 2 * t) | get(g, 2 * t + 1) << 16;
    }
  }
}

void multiplyMatrices(Thread *lanes, bool isF16) {
  auto extend = [&](uint32_t bits) { return isF16 ? extendF16(bits) : extendBF16(bits); };
  float a[16][16], b[16][8], sum[16][8];
  auto forLanes = [&](auto visit) {
    for (int lane = 0; lane < kLanes; ++lane)
      visit(lanes[lane].words, lane / 4, lane % 4);
  };
  forLanes([&](const uint32_t *words, int g, int t) {
    for (int i = 0; i < 4; ++i)
      for (int half = 0; half < 2; ++half)
        a[g + i % 2 * 8][2 * t + i / 2 * 8 + half] = extend(words[i] >> 16 * half & 0xffff);
    for (int i = 0; i < 2; ++i)
      for (int half = 0; half < 2; ++half)
        b[2 * t + i * 8 + half][g] = extend(words[4 + i] >> 16 * half & 0xffff);
    for (int i = 0; i < 4; ++i)
      sum[g + i / 2 * 8][2 * t + i % 2] = toFloat(words[6 + i]);
  });
  for (int row = 0; row < 16; ++row)
    for (int k = 0; k < 16; ++k)
      for (int column = 0; column < 8; ++column)
        sum[row][column] += a[row][k] * b[k][column];
  forLanes([&](uint32_t *words, int g, int t) {
    for (int i = 0; i < 4; ++i)
      __builtin_memcpy(&words[6 + i], &sum[g + i / 2 * 8][2 * t + i % 2], sizeof(float));
  });
}

} // namespace spmd::emulation
