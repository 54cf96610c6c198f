//===- RunLog.cpp ---------------------------------------------------------===//

#include "spmd/Runtime/Run/RunLog.h"

#include <cerrno>
#include <cmath>
#include <cstdio>
#include <cstring>

using namespace spmd::runtime;

static bool endsWith(const std::string &text, const std::string &end) {
  return text.size() >= end.size() && text.compare(text.size() - end.size(), end.size(), end) == 0;
}

Expected<RunLog> RunLog::open(const std::string &path) {
  RunLog log;
  log.path = path;
  log.isTable = endsWith(path, ".csv");
  if (!log.isTable && !endsWith(path, ".jsonl"))
    return Status::badInput("--log=" + path + ": expected a name that ends in .jsonl or .csv");
  std::FILE *file = std::fopen(path.c_str(), "ae");
  if (!file)
    return Status::badInput("cannot write '" + path + "': " + std::strerror(errno));
  log.file = std::shared_ptr<std::FILE>(file, std::fclose);
  if (log.isTable && std::ftell(file) == 0)
    std::fputs("step,kind,loss,lr,seconds,items_per_second\n", file);
  return log;
}

/// The shortest text that gives the number back; JSON has no word for what is not finite.
static std::string print(double value, bool isTable) {
  if (!std::isfinite(value))
    return isTable ? std::isnan(value) ? "nan" : value > 0 ? "inf" : "-inf" : "null";
  char text[32];
  for (int digits = 6; digits <= 17; ++digits) {
    std::snprintf(text, sizeof text, "%.*g", digits, value);
    if (std::strtod(text, nullptr) == value)
      break;
  }
  return text;
}

Status RunLog::write(const RunRecord &record) {
  if (!file)
    return Status::success();
  const char *kind = record.isEvaluation ? "eval" : "train";
  std::string rate = record.rate ? print(*record.rate, isTable) : "";
  auto number = [&](double value) { return print(value, isTable); };
  std::string line = std::to_string(record.step);
  if (isTable)
    line += std::string(",") + kind + "," + number(record.loss) + "," + rate + "," + number(record.seconds) + "," +
            number(record.itemsPerSecond) + "\n";
  else
    line = "{\"step\": " + line + ", \"kind\": \"" + kind + "\", \"loss\": " + number(record.loss) +
           (rate.empty() ? "" : ", \"lr\": " + rate) + ", \"seconds\": " + number(record.seconds) +
           ", \"items_per_second\": " + number(record.itemsPerSecond) + "}\n";
  if (std::fputs(line.c_str(), file.get()) < 0 || std::fflush(file.get()) != 0)
    return Status::failed("cannot write '" + path + "': " + std::strerror(errno));
  return Status::success();
}
