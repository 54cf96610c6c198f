//===- FuzzLoop.cpp -------------------------------------------------------===//

#include "FuzzLoop.h"
#include "Mutation.h"

#include <CLI/CLI.hpp>

#include <atomic>
#include <chrono>
#include <cmath>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <new>
#include <sstream>
#include <sys/inotify.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

using namespace spmd::fuzz;
namespace fs = std::filesystem;

#if defined(__SANITIZE_ADDRESS__) || __has_feature(address_sanitizer)
/// In CPU time, which a loaded machine does not make longer; sanitizers make it about four times as long.
static constexpr double kTimeLimit = 20;

// The same limit of an allocation as below. libMLIR is not instrumented, so containers that it shares with us look as
// if they overflowed, and pools that it takes from as if they were not given out; and it keeps what a process needs
// once.
extern "C" const char *__asan_default_options() {
  return "max_allocation_size_mb=64:detect_container_overflow=0:allow_user_poisoning=0:detect_leaks=0:"
         "quarantine_size_mb=32";
}
extern "C" const char *__ubsan_default_options() { return "print_stacktrace=1"; }
#else
static constexpr double kTimeLimit = 5;
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

/// A file beside the package that damaged files name (see mutate), and whether anybody opened it.
class Bait {
public:
  explicit Bait(const fs::path &package) : queue(::inotify_init1(IN_NONBLOCK | IN_CLOEXEC)) {
    fs::path path = package.parent_path() / fs::path(kBait).filename();
    writeAll(path, "{}");
    if (queue < 0 || ::inotify_add_watch(queue, path.c_str(), IN_OPEN) < 0) {
      std::perror("inotify");
      std::_Exit(2);
    }
  }
  bool wasOpened() const {
    alignas(inotify_event) char events[4096];
    return ::read(queue, events, sizeof events) > 0;
  }

private:
  int queue;
};

constexpr int kMute = 99, kOutside = 98;

/// Damages, reads and mends; returns 0 or the exit code that says how the case failed.
int runCase(const Arguments &arguments, const Target &target, const fs::path &package, const Bait &bait, Board &board) {
  Random random(arguments.seed * 0x100000001b3 + static_cast<uint64_t>(board.current));
  const std::string &file = target.files[random.below(target.files.size())];
  std::string original = readAll(package / file), damaged = original;
  std::string done = mutate(damaged, fs::path(file).extension() == ".safetensors", random);
  std::snprintf(board.what, sizeof board.what, "%s: %s", file.c_str(), done.c_str());
  writeAll(package / file, damaged);
  Verdict verdict = target.read(package.string(), file);
  writeAll(package / file, original);
  if (verdict == Verdict::mute || bait.wasOpened())
    return verdict == Verdict::mute ? kMute : kOutside;
  ++(verdict == Verdict::accepted ? board.accepted : board.refused);
  return 0;
}

[[noreturn]] void runChild(const Arguments &arguments, const Target &target, const fs::path &package, Board &board) {
  Bait bait(package);
  for (; board.current < arguments.first + arguments.count; ++board.current)
    if (int code = runCase(arguments, target, package, bait, board))
      std::_Exit(code);
  std::_Exit(0);
}

/// CPU seconds of all threads of a process.
double cpuSeconds(pid_t process) {
  clockid_t clock;
  timespec time;
  if (::clock_getcpuclockid(process, &clock) != 0 || ::clock_gettime(clock, &time) != 0)
    return 0;
  return static_cast<double>(time.tv_sec) + 1e-9 * static_cast<double>(time.tv_nsec);
}

std::string problemOf(int status) {
  if (WIFSIGNALED(status))
    return std::string("died: ") + ::strsignal(WTERMSIG(status));
  switch (int code = WEXITSTATUS(status)) {
  case 0:
    return "";
  case kMute:
    return "refused without a message";
  case kOutside:
    return "opened a file outside of the package";
  default:
    return "exited with " + std::to_string(code);
  }
}

/// Waits for the child; empty when it came to the end, else why it did not.
std::string await(pid_t child, const Board &board) {
  using Clock = std::chrono::steady_clock;
  int64_t seen = board.current;
  Clock::time_point since = Clock::now();
  double cpuSince = cpuSeconds(child);
  for (int status = 0;;) {
    if (::waitpid(child, &status, WNOHANG) == child)
      return problemOf(status);
    if (int64_t now = board.current; now != seen) {
      seen = now;
      since = Clock::now();
      cpuSince = cpuSeconds(child);
    }
    // One that waits for itself takes no CPU time.
    double cpu = cpuSeconds(child) - cpuSince, wall = std::chrono::duration<double>(Clock::now() - since).count();
    if (cpu > kTimeLimit || wall > 20 * kTimeLimit) {
      ::kill(child, SIGKILL);
      ::waitpid(child, &status, 0);
      return "still running after " + std::to_string(std::lround(cpu)) + " s of CPU time, " +
             std::to_string(std::lround(wall)) + " s";
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
