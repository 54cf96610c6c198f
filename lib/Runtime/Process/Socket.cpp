//===- Socket.cpp - Stream sockets with deadlines -------------------------===//

#include "Socket.h"

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <memory>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <thread>
#include <unistd.h>
#include <vector>

namespace spmd::runtime {

using std::chrono::milliseconds;

std::string Endpoint::describe() const {
  return host.empty() ? "this host, " + name : host + ":" + std::to_string(port);
}

namespace {

/// Milliseconds for poll(), rounded up.
int remaining(Deadline deadline) {
  auto left = std::chrono::ceil<milliseconds>(deadline - std::chrono::steady_clock::now()).count();
  return static_cast<int>(std::clamp<int64_t>(left, 0, 1 << 30));
}

/// Whether `events` came before the deadline. A signal does not end the wait.
bool waitFor(int fd, short events, Deadline deadline) {
  while (true) {
    pollfd entry{fd, events, 0};
    int ready = ::poll(&entry, 1, remaining(deadline));
    if (ready > 0)
      return true;
    if (ready == 0 || errno != EINTR)
      return false;
  }
}

/// An address of either kind.
struct Address {
  sockaddr_storage storage{};
  socklen_t length = 0;

  const sockaddr *get() const { return reinterpret_cast<const sockaddr *>(&storage); }
  int family() const { return storage.ss_family; }
};

std::string errorText() { return std::strerror(errno); }

Expected<std::vector<Address>> findAddresses(const Endpoint &endpoint) {
  std::vector<Address> addresses;
  if (endpoint.host.empty()) {
    Address address;
    auto &local = reinterpret_cast<sockaddr_un &>(address.storage);
    local.sun_family = AF_UNIX;
    // A first byte of zero: the abstract namespace.
    if (endpoint.name.size() + 1 > sizeof(local.sun_path))
      return Status::badInput("the job's name '" + endpoint.name + "' is too long for a socket");
    std::memcpy(local.sun_path + 1, endpoint.name.data(), endpoint.name.size());
    address.length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + endpoint.name.size());
    addresses.push_back(address);
    return addresses;
  }
  addrinfo hints{}, *found = nullptr;
  hints.ai_family = AF_UNSPEC;
  hints.ai_socktype = SOCK_STREAM;
  int error = ::getaddrinfo(endpoint.host.c_str(), std::to_string(endpoint.port).c_str(), &hints, &found);
  if (error != 0)
    return Status::badInput("cannot find the host '" + endpoint.host + "': " + ::gai_strerror(error));
  std::unique_ptr<addrinfo, decltype(&::freeaddrinfo)> owner(found, ::freeaddrinfo);
  for (addrinfo *entry = found; entry; entry = entry->ai_next) {
    Address address;
    std::memcpy(&address.storage, entry->ai_addr, entry->ai_addrlen);
    address.length = entry->ai_addrlen;
    addresses.push_back(address);
  }
  return addresses;
}

Socket openSocket(const Address &address) {
  Socket socket(::socket(address.family(), SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  int on = 1;
  if (socket.isValid() && address.family() != AF_UNIX)
    ::setsockopt(socket.get(), IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
  return socket;
}

/// One try; errno says why it failed.
Socket tryConnect(const Address &address, Deadline deadline) {
  Socket socket = openSocket(address);
  if (!socket.isValid())
    return {};
  if (::connect(socket.get(), address.get(), address.length) == 0)
    return socket;
  if (errno != EINPROGRESS)
    return {};
  if (!waitFor(socket.get(), POLLOUT, deadline)) {
    errno = ETIMEDOUT;
    return {};
  }
  int error = 0;
  socklen_t length = sizeof(error);
  ::getsockopt(socket.get(), SOL_SOCKET, SO_ERROR, &error, &length);
  errno = error;
  return error == 0 ? std::move(socket) : Socket();
}

bool isSameUser(int fd) {
  ucred peer{};
  socklen_t length = sizeof(peer);
  return ::getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &length) == 0 && peer.uid == ::geteuid();
}

bool isLocal(int fd) {
  sockaddr_storage address{};
  socklen_t length = sizeof(address);
  return ::getsockname(fd, reinterpret_cast<sockaddr *>(&address), &length) == 0 && address.ss_family == AF_UNIX;
}

} // namespace

Expected<Socket> Socket::connect(const Endpoint &endpoint, Deadline deadline) {
  std::string reason;
  for (auto pause = milliseconds(1);; pause = std::min(pause * 2, milliseconds(200))) {
    // Names are looked up again: the host may come up, and be registered, after this process.
    Expected<std::vector<Address>> addresses = findAddresses(endpoint);
    if (!addresses)
      reason = addresses.error().message;
    else
      for (const Address &address : *addresses) {
        Socket socket = tryConnect(address, deadline);
        if (socket.isValid() && (address.family() != AF_UNIX || isSameUser(socket.get())))
          return socket;
        reason = socket.isValid() ? "it belongs to another user" : errorText();
      }
    if (std::chrono::steady_clock::now() + pause >= deadline)
      return Status::failed("nobody could be met at " + endpoint.describe() + ": " + reason);
    std::this_thread::sleep_for(pause);
  }
}

Expected<Socket> Socket::listen(const Endpoint &endpoint) {
  Expected<std::vector<Address>> addresses = findAddresses(endpoint);
  if (!addresses)
    return addresses.error();
  std::string reason = "no address";
  for (const Address &address : *addresses) {
    Socket socket = openSocket(address);
    int on = 1;
    // After a run that has ended its port lingers; one that is in use is refused all the same.
    if (socket.isValid() && address.family() != AF_UNIX)
      ::setsockopt(socket.get(), SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
    if (socket.isValid() && ::bind(socket.get(), address.get(), address.length) == 0 && ::listen(socket.get(), 1024) == 0)
      return socket;
    reason = errorText();
  }
  return Status::failed("cannot listen at " + endpoint.describe() + ": " + reason);
}

Socket Socket::accept() const {
  Socket socket(::accept4(get(), nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC));
  if (!socket.isValid() || !isLocal(get()))
    return socket;
  return isSameUser(socket.get()) ? std::move(socket) : Socket();
}

int Socket::getPort() const {
  sockaddr_storage address{};
  socklen_t length = sizeof(address);
  if (::getsockname(get(), reinterpret_cast<sockaddr *>(&address), &length) != 0)
    return 0;
  if (address.ss_family == AF_INET)
    return ntohs(reinterpret_cast<sockaddr_in &>(address).sin_port);
  return address.ss_family == AF_INET6 ? ntohs(reinterpret_cast<sockaddr_in6 &>(address).sin6_port) : 0;
}

/// In digits; empty where it is no IP address.
static std::string formatAddress(const sockaddr_storage &address, socklen_t length) {
  char text[NI_MAXHOST] = "";
  bool isIp = address.ss_family == AF_INET || address.ss_family == AF_INET6;
  if (isIp && ::getnameinfo(reinterpret_cast<const sockaddr *>(&address), length, text, sizeof text, nullptr, 0,
                            NI_NUMERICHOST) != 0)
    text[0] = 0;
  return text;
}

std::string Socket::getOwnAddress() const {
  sockaddr_storage address{};
  socklen_t length = sizeof(address);
  return ::getsockname(get(), reinterpret_cast<sockaddr *>(&address), &length) == 0 ? formatAddress(address, length)
                                                                                    : "";
}

std::string Socket::getOtherAddress() const {
  sockaddr_storage address{};
  socklen_t length = sizeof(address);
  return ::getpeername(get(), reinterpret_cast<sockaddr *>(&address), &length) == 0 ? formatAddress(address, length)
                                                                                    : "";
}

Expected<bool> Socket::waitForInput(Deadline deadline) const {
  if (get() < 0)
    return Status::failed("the connection is closed");
  return waitFor(get(), POLLIN, deadline);
}

Status Socket::send(const void *bytes, size_t count, Deadline deadline) const {
  const char *next = static_cast<const char *>(bytes);
  while (count > 0) {
    ssize_t sent = ::send(get(), next, count, MSG_NOSIGNAL);
    if (sent > 0) {
      next += sent;
      count -= static_cast<size_t>(sent);
    } else if (sent < 0 && errno == EAGAIN) {
      if (!waitFor(get(), POLLOUT, deadline))
        return Status::failed("the other side takes nothing");
    } else if (sent < 0 && errno != EINTR) {
      return Status::failed("the connection is lost: " + errorText());
    }
  }
  return Status::success();
}

Status Socket::receive(void *bytes, size_t count, Deadline deadline) const {
  char *next = static_cast<char *>(bytes);
  while (count > 0) {
    ssize_t got = ::recv(get(), next, count, 0);
    if (got > 0) {
      next += got;
      count -= static_cast<size_t>(got);
    } else if (got == 0) {
      return Status::failed("the connection is lost: the other side has closed it");
    } else if (errno == EAGAIN) {
      if (!waitFor(get(), POLLIN, deadline))
        return Status::failed("no answer");
    } else if (errno != EINTR) {
      return Status::failed("the connection is lost: " + errorText());
    }
  }
  return Status::success();
}

} // namespace spmd::runtime
