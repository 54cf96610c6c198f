//===- Text.h - Numbers and names for people ----------------------*- C++ -*-===//

#ifndef SPMD_RUNTIME_CORE_TEXT_H
#define SPMD_RUNTIME_CORE_TEXT_H

#include <cstdint>
#include <string>
#include <vector>

namespace spmd::runtime {

/// 1234567 as "1,234,567".
std::string formatCount(int64_t value);

/// A number as printf's %g with `digits` significant digits.
std::string formatNumber(double value, int digits = 3);

/// "model.layers.3.mlp" as "model.layers.*.mlp".
std::string formatPattern(const std::string &name);

/// {"a", "b"} as "a, b".
std::string joinNames(const std::vector<std::string> &names);

/// Rows as text with aligned columns: the first column to the left, all others
/// to the right, two spaces apart, each line indented by `indent`.
std::string formatTable(const std::vector<std::vector<std::string>> &rows, int indent = 2);

} // namespace spmd::runtime

#endif // SPMD_RUNTIME_CORE_TEXT_H
