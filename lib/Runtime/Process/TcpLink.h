//===- TcpLink.h - Messages between hosts by TCP ----------------*- C++ -*-===//
//
// [Note: connections between hosts] Where no launcher of MPI's started the
// processes (torchrun, by hand), each has one TCP connection with every other.
// They find each other through the store in which they met: a process listens at
// the address from which it reaches the store, at any port, for those that name
// its token, which is told in the store alone. A process on the store's own host
// may reach it by a loopback address; then it listens at all of them, and others take the
// address at which they reach the store.
//
// A message is a header and its bytes. Whoever waits for something moves all of
// them; there is no thread. The system says when another process has gone, also
// by its host's silence (keep-alive): what it said before is heard first, so that
// an error of it goes before that it has ended.
//
//===----------------------------------------------------------------------===//

#ifndef SPMD_LIB_RUNTIME_PROCESS_TCPLINK_H
#define SPMD_LIB_RUNTIME_PROCESS_TCPLINK_H

#include "HostLink.h"
#include "Rendezvous.h"

#include <deque>
#include <map>
#include <mutex>
#include <optional>
#include <tuple>

namespace spmd::runtime {

class TcpLink final : public HostLink {
public:
  /// Connects all processes that have met; `hostOf` says by process where they are. What one of them cannot is the
  /// error of all.
  static Expected<std::shared_ptr<TcpLink>> connect(Rendezvous &met, const std::vector<int64_t> &hostOf,
                                                    std::chrono::milliseconds timeout);
  /// Waits a moment until the others have what was sent.
  ~TcpLink() override;

  Expected<int32_t> open() override;
  Status send(int32_t space, const void *bytes, int64_t count, int64_t to, int32_t tag, Request &request) override;
  Status receive(int32_t space, void *bytes, int64_t count, int64_t from, int32_t tag, Request &request) override;
  void progress() override;
  Expected<bool> test(Request &request) override;
  void cancel(Request &request) override;
  Expected<int64_t> probe(int32_t space, int32_t tag, int64_t &from) override;
  bool hasLost() override;
  Status findEnded(const RanksHere &ranks) override;
  bool isForArenas() const override { return false; }

private:
  /// What goes before the bytes of a message.
  struct Header {
    int32_t space, tag;
    int64_t count;
  };
  /// Messages with the same one come in order: space, tag, and the process they are from.
  using Key = std::tuple<int32_t, int32_t, int64_t>;
  struct Outgoing {
    uint64_t request;
    Header header;
    const char *bytes;
    int64_t sent = 0; ///< of header and bytes
    std::string kept; ///< the bytes, where the caller has given the message up in the middle
  };
  struct Wanted {
    uint64_t request;
    char *bytes;
    int64_t count;
  };
  struct Pending {
    int64_t other; ///< process
    Status failure;
  };
  /// Another process.
  struct Peer {
    Socket socket;
    int32_t id = 0; ///< of the process
    std::deque<Outgoing> output;
    Header header{};      ///< of what comes
    int64_t received = 0; ///< of header and bytes
    std::string input;
    std::optional<Clock::time_point> ended;
  };

  TcpLink(int64_t self, int64_t world) : self(self), peers(static_cast<size_t>(world)) {}
  Status connectAll(const std::vector<Endpoint> &places, const std::vector<std::string> &tokens, const Socket &listener,
                    Deadline deadline);
  void moveAll();
  void write(Peer &peer);
  void read(int64_t process);
  void deliver(const Key &key, std::string message);
  void complete(const Wanted &wanted, const std::string &message);
  bool hasEnded(const Peer &peer) const;

  std::mutex mutex;
  int64_t self;
  std::vector<Peer> peers;             ///< by process; that of this one is not used
  std::map<uint64_t, Pending> pending; ///< by request
  std::map<Key, std::deque<std::string>> arrived;
  std::map<Key, std::deque<Wanted>> wanted;
  uint64_t requests = 0;
  int32_t spaces = 0;
};

} // namespace spmd::runtime

#endif // SPMD_LIB_RUNTIME_PROCESS_TCPLINK_H
