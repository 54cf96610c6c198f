//===- HalfFloat.h - 16-bit floats as storage --------------------*- C++ -*-===//
//
// Storage types that convert from and to float with round-to-nearest-even, so
// that the runtime's reductions read and write them like any other type while
// they accumulate in float.
//
//===----------------------------------------------------------------------===//

#ifndef SPMD_RUNTIME_CORE_HALFFLOAT_H
#define SPMD_RUNTIME_CORE_HALFFLOAT_H

#include <cmath>
#include <cstdint>
#include <cstring>

namespace spmd::runtime {

/// The upper half of an IEEE float.
struct BFloat16 {
  uint16_t bits = 0;

  BFloat16() = default;
  explicit BFloat16(float value) {
    uint32_t word;
    std::memcpy(&word, &value, 4);
    if (std::isnan(value))
      bits = static_cast<uint16_t>((word >> 16) | 0x40);
    else
      bits = static_cast<uint16_t>((word + 0x7fff + ((word >> 16) & 1)) >> 16);
  }
  explicit BFloat16(double value) : BFloat16(static_cast<float>(value)) {}
  explicit operator float() const {
    uint32_t word = static_cast<uint32_t>(bits) << 16;
    float value;
    std::memcpy(&value, &word, 4);
    return value;
  }
  explicit operator double() const { return static_cast<float>(*this); }
};

/// IEEE binary16: 1 sign, 5 exponent, 10 fraction bits.
struct Float16 {
  uint16_t bits = 0;

  Float16() = default;
  explicit Float16(float value) {
    uint32_t word;
    std::memcpy(&word, &value, 4);
    uint16_t sign = static_cast<uint16_t>((word >> 16) & 0x8000);
    float magnitude = std::fabs(value);
    if (std::isnan(value)) {
      bits = sign | 0x7e00;
    } else if (magnitude >= 65520.0f) { // halfway between the largest and 2^16
      bits = sign | 0x7c00;
    } else {
      // nearbyint rounds to even on the grid of this magnitude's exponent
      // (subnormals: the fixed grid 2^-24).
      int exponent = magnitude == 0 ? -14 : std::ilogb(magnitude);
      exponent = exponent < -14 ? -14 : exponent;
      auto steps = static_cast<uint32_t>(std::nearbyint(std::ldexp(magnitude, 10 - exponent)));
      // steps is in [0, 2048]; a carry out of the fraction moves the exponent.
      bits = static_cast<uint16_t>(sign | ((static_cast<uint32_t>(exponent + 14) << 10) + steps));
    }
  }
  explicit Float16(double value) : Float16(static_cast<float>(value)) {}
  explicit operator float() const {
    int exponent = (bits >> 10) & 0x1f;
    int fraction = bits & 0x3ff;
    float value;
    if (exponent == 0x1f)
      value = fraction ? NAN : INFINITY;
    else if (exponent == 0)
      value = std::ldexp(static_cast<float>(fraction), -24);
    else
      value = std::ldexp(static_cast<float>(fraction + 1024), exponent - 25);
    return bits & 0x8000 ? -value : value;
  }
  explicit operator double() const { return static_cast<float>(*this); }
};

} // namespace spmd::runtime

#endif // SPMD_RUNTIME_CORE_HALFFLOAT_H
