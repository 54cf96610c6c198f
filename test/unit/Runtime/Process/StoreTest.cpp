#include "lib/Runtime/Process/Store.h"

#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <random>
#include <unistd.h>

using namespace spmd::runtime;
using std::chrono::milliseconds;
using std::chrono::seconds;

namespace {

Deadline in(milliseconds time) { return std::chrono::steady_clock::now() + time; }

/// A store of this test alone, within this host.
class Store : public ::testing::Test {
protected:
  void SetUp() override { serve(""); }

  void serve(const std::string &withSecret) {
    server.reset();
    static std::atomic<int> count = 0;
    endpoint.name = "spmd-test-" + std::to_string(::getpid()) + "-" + std::to_string(count++);
    Expected<std::unique_ptr<StoreServer>> made = StoreServer::start(endpoint, withSecret);
    ASSERT_TRUE(made) << made.error().message;
    server = std::move(*made);
  }
  std::unique_ptr<StoreClient> connect(const std::string &secret = "", const std::string &prefix = "") {
    Expected<std::unique_ptr<StoreClient>> client = StoreClient::connect(endpoint, secret, prefix, in(seconds(10)));
    EXPECT_TRUE(client) << client.error().message;
    return client ? std::move(*client) : nullptr;
  }
  /// The store answers as if nothing had happened.
  void expectHealthy() {
    auto client = connect();
    ASSERT_TRUE(client);
    EXPECT_TRUE(client->set("health", "good", in(seconds(5))).ok());
    EXPECT_EQ(*client->get("health", in(seconds(5))), "good");
  }

  Endpoint endpoint;
  std::unique_ptr<StoreServer> server;
};

TEST_F(Store, KeepsWhatIsSet) {
  auto a = connect(), b = connect();
  std::string value("with\0zeros and \xff", 16);
  ASSERT_TRUE(a->set("key", value, in(seconds(5))).ok());
  EXPECT_EQ(*b->get("key", in(seconds(5))), value);
  ASSERT_TRUE(a->set("key", "", in(seconds(5))).ok());
  EXPECT_TRUE(*b->wait("key", in(seconds(5))));
  EXPECT_EQ(*a->get("key", in(seconds(5))), "");
  EXPECT_EQ(*a->add("count", 3, in(seconds(5))), 3);
  EXPECT_EQ(*b->add("count", -5, in(seconds(5))), -2);
  EXPECT_EQ(*b->get("count", in(seconds(5))), "-2");
}

TEST_F(Store, KeysHaveThePrefixOfTheirClient) {
  auto a = connect("", "a/"), b = connect("", "b/"), all = connect();
  ASSERT_TRUE(a->set("key", "1", in(seconds(5))).ok());
  EXPECT_FALSE(*b->wait("key", in(milliseconds(20))));
  EXPECT_EQ(*all->get("a/key", in(seconds(5))), "1");
}

TEST_F(Store, WaitsForAnotherClient) {
  auto waiting = connect(), setting = connect();
  std::thread thread([&] {
    std::this_thread::sleep_for(milliseconds(50));
    EXPECT_TRUE(setting->set("late", "value", in(seconds(5))).ok());
  });
  EXPECT_EQ(*waiting->get("late", in(seconds(10))), "value");
  thread.join();
}

TEST_F(Store, AWaitThatEndsLeavesTheConnectionUsable) {
  auto client = connect();
  for (int i = 0; i < 3; ++i)
    EXPECT_FALSE(*client->wait("never", in(milliseconds(10))));
  Expected<std::string> missing = client->get("never", in(milliseconds(10)));
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().message, "'never' did not come in time");
  EXPECT_EQ(*client->add("count", 1, in(seconds(5))), 1);
}

/// The key comes while the wait is being broken off: both answers are taken from the connection.
TEST_F(Store, AWaitMayEndAsTheKeyComes) {
  auto waiting = connect(), setting = connect();
  for (int i = 0; i < 300; ++i) {
    std::string key = "key" + std::to_string(i);
    std::thread thread([&] { EXPECT_TRUE(setting->set(key, "x", in(seconds(5))).ok()); });
    Expected<bool> isThere = waiting->wait(key, in(milliseconds(0)));
    ASSERT_TRUE(isThere) << isThere.error().message;
    thread.join();
    ASSERT_EQ(*waiting->add("count", 1, in(seconds(5))), i + 1);
  }
}

