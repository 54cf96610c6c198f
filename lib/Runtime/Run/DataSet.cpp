//===- DataSet.cpp --------------------------------------------------------===//

#include "spmd/Runtime/Run/DataSet.h"
#include "spmd/Runtime/Core/Philox.h"
#include "spmd/Runtime/Core/Text.h"
#include "spmd/Runtime/Run/Permutation.h"
#include "spmd/Runtime/Run/TokenFile.h"

#include <algorithm>
#include <sstream>

using namespace spmd::runtime;

/// Of the draws of an epoch, which Philox numbers.
static constexpr uint64_t kOffsetStream = 1000;

namespace {

/// Where a batch input's values come from.
struct Column {
  enum class Kind { Tokens, Rows, Batches, Same };
  Kind kind = Kind::Same;
  const BatchInput *input = nullptr;
  ArrayFile array;      ///< but for tokens
  int64_t shift = 0;    ///< of tokens: how far behind the window's begin
  std::vector<char> values;

  /// Elements of a sample: a row of the input; of batches all of it.
  int64_t sampleSize() const {
    int64_t all = numElements(input->shape);
    return kind == Kind::Batches || kind == Kind::Same ? all : all / input->shape[0];
  }
};

} // namespace

struct DataSet::Content {
  DataOptions options;
  RanksHere ranks;
  int64_t tensorRanks = 1; ///< that have the same rows
  std::optional<TokenFile> tokens;
  std::vector<Column> columns;
  int64_t batchSize = 1; ///< samples of a step
  int64_t samples = 1;   ///< of an epoch
  int64_t window = 0;    ///< tokens of a sample

  Status openTokens(const std::string &path, const Manifest &manifest);
  Status openArrays(const Manifest &manifest);
  Status addArray(const BatchInput &input, const std::string &path);
  Status agreeOnSamples();
  bool isShuffled() const { return options.order == "shuffled"; }
  bool needsRow(const BatchInput &input, int64_t row) const;
  Status fill(Column &column, int64_t step);
  Status readSample(const Column &column, int64_t number, char *to) const;
};

DataSet::DataSet(std::unique_ptr<Content> content) : content(std::move(content)) {}
DataSet::DataSet(DataSet &&) noexcept = default;
DataSet &DataSet::operator=(DataSet &&) noexcept = default;
DataSet::~DataSet() = default;

static bool isIds(const BatchInput &input) { return input.dtype == DType::I64 || input.dtype == DType::I32; }

static std::string formatInputs(const Manifest &manifest) {
  std::string text;
  for (const BatchInput &input : manifest.batch)
    text += (text.empty() ? "" : ", ") + input.name + " (" + nameOf(input.dtype) + formatShape(input.shape) + ")";
  return text;
}

/// "x=a.npy,y=b.npy" for an example of the manifest's inputs.
static std::string formatExample(const Manifest &manifest) {
  std::string text;
  for (const BatchInput &input : manifest.batch)
    text += (text.empty() ? "" : ",") + input.name + "=" + input.name + ".npy";
  return text;
}

Status DataSet::Content::openTokens(const std::string &path, const Manifest &manifest) {
  const std::vector<BatchInput> &batch = manifest.batch;
  bool fits = !batch.empty() && batch.size() <= 2 && batch[0].shape.size() == 2 &&
              std::all_of(batch.begin(), batch.end(),
                          [&](const BatchInput &input) { return isIds(input) && input.shape == batch[0].shape; });
  if (!fits)
    return Status::badInput("--data=" + path + " is a token file, for a step that takes ids, or ids and those after " +
                            "them, of one shape; this one takes " + formatInputs(manifest) +
                            ": give each input a file, --data=" + formatExample(manifest));
  Expected<TokenFile> file = TokenFile::open(path, options.tokenType);
  if (!file)
    return file.error();
  tokens = *file;
  batchSize = batch[0].shape[0];
  window = batch[0].shape[1];
  int64_t windows = (tokens->size() - 1) / std::max<int64_t>(window, 1);
  if (windows < 1)
    return Status::badInput("'" + path + "' has " + formatCount(tokens->size()) + " tokens; a sample takes " +
                            formatCount(window + 1));
  for (const BatchInput &input : batch) {
    columns.push_back({Column::Kind::Tokens, &input, {}, 0, {}});
    columns.back().shift = static_cast<int64_t>(columns.size()) - 1;
  }
  if (options.order.empty())
    options.order = "shuffled";
  // One is lost to the epochs' different begins.
  samples = isShuffled() ? std::max<int64_t>(1, windows - 1) : windows;
  return Status::success();
}

