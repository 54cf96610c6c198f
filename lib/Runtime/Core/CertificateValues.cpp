//===- CertificateValues.cpp ----------------------------------------------===//
//
// [Note: values] A value is an operation on values, down to what the step is given: two that are computed alike are one
// value. The table is read into such values first. Then the plan runs over the bytes of its buffers, each holding the
// name of a value; every operation of the plan must be one of the table, on the operands that it has there. A copy or a
// fill moves names and needs no line in the table. At the end, every state and every output must hold what the table
// says. So where values lie, how often one is computed and in which order is the plan's to choose, and nothing else is.
//
//===----------------------------------------------------------------------===//

#include "CertificateValues.h"
#include "CertificateMemory.h"
#include "Content.h"

#include <algorithm>
#include <map>
#include <unordered_map>

using namespace spmd::runtime;

namespace {

class ValueChecker {
public:
  ValueChecker(const Manifest &manifest, const std::vector<ValueEntry> &table, const Plan &plan,
               const HappensBefore &order)
      : manifest(manifest), table(table), plan(plan), order(order) {}

  Status check();

private:
  /// An operation of the table on its operands.
  struct Computation {
    Operation operation;
    std::vector<Content> operands;
    int32_t firstResult;        ///< its results have consecutive names
    bool isCheck;               ///< it has none: it is there for what it finds
    int32_t command = -1;       ///< the first command that computed it
    std::vector<size_t> checks; ///< computations that check integers that it reads, and must come before
    size_t numResults = 0;
  };

  /// What a value is, for errors: a source, or a result of a computation.
  struct Origin {
    const Binding *binding;
    size_t computation;
    size_t result;
  };

  Status readTable();
  Status readEntry(const ValueEntry &entry);
  Status readCompute(const ValueEntry &entry, std::vector<Content> operands);
  Status readSegments(const ValueEntry &entry) const;
  void bind(const Binding &binding, const std::optional<int64_t> &buffer, int64_t offset, int64_t bytes);
  void bindAll();
  Status run();
  Status runOperation(int32_t id);
  Status checkEnd();
  Status checkTarget(const Binding &binding, const std::optional<int64_t> &buffer, int64_t offset, int64_t bytes,
                     bool isOutput);

  Content read(const Ref &ref) const {
    return memory[static_cast<size_t>(ref.buffer)].read(ref.offsetAt(coordinates), ref.bytes);
  }
  void write(const Ref &ref, const Content &content) {
    memory[static_cast<size_t>(ref.buffer)].write(ref.offsetAt(coordinates), content);
  }
  int32_t source(const Binding &binding);
  /// The same for equal operations on equal operands, with results of these bytes; another for others.
  std::string keyOf(const Operation &operation, const std::vector<Content> &operands,
                    const std::vector<int64_t> &bytes);
  std::string describe(const Content &content) const;
  std::string describe(const Origin &origin) const;
  std::string explain(const Operation &operation, const std::vector<Content> &operands) const;

  const Manifest &manifest;
  const std::vector<ValueEntry> &table;
  const Plan &plan;
  const HappensBefore &order;

  std::vector<Origin> origins; ///< of each value
  std::map<Binding, int32_t> sources;
  std::map<Operation, size_t> numbers; ///< of the operations there are
  std::vector<Computation> computations;
  std::unordered_map<std::string, size_t> computationOfKey;
  std::vector<Content> values; ///< of the table, by number
  std::map<Binding, std::vector<Content>> targets;
  std::unordered_map<std::string, std::vector<size_t>> checksOf; ///< by the content they check

  // One run, for one rank.
  std::vector<int64_t> coordinates;
  std::vector<BufferContent> memory; ///< per buffer
  std::map<Binding, size_t> targetsSeen;
};

} // namespace

//===----------------------------------------------------------------------===//
// The table
//===----------------------------------------------------------------------===//

int32_t ValueChecker::source(const Binding &binding) {
  auto [found, isNew] = sources.emplace(binding, 0);
  if (isNew) {
    found->second = static_cast<int32_t>(origins.size());
    origins.push_back({&found->first, 0, 0});
  }
  return found->second;
}

