//===- FuzzLoop.cpp -------------------------------------------------------===//

#include "FuzzLoop.h"
#include "Mutation.h"

#include <CLI/CLI.hpp>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <new>
#include <sstream>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

using namespace spmd::fuzz;
namespace fs = std::filesystem;

static constexpr double kTimeLimit = 5;

// Sanitizers bring their own (ASAN_OPTIONS=max_allocation_size_mb=64 says the same).
#if !defined(__SANITIZE_ADDRESS__) && !__has_feature(address_sanitizer)
static constexpr size_t kAllocationLimit = size_t(64) << 20;

static void *allocate(size_t size) {
  if (size > kAllocationLimit) {
    std::fprintf(stderr, "allocation of %zu bytes\n", size);
    std::abort();
  }
  void *pointer = std::malloc(size ? size : 1);
  if (!pointer)
    std::abort();
  return pointer;
}
void *operator new(size_t size) { return allocate(size); }
void *operator new[](size_t size) { return allocate(size); }
void operator delete(void *pointer) noexcept { std::free(pointer); }
void operator delete[](void *pointer) noexcept { std::free(pointer); }
void operator delete(void *pointer, size_t) noexcept { std::free(pointer); }
void operator delete[](void *pointer, size_t) noexcept { std::free(pointer); }
#endif

namespace {

struct Arguments {
  std::string package, work;
  int64_t count = 1000, first = 0;
  uint64_t seed = 1;
};

/// What the child tells its parent, in shared memory.
struct Board {
  std::atomic<int64_t> current; ///< read by the parent while the child runs
  int64_t accepted, refused;
  char what[256];
};

std::string readAll(const fs::path &path) {
  std::ifstream stream(path, std::ios::binary);
  std::ostringstream content;
  content << stream.rdbuf();
  return content.str();
}

void writeAll(const fs::path &path, const std::string &content) {
  std::ofstream stream(path, std::ios::binary | std::ios::trunc);
  stream.write(content.data(), static_cast<std::streamsize>(content.size()));
}

/// Damages, reads and mends; returns false when the case failed.
bool runCase(const Arguments &arguments, const Target &target, const fs::path &package, Board &board) {
  Random random(arguments.seed * 0x100000001b3 + static_cast<uint64_t>(board.current));
  const std::string &file = target.files[random.below(target.files.size())];
  std::string original = readAll(package / file), damaged = original;
  std::string done = mutate(damaged, fs::path(file).extension() == ".safetensors", random);
  std::snprintf(board.what, sizeof board.what, "%s: %s", file.c_str(), done.c_str());
  writeAll(package / file, damaged);
  Verdict verdict = target.read(package.string(), file);
  writeAll(package / file, original);
  ++(verdict == Verdict::accepted ? board.accepted : board.refused);
  return verdict != Verdict::mute;
}

constexpr int kMute = 99;

[[noreturn]] void runChild(const Arguments &arguments, const Target &target, const fs::path &package, Board &board) {
  for (; board.current < arguments.first + arguments.count; ++board.current)
    if (!runCase(arguments, target, package, board))
      std::_Exit(kMute);
  std::_Exit(0);
}

/// Waits for the child; empty when it came to the end, else why it did not.
std::string await(pid_t child, const Board &board) {
  using Clock = std::chrono::steady_clock;
  int64_t seen = board.current;
  Clock::time_point since = Clock::now();
  for (int status = 0;;) {
    if (::waitpid(child, &status, WNOHANG) == child) {
      if (WIFSIGNALED(status))
        return std::string("died: ") + ::strsignal(WTERMSIG(status));
      int code = WEXITSTATUS(status);
      return code == 0 ? "" : code == kMute ? "refused without a message" : "exited with " + std::to_string(code);
    }
    if (int64_t now = board.current; now != seen) {
      seen = now;
      since = Clock::now();
    }
    if (std::chrono::duration<double>(Clock::now() - since).count() > kTimeLimit) {
      ::kill(child, SIGKILL);
      ::waitpid(child, &status, 0);
      return "still running after 5 s";
    }
    ::usleep(2000);
  }
}

} // namespace

int spmd::fuzz::runFuzzer(int argc, char **argv, const Target &target) {
  CLI::App app("Damages the files of a package at random and reads it.");
  Arguments arguments;
  app.add_option("package", arguments.package)->required();
  app.add_option("--work", arguments.work, "folder for the damaged copy")->required();
  app.add_option("--count", arguments.count, "number of cases");
  app.add_option("--first", arguments.first, "number of the first case");
  app.add_option("--seed", arguments.seed, "another seed is another set of cases");
  CLI11_PARSE(app, argc, argv);

  fs::path package = fs::path(arguments.work) / "package";
  fs::remove_all(package);
  fs::create_directories(arguments.work);
  fs::copy(arguments.package, package, fs::copy_options::recursive);
  void *shared = ::mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (shared == MAP_FAILED) {
    std::perror("mmap");
    return 2;
  }
  Board &board = *new (shared) Board{};
  board.current = arguments.first;

  int64_t failures = 0;
  while (board.current < arguments.first + arguments.count) {
    std::fflush(stdout);
    pid_t child = ::fork();
    if (child == 0)
      runChild(arguments, target, package, board);
    std::string problem = await(child, board);
    if (problem.empty())
      break;
    ++failures;
    std::printf("case %lld: %s\n  %s\n  again: --seed=%llu --first=%lld --count=1\n",
                static_cast<long long>(board.current.load()), problem.c_str(), board.what,
                static_cast<unsigned long long>(arguments.seed), static_cast<long long>(board.current.load()));
    // The child left a damaged file behind.
    fs::remove_all(package);
    fs::copy(arguments.package, package, fs::copy_options::recursive);
    ++board.current;
  }
  fs::remove_all(package);
  std::printf("%lld cases: %lld accepted, %lld refused, %lld failed\n", static_cast<long long>(arguments.count),
              static_cast<long long>(board.accepted), static_cast<long long>(board.refused),
              static_cast<long long>(failures));
  return failures ? 1 : 0;
}