Status DataSet::Content::addArray(const BatchInput &input, const std::string &path) {
  Expected<ArrayFile> array = ArrayFile::open(path, input.name);
  if (!array)
    return array.error();
  if (!array->convertsTo(input.dtype))
    return Status::badInput("'" + path + "' has " + array->typeName() + " elements; input '" + input.name + "' is " +
                            nameOf(input.dtype));
  const std::vector<int64_t> &found = array->shape, &wanted = input.shape;
  auto tailIs = [&](size_t skipped) {
    return found.size() == wanted.size() + 1 - skipped && !found.empty() &&
           std::equal(found.begin() + 1, found.end(), wanted.begin() + static_cast<std::ptrdiff_t>(skipped));
  };
  Column column;
  column.input = &input;
  if (found == wanted)
    column.kind = Column::Kind::Same;
  else if (tailIs(0))
    column.kind = Column::Kind::Batches;
  else if (!wanted.empty() && tailIs(1))
    column.kind = Column::Kind::Rows;
  else
    return Status::badInput("'" + path + "' has the shape " + formatShape(found) + "; input '" + input.name +
                            "' takes samples [N, ...] or batches [N, ...] of its shape " + formatShape(wanted));
  column.array = *array;
  columns.push_back(std::move(column));
  return Status::success();
}

/// All samples, or all batches, of as many.
Status DataSet::Content::agreeOnSamples() {
  const Column *first = nullptr;
  for (const Column &column : columns) {
    if (column.kind == Column::Kind::Same)
      continue;
    if (!first)
      first = &column;
    auto say = [](const Column &c) {
      return "'" + c.array.path + "' has " + formatCount(c.array.shape[0]) +
             (c.kind == Column::Kind::Rows ? " samples" : " batches");
    };
    if (column.kind != first->kind || column.array.shape[0] != first->array.shape[0])
      return Status::badInput(say(*first) + ", " + say(column));
  }
  if (!first)
    return Status::success();
  samples = first->array.shape[0];
  bool isRows = first->kind == Column::Kind::Rows;
  batchSize = isRows ? first->input->shape[0] : 1;
  if (options.order.empty())
    options.order = isRows ? "shuffled" : "sequential";
  if (samples < 1)
    return Status::badInput("'" + first->array.path + "' is empty");
  return Status::success();
}

Status DataSet::Content::openArrays(const Manifest &manifest) {
  std::istringstream parts(options.files);
  std::vector<std::pair<std::string, std::string>> given;
  for (std::string part; std::getline(parts, part, ',');) {
    size_t equals = part.find('=');
    given.emplace_back(part.substr(0, equals), equals == std::string::npos ? "" : part.substr(equals + 1));
  }
  for (const auto &[name, path] : given) {
    auto isNamed = [&, name = name](const BatchInput &input) { return input.name == name; };
    if (std::none_of(manifest.batch.begin(), manifest.batch.end(), isNamed) || path.empty())
      return Status::badInput("--data=" + options.files + ": '" + name + "' is no INPUT=FILE; inputs: " +
                              formatInputs(manifest));
  }
  for (const BatchInput &input : manifest.batch) {
    auto found = std::find_if(given.begin(), given.end(), [&](const auto &entry) { return entry.first == input.name; });
    if (found == given.end())
      return Status::badInput("--data=" + options.files + " has no file for input '" + input.name + "'");
    if (Status status = addArray(input, found->second); !status.ok())
      return status;
  }
  return agreeOnSamples();
}

