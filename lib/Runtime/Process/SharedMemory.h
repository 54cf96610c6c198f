//===- SharedMemory.h - Memory of the processes of a host -------*- C++ -*-===//
//
// Files in memory without a name: they are gone with the last process that has
// them open or mapped, however it ends. Another process of the same user opens
// one as descriptor FD of process PID, through /proc.
//
//===----------------------------------------------------------------------===//

#ifndef SPMD_LIB_RUNTIME_PROCESS_SHAREDMEMORY_H
#define SPMD_LIB_RUNTIME_PROCESS_SHAREDMEMORY_H

#include "Descriptor.h"
#include "spmd/Runtime/Core/Status.h"

#include <memory>
#include <string>

namespace spmd::runtime {

/// A file of `bytes` zeroed bytes.
Expected<Descriptor> makeSharedFile(int64_t bytes);

/// "PID:FD", by which other processes open it while this one has it open.
std::string getSharedName(const Descriptor &file);
Expected<Descriptor> openSharedFile(const std::string &name);

/// All of a file, mapped for reading and writing, aligned to 2 MiB when it is as large.
Expected<std::shared_ptr<char>> mapSharedFile(const Descriptor &file, int64_t bytes);

} // namespace spmd::runtime

#endif // SPMD_LIB_RUNTIME_PROCESS_SHAREDMEMORY_H