std::string ValueChecker::keyOf(const Operation &operation, const std::vector<Content> &operands,
                                const std::vector<int64_t> &bytes) {
  auto number = numbers.find(operation);
  if (number == numbers.end())
    number = numbers.emplace(operation, numbers.size()).first;
  std::string key;
  appendKey(key, static_cast<int64_t>(number->second));
  appendKey(key, static_cast<int64_t>(operands.size()));
  for (const Content &operand : operands)
    operand.appendKey(key);
  for (int64_t size : bytes)
    appendKey(key, size);
  return key;
}

static Status tableError(const ValueEntry &entry, const std::string &message) {
  return Status::badInput("certificate rule 8: the manifest's " + entry.pointer + ": " + message);
}

/// Named segments lie where a unit of the manifest has them.
Status ValueChecker::readSegments(const ValueEntry &entry) const {
  for (size_t i = 0; i < entry.segments.size(); ++i) {
    int64_t bytes =
        entry.kind == ValueEntry::Kind::Part ? entry.bytes[0] : values[static_cast<size_t>(entry.of[i])].bytes();
    const Segment *segment = nullptr;
    if (const Unit *unit = manifest.findUnit(entry.unit))
      for (const Segment &candidate : unit->segments)
        if (candidate.name == entry.segments[i])
          segment = &candidate;
    if (!segment)
      return tableError(entry, "unit '" + entry.unit + "' has no parameter '" + entry.segments[i] + "'");
    // Elements have the size of the buffer's type, which need not be the unit's.
    int64_t size = segment->numel == 0 ? 0 : bytes / segment->numel;
    if (size * segment->numel != bytes || size * segment->offset != entry.at[i])
      return tableError(entry, "bytes " + std::to_string(entry.at[i]) + " + " + std::to_string(bytes) +
                                   " are not the " + std::to_string(segment->numel) + " elements from " +
                                   std::to_string(segment->offset) + " on of '" + segment->name + "'");
  }
  return Status::success();
}

Status ValueChecker::readCompute(const ValueEntry &entry, std::vector<Content> operands) {
  auto [found, isNew] = computationOfKey.emplace(keyOf(entry.operation, operands, entry.bytes), computations.size());
  if (isNew) {
    Computation computation = {entry.operation,     operands, static_cast<int32_t>(origins.size()),
                               entry.bytes.empty(), -1,       {},
                               entry.bytes.size()};
    for (size_t i = 0; i < entry.bytes.size(); ++i)
      origins.push_back({nullptr, computations.size(), i});
    for (const Content &operand : operands)
      if (auto checks = checksOf.find(operand.key()); checks != checksOf.end())
        computation.checks.insert(computation.checks.end(), checks->second.begin(), checks->second.end());
    if (computation.isCheck)
      for (const Content &operand : operands)
        checksOf[operand.key()].push_back(computations.size());
    computations.push_back(std::move(computation));
  }
  for (size_t i = 0; i < entry.bytes.size(); ++i)
    values.emplace_back(computations[found->second].firstResult + static_cast<int32_t>(i), entry.bytes[i]);
  return Status::success();
}

Status ValueChecker::readEntry(const ValueEntry &entry) {
  std::vector<Content> operands;
  for (int32_t value : entry.of) {
    if (static_cast<size_t>(value) >= values.size())
      return tableError(entry, "value " + std::to_string(value) + " is not defined before");
    operands.push_back(values[static_cast<size_t>(value)]);
  }
  switch (entry.kind) {
  case ValueEntry::Kind::Source:
    values.emplace_back(source(entry.binding), entry.bytes[0]);
    return Status::success();
  case ValueEntry::Kind::Compute:
    return readCompute(entry, std::move(operands));
  case ValueEntry::Kind::Part:
    if (entry.at[0] + entry.bytes[0] > operands[0].bytes())
      return tableError(entry, "bytes " + std::to_string(entry.at[0]) + " + " + std::to_string(entry.bytes[0]) +
                                   " leave a value of " + std::to_string(operands[0].bytes()));
    values.push_back(operands[0].slice(entry.at[0], entry.bytes[0]));
    return readSegments(entry);
  case ValueEntry::Kind::Join: {
    Content joined;
    for (size_t i = 0; i < operands.size(); ++i) {
      if (entry.at[i] < joined.bytes())
        return tableError(entry, "what lies at byte " + std::to_string(entry.at[i]) + " overlaps what is before it");
      joined.append({constantValue(0), 0, entry.at[i] - joined.bytes()});
      joined.append(operands[i]);
    }
    if (joined.bytes() > entry.bytes[0])
      return tableError(entry, "its parts take " + std::to_string(joined.bytes()) + " bytes, it has " +
                                   std::to_string(entry.bytes[0]));
    joined.append({constantValue(0), 0, entry.bytes[0] - joined.bytes()});
    values.push_back(std::move(joined));
    return readSegments(entry);
  }
  case ValueEntry::Kind::Target:
    targets[entry.binding].push_back(std::move(operands[0]));
    return Status::success();
  }
  return Status::success();
}

