//===- Socket.h - Stream sockets with deadlines -------------------*- C++ -*-===//
//
// TCP between hosts; within a host, sockets in Linux's abstract namespace, which
// have no file and so leave nothing behind however their process ends. Only
// processes of the same user get through a local one.
//
//===----------------------------------------------------------------------===//

#ifndef SPMD_LIB_RUNTIME_PROCESS_SOCKET_H
#define SPMD_LIB_RUNTIME_PROCESS_SOCKET_H

#include "Descriptor.h"
#include "spmd/Runtime/Core/Status.h"

#include <chrono>
#include <string>

namespace spmd::runtime {

using Deadline = std::chrono::steady_clock::time_point;

/// Where a process listens: a TCP port of a host, or a name within this host.
struct Endpoint {
  std::string host; ///< empty: `name`, within this host
  int port = 0;
  std::string name;

  /// "HOST:PORT", or "this host, NAME".
  std::string describe() const;
};

/// A descriptor that does not block and is not inherited by child processes.
class Socket {
public:
  Socket() = default;
  explicit Socket(int descriptor) : fd(descriptor) {}

  /// Tries until somebody listens there or the deadline has passed.
  static Expected<Socket> connect(const Endpoint &endpoint, Deadline deadline);
  /// Listens at `endpoint`: on the addresses that its host name has on this machine and no other; port 0 takes any,
  /// see getPort(). An address in use is an error.
  static Expected<Socket> listen(const Endpoint &endpoint);

  /// The next connection, or an invalid socket where there is none now. Who is not this user is not let in.
  Socket accept() const;
  /// Of a socket that listens.
  int getPort() const;
  /// The IP address of this side of a TCP connection, and of the other; empty within a host.
  std::string getOwnAddress() const;
  std::string getOtherAddress() const;

  /// All bytes, or an error: the deadline has passed, or the other side has gone.
  Status send(const void *bytes, size_t count, Deadline deadline) const;
  Status receive(void *bytes, size_t count, Deadline deadline) const;
  /// Waits until there is something to receive (true) or the deadline has passed (false).
  Expected<bool> waitForInput(Deadline deadline) const;

  bool isValid() const { return fd.isValid(); }
  int get() const { return fd.get(); }

private:
  Descriptor fd;
};

} // namespace spmd::runtime

#endif // SPMD_LIB_RUNTIME_PROCESS_SOCKET_H
