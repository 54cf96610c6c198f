//===- Mail.cpp -----------------------------------------------------------===//

#include "Mail.h"
#include "Wire.h"

#include <algorithm>
#include <csignal>
#include <cstdio>
#include <poll.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace toy;
using spmd::runtime::AbortState;
using spmd::runtime::Status;

namespace {
struct Header {
  uint32_t channel;
  uint64_t bytes;
};
} // namespace

Mail::Mail(int64_t rank, std::vector<int> given)
    : self(rank), sockets(std::move(given)), ended(sockets.size()), alive(std::make_shared<Mail *>(this)) {
  for (size_t i = 0; i < sockets.size(); ++i)
    sending.push_back(std::make_unique<std::mutex>());
  if (::pipe(wake) != 0)
    std::perror("pipe");
  reader = std::thread([this] { readLoop(); });
}

Mail::~Mail() {
  ::close(wake[1]);
  reader.join();
  ::close(wake[0]);
  for (int64_t peer = 0; peer < ranks(); ++peer)
    if (peer != self)
      ::close(sockets[static_cast<size_t>(peer)]);
}

static bool sendAll(int socket, const char *data, size_t size) {
  while (size > 0) {
    ssize_t sent = ::send(socket, data, size, MSG_NOSIGNAL);
    if (sent <= 0)
      return false;
    data += sent;
    size -= static_cast<size_t>(sent);
  }
  return true;
}

static bool receiveAll(int socket, char *data, size_t size) {
  while (size > 0) {
    ssize_t got = ::recv(socket, data, size, 0);
    if (got <= 0)
      return false;
    data += got;
    size -= static_cast<size_t>(got);
  }
  return true;
}

void Mail::send(int64_t to, uint32_t channel, const std::string &bytes) {
  auto peer = static_cast<size_t>(to);
  std::lock_guard<std::mutex> lock(*sending[peer]);
  Header header{channel, bytes.size()};
  if (sendAll(sockets[peer], reinterpret_cast<const char *>(&header), sizeof header))
    sendAll(sockets[peer], bytes.data(), bytes.size());
}

Arrival Mail::receive(int64_t from, uint32_t channel, Clock::time_point deadline, const AbortState &abort,
                      std::string &bytes) {
  std::unique_lock<std::mutex> lock(mutex);
  std::deque<std::string> &queue = arrived[{from, channel}];
  for (;;) {
    if (!queue.empty()) {
      bytes = std::move(queue.front());
      queue.pop_front();
      return Arrival::Here;
    }
    if (abort.isRaised())
      return Arrival::Aborted;
    if (ended[static_cast<size_t>(from)])
      return Arrival::Ended;
    if (Clock::now() >= deadline)
      return Arrival::TimedOut;
    changed.wait_until(lock, std::min(deadline, Clock::now() + std::chrono::milliseconds(20)));
  }
}

uint32_t Mail::open(AbortState &abort) {
  uint32_t channel;
  Status before;
  {
    std::lock_guard<std::mutex> lock(mutex);
    channel = channels++;
    aborts[channel] = &abort;
    if (auto found = early.find(channel); found != early.end())
      before = found->second;
  }
  abort.onFailure([reach = std::weak_ptr<Mail *>(alive), channel](const Status &status) {
    std::shared_ptr<Mail *> mail = reach.lock();
    // What a peer said it has said to all; and the thread that reads must never wait in order to send.
    if (!mail || std::this_thread::get_id() == (*mail)->reader.get_id())
      return;
    for (int64_t peer = 0; peer < (*mail)->ranks(); ++peer)
      if (peer != (*mail)->rank())
        (*mail)->send(peer, kAborts, (Writer() << channel << pack(status)).bytes);
  });
  if (!before.ok())
    abort.fail(before);
  return channel;
}

void Mail::close(uint32_t channel) {
  std::lock_guard<std::mutex> lock(mutex);
  aborts.erase(channel);
}

void Mail::raise(uint32_t channel, const Status &status) {
  std::lock_guard<std::mutex> lock(mutex);
  early.emplace(channel, status);
  if (auto found = aborts.find(channel); found != aborts.end())
    found->second->fail(status);
}

bool Mail::readMessage(int64_t from) {
  int socket = sockets[static_cast<size_t>(from)];
  Header header;
  if (!receiveAll(socket, reinterpret_cast<char *>(&header), sizeof header))
    return false;
  std::string bytes(header.bytes, 0);
  if (!receiveAll(socket, bytes.data(), bytes.size()))
    return false;
  if (header.channel == kAborts) {
    uint32_t channel;
    std::string status;
    Reader(bytes) >> channel >> status;
    raise(channel, unpackStatus(status));
  } else {
    std::lock_guard<std::mutex> lock(mutex);
    arrived[{from, header.channel}].push_back(std::move(bytes));
  }
  changed.notify_all();
  return true;
}

void Mail::readLoop() {
  std::vector<pollfd> polled;
  for (int socket : sockets)
    polled.push_back({socket, POLLIN, 0});
  polled[static_cast<size_t>(self)].fd = wake[0];
  for (;;) {
    ::poll(polled.data(), polled.size(), -1);
    if (polled[static_cast<size_t>(self)].revents)
      return;
    for (int64_t from = 0; from < ranks(); ++from) {
      pollfd &peer = polled[static_cast<size_t>(from)];
      if (!peer.revents || readMessage(from))
        continue;
      peer.fd = -1; // poll leaves it out
      std::lock_guard<std::mutex> lock(mutex);
      ended[static_cast<size_t>(from)] = true;
      changed.notify_all();
    }
  }
}

bool toy::runProcesses(int64_t ranks, const std::function<int(std::shared_ptr<Mail>)> &body) {
  auto count = static_cast<size_t>(ranks);
  std::vector<std::vector<int>> sockets(count, std::vector<int>(count, -1));
  for (size_t a = 0; a < count; ++a)
    for (size_t b = 0; b < a; ++b) {
      int pair[2];
      if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair) != 0)
        return false;
      sockets[a][b] = pair[0];
      sockets[b][a] = pair[1];
    }
  std::fflush(nullptr); // else children write it too
  std::vector<pid_t> children;
  auto closeAllBut = [&](size_t keep) {
    for (size_t rank = 0; rank < count; ++rank)
      for (int socket : sockets[rank])
        if (rank != keep && socket >= 0)
          ::close(socket);
  };
  for (size_t rank = 0; rank < count; ++rank) {
    pid_t child = ::fork();
    if (child == 0) {
      ::prctl(PR_SET_PDEATHSIG, SIGKILL);
      closeAllBut(rank);
      int result = body(std::make_shared<Mail>(static_cast<int64_t>(rank), sockets[rank]));
      std::fflush(nullptr);
      ::_exit(result);
    }
    children.push_back(child);
  }
  closeAllBut(count);
  bool good = true;
  for (pid_t child : children) {
    int state = 0;
    good &= child > 0 && ::waitpid(child, &state, 0) == child && WIFEXITED(state) && WEXITSTATUS(state) == 0;
  }
  return good;
}