Status ValueChecker::readTable() {
  for (const ValueEntry &entry : table)
    if (Status s = readEntry(entry); !s.ok())
      return s;
  return Status::success();
}

//===----------------------------------------------------------------------===//
// The plan
//===----------------------------------------------------------------------===//

void ValueChecker::bind(const Binding &binding, const std::optional<int64_t> &buffer, int64_t offset, int64_t bytes) {
  if (const Buffer *found = findBoundBuffer(plan, buffer, offset, bytes).buffer)
    memory[static_cast<size_t>(found->id)].write(offset - found->offset, Content(source(binding), bytes));
}

void ValueChecker::bindAll() {
  for (const StateEntry &entry : manifest.state)
    bind(bindingOf(entry), entry.buffer, entry.offset, entry.bytes());
  for (const BatchInput &input : manifest.batch)
    bind(bindingOf(input), input.buffer, input.offset, input.localBytes());
  for (const HyperParameter &hyper : manifest.hyper)
    bind(bindingOf(hyper), hyper.buffer, hyper.offset, sizeOf(hyper.dtype));
}

std::string ValueChecker::describe(const Origin &origin) const {
  if (origin.binding)
    return toText(*origin.binding);
  const Computation &computation = computations[origin.computation];
  std::string which =
      computation.numResults == 1 ? "the result of " : "result " + std::to_string(origin.result) + " of ";
  return which + toText(computation.operation);
}

std::string ValueChecker::describe(const Content &content) const {
  if (content.pieces().empty())
    return "nothing";
  std::string text;
  for (size_t i = 0; i < content.pieces().size() && i < 3; ++i) {
    const Piece &piece = content.pieces()[i];
    std::string name = piece.value == kUnwritten ? "what nothing wrote"
                       : piece.value < 0         ? "the constant " + std::to_string(-1 - piece.value)
                                                 : describe(origins[static_cast<size_t>(piece.value)]);
    text += (i ? ", " : "") + std::to_string(piece.bytes) + " bytes" +
            (piece.value < 0 ? "" : " from " + std::to_string(piece.offset) + " on") + " of " + name;
  }
  return text + (content.pieces().size() > 3 ? ", ..." : "");
}

/// Why the table has no such operation, by the one that is most like it.
std::string ValueChecker::explain(const Operation &operation, const std::vector<Content> &operands) const {
  const Computation *nearest = nullptr;
  size_t most = 0;
  for (const Computation &computation : computations) {
    if (computation.operation < operation || operation < computation.operation ||
        computation.operands.size() != operands.size())
      continue;
    size_t equal = 0;
    for (size_t i = 0; i < operands.size(); ++i)
      equal += operands[i] == computation.operands[i];
    if (!nearest || equal > most || (equal == most && nearest->command >= 0 && computation.command < 0)) {
      nearest = &computation;
      most = equal;
    }
  }
  std::string text = toText(operation);
  if (!nearest)
    return "the compiled step has no operation '" + text + "'";
  for (size_t i = 0; i < operands.size(); ++i)
    if (operands[i] != nearest->operands[i])
      return "operand " + std::to_string(i) + " of '" + text + "' is " + describe(operands[i]) +
             "; the compiled step has " + describe(nearest->operands[i]);
  return "the results of '" + text + "' have other sizes in the compiled step";
}

