//===- RowAlignment.h - where rows of matrices may begin --------*- C++ -*-===//

#ifndef SPMD_CONVERSION_ATENTOKERNEL_ROWALIGNMENT_H
#define SPMD_CONVERSION_ATENTOKERNEL_ROWALIGNMENT_H

#include <cstdint>
#include <string>

namespace spmd {

/// What is wrong with an alignment of rows in bytes, as "expected a power of two up to 128"; empty when nothing.
std::string findBadRowAlignment(int64_t alignment);

} // namespace spmd

#endif // SPMD_CONVERSION_ATENTOKERNEL_ROWALIGNMENT_H
