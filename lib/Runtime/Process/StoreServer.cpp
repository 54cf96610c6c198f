//===- StoreServer.cpp - Keys and values in one process -------------------===//

#include "Store.h"
#include "StoreProtocol.h"

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <charconv>
#include <list>
#include <map>
#include <optional>
#include <poll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>
#include <vector>

namespace spmd::runtime {

using namespace store;
using Clock = std::chrono::steady_clock;

namespace {

/// What all connections together may store.
constexpr uint64_t kMostBytes = 256 << 20;
constexpr size_t kMostConnections = 16384;
/// Who has not said hello by then is no client.
constexpr auto kPatience = std::chrono::seconds(10);

struct Connection {
  explicit Connection(Socket socket) : socket(std::move(socket)), since(Clock::now()) {}

  Socket socket;
  Clock::time_point since;
  std::string input, output;
  std::vector<std::string> awaited; ///< keys of a WAIT that is not answered
  bool isValidated = false, isAuthenticated = false, isBroken = false;

  bool isKnown() const { return isValidated && isAuthenticated; }
};

/// Takes values from the front of what was received. Once one is not there yet, or is longer than allowed, no other is.
class Message {
public:
  explicit Message(const std::string &bytes) : bytes(bytes) {}

  template <typename T>
  T number() {
    T value{};
    if (take(sizeof(T)))
      std::memcpy(&value, bytes.data() + at - sizeof(T), sizeof(T));
    return value;
  }
  std::string text(uint64_t longest) {
    auto size = number<uint64_t>();
    isBad = isBad || size > longest;
    return take(isBad ? 0 : size) ? bytes.substr(at - size, size) : "";
  }
  bool isComplete() const { return isWhole && !isBad; }
  bool isBroken() const { return isBad; }
  size_t size() const { return at; }
  void refuse() { isBad = true; }

private:
  bool take(uint64_t count) {
    isWhole = isWhole && !isBad && bytes.size() - at >= count;
    if (isWhole)
      at += count;
    return isWhole;
  }
  const std::string &bytes;
  size_t at = 0;
  bool isWhole = true, isBad = false;
};

/// No byte of the secret can be guessed from how long the comparison takes.
bool isSame(const std::string &a, const std::string &b) {
  unsigned char difference = a.size() == b.size() ? 0 : 1;
  for (size_t i = 0; i < b.size(); ++i)
    difference |= static_cast<unsigned char>(b[i] ^ (a.empty() ? 0 : a[i % a.size()]));
  return difference == 0;
}

} // namespace

class StoreServer::Loop {
public:
  Loop(Socket listener, std::string secret)
      : listener(std::move(listener)), wake(::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK)), secret(std::move(secret)) {}

  void run();
  void stop() {
    isStopped = true;
    uint64_t one = 1;
    (void)!::write(wake.get(), &one, sizeof(one));
  }

private:
  void acceptAll();
  void receive(Connection &connection);
  void send(Connection &connection);
  bool execute(Connection &connection);
  void set(const std::string &key, std::string value, Connection &by);
  void answerWaits();
  bool areThere(const std::vector<std::string> &keys) const;

  Socket listener, wake;
  std::string secret;
  std::atomic<bool> isStopped = false;
  std::list<Connection> connections;
  std::map<std::string, std::string> values;
  uint64_t bytes = 0;
};

void StoreServer::Loop::run() {
  while (!isStopped) {
    std::vector<pollfd> entries = {{wake.get(), POLLIN, 0}, {listener.get(), POLLIN, 0}};
    for (const Connection &connection : connections)
      entries.push_back({connection.socket.get(), short(connection.output.empty() ? POLLIN : POLLIN | POLLOUT), 0});
    if (::poll(entries.data(), entries.size(), 1000) < 0 && errno != EINTR)
      return;
    size_t next = 2;
    for (Connection &connection : connections) {
      short events = entries[next++].revents;
      if (events & (POLLIN | POLLHUP | POLLERR))
        receive(connection);
      connection.isBroken |= !connection.isKnown() && Clock::now() - connection.since > kPatience;
    }
    answerWaits();
    for (Connection &connection : connections)
      send(connection);
    connections.remove_if([](const Connection &connection) { return connection.isBroken; });
    if (entries[1].revents)
      acceptAll();
  }
}

void StoreServer::Loop::acceptAll() {
  // One that is not let in leaves the others for the next round.
  for (Socket socket = listener.accept(); socket.isValid(); socket = listener.accept()) {
    if (connections.size() >= kMostConnections)
      return;
    connections.emplace_back(std::move(socket)).isAuthenticated = secret.empty();
  }
}

void StoreServer::Loop::receive(Connection &connection) {
  char buffer[65536];
  while (!connection.isBroken) {
    ssize_t got = ::recv(connection.socket.get(), buffer, sizeof(buffer), 0);
    if (got > 0) {
      connection.input.append(buffer, static_cast<size_t>(got));
      while (!connection.isBroken && execute(connection))
        ;
    } else if (got < 0 && errno == EINTR) {
      continue;
    } else {
      connection.isBroken = got == 0 || errno != EAGAIN;
      return;
    }
  }
}

