// spmd-store serve: serves a store on 127.0.0.1, prints its port, ends with standard input.
// spmd-store PORT COMMAND…: set KEY VALUE, get KEY, add KEY NUMBER, missing KEY; prints what comes back.
#include "lib/Runtime/Process/Store.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>

using namespace spmd::runtime;

static Deadline soon() { return std::chrono::steady_clock::now() + std::chrono::seconds(20); }

static int fail(const Status &status) {
  std::fprintf(stderr, "%s\n", status.message.c_str());
  return 1;
}

int main(int argc, char **argv) {
  Endpoint endpoint{"127.0.0.1", 0, ""};
  if (argc == 2 && !std::strcmp(argv[1], "serve")) {
    auto server = StoreServer::start(endpoint, "");
    if (!server)
      return fail(server.error());
    std::printf("%d\n", (*server)->getPort());
    std::fflush(stdout);
    while (std::getchar() != EOF)
      ;
    return 0;
  }
  if (argc < 2)
    return 2;
  endpoint.port = std::atoi(argv[1]);
  auto client = StoreClient::connect(endpoint, "", "", soon());
  if (!client)
    return fail(client.error());
  for (int i = 2; i < argc;) {
    std::string command = argv[i], key = argv[i + 1];
    i += 2;
    if (command == "set") {
      if (Status status = (*client)->set(key, argv[i++], soon()); !status.ok())
        return fail(status);
    } else if (command == "add") {
      auto sum = (*client)->add(key, std::atoll(argv[i++]), soon());
      if (!sum)
        return fail(sum.error());
      std::printf("%lld\n", static_cast<long long>(*sum));
    } else if (command == "get") {
      auto value = (*client)->get(key, soon());
      if (!value)
        return fail(value.error());
      std::printf("%s\n", value->c_str());
    } else {
      auto isThere = (*client)->wait(key, std::chrono::steady_clock::now() + std::chrono::milliseconds(50));
      if (!isThere)
        return fail(isThere.error());
      std::printf("%s\n", *isThere ? "there" : "missing");
    }
  }
  return 0;
}