Status ValueChecker::runOperation(int32_t id) {
  const Command &command = plan.commands[static_cast<size_t>(id)];
  Operation operation = *operationOf(plan, command);
  std::vector<Content> operands;
  for (const Ref *ref : operandsOf(command))
    operands.push_back(read(*ref));
  std::vector<const Ref *> results = resultsOf(command);
  std::vector<int64_t> bytes;
  for (const Ref *ref : results)
    bytes.push_back(ref->bytes);
  auto found = computationOfKey.find(keyOf(operation, operands, bytes));
  if (found == computationOfKey.end())
    return certificateError(plan, id, 8, explain(operation, operands));
  Computation &computation = computations[found->second];
  for (size_t check : computation.checks)
    if (computations[check].command < 0 || !order.ordered(computations[check].command, id))
      return certificateError(plan, id, 8,
                              "reads row numbers that are not checked before; the compiled step has '" +
                                  toText(computations[check].operation) + "'");
  if (computation.command < 0)
    computation.command = id;
  for (size_t i = 0; i < results.size(); ++i)
    write(*results[i], Content(computation.firstResult + static_cast<int32_t>(i), bytes[i]));
  if (const Ref *workspace = workspaceOf(command))
    write(*workspace, Content(kUnwritten, workspace->bytes));
  return Status::success();
}

Status ValueChecker::run() {
  memory.assign(plan.buffers.size(), {});
  targetsSeen.clear();
  for (Computation &computation : computations)
    computation.command = -1;
  bindAll();
  for (size_t id = 0; id < plan.commands.size(); ++id) {
    const Command &command = plan.commands[id];
    if (command.is<WaitCommand>())
      continue;
    if (command.is<CopyCommand>())
      write(command.refs[1], read(command.refs[0]));
    else if (const auto *fill = command.as<FillCommand>())
      for (const Ref *ref : resultsOf(command))
        write(*ref, Content(constantValue(fill->value), ref->bytes));
    else if (Status s = runOperation(static_cast<int32_t>(id)); !s.ok())
      return s;
  }
  return checkEnd();
}

Status ValueChecker::checkTarget(const Binding &binding, const std::optional<int64_t> &buffer, int64_t offset,
                                 int64_t bytes, bool isOutput) {
  auto found = targets.find(binding);
  size_t &seen = targetsSeen[binding];
  std::string name = toText(binding);
  if (isOutput && (found == targets.end() || found->second.size() <= seen))
    return Status::badInput("certificate rule 8: the compiled step has no " + name);
  // A state that the step does not change keeps what it had.
  Content expected = found == targets.end() ? Content(source(binding), bytes) : found->second[isOutput ? seen++ : 0];
  const Buffer *place = findBoundBuffer(plan, buffer, offset, bytes).buffer;
  if (!place && found == targets.end())
    return Status::success(); // and the program does not know it
  Content content = place ? memory[static_cast<size_t>(place->id)].read(offset - place->offset, bytes) : Content();
  if (content == expected)
    return Status::success();
  return Status::badInput("certificate rule 8: at the end of the step, " + name + " is " + describe(content) +
                          "; in the compiled step it is " + describe(expected));
}

Status ValueChecker::checkEnd() {
  for (const StateEntry &entry : manifest.state)
    if (Status s = checkTarget(bindingOf(entry), entry.buffer, entry.offset, entry.bytes(), false); !s.ok())
      return s;
  for (const Output &output : manifest.outputs)
    if (Status s = checkTarget(bindingOf(output), output.buffer, output.offset, output.localBytes(), true); !s.ok())
      return s;
  for (const Computation &computation : computations)
    if (computation.command < 0 && computation.isCheck)
      return Status::badInput("certificate rule 8: '" + toText(computation.operation) +
                              "' of the compiled step never runs");
  return Status::success();
}

Status ValueChecker::check() {
  if (Status s = readTable(); !s.ok())
    return s;
  bool everyRank = false;
  for (const Command &command : plan.commands)
    everyRank |= std::any_of(command.refs.begin(), command.refs.end(), [](const Ref &r) { return r.dependsOnRank(); });
  for (int64_t rank = 0; rank < (everyRank ? manifest.ranks : 1); ++rank) {
    coordinates = manifest.coordinatesOf(rank);
    if (Status s = run(); !s.ok())
      return s;
  }
  return Status::success();
}

Status spmd::runtime::checkValues(const Manifest &manifest, const std::vector<ValueEntry> &table, const Plan &plan,
                                  const HappensBefore &order) {
  return ValueChecker(manifest, table, plan, order).check();
}
