//===- TcpLink.cpp - Messages between hosts by TCP ------------------------===//

#include "TcpLink.h"
#include "Control.h"

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <linux/sockios.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <random>
#include <sstream>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>

namespace spmd::runtime {

using std::chrono::milliseconds;
using std::chrono::seconds;

namespace {

constexpr size_t kTokenBytes = 32;
constexpr int64_t kMostBytes = int64_t(1) << 31; ///< of a message
/// How much is read of one process before another's turn.
constexpr int64_t kMostAtOnce = 4 << 20;
/// From the end of a process until it is said: whoever listens for errors hears first what it sent before.
constexpr auto kLastWords = milliseconds(500);

/// What a process says first where it connects.
struct Hello {
  char token[kTokenBytes];
  int64_t process;
};

std::string makeToken() {
  std::random_device random;
  std::string token;
  while (token.size() < kTokenBytes)
    token += "0123456789abcdef"[random() % 16];
  return token;
}

bool isLoopback(const std::string &address) {
  return address == "::1" || address.rfind("127.", 0) == 0 || address.rfind("::ffff:127.", 0) == 0;
}

/// So that the system finds out that a host is gone which says nothing more, within half a minute.
void keepAlive(const Socket &socket) {
  auto set = [&](int level, int option, int value) { ::setsockopt(socket.get(), level, option, &value, sizeof value); };
  set(IPPROTO_TCP, TCP_NODELAY, 1);
  set(SOL_SOCKET, SO_KEEPALIVE, 1);
  set(IPPROTO_TCP, TCP_KEEPIDLE, 10);
  set(IPPROTO_TCP, TCP_KEEPINTVL, 5);
  set(IPPROTO_TCP, TCP_KEEPCNT, 4);
  set(IPPROTO_TCP, TCP_USER_TIMEOUT, 30'000);
}

std::string nameOf(int64_t process) { return "rank " + std::to_string(process); }

/// Where a process listens, given the addresses from which all reach the store.
std::string chooseListenAddress(const std::vector<std::string> &addresses, int64_t self) {
  const std::string &own = addresses[static_cast<size_t>(self)];
  auto other =
      std::find_if(addresses.begin(), addresses.end(), [](const std::string &each) { return !isLoopback(each); });
  if (!isLoopback(own) || other == addresses.end())
    return own;
  return other->find(':') == std::string::npos ? "0.0.0.0" : "::";
}

} // namespace

Expected<std::shared_ptr<TcpLink>> TcpLink::connect(Rendezvous &met, const std::vector<int64_t> &hostOf,
                                                    milliseconds timeout) {
  int64_t self = met.rank(), world = met.world();
  std::string own = met.store().getOwnAddress(), server = met.store().getServerAddress();
  if (own.empty())
    return Status::badInput(
        "the processes are on several hosts (or in several containers), and met without an address; "
        "set MASTER_ADDR and MASTER_PORT, or --address=HOST:PORT");
  Expected<std::vector<std::string>> addresses = met.exchange("link/address", own);
  if (!addresses)
    return addresses.error();
  Expected<Socket> listener = Socket::listen({chooseListenAddress(*addresses, self), 0, ""});
  std::string token = makeToken(), line = "failed";
  if (listener)
    line = std::to_string(listener->getPort()) + " " + token + " " + std::to_string(::getpid());
  Expected<std::vector<std::string>> lines = met.exchange("link/port", line);
  if (!lines)
    return lines.error();
  std::shared_ptr<TcpLink> link(new TcpLink(self, world));
  std::vector<Endpoint> places;
  std::vector<std::string> tokens;
  for (size_t process = 0; process < lines->size(); ++process) {
    // Another host's loopback address is that of the store's host.
    bool isThere = hostOf[process] != hostOf[static_cast<size_t>(self)] && isLoopback((*addresses)[process]);
    Endpoint place{isThere ? server : (*addresses)[process], 0, ""};
    std::string said;
    std::istringstream words((*lines)[process]);
    words >> place.port >> said >> link->peers[process].id;
    places.push_back(std::move(place));
    tokens.push_back(std::move(said));
  }
  // A little earlier than the others stop waiting to hear how it went.
  Status status = listener ? link->connectAll(places, tokens, *listener, Clock::now() + timeout / 2) : listener.error();
  Expected<std::vector<std::string>> outcomes = met.exchange("link/connected", status.message);
  if (!outcomes)
    return outcomes.error();
  for (const std::string &outcome : *outcomes)
    if (!outcome.empty())
      return Status::failed(outcome);
  return link;
}

/// With those before this one by calling them, with those behind by being called.
Status TcpLink::connectAll(const std::vector<Endpoint> &places, const std::vector<std::string> &tokens,
                           const Socket &listener, Deadline deadline) {
  for (int64_t process = 0; process < self; ++process) {
    auto index = static_cast<size_t>(process);
    if (tokens[index].size() != kTokenBytes)
      return Status::success(); // it says why itself
    Expected<Socket> socket = Socket::connect(places[index], deadline);
    if (!socket)
      return Status::failed(nameOf(self) + " cannot reach " + nameOf(process) +
                            " on another host: " + socket.error().message +
                            "; processes of all hosts must reach each other by TCP at any port");
    Hello hello{};
    tokens[index].copy(hello.token, kTokenBytes);
    hello.process = self;
    if (Status status = socket->send(&hello, sizeof hello, deadline); !status.ok())
      return Status::failed(nameOf(self) + " lost the connection to " + nameOf(process) + ": " + status.message);
    keepAlive(*socket);
    peers[index].socket = std::move(*socket);
  }
  const std::string &token = tokens[static_cast<size_t>(self)];
  for (int64_t missing = static_cast<int64_t>(peers.size()) - self - 1; missing > 0;) {
    Expected<bool> hasCaller = listener.waitForInput(deadline);
    if (!hasCaller || !*hasCaller)
      break;
    Socket caller = listener.accept();
    Hello hello{};
    // Who says something else, or nothing soon, is none of the job.
    if (!caller.isValid() ||
        !caller.receive(&hello, sizeof hello, std::min(deadline, Clock::now() + seconds(5))).ok() ||
        std::memcmp(hello.token, token.data(), kTokenBytes) != 0 || hello.process <= self ||
        hello.process >= static_cast<int64_t>(peers.size()) ||
        peers[static_cast<size_t>(hello.process)].socket.isValid())
      continue;
    keepAlive(caller);
    peers[static_cast<size_t>(hello.process)].socket = std::move(caller);
    --missing;
  }
  for (size_t process = static_cast<size_t>(self) + 1; process < peers.size(); ++process)
    if (!peers[process].socket.isValid())
      return Status::failed(nameOf(static_cast<int64_t>(process)) + " did not connect to " + nameOf(self) + " at " +
                            places[static_cast<size_t>(self)].host + ":" + std::to_string(listener.getPort()) +
                            "; processes of all hosts must reach each other by TCP at any port");
  return Status::success();
}

TcpLink::~TcpLink() {
  Deadline deadline = Clock::now() + seconds(1);
  auto isUnderWay = [](const Peer &peer) {
    int queued = 0;
    return peer.socket.isValid() &&
           (!peer.output.empty() || (::ioctl(peer.socket.get(), SIOCOUTQ, &queued) == 0 && queued > 0));
  };
  for (; std::any_of(peers.begin(), peers.end(), isUnderWay) && Clock::now() < deadline;
       std::this_thread::sleep_for(milliseconds(1)))
    progress();
}

Expected<int32_t> TcpLink::open() {
  std::lock_guard<std::mutex> lock(mutex);
  return spaces++;
}

Status TcpLink::send(int32_t space, const void *bytes, int64_t count, int64_t to, int32_t tag, Request &request) {
  std::lock_guard<std::mutex> lock(mutex);
  request.handle = ++requests;
  pending[request.handle] = {to, {}};
  Peer &peer = peers[static_cast<size_t>(to)];
  peer.output.push_back({request.handle, {space, tag, count}, static_cast<const char *>(bytes), 0, ""});
  write(peer);
  return Status::success();
}

Status TcpLink::receive(int32_t space, void *bytes, int64_t count, int64_t from, int32_t tag, Request &request) {
  std::lock_guard<std::mutex> lock(mutex);
  request.handle = ++requests;
  pending[request.handle] = {from, {}};
  Wanted want{request.handle, static_cast<char *>(bytes), count};
  Key key{space, tag, from};
  auto there = arrived.find(key);
  if (there == arrived.end()) {
    wanted[key].push_back(want);
    return Status::success();
  }
  complete(want, there->second.front());
  there->second.pop_front();
  if (there->second.empty())
    arrived.erase(there);
  return Status::success();
}

Expected<bool> TcpLink::test(Request &request) {
  std::lock_guard<std::mutex> lock(mutex);
  auto found = pending.find(request.handle);
  if (found == pending.end())
    return true;
  if (!found->second.failure.ok())
    return found->second.failure;
  const Peer &peer = peers[static_cast<size_t>(found->second.other)];
  if (hasEnded(peer))
    return endedWithoutAWord({static_cast<int64_t>(peers.size()), 0, 1}, found->second.other, peer.id);
  return false;
}

void TcpLink::cancel(Request &request) {
  std::lock_guard<std::mutex> lock(mutex);
  auto found = pending.find(request.handle);
  if (found == pending.end())
    return;
  // The other side has the header of a message that is on its way: it gets all of it.
  std::deque<Outgoing> &output = peers[static_cast<size_t>(found->second.other)].output;
  for (auto message = output.begin(); message != output.end(); ++message)
    if (message->request == request.handle) {
      if (message->sent == 0)
        output.erase(message);
      else
        message->kept.assign(message->bytes, static_cast<size_t>(message->header.count));
      break;
    }
  for (auto entry = wanted.begin(); entry != wanted.end(); ++entry) {
    std::deque<Wanted> &queue = entry->second;
    auto want =
        std::find_if(queue.begin(), queue.end(), [&](const Wanted &each) { return each.request == request.handle; });
    if (want == queue.end())
      continue;
    queue.erase(want);
    if (queue.empty())
      wanted.erase(entry);
    break;
  }
  pending.erase(found);
}

Expected<int64_t> TcpLink::probe(int32_t space, int32_t tag, int64_t &from) {
  progress();
  std::lock_guard<std::mutex> lock(mutex);
  auto found = arrived.lower_bound(Key{space, tag, 0});
  if (found == arrived.end() || std::get<0>(found->first) != space || std::get<1>(found->first) != tag)
    return int64_t(-1);
  from = std::get<2>(found->first);
  return static_cast<int64_t>(found->second.front().size());
}

bool TcpLink::hasLost() {
  progress();
  std::lock_guard<std::mutex> lock(mutex);
  return std::any_of(peers.begin(), peers.end(), [](const Peer &peer) { return peer.ended.has_value(); });
}

Status TcpLink::findEnded(const RanksHere &ranks) {
  progress();
  std::lock_guard<std::mutex> lock(mutex);
  for (size_t process = 0; process < peers.size(); ++process)
    if (hasEnded(peers[process]))
      return endedWithoutAWord(ranks, static_cast<int64_t>(process), peers[process].id);
  return Status::success();
}

bool TcpLink::hasEnded(const Peer &peer) const { return peer.ended && Clock::now() - *peer.ended > kLastWords; }

void TcpLink::progress() {
  std::unique_lock<std::mutex> lock(mutex, std::try_to_lock);
  if (lock) // else somebody is at it
    moveAll();
}

void TcpLink::moveAll() {
  std::vector<pollfd> entries;
  for (const Peer &peer : peers) // poll leaves out those without a socket
    entries.push_back({peer.socket.get(), static_cast<short>(peer.output.empty() ? POLLIN : POLLIN | POLLOUT), 0});
  if (::poll(entries.data(), entries.size(), 0) <= 0)
    return;
  for (size_t process = 0; process < entries.size(); ++process) {
    if (entries[process].revents & (POLLIN | POLLHUP | POLLERR))
      read(static_cast<int64_t>(process));
    if (entries[process].revents & POLLOUT)
      write(peers[process]);
  }
}

/// As much as the system takes. That the other side has gone is found where it is read from.
void TcpLink::write(Peer &peer) {
  while (peer.socket.isValid() && !peer.output.empty()) {
    Outgoing &message = peer.output.front();
    constexpr int64_t head = sizeof(Header);
    bool isHead = message.sent < head;
    const char *bytes = isHead ? reinterpret_cast<const char *>(&message.header)
                               : (message.kept.empty() ? message.bytes : message.kept.data());
    int64_t at = isHead ? message.sent : message.sent - head;
    int64_t count = (isHead ? head : message.header.count) - at;
    if (count > 0) {
      ssize_t sent = ::send(peer.socket.get(), bytes + at, static_cast<size_t>(count), MSG_NOSIGNAL);
      if (sent < 0 && errno == EINTR)
        continue;
      if (sent < 0)
        return;
      message.sent += sent;
    }
    if (message.sent == head + message.header.count) {
      pending.erase(message.request);
      peer.output.pop_front();
    }
  }
}

/// What has come from a process.
void TcpLink::read(int64_t process) {
  Peer &peer = peers[static_cast<size_t>(process)];
  constexpr int64_t head = sizeof(Header);
  for (int64_t total = 0; peer.socket.isValid() && total < kMostAtOnce;) {
    bool isHead = peer.received < head;
    char *to =
        isHead ? reinterpret_cast<char *>(&peer.header) + peer.received : peer.input.data() + (peer.received - head);
    int64_t count = isHead ? head - peer.received : peer.header.count - (peer.received - head);
    ssize_t got = count > 0 ? ::recv(peer.socket.get(), to, static_cast<size_t>(count), 0) : 0;
    if (got < 0 && errno == EINTR)
      continue;
    if (got < 0 && errno == EAGAIN)
      return;
    peer.received += std::max<ssize_t>(got, 0);
    total += got;
    bool isBroken = peer.received >= head && (peer.header.count < 0 || peer.header.count > kMostBytes);
    if ((count > 0 && got <= 0) || isBroken) {
      peer.ended = Clock::now();
      peer.socket = {};
      return;
    }
    if (isHead && peer.received == head)
      peer.input.resize(static_cast<size_t>(peer.header.count));
    if (peer.received == head + peer.header.count) {
      deliver({peer.header.space, peer.header.tag, process}, std::move(peer.input));
      peer.received = 0;
      peer.input.clear();
    }
  }
}

void TcpLink::deliver(const Key &key, std::string message) {
  auto found = wanted.find(key);
  if (found == wanted.end())
    return void(arrived[key].push_back(std::move(message)));
  complete(found->second.front(), message);
  found->second.pop_front();
  if (found->second.empty())
    wanted.erase(found);
}

void TcpLink::complete(const Wanted &want, const std::string &message) {
  if (static_cast<int64_t>(message.size()) == want.count) {
    std::copy_n(message.data(), message.size(), want.bytes);
    pending.erase(want.request);
    return;
  }
  Pending &request = pending[want.request];
  request.failure =
      Status::failed(nameOf(request.other) + " sent " + std::to_string(message.size()) + " bytes where " +
                     std::to_string(want.count) + " were expected; every process must make the same calls");
}

} // namespace spmd::runtime
