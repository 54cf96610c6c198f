//===- StoreClient.cpp - One connection to a store ------------------------===//

#include "Store.h"
#include "StoreProtocol.h"

#include <random>

namespace spmd::runtime {

using namespace store;

/// How long the server may take to say what it need not wait for.
static Deadline soon() { return std::chrono::steady_clock::now() + std::chrono::seconds(10); }

Expected<std::unique_ptr<StoreClient>> StoreClient::connect(const Endpoint &endpoint, const std::string &secret,
                                                            std::string prefix, Deadline deadline) {
  Expected<Socket> socket = Socket::connect(endpoint, deadline);
  if (!socket)
    return socket.error();
  std::string hello;
  append(hello, Query::Validate);
  append(hello, kValidation);
  if (!secret.empty()) {
    append(hello, Query::Authenticate);
    appendText(hello, secret);
  }
  uint32_t sent = std::random_device()(), echoed = 0;
  append(hello, Query::Ping);
  append(hello, sent);
  Status status = socket->send(hello.data(), hello.size(), deadline);
  if (status.ok())
    status = socket->receive(&echoed, sizeof(echoed), deadline);
  if (!status.ok() || echoed != sent)
    return Status::failed("who listens at " + endpoint.describe() + " is no store of this job: " +
                          (status.ok() ? "a wrong answer" : status.message));
  return std::unique_ptr<StoreClient>(new StoreClient(std::move(*socket), std::move(prefix)));
}

Status StoreClient::set(const std::string &key, const std::string &value, Deadline deadline) {
  std::lock_guard<std::mutex> lock(mutex);
  std::string message;
  append(message, Query::Set);
  appendText(message, nameOf(key));
  appendText(message, value);
  return socket.send(message.data(), message.size(), deadline);
}

Expected<int64_t> StoreClient::add(const std::string &key, int64_t amount, Deadline deadline) {
  std::lock_guard<std::mutex> lock(mutex);
  std::string message;
  append(message, Query::Add);
  appendText(message, nameOf(key));
  append(message, amount);
  int64_t sum = 0;
  Status status = socket.send(message.data(), message.size(), deadline);
  if (status.ok())
    status = socket.receive(&sum, sizeof(sum), deadline);
  return status.ok() ? Expected<int64_t>(sum) : Expected<int64_t>(status);
}

Expected<bool> StoreClient::wait(const std::string &key, Deadline deadline) {
  std::lock_guard<std::mutex> lock(mutex);
  return waitLocked(key, deadline);
}

Expected<bool> StoreClient::waitLocked(const std::string &key, Deadline deadline) {
  std::string message;
  append(message, Query::Wait);
  append(message, uint64_t(1));
  appendText(message, nameOf(key));
  if (Status status = socket.send(message.data(), message.size(), soon()); !status.ok())
    return status;
  Expected<bool> hasAnswer = socket.waitForInput(deadline);
  if (!hasAnswer)
    return hasAnswer.error();
  auto answer = Answer::Ready;
  if (*hasAnswer) {
    Status status = socket.receive(&answer, sizeof(answer), soon());
    if (!status.ok())
      return status;
    return answer == Answer::Ready ? Expected<bool>(true)
                                   : Expected<bool>(Status::failed("the store broke off a wait"));
  }
  auto cancel = Query::CancelWait;
  Status status = socket.send(&cancel, sizeof(cancel), soon());
  bool isThere = false;
  if (status.ok())
    status = socket.receive(&answer, sizeof(answer), soon());
  // The key may have come while the wait was broken off: then both answers come.
  if (status.ok() && answer == Answer::Ready) {
    isThere = true;
    status = socket.receive(&answer, sizeof(answer), soon());
  }
  return status.ok() ? Expected<bool>(isThere) : Expected<bool>(status);
}

Expected<std::string> StoreClient::get(const std::string &key, Deadline deadline) {
  std::lock_guard<std::mutex> lock(mutex);
  Expected<bool> isThere = waitLocked(key, deadline);
  if (!isThere)
    return isThere.error();
  if (!*isThere)
    return Status::failed("'" + key + "' did not come in time");
  std::string message;
  append(message, Query::Get);
  appendText(message, nameOf(key));
  uint64_t size = 0;
  Status status = socket.send(message.data(), message.size(), soon());
  if (status.ok())
    status = socket.receive(&size, sizeof(size), soon());
  if (status.ok() && size > kLongestValue)
    status = Status::failed("the store answered with " + std::to_string(size) + " bytes");
  if (!status.ok())
    return status;
  std::string value(size, '\0');
  status = socket.receive(value.data(), value.size(), soon());
  return status.ok() ? Expected<std::string>(std::move(value)) : Expected<std::string>(status);
}

} // namespace spmd::runtime
