//===- Guarded.h - Elements that nothing may be touched beside ----*- C++ -*-===//

#ifndef SPMD_TEST_UNIT_RUNTIME_GUARDED_H
#define SPMD_TEST_UNIT_RUNTIME_GUARDED_H

#include <gtest/gtest.h>

#include <algorithm>
#include <sys/mman.h>
#include <vector>

namespace spmd::runtime {

/// Elements at the beginning or at the end of pages between two that cannot be touched.
template <typename Element>
class Guarded {
public:
  Guarded(const std::vector<Element> &values, bool atEnd)
      : bytes((values.size() * sizeof(Element) + 4095) / 4096 * 4096 + 8192),
        memory(static_cast<char *>(
            ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))) {
    EXPECT_EQ(::mprotect(memory, 4096, PROT_NONE), 0);
    EXPECT_EQ(::mprotect(memory + bytes - 4096, 4096, PROT_NONE), 0);
    first = atEnd ? reinterpret_cast<Element *>(memory + bytes - 4096) - values.size()
                  : reinterpret_cast<Element *>(memory + 4096);
    std::copy(values.begin(), values.end(), first);
  }
  ~Guarded() { ::munmap(memory, bytes); }
  Guarded(const Guarded &) = delete;
  Guarded &operator=(const Guarded &) = delete;

  Element *first;

private:
  size_t bytes;
  char *memory;
};

} // namespace spmd::runtime

#endif // SPMD_TEST_UNIT_RUNTIME_GUARDED_H
