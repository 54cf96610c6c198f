#include "lib/Runtime/Process/TcpLink.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>
#include <sys/socket.h>
#include <thread>
#include <unistd.h>

using namespace spmd::runtime;
using std::chrono::milliseconds;
using std::chrono::seconds;

namespace {

Clock::time_point soon() { return Clock::now() + seconds(20); }

int findPort() {
  Expected<Socket> probe = Socket::listen({"127.0.0.1", 0, ""});
  return probe ? probe->getPort() : 0;
}

/// The links of `world` processes, each of which is a thread here.
struct Processes {
  explicit Processes(int64_t world) : met(static_cast<size_t>(world)), links(met.size()) {
    Launch launch;
    launch.launcher = Launcher::Environment;
    launch.world = world;
    launch.address = "127.0.0.1";
    launch.port = findPort();
    std::vector<std::thread> threads;
    for (int64_t rank = 0; rank < world; ++rank)
      threads.emplace_back([this, rank, launch]() mutable {
        launch.rank = rank;
        Expected<std::unique_ptr<Rendezvous>> made = Rendezvous::meet(launch, seconds(20));
        ASSERT_TRUE(made) << made.error().message;
        std::vector<int64_t> hosts(static_cast<size_t>(launch.world));
        std::iota(hosts.begin(), hosts.end(), 0);
        Expected<std::shared_ptr<TcpLink>> link = TcpLink::connect(**made, hosts, seconds(20));
        ASSERT_TRUE(link) << link.error().message;
        met[static_cast<size_t>(rank)] = std::move(*made);
        links[static_cast<size_t>(rank)] = std::move(*link);
      });
    for (std::thread &thread : threads)
      thread.join();
  }
  ~Processes() {
    links.clear();
    std::vector<std::thread> threads; // the first serves the store, and waits for the others
    for (std::unique_ptr<Rendezvous> &each : met)
      threads.emplace_back([&each] { each.reset(); });
    for (std::thread &thread : threads)
      thread.join();
  }

  std::vector<std::unique_ptr<Rendezvous>> met;
  std::vector<std::shared_ptr<TcpLink>> links;
};

std::string makeText(size_t size, int64_t from, int64_t to) {
  std::string text(size, 0);
  for (size_t i = 0; i < size; ++i)
    text[i] = static_cast<char>(i * 7 + i / 251 + static_cast<size_t>(from * 31 + to * 17));
  return text;
}

} // namespace

TEST(TcpLink, EverybodySendsEverybody) {
  Processes processes(4);
  const std::vector<size_t> sizes = {0, 1, 100, 3 << 20, 5}; // some larger than what the system takes at once
  std::vector<std::thread> threads;
  for (int64_t self = 0; self < 4; ++self)
    threads.emplace_back([&, self] {
      std::shared_ptr<TcpLink> link = processes.links[static_cast<size_t>(self)];
      Expected<int32_t> space = link->open();
      ASSERT_TRUE(space);
      Messages messages(link, *space);
      std::vector<std::string> sent, got;
      sent.reserve(100);
      got.reserve(100);
      for (int64_t other = 0; other < 4; ++other)
        for (size_t size : sizes) {
          if (other == self)
            continue;
          sent.push_back(makeText(size, self, other));
          got.emplace_back(size, 0);
          messages.send(sent.back().data(), static_cast<int64_t>(size), other, 3);
          messages.receive(got.back().data(), static_cast<int64_t>(size), other, 3);
        }
      ASSERT_EQ(messages.wait(AbortState(), soon()), WaitResult::Reached) << messages.error().message;
      size_t at = 0;
      for (int64_t other = 0; other < 4; ++other)
        for (size_t size : sizes)
          if (other != self)
            EXPECT_EQ(got[at++], makeText(size, other, self));
    });
  for (std::thread &thread : threads)
    thread.join();
}

