//===- Matrices.h - fragments of a warp's matrices --------------*- C++ -*-===//

#ifndef SPMD_LIB_KERNELS_EMULATE_RUNTIME_MATRICES_H
#define SPMD_LIB_KERNELS_EMULATE_RUNTIME_MATRICES_H

namespace spmd::emulation {

struct Thread;

/// Four matrices of 8 x 8 elements of 16 bits: row r of matrix m is that of lane 8 m + r. Each lane gets a word of
/// each, as ldmatrix gives them out, with rows and columns exchanged if they are `transposed`.
void loadMatrices(Thread *lanes, bool transposed);

/// mma.sync of 16 x 8 x 16: each lane's words are its fragments of A (4), B (2) and the sum (4), which is replaced.
/// Products are exact, and added one after the other in the order of k; a GPU may add them in another.
void multiplyMatrices(Thread *lanes, bool isF16);

} // namespace spmd::emulation

#endif // SPMD_LIB_KERNELS_EMULATE_RUNTIME_MATRICES_H
