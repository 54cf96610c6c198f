//===- PolicyText.cpp - policies as the command line has them -------------===//

#include "spmd/ShardUnits/Policy.h"

#include <cstdlib>
#include <regex>

using namespace spmd;
using namespace spmd::units;
using runtime::Expected;
using runtime::Status;

namespace {

/// Reads one policy from a part of the whole text, for positions in errors.
class PolicyParser {
public:
  explicit PolicyParser(const std::string &whole) : whole(whole) {}

  Expected<Policy> parse(size_t begin, size_t end);

private:
  Status fail(size_t position, const std::string &message) const {
    return Status::badInput("policy '" + whole + "': position " + std::to_string(position + 1) + ": " + message);
  }
  Status readNames(size_t begin, size_t end, char separator, const char *what, std::vector<std::string> &names);
  Status readSize(size_t begin, size_t end, Policy &policy);
  Status readAny(size_t begin, size_t end, Policy &policy);
  Status readRegex(size_t begin, size_t end, Policy &policy);

  const std::string &whole;
};

} // namespace

static bool isNameCharacter(char c) {
  return std::isalnum(static_cast<unsigned char>(c)) || c == '_' || c == '.' || c == '<' || c == '>' || (c & 0x80);
}

Status PolicyParser::readNames(size_t begin, size_t end, char separator, const char *what,
                               std::vector<std::string> &names) {
  for (size_t at = begin; at <= end; ++at) {
    size_t last = std::min(whole.find(separator, at), end);
    std::string name = whole.substr(at, last - at);
    // Blanks around a name are not part of it.
    name.erase(0, std::min(name.find_first_not_of(' '), name.size()));
    name.erase(name.find_last_not_of(' ') + 1);
    if (name.empty())
      return fail(at, std::string("expected ") + what);
    for (size_t i = at; i < last; ++i)
      if (!isNameCharacter(whole[i]) && whole[i] != ' ')
        return fail(i, std::string("expected ") + what + ", found '" + whole[i] + "'");
    names.push_back(name);
    at = last;
  }
  return Status::success();
}

Status PolicyParser::readSize(size_t begin, size_t end, Policy &policy) {
  size_t at = begin;
  while (at < end && std::isdigit(static_cast<unsigned char>(whole[at])))
    ++at;
  if (at == begin || at - begin > 18)
    return fail(begin, "expected a number of elements, such as size:100000000");
  policy.size = std::strtoll(whole.substr(begin, at - begin).c_str(), nullptr, 10);
  if (policy.size < 1)
    return fail(begin, "expected at least 1 element");
  while (at < end) {
    if (whole[at] != ',')
      return fail(at, std::string("expected ',' or the end, found '") + whole[at] + "'");
    ++at;
    size_t next = std::min(whole.find(',', at), end);
    std::optional<std::vector<std::string>> *list = nullptr;
    size_t nameLength = 0;
    for (auto &[name, member] : {std::pair<std::string, decltype(list)>{"force-leaf=", &policy.forceLeaf},
                                 std::pair<std::string, decltype(list)>{"exclude=", &policy.exclude}})
      if (whole.compare(at, name.size(), name) == 0 && at + name.size() <= next) {
        list = member;
        nameLength = name.size();
      }
    if (!list)
      return fail(at, "expected force-leaf=A+B or exclude=A+B");
    if (*list)
      return fail(at, "given twice");
    list->emplace();
    at += nameLength;
    if (at < next)
      if (Status status = readNames(at, next, '+', "a class name", **list); !status.ok())
        return status;
    at = next;
  }
  return Status::success();
}

Status PolicyParser::readRegex(size_t begin, size_t end, Policy &policy) {
  std::string pattern = whole.substr(begin, end - begin);
  if (pattern.empty())
    return fail(begin, "expected a regular expression for module paths");
  try {
    std::regex check(pattern, std::regex::ECMAScript);
  } catch (const std::regex_error &problem) {
    return fail(begin, "'" + pattern + "' is no regular expression: " + problem.what());
  }
  policy.names = {pattern};
  return Status::success();
}

/// Parts of or(...) are separated by ';' outside of parentheses.
Status PolicyParser::readAny(size_t begin, size_t end, Policy &policy) {
  if (begin == end || whole[end - 1] != ')')
    return fail(end, "expected ')'");
  --end;
  int depth = 0;
  size_t start = begin;
  for (size_t at = begin; at <= end; ++at) {
    if (at < end && whole[at] == '\\') {
      ++at;
      continue;
    }
    depth += at < end && whole[at] == '(' ? 1 : at < end && whole[at] == ')' ? -1 : 0;
    if (at < end && (whole[at] != ';' || depth > 0))
      continue;
    Expected<Policy> part = parse(start, at);
    if (!part)
      return part.error();
    policy.parts.push_back(std::move(*part));
    start = at + 1;
  }
  return Status::success();
}

Expected<Policy> PolicyParser::parse(size_t begin, size_t end) {
  while (begin < end && whole[begin] == ' ')
    ++begin;
  while (end > begin && whole[end - 1] == ' ')
    --end;
  Policy policy;
  policy.text = whole.substr(begin, end - begin);
  auto startsWith = [&](const char *prefix) { return policy.text.rfind(prefix, 0) == 0; };
  Status status = Status::success();
  if (policy.text == "none") {
    policy.kind = Policy::Kind::none;
  } else if (policy.text == "annotations" || policy.text == "auto") {
    policy.kind = policy.text == "auto" ? Policy::Kind::automatic : Policy::Kind::annotations;
    if (policy.text.size() != whole.size())
      return fail(begin, policy.text + " is no part of another policy");
  } else if (policy.text == "always") {
    policy.kind = Policy::Kind::always;
  } else if (startsWith("class:")) {
    policy.kind = Policy::Kind::byClass;
    status = readNames(begin + 6, end, ',', "a class name", policy.names);
  } else if (startsWith("size:")) {
    policy.kind = Policy::Kind::bySize;
    status = readSize(begin + 5, end, policy);
  } else if (startsWith("name:")) {
    policy.kind = Policy::Kind::byName;
    status = readRegex(begin + 5, end, policy);
  } else if (startsWith("or(")) {
    policy.kind = Policy::Kind::any;
    status = readAny(begin + 3, end, policy);
  } else {
    return fail(begin, "expected annotations, auto, none, always, class:A,B, size:N[,force-leaf=A+B][,exclude=A+B], "
                       "name:REGEX or or(P;P)");
  }
  if (!status.ok())
    return status;
  return policy;
}

Expected<Policy> units::parsePolicy(const std::string &text) { return PolicyParser(text).parse(0, text.size()); }