TEST_F(Store, ManyClientsAtOnce) {
  std::vector<std::thread> threads;
  for (int t = 0; t < 16; ++t)
    threads.emplace_back([this] {
      auto client = connect();
      for (int i = 0; i < 100; ++i)
        ASSERT_TRUE(client->add("count", 1, in(seconds(20))));
      EXPECT_TRUE(client->set("large" , std::string(300000, 'x'), in(seconds(20))).ok());
    });
  for (std::thread &thread : threads)
    thread.join();
  auto client = connect();
  EXPECT_EQ(*client->add("count", 0, in(seconds(5))), 1600);
  EXPECT_EQ(client->get("large", in(seconds(5)))->size(), 300000u);
}

TEST_F(Store, OnlyWhoKnowsTheSecretIsServed) {
  serve("a secret");
  auto good = connect("a secret");
  EXPECT_TRUE(good->set("key", "1", in(seconds(5))).ok());
  for (const char *wrong : {"", "a secreT", "a secret and more", "a"}) {
    Expected<std::unique_ptr<StoreClient>> bad = StoreClient::connect(endpoint, wrong, "", in(seconds(5)));
    EXPECT_FALSE(bad) << wrong;
  }
  EXPECT_EQ(*good->get("key", in(seconds(5))), "1");
}

TEST_F(Store, TcpOnLoopback) {
  Endpoint tcp{"127.0.0.1", 0, ""};
  auto made = StoreServer::start(tcp, "secret");
  ASSERT_TRUE(made) << made.error().message;
  tcp.port = (*made)->getPort();
  ASSERT_NE(tcp.port, 0);
  auto client = StoreClient::connect(tcp, "secret", "", in(seconds(5)));
  ASSERT_TRUE(client) << client.error().message;
  EXPECT_EQ(*(*client)->add("n", 7, in(seconds(5))), 7);
  auto second = StoreServer::start(tcp, "");
  ASSERT_FALSE(second);
  EXPECT_NE(second.error().message.find("Address already in use"), std::string::npos) << second.error().message;
}

TEST_F(Store, NobodyThereIsAnErrorByTheDeadline) {
  Endpoint nobody{"", 0, "spmd-test-nobody-" + std::to_string(::getpid())};
  auto began = std::chrono::steady_clock::now();
  auto client = StoreClient::connect(nobody, "", "", in(milliseconds(100)));
  ASSERT_FALSE(client);
  EXPECT_EQ(client.error().message,
            "nobody could be met at this host, " + nobody.name + ": Connection refused");
  EXPECT_LT(std::chrono::steady_clock::now() - began, seconds(5));
}

TEST_F(Store, AClientWhoseServerEndsGetsAnError) {
  auto client = connect();
  std::thread thread([&] {
    std::this_thread::sleep_for(milliseconds(50));
    server.reset();
  });
  EXPECT_FALSE(client->get("never", in(seconds(10))));
  thread.join();
  EXPECT_FALSE(client->add("n", 1, in(seconds(1))));
}

/// Whatever comes in, known clients are served.
TEST_F(Store, NobodyWhoConnectsCanBreakIt) {
  std::mt19937 random(7);
  auto byte = [&] { return static_cast<char>(random()); };
  std::string hello("\0\xce\xf7\x85\x3c", 5);
  for (int i = 0; i < 400; ++i) {
    Expected<Socket> socket = Socket::connect(endpoint, in(seconds(5)));
    ASSERT_TRUE(socket);
    std::string text = i % 4 ? hello : "";
    // Commands with lengths that lie: of nothing, of everything, of a few bytes.
    for (int parts = static_cast<int>(random() % 4); parts >= 0; --parts) {
      text += static_cast<char>(random() % 16);
      uint64_t length = random() % 3 == 0 ? ~0ull >> (random() % 60) : random() % 40;
      text.append(reinterpret_cast<const char *>(&length), 8);
      for (size_t n = random() % 60; n > 0; --n)
        text += byte();
    }
    (void)socket->send(text.data(), text.size(), in(seconds(1)));
  }
  expectHealthy();
}

TEST_F(Store, ValuesAreNotLongerThanAStoreNeeds) {
  auto client = connect();
  std::string large(17 << 20, 'x');
  Status status = client->set("large", large, in(seconds(10)));
  EXPECT_FALSE(status.ok() && client->get("large", in(seconds(5))));
  expectHealthy();
}

} // namespace
