//===- Repeats.cpp --------------------------------------------------------===//

#include "spmd/Runtime/Core/Repeats.h"

#include <algorithm>

using namespace spmd::runtime;

int64_t Repeats::originOf(int64_t i) const {
  if (i < end)
    return i;
  int64_t added = more * period();
  return i < end + added ? begin + (i - end) % period() : i - added;
}

Status spmd::runtime::checkRepeats(const Repeats &repeats, int64_t size) {
  auto fail = [](const std::string &what) { return Status::badInput("repeats: " + what); };
  if (repeats.end > size || repeats.period() < 1)
    return fail("expected a range of " + std::to_string(size) + ", found " + std::to_string(repeats.begin) + " to " +
                std::to_string(repeats.end));
  if (repeats.begin < repeats.period())
    return fail("there is no iteration before the one from " + std::to_string(repeats.begin) + " on");
  int64_t most = std::clamp((kMaxUnrolledItems - size) / repeats.period(), int64_t(0), kMaxLeftOut);
  if (repeats.more < 1 || repeats.more > most)
    return fail("expected 1 to " + std::to_string(most) + " further iterations, found " + std::to_string(repeats.more));
  return FedNumbers(repeats).areDistinct() ? Status::success() : fail("something is fed in two places");
}

Status spmd::runtime::checkParts(const Repeats &repeats, size_t parts) {
  if (static_cast<int64_t>(parts) <= kMaxUnrolledParts / repeats.more)
    return Status::success();
  return Status::badInput("repeats: " + std::to_string(repeats.more) + " further iterations hold " +
                          std::to_string(parts) + " references or operands each, and all may hold " +
                          std::to_string(kMaxUnrolledParts));
}

FedNumbers::FedNumbers(const Repeats &repeats) : repeats(repeats) {
  for (size_t list = 0; list < repeats.fed.size(); ++list)
    for (size_t at = 0; at < repeats.fed[list].size(); ++at) {
      auto number = static_cast<size_t>(repeats.fed[list][at]);
      places.resize(std::max(places.size(), number + 1));
      distinct &= places[number].list < 0;
      places[number] = {static_cast<int32_t>(list), static_cast<int32_t>(at)};
    }
}

bool FedNumbers::contains(int32_t number) const {
  return static_cast<size_t>(number) < places.size() && places[static_cast<size_t>(number)].list >= 0;
}

int32_t FedNumbers::later(int32_t number, int64_t by) const {
  Place place = places[static_cast<size_t>(number)];
  const std::vector<int32_t> &list = repeats.fed[static_cast<size_t>(place.list)];
  int64_t at = place.at + by;
  return at < static_cast<int64_t>(list.size()) ? list[static_cast<size_t>(at)] : -1;
}
