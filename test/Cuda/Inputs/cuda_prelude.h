// What CUDA C++ has of its own, for kernels of a page of the documentation: to PTX by clang without CUDA's headers, and
// to functions of the host by which the stand-ins run them (test/StandIn/Kernels.cpp, Foreign).
#include <stddef.h>
#include <stdint.h>

struct Sizes {
  unsigned x, y, z;
};

#ifdef __NVPTX__

#define __global__ __attribute__((device_kernel))
#define SPMD_REGISTER(name, axis) static_cast<unsigned>(__nvvm_read_ptx_sreg_##name##_##axis())
#define SPMD_SIZES(name) (Sizes{SPMD_REGISTER(name, x), SPMD_REGISTER(name, y), SPMD_REGISTER(name, z)})
#define blockIdx SPMD_SIZES(ctaid)
#define blockDim SPMD_SIZES(ntid)
#define threadIdx SPMD_SIZES(tid)
#define STAND_IN(kernel, name, ...)

#else

#include <utility>

#define __global__
static thread_local Sizes blockIdx, blockDim, threadIdx;

template <typename... Arguments, size_t... I>
void runKernel(void (*kernel)(Arguments...), const unsigned *grid, const unsigned *block, void *const *parameters,
               std::index_sequence<I...>) {
  blockDim = {block[0], block[1], block[2]};
  for (unsigned b = 0; b < grid[0] * grid[1] * grid[2]; ++b)
    for (unsigned t = 0; t < block[0] * block[1] * block[2]; ++t) {
      blockIdx = {b % grid[0], b / grid[0] % grid[1], b / grid[0] / grid[1]};
      threadIdx = {t % block[0], t / block[0] % block[1], t / block[0] / block[1]};
      kernel(*static_cast<Arguments *>(parameters[I])...);
    }
}

template <typename... Arguments>
void runKernel(void (*kernel)(Arguments...), const unsigned *grid, const unsigned *block, void *const *parameters) {
  runKernel(kernel, grid, block, parameters, std::index_sequence_for<Arguments...>());
}

// `kernel` stands in for what a cubin calls `name`. What follows is the number of bytes behind each parameter, negative
// where they are written, from `at`: its parameters.
#define STAND_IN(kernel, name, ...)                                                                                    \
  void standIn_##kernel(const unsigned *grid, const unsigned *block, void *const *at) asm(#name);                      \
  __attribute__((visibility("default"), used)) void standIn_##kernel(const unsigned *grid, const unsigned *block,      \
                                                                     void *const *at) {                                \
    runKernel(kernel, grid, block, at);                                                                                \
  }                                                                                                                    \
  extern "C" __attribute__((visibility("default"))) int64_t name##_extent(int parameter, void *const *at) {            \
    const int64_t bytes[] = {__VA_ARGS__};                                                                             \
    return bytes[parameter];                                                                                           \
  }

#endif

#define INT(i) static_cast<int64_t>(*static_cast<int *>(at[i]))
