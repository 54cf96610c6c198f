//===- Sanitized.h - Whether AddressSanitizer is part of the program ------===//

#ifndef SPMD_TEST_UNIT_SANITIZED_H
#define SPMD_TEST_UNIT_SANITIZED_H

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define SPMD_IS_SANITIZED 1
#endif
#endif
#ifndef SPMD_IS_SANITIZED
#define SPMD_IS_SANITIZED 0
#endif

/// AddressSanitizer has a malloc and a handler of SIGSEGV of its own.
inline constexpr bool isSanitized = SPMD_IS_SANITIZED;

#endif // SPMD_TEST_UNIT_SANITIZED_H
