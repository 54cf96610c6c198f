//===- Store.h - Keys and values that all processes share ---------*- C++ -*-===//
//
// [Note: the store's protocol]
// That of torch.distributed's TCPStore (torch/csrc/distributed/c10d/TCPStore.cpp
// and TCPStoreBackend.hpp), so that a job which torchrun started meets in
// torchrun's own store. Numbers are little endian; a string is a u64 length and
// its bytes. A connection begins with VALIDATE and a fixed number; then the client
// sends commands, of which these are used:
//   SET key value        no answer
//   GET key              the value, which must be there: WAIT comes first
//   ADD key i64          the sum as i64
//   WAIT u64 keys…       a byte 0 once all are there
//   CANCEL_WAIT          a byte 1, also where the answer to WAIT was under way
//   PING u32             the number
// PyTorch's clients put "/" before each key, and so does ours. One command of our
// own, AUTHENTICATE secret, comes first at a server of ours that has a secret.
//
//===----------------------------------------------------------------------===//

#ifndef SPMD_LIB_RUNTIME_PROCESS_STORE_H
#define SPMD_LIB_RUNTIME_PROCESS_STORE_H

#include "Socket.h"

#include <memory>
#include <mutex>
#include <string>
#include <thread>

namespace spmd::runtime {

/// One connection to a store. Calls of several threads come one after the other. Every call ends by its deadline; after
/// one that failed for another reason than a missing key, the connection is of no more use.
class StoreClient {
public:
  /// Keys of this client are in the store under `prefix`.
  static Expected<std::unique_ptr<StoreClient>> connect(const Endpoint &endpoint, const std::string &secret,
                                                        std::string prefix, Deadline deadline);

  Status set(const std::string &key, const std::string &value, Deadline deadline);
  /// The value of `key`, as soon as some process has set it.
  Expected<std::string> get(const std::string &key, Deadline deadline);
  /// Adds to the number of `key`, which begins at 0, and returns the sum.
  Expected<int64_t> add(const std::string &key, int64_t amount, Deadline deadline);
  /// The connection's IP addresses: of this side, and of the server; empty within a host.
  std::string getOwnAddress() const { return socket.getOwnAddress(); }
  std::string getServerAddress() const { return socket.getOtherAddress(); }
  /// True once the key is there, false where it is not by the deadline.
  Expected<bool> wait(const std::string &key, Deadline deadline);

private:
  StoreClient(Socket socket, std::string prefix) : socket(std::move(socket)), prefix(std::move(prefix)) {}
  Expected<bool> waitLocked(const std::string &key, Deadline deadline);
  std::string nameOf(const std::string &key) const { return "/" + prefix + key; }

  std::mutex mutex;
  Socket socket;
  std::string prefix;
};

/// Serves a store from a thread of its own until it is destroyed. Whatever is sent to it, it goes on: a connection that
/// breaks the protocol, or holds more than a store needs, is closed and nothing else happens.
class StoreServer {
public:
  /// With a secret, connections that do not name it first are closed.
  static Expected<std::unique_ptr<StoreServer>> start(const Endpoint &endpoint, std::string secret);
  ~StoreServer();

  int getPort() const { return port; }

private:
  class Loop;
  explicit StoreServer(std::unique_ptr<Loop> loop, int port);

  std::unique_ptr<Loop> loop;
  std::thread thread;
  int port;
};

} // namespace spmd::runtime

#endif // SPMD_LIB_RUNTIME_PROCESS_STORE_H
