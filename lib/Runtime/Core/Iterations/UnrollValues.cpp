//===- UnrollValues.cpp - A table of values with all its iterations -------===//

#include "spmd/Runtime/Core/Values.h"

#include <set>

using namespace spmd::runtime;

namespace {

class ValuesUnroller {
public:
  ValuesUnroller(const std::vector<ValueEntry> &entries, const Repeats &repeats)
      : entries(entries), repeats(repeats), fed(repeats) {}

  Expected<std::vector<ValueEntry>> unroll();

private:
  Status compare();
  /// Moves an entry `by` iterations on, but for the operands that `isSame` says.
  template <typename IsSame>
  Status move(ValueEntry &entry, int64_t by, IsSame isSame) const;

  static Status fail(const ValueEntry &entry, const std::string &what) {
    return Status::badInput("repeats: " + entry.pointer + " " + what);
  }

  const std::vector<ValueEntry> &entries;
  const Repeats &repeats;
  FedNumbers fed;
  std::set<int32_t> shared; ///< by all iterations
  int64_t first = 0;        ///< the first value of the iteration before
  int64_t perIteration = 0; ///< values
};

} // namespace

/// The values that entries [begin, end) define.
static int64_t countValues(const std::vector<ValueEntry> &entries, int64_t begin, int64_t end) {
  int64_t count = 0;
  for (int64_t i = begin; i < end; ++i)
    count += static_cast<int64_t>(entries[static_cast<size_t>(i)].bytes.size());
  return count;
}

Status ValuesUnroller::compare() {
  int64_t begin = repeats.begin, period = repeats.period();
  first = countValues(entries, 0, begin - period);
  perIteration = countValues(entries, begin, begin + period);
  auto size = static_cast<int64_t>(entries.size());
  if (countValues(entries, 0, size) + perIteration * repeats.more > INT32_MAX)
    return Status::badInput("repeats: there are more values than can be numbered");
  for (int64_t i = begin; i < begin + period; ++i) {
    const ValueEntry &before = entries[static_cast<size_t>(i - period)], &entry = entries[static_cast<size_t>(i)];
    if (entry.kind == ValueEntry::Kind::Source || entry.kind == ValueEntry::Kind::Target)
      return fail(entry, "is no computation");
    if (before.kind != entry.kind || before.bytes != entry.bytes || before.at != entry.at ||
        before.of.size() != entry.of.size())
      return fail(entry, "is another one in the iteration before");
    for (size_t j = 0; j < entry.of.size(); ++j) {
      int32_t a = before.of[j], b = entry.of[j];
      if (a == b && a < first)
        shared.insert(a);
      else if (fed.contains(a) ? fed.later(a, 1) != b : b < first || int64_t(a) + perIteration != b)
        return fail(entry, "has other operands than in the iteration before");
    }
  }
  return Status::success();
}

template <typename IsSame>
Status ValuesUnroller::move(ValueEntry &entry, int64_t by, IsSame isSame) const {
  for (size_t i = 0; i < entry.of.size(); ++i) {
    int32_t &value = entry.of[i];
    if (isSame(i))
      continue;
    if (value >= first) {
      if (value > INT32_MAX - by * perIteration)
        return fail(entry, "has an operand that is not defined");
      value += static_cast<int32_t>(by * perIteration);
    } else if (fed.contains(value)) {
      value = fed.later(value, by);
      if (value < 0)
        return fail(entry, "is not fed so often");
    }
  }
  return Status::success();
}

Expected<std::vector<ValueEntry>> ValuesUnroller::unroll() {
  if (Status status = checkRepeats(repeats, static_cast<int64_t>(entries.size())); !status.ok())
    return status;
  size_t parts = 0;
  for (int64_t i = repeats.begin; i < repeats.end; ++i)
    parts += entries[static_cast<size_t>(i)].of.size() + entries[static_cast<size_t>(i)].bytes.size();
  if (Status status = checkParts(repeats, parts); !status.ok())
    return status;
  if (Status status = compare(); !status.ok())
    return status;
  auto end = static_cast<size_t>(repeats.end), period = static_cast<size_t>(repeats.period());
  size_t added = static_cast<size_t>(repeats.more) * period;
  std::vector<ValueEntry> all(entries.begin(), entries.begin() + repeats.end);
  all.reserve(entries.size() + added);
  for (size_t i = end; i < end + added; ++i) {
    all.push_back(all[i - period]);
    size_t known = end - period + (i - end) % period;
    auto isSame = [&](size_t operand) { return all[known].of[operand] == all[known - period].of[operand]; };
    if (Status status = move(all.back(), 1, isSame); !status.ok())
      return status;
  }
  for (size_t i = end; i < entries.size(); ++i) {
    all.push_back(entries[i]);
    auto isSame = [&](size_t operand) { return shared.count(entries[i].of[operand]) != 0; };
    if (Status status = move(all.back(), repeats.more, isSame); !status.ok())
      return status;
  }
  return all;
}

Expected<std::vector<ValueEntry>> spmd::runtime::unroll(const ValueTable &table) {
  if (!table.repeats)
    return table.entries;
  return ValuesUnroller(table.entries, *table.repeats).unroll();
}
