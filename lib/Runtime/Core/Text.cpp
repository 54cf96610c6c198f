//===- Text.cpp -----------------------------------------------------------===//

#include "spmd/Runtime/Core/Text.h"

#include <algorithm>
#include <cmath>
#include <cstdio>

using namespace spmd::runtime;

std::string spmd::runtime::formatCount(int64_t value) {
  std::string digits = std::to_string(value);
  size_t first = digits[0] == '-' ? 1 : 0;
  for (size_t i = digits.size(); i > first + 3; i -= 3)
    digits.insert(i - 3, ",");
  return digits;
}

std::string spmd::runtime::formatNumber(double value, int digits) {
  char text[64];
  std::snprintf(text, sizeof text, "%.*g", digits, value);
  return text;
}

std::string spmd::runtime::joinNames(const std::vector<std::string> &names) {
  std::string text;
  for (const std::string &name : names)
    text += (text.empty() ? "" : ", ") + name;
  return text;
}

/// Characters, not bytes, of UTF-8 text.
static size_t width(const std::string &text) {
  return static_cast<size_t>(std::count_if(text.begin(), text.end(), [](char c) { return (c & 0xc0) != 0x80; }));
}

std::string spmd::runtime::formatTable(const std::vector<std::vector<std::string>> &rows, int indent) {
  std::vector<size_t> widths;
  for (const auto &row : rows)
    for (size_t i = 0; i < row.size(); ++i) {
      widths.resize(std::max(widths.size(), i + 1));
      widths[i] = std::max(widths[i], width(row[i]));
    }
  std::string text;
  for (const auto &row : rows) {
    text.append(static_cast<size_t>(indent), ' ');
    for (size_t i = 0; i < row.size(); ++i) {
      std::string padding(widths[i] - width(row[i]), ' ');
      if (i == 0)
        text += row.size() == 1 ? row[i] : row[i] + padding;
      else
        text += "  " + padding + row[i];
    }
    text += "\n";
  }
  return text;
}

std::string spmd::runtime::formatPattern(const std::string &name) {
  std::string pattern;
  for (size_t begin = 0; begin <= name.size();) {
    size_t end = std::min(name.find_first_of(". ,", begin), name.size());
    bool isNumber =
        end > begin && std::all_of(name.begin() + static_cast<long>(begin), name.begin() + static_cast<long>(end),
                                   [](char c) { return c >= '0' && c <= '9'; });
    bool isPart = begin > 0 && name[begin - 1] == '.';
    pattern += isNumber && isPart ? "*" : name.substr(begin, end - begin);
    if (end < name.size())
      pattern += name[end];
    begin = end + 1;
  }
  return pattern;
}