TEST(TcpLink, MessagesOfASpaceAndTagComeInOrder) {
  Processes processes(2);
  auto first = processes.links[0], second = processes.links[1];
  int32_t spaces[2] = {};
  for (int32_t &space : spaces) {
    Expected<int32_t> opened = first->open(), there = second->open();
    ASSERT_TRUE(opened && there);
    EXPECT_EQ(*opened, *there);
    space = *opened;
  }
  EXPECT_NE(spaces[0], spaces[1]);
  for (int32_t space : spaces)
    for (int32_t tag : {1, 2})
      for (int32_t number : {0, 1}) {
        int32_t value = space * 100 + tag * 10 + number;
        Messages messages(first, space);
        messages.send(&value, sizeof value, 1, tag);
        ASSERT_EQ(messages.wait(AbortState(), soon()), WaitResult::Reached);
      }
  for (int32_t space : {spaces[1], spaces[0]})
    for (int32_t tag : {2, 1})
      for (int32_t number : {0, 1}) {
        int32_t value = -1;
        Messages messages(second, space);
        messages.receive(&value, sizeof value, 0, tag);
        ASSERT_EQ(messages.wait(AbortState(), soon()), WaitResult::Reached);
        EXPECT_EQ(value, space * 100 + tag * 10 + number);
      }
}

TEST(TcpLink, WhatHasComeFromAnybodyIsTaken) {
  Processes processes(3);
  Messages messages(processes.links[2], 0), other(processes.links[0], 0);
  std::string taken;
  EXPECT_FALSE(other.take(5, taken));
  messages.send("hello", 5, 0, 5);
  ASSERT_EQ(messages.wait(AbortState(), soon()), WaitResult::Reached);
  for (Clock::time_point end = soon(); !other.take(5, taken) && Clock::now() < end;)
    std::this_thread::sleep_for(milliseconds(1));
  EXPECT_EQ(taken, "hello");
  EXPECT_FALSE(other.take(5, taken));
}

TEST(TcpLink, WhatIsGivenUpInTheMiddleIsSentToItsEnd) {
  Processes processes(2);
  constexpr size_t size = 64 << 20; // more than the system takes
  std::string wanted = makeText(size, 0, 1);
  {
    auto text = std::make_unique<std::string>(wanted);
    Messages messages(processes.links[0], 0);
    messages.send(text->data(), size, 1, 1);
    EXPECT_EQ(messages.wait(AbortState(), Clock::now() + milliseconds(50)), WaitResult::TimedOut);
    std::fill(text->begin(), text->end(), 'x');
  }
  Messages later(processes.links[0], 0), other(processes.links[1], 0);
  later.send("end", 3, 1, 2);
  std::string got(size, 0), end(3, 0);
  other.receive(got.data(), size, 0, 1);
  other.receive(end.data(), 3, 0, 2);
  std::thread receiver([&] { EXPECT_EQ(other.wait(AbortState(), soon()), WaitResult::Reached); });
  EXPECT_EQ(later.wait(AbortState(), soon()), WaitResult::Reached);
  receiver.join();
  EXPECT_TRUE(got == wanted);
  EXPECT_EQ(end, "end");
}

TEST(TcpLink, WhoDoesNotComeIsMissing) {
  Processes processes(3);
  Messages messages(processes.links[0], 0);
  char bytes[4];
  messages.receive(bytes, 4, 2, 1, 2);
  EXPECT_EQ(messages.wait(AbortState(), Clock::now() + milliseconds(50)), WaitResult::TimedOut);
  EXPECT_EQ(messages.missing(), std::vector<int64_t>{2});
}

TEST(TcpLink, AnEndIsSaidBehindTheLastWords) {
  Processes processes(2);
  {
    Messages messages(processes.links[1], 0);
    messages.send("why", 3, 0, 5);
    ASSERT_EQ(messages.wait(AbortState(), soon()), WaitResult::Reached);
  }
  processes.links[1].reset();
  Messages words(processes.links[0], 0), messages(processes.links[0], 0);
  char bytes[4];
  messages.receive(bytes, 4, 1, 1, 1);
  EXPECT_EQ(messages.wait(AbortState(), Clock::now() + milliseconds(50)), WaitResult::TimedOut); // not said at once
  std::string taken;
  EXPECT_TRUE(words.take(5, taken));
  EXPECT_EQ(taken, "why");
  std::string ended = "rank 1 ended without a word: process " + std::to_string(::getpid()) + " is gone";
  Messages again(processes.links[0], 0);
  again.receive(bytes, 4, 1, 1, 1);
  EXPECT_EQ(again.wait(AbortState(), soon()), WaitResult::Aborted);
  EXPECT_EQ(again.error().message, ended);
  EXPECT_EQ(processes.links[0]->findEnded({2, 0, 1}).message, ended);
}

