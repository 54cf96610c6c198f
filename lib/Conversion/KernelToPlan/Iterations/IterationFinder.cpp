//===- IterationFinder.cpp ------------------------------------------------===//

#include "IterationFinder.h"
#include "dialects/Spmd/Roles.h"
#include "mlir/IR/Builders.h"
#include "llvm/ADT/DenseSet.h"
#include "llvm/ADT/MapVector.h"
#include "llvm/ADT/STLExtras.h"

using namespace mlir;
using namespace spmd;

void IterationFinder::addFed(Value value, unsigned list, int64_t at) {
  Place &place = find(value);
  place.item = kOutside;
  place.list = list;
  place.number = at;
  if (fedCounts.size() <= list)
    fedCounts.resize(list + 1);
  fedCounts[list] = std::max(fedCounts[list], at + 1);
}

void IterationFinder::addItem(Attribute kind, ArrayRef<Value> touched) {
  for (auto [at, value] : llvm::enumerate(touched))
    if (Place &place = find(value); place.item == kUnknown) {
      place.item = items.size();
      place.at = at;
    }
  items.push_back({kinds.try_emplace(kind, kinds.size()).first->second, SmallVector<Value, 8>(touched)});
}

/// How far apart items are that there are few of, the most frequent distances first: an item that each iteration has
/// once.
SmallVector<unsigned> IterationFinder::findPeriods() const {
  llvm::MapVector<unsigned, SmallVector<unsigned>> byKind;
  for (auto [i, item] : llvm::enumerate(items))
    byKind[item.kind].push_back(i);
  llvm::MapVector<unsigned, unsigned> distances;
  for (auto &[number, places] : byKind)
    if (places.size() >= 3 && places.size() <= 16)
      for (size_t i = 1; i < places.size(); ++i)
        ++distances[places[i] - places[i - 1]];
  auto byCount = llvm::to_vector(distances);
  llvm::sort(byCount, [](auto &a, auto &b) { return a.second != b.second ? a.second > b.second : a.first < b.first; });
  SmallVector<unsigned> periods;
  for (auto &[period, count] : ArrayRef(byCount).take_front(16))
    periods.push_back(period);
  return periods;
}

bool IterationFinder::isLater(Value value, Value later, unsigned period, Links *links) const {
  if (value == later)
    return true;
  const Place &a = find(value), &b = find(later);
  if (a.list >= 0 || b.list >= 0)
    return a.list == b.list && a.number + 1 == b.number;
  if (a.item == kOutside || b.item == kOutside || a.at != b.at)
    return false;
  if (b.item == a.item + period)
    return true;
  if (!links || items[a.item].kind != items[b.item].kind || a.item >= b.item)
    return false;
  return links->try_emplace(a.item, b.item).first->second == b.item;
}

bool IterationFinder::isLater(unsigned item, unsigned period, Links *links) const {
  const Item &a = items[item], &b = items[item + period];
  return a.kind == b.kind && a.touched.size() == b.touched.size() &&
         llvm::all_of(llvm::zip_equal(a.touched, b.touched),
                      [&](auto pair) { return isLater(std::get<0>(pair), std::get<1>(pair), period, links); });
}

/// The longest range with this period, of at least two iterations.
std::optional<IterationFinder::Range> IterationFinder::findRange(unsigned period, bool mayLink) const {
  std::optional<Range> best;
  unsigned begin = 0;
  Links links;
  for (unsigned i = 0; i + period <= items.size(); ++i) {
    if (i + period < items.size() && isLater(i, period, mayLink ? &links : nullptr))
      continue;
    unsigned end = i + period;
    if (end - begin >= 2 * period && (!best || end - begin > best->end - best->begin))
      best = Range{begin, end, period};
    begin = i + 1;
    links.clear();
  }
  return best;
}

std::optional<IterationFinder::Range> IterationFinder::findRange(bool mayLink) const {
  std::optional<Range> best;
  for (unsigned period : findPeriods())
    if (auto found = findRange(period, mayLink);
        found && (!best || found->end - found->begin > best->end - best->begin))
      best = found;
  return best;
}

void IterationFinder::addLinks(const Range &range, Links &links) const {
  for (unsigned i = range.begin; i < range.lastIteration(); ++i)
    (void)isLater(i, range.period, &links);
}

std::optional<IterationFinder::Range> IterationFinder::findIteration(int64_t more, Later &later,
                                                                     std::string &why) const {
  std::optional<Range> range = findRange();
  auto fail = [&](const char *reason) {
    why = reason;
    return std::nullopt;
  };
  if (!range)
    return fail("no items repeat");
  unsigned last = range->lastIteration(), before = last - range->period;
  llvm::DenseSet<Value> shared;
  for (unsigned i = range->begin; i < last; ++i)
    for (auto [value, next] : llvm::zip_equal(items[i].touched, items[i + range->period].touched)) {
      if (value == next)
        shared.insert(value);
      else if (find(value).list < 0 && later.try_emplace(value, next).first->second != next)
        return fail("a value has two that follow it");
    }
  llvm::DenseSet<Value> own, followers;
  for (auto [value, next] : later) {
    own.insert(value), own.insert(next);
    if (shared.contains(value) || shared.contains(next))
      return fail("a value is an iteration's own, and all have it");
    if (!followers.insert(next).second)
      return fail("a value follows two");
  }
  for (unsigned i = last; i < items.size(); ++i)
    for (auto [at, value] : llvm::enumerate(items[i].touched)) {
      const Place &place = find(value);
      if (own.contains(value) && place.item < before)
        return fail("a value of an earlier iteration is read");
      // What all iterations read is fed to none, though it may be in a list.
      bool isSame = i < range->end ? items[i - range->period].touched[at] == value : shared.contains(value);
      if (place.list >= 0 && !isSame && place.number + more >= fedCounts[place.list])
        return fail("the loop is fed less often");
    }
  return range;
}

Attribute spmd::describeItem(Operation *op) {
  NamedAttrList attrs(op->getDiscardableAttrDictionary());
  attrs.erase(kSegmentAttr);
  Builder builder(op->getContext());
  SmallVector<Attribute> parts = {builder.getStringAttr(op->getName().getStringRef()),
                                  attrs.getDictionary(op->getContext())};
  if (Attribute properties = op->getPropertiesAsAttribute())
    parts.push_back(properties);
  for (TypeRange types : {TypeRange(op->getOperandTypes()), TypeRange(op->getResultTypes())}) {
    parts.push_back(builder.getI64IntegerAttr(types.size()));
    for (Type type : types)
      parts.push_back(TypeAttr::get(type));
  }
  return builder.getArrayAttr(parts);
}