/// One command from the front of the input; false when it is not there as a whole.
bool StoreServer::Loop::execute(Connection &connection) {
  if (connection.input.empty())
    return false;
  Message message(connection.input);
  auto query = static_cast<Query>(message.number<uint8_t>());
  if (!isQuery(query))
    message.refuse();
  // Nothing is said to who is not known, and nothing of theirs is kept.
  bool isHello = query == Query::Validate || (query == Query::Authenticate && connection.isValidated);
  if (!connection.isKnown() && !isHello) {
    connection.isBroken = true;
    return false;
  }
  std::string &out = connection.output;
  switch (query) {
  case Query::Validate:
    if (message.number<uint32_t>() == kValidation)
      connection.isValidated = true;
    else if (message.isComplete())
      message.refuse();
    break;
  case Query::Authenticate: {
    std::string given = message.text(kLongestKey);
    if (message.isComplete() && !secret.empty() && !isSame(given, secret))
      message.refuse();
    connection.isAuthenticated |= message.isComplete();
    break;
  }
  case Query::Set: {
    std::string key = message.text(kLongestKey), value = message.text(kLongestValue);
    if (message.isComplete())
      set(key, std::move(value), connection);
    break;
  }
  case Query::Get: {
    std::string key = message.text(kLongestKey);
    auto found = values.find(key);
    if (message.isComplete() && found == values.end())
      message.refuse();
    else if (message.isComplete())
      appendText(out, found->second);
    break;
  }
  case Query::Add: {
    std::string key = message.text(kLongestKey);
    auto amount = message.number<int64_t>();
    if (!message.isComplete())
      break;
    // As PyTorch's: the number is kept as text.
    int64_t sum = 0;
    const std::string &old = values[key];
    std::from_chars(old.data(), old.data() + old.size(), sum);
    sum = static_cast<int64_t>(static_cast<uint64_t>(sum) + static_cast<uint64_t>(amount));
    set(key, std::to_string(sum), connection);
    append(out, sum);
    break;
  }
  case Query::Check:
  case Query::Wait: {
    auto count = message.number<uint64_t>();
    if (count > kMostKeys)
      message.refuse();
    std::vector<std::string> keys;
    for (uint64_t i = 0; i < count && message.isComplete(); ++i)
      keys.push_back(message.text(kLongestKey));
    if (!message.isComplete())
      break;
    if (query == Query::Check || areThere(keys))
      append(out, areThere(keys) ? Answer::Ready : Answer::Cancelled);
    else
      connection.awaited = std::move(keys);
    break;
  }
  case Query::CancelWait:
    connection.awaited.clear();
    append(out, Answer::Cancelled);
    break;
  case Query::Ping: {
    auto number = message.number<uint32_t>();
    if (message.isComplete())
      append(out, number);
    break;
  }
  }
  connection.isBroken |= message.isBroken() || out.size() > kLongestValue * 2;
  if (!message.isComplete())
    return false;
  connection.input.erase(0, message.size());
  return true;
}

void StoreServer::Loop::set(const std::string &key, std::string value, Connection &by) {
  std::string &old = values[key];
  bytes += value.size() - old.size();
  by.isBroken |= bytes + values.size() * kLongestKey / 8 > kMostBytes;
  old = std::move(value);
}

bool StoreServer::Loop::areThere(const std::vector<std::string> &keys) const {
  return std::all_of(keys.begin(), keys.end(), [&](const std::string &key) { return values.count(key) != 0; });
}

void StoreServer::Loop::answerWaits() {
  for (Connection &connection : connections)
    if (!connection.awaited.empty() && areThere(connection.awaited)) {
      connection.awaited.clear();
      append(connection.output, Answer::Ready);
    }
}

void StoreServer::Loop::send(Connection &connection) {
  while (!connection.output.empty() && !connection.isBroken) {
    ssize_t sent =
        ::send(connection.socket.get(), connection.output.data(), connection.output.size(), MSG_NOSIGNAL);
    if (sent > 0)
      connection.output.erase(0, static_cast<size_t>(sent));
    else if (errno == EAGAIN)
      return;
    else
      connection.isBroken = errno != EINTR;
  }
}

Expected<std::unique_ptr<StoreServer>> StoreServer::start(const Endpoint &endpoint, std::string secret) {
  Expected<Socket> listener = Socket::listen(endpoint);
  if (!listener)
    return listener.error();
  int port = listener->getPort();
  auto loop = std::make_unique<Loop>(std::move(*listener), std::move(secret));
  return std::unique_ptr<StoreServer>(new StoreServer(std::move(loop), port));
}

StoreServer::StoreServer(std::unique_ptr<Loop> given, int port) : loop(std::move(given)), port(port) {
  thread = std::thread([this] { loop->run(); });
}

StoreServer::~StoreServer() {
  loop->stop();
  thread.join();
}

} // namespace spmd::runtime