TEST(TcpLink, AnotherLengthIsAnError) {
  Processes processes(2);
  Messages messages(processes.links[0], 0), other(processes.links[1], 0);
  messages.send("1234", 4, 1, 1);
  ASSERT_EQ(messages.wait(AbortState(), soon()), WaitResult::Reached);
  char bytes[8];
  other.receive(bytes, 8, 0, 1);
  EXPECT_EQ(other.wait(AbortState(), soon()), WaitResult::Aborted);
  EXPECT_EQ(other.error().message, "rank 0 sent 4 bytes where 8 were expected; every process must make the same calls");
}

/// Somebody who calls without the token, says less than hello, or nothing, is none of them.
TEST(TcpLink, StrangersAreNotLetIn) {
  Launch launch;
  launch.launcher = Launcher::Environment;
  launch.world = 2;
  launch.address = "127.0.0.1";
  launch.port = findPort();
  std::shared_ptr<TcpLink> link;
  std::unique_ptr<Rendezvous> first;
  std::thread server([&, launch] {
    Expected<std::unique_ptr<Rendezvous>> made = Rendezvous::meet(launch, seconds(20));
    ASSERT_TRUE(made);
    first = std::move(*made);
    Expected<std::shared_ptr<TcpLink>> connected = TcpLink::connect(*first, {0, 1}, seconds(20));
    ASSERT_TRUE(connected) << connected.error().message;
    link = std::move(*connected);
  });
  launch.rank = 1;
  Expected<std::unique_ptr<Rendezvous>> met = Rendezvous::meet(launch, seconds(20));
  ASSERT_TRUE(met);
  // What the second process says by hand.
  Expected<std::vector<std::string>> addresses = (*met)->exchange("link/address", "127.0.0.1");
  ASSERT_TRUE(addresses);
  EXPECT_EQ(addresses->front(), "127.0.0.1");
  Expected<std::vector<std::string>> lines = (*met)->exchange("link/port", "1 " + std::string(32, 'a') + " 7");
  ASSERT_TRUE(lines);
  int port = std::atoi(lines->front().c_str());
  std::string token = lines->front().substr(lines->front().find(' ') + 1, 32);
  auto call = [&](std::string hello, int64_t process) {
    Expected<Socket> socket = Socket::connect({"127.0.0.1", port, ""}, soon());
    EXPECT_TRUE(socket);
    hello.append(reinterpret_cast<const char *>(&process), sizeof process);
    EXPECT_TRUE(socket->send(hello.data(), hello.size(), soon()).ok());
    return std::move(*socket);
  };
  auto isRefused = [](const Socket &socket) {
    char byte;
    Status status = socket.receive(&byte, 1, soon());
    return status.message.find("connection is lost") != std::string::npos;
  };
  EXPECT_TRUE(isRefused(call(std::string(32, 'b'), 1)));
  EXPECT_TRUE(isRefused(call(token, 0)));
  EXPECT_TRUE(isRefused(call(token, 2)));
  {
    Socket quiet = call("", 1);
  }
  Socket good = call(token, 1);
  EXPECT_TRUE((*met)->exchange("link/connected", ""));
  server.join();
  ASSERT_TRUE(link);
  Messages messages(link, 0);
  messages.send("yes", 3, 1, 1);
  ASSERT_EQ(messages.wait(AbortState(), soon()), WaitResult::Reached);
  char answer[19];
  EXPECT_TRUE(good.receive(answer, sizeof answer, soon()).ok());
  EXPECT_EQ(std::string(answer + 16, 3), "yes");
  link.reset();
  std::thread leaves([&] { first.reset(); });
  (*met).reset();
  leaves.join();
}
