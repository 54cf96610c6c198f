//===- SuggestNames.cpp - what a user may have meant ----------------------===//

#include "spmd/ShardUnits/Policy.h"

#include <algorithm>
#include <numeric>
#include <set>
#include <tuple>

using namespace spmd;

/// Levenshtein's distance, letters of either case being equal.
static size_t getDistance(const std::string &a, const std::string &b) {
  std::vector<size_t> row(b.size() + 1);
  std::iota(row.begin(), row.end(), size_t(0));
  for (size_t i = 0; i < a.size(); ++i) {
    size_t diagonal = row[0];
    row[0] = i + 1;
    for (size_t j = 0; j < b.size(); ++j) {
      bool same = std::tolower(static_cast<unsigned char>(a[i])) == std::tolower(static_cast<unsigned char>(b[j]));
      size_t next = std::min({row[j] + 1, row[j + 1] + 1, diagonal + (same ? 0 : 1)});
      diagonal = row[j + 1];
      row[j + 1] = next;
    }
  }
  return row.back();
}

std::string units::suggestNames(const std::string &wanted, const std::vector<std::string> &known) {
  // Distance, place among the known names, name: of equally near ones the first.
  std::vector<std::tuple<size_t, size_t, std::string>> ranked;
  std::set<std::string> seen;
  for (const std::string &name : known)
    if (!name.empty() && seen.insert(name).second)
      ranked.emplace_back(getDistance(wanted, name), ranked.size(), name);
  std::sort(ranked.begin(), ranked.end());
  constexpr size_t shown = 3;
  std::string text;
  for (size_t i = 0; i < std::min(shown, ranked.size()); ++i)
    text += (i ? ", " : "") + std::get<2>(ranked[i]);
  return text.empty() ? "" : " (closest: " + text + ")";
}