Expected<DataSet> DataSet::open(const DataOptions &options, const Manifest &manifest, const RanksHere &ranks) {
  auto content = std::make_unique<Content>();
  content->options = options;
  content->ranks = ranks;
  content->tensorRanks = manifest.tensorRanks();
  bool isTokens = options.files.find('=') == std::string::npos;
  Status status = isTokens ? content->openTokens(options.files, manifest) : content->openArrays(manifest);
  if (!status.ok())
    return status;
  for (Column &column : content->columns) {
    column.values.resize(static_cast<size_t>(numElements(column.input->shape) * sizeOf(column.input->dtype)));
    if (column.kind == Column::Kind::Same)
      if (Status read = column.array.read(0, column.sampleSize(), column.input->dtype, column.values.data()); !read.ok())
        return read;
  }
  return DataSet(std::move(content));
}

/// Whether a rank of this process has the row of the batch.
bool DataSet::Content::needsRow(const BatchInput &input, int64_t row) const {
  if (!input.split.dim || *input.split.dim != 0 || input.split.pre != 1)
    return true;
  int64_t first = row / std::max<int64_t>(1, input.split.chunk) * tensorRanks;
  return first < ranks.end() && ranks.first < first + tensorRanks;
}

Status DataSet::Content::readSample(const Column &column, int64_t number, char *to) const {
  int64_t size = column.sampleSize();
  int64_t epoch = number / samples, index = number % samples;
  if (isShuffled())
    index = static_cast<int64_t>(permute(static_cast<uint64_t>(index), static_cast<uint64_t>(samples), options.seed,
                                         static_cast<uint64_t>(epoch)));
  if (column.kind != Column::Kind::Tokens)
    return column.array.read(index * size, size, column.input->dtype, to);
  int64_t spare = tokens->size() - 1 - samples * window; // The first window may begin at any of these.
  uint32_t drawn = philox(options.seed, static_cast<uint64_t>(epoch), 0, kOffsetStream)[0];
  int64_t begin = isShuffled() ? drawn % (std::min(spare, window) + 1) : 0;
  return tokens->read(begin + index * window + column.shift, size, column.input->dtype, to);
}

Status DataSet::Content::fill(Column &column, int64_t step) {
  const BatchInput &input = *column.input;
  if (column.kind == Column::Kind::Same)
    return Status::success();
  if (column.kind == Column::Kind::Batches)
    return readSample(column, step, column.values.data());
  int64_t bytes = column.sampleSize() * sizeOf(input.dtype);
  for (int64_t row = 0; row < batchSize; ++row)
    if (needsRow(input, row))
      if (Status status = readSample(column, step * batchSize + row, column.values.data() + row * bytes); !status.ok())
        return status;
  return Status::success();
}

Status DataSet::batch(int64_t step, std::vector<HostTensor> &tensors) {
  tensors.clear();
  for (Column &column : content->columns) {
    if (Status status = content->fill(column, step); !status.ok())
      return status;
    const BatchInput &input = *column.input;
    tensors.push_back(
        {column.values.data(), input.dtype, static_cast<int32_t>(input.shape.size()), input.shape.data()});
  }
  return Status::success();
}

int64_t DataSet::stepsPerEpoch() const {
  return std::max<int64_t>(1, content->samples / content->batchSize);
}

std::string DataSet::describe() const {
  const Content &c = *content;
  std::string what = c.tokens ? formatCount(c.tokens->size()) + " tokens, " + formatCount(c.samples) + " windows of " +
                                    formatCount(c.window)
                              : formatCount(c.samples) + (c.batchSize > 1 ? " samples" : " batches");
  if (c.options.order.empty())
    return what + ", the same in every step";
  std::string same; // of inputs beside those that have samples
  for (const Column &column : c.columns)
    if (column.kind == Column::Kind::Same)
      same += (same.empty() ? "" : ", ") + column.input->name;
  return what + ", " + c.options.order + (same.empty() ? "" : " (the same in every step: " + same + ")");
}
