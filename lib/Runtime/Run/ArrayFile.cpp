//===- ArrayFile.cpp ------------------------------------------------------===//
//
// The .npy format: numpy/lib/format.py. "\x93NUMPY", major and minor version, the length of the header (2 bytes in
// version 1, else 4), and the header: {'descr': '<i8', 'fortran_order': False, 'shape': (3, 4), }.
//
//===----------------------------------------------------------------------===//

#include "spmd/Runtime/Run/ArrayFile.h"

#include <cstring>
#include <limits>
#include <optional>

using namespace spmd::runtime;
using Kind = ArrayFile::Kind;

/// What follows 'key': in the header, or nothing.
static std::optional<std::string> findEntry(const std::string &header, const std::string &key) {
  size_t at = header.find("'" + key + "':");
  if (at == std::string::npos)
    return std::nullopt;
  at = header.find_first_not_of(' ', at + key.size() + 3);
  if (at == std::string::npos)
    return std::nullopt;
  char close = header[at] == '(' ? ')' : header[at] == '\'' ? '\'' : ',';
  size_t end = header.find(close, at + 1);
  return end == std::string::npos ? std::nullopt : std::optional(header.substr(at, end - at));
}

/// The sizes in "(3, 4"; nothing when there is anything else, or their product does not fit.
static std::optional<std::vector<int64_t>> parseShape(const std::string &text) {
  std::vector<int64_t> shape;
  int64_t total = 1;
  for (size_t at = 1; at < text.size();) {
    if (text[at] == ' ' || text[at] == ',') {
      ++at;
      continue;
    }
    size_t end = text.find_first_not_of("0123456789", at);
    std::string digits = text.substr(at, end == std::string::npos ? end : end - at);
    if (digits.empty() || digits.size() > 15)
      return std::nullopt;
    shape.push_back(std::stoll(digits));
    if (__builtin_mul_overflow(total, shape.back(), &total) || total > (int64_t(1) << 50))
      return std::nullopt;
    at += digits.size();
  }
  return shape;
}

static Status openNpy(ArrayFile &array) {
  auto bad = [&](const std::string &what) { return Status::badInput("'" + array.path + "': " + what); };
  Expected<MappedFile> file = MappedFile::open(array.path);
  if (!file)
    return file.error();
  array.file = *file;
  const char *bytes = file->data();
  if (file->size() < 12 || std::memcmp(bytes, "\x93NUMPY", 6) != 0)
    return bad("is no .npy file");
  bool isLong = bytes[6] > 1;
  size_t begin = isLong ? 12 : 10, length = 0;
  std::memcpy(&length, bytes + 8, isLong ? 4 : 2);
  if (bytes[6] < 1 || bytes[6] > 3 || length > file->size() - begin)
    return bad("its header is damaged");
  std::string header(bytes + begin, length);
  std::optional<std::string> type = findEntry(header, "descr"), order = findEntry(header, "fortran_order"),
                             sizes = findEntry(header, "shape");
  if (!type || !order || !sizes || (*sizes)[0] != '(')
    return bad("its header is damaged");
  if (*order != "False")
    return bad("is in Fortran order; save numpy.ascontiguousarray(array)");
  const std::string known = "fiub";
  std::string descr = type->substr(1);
  size_t kind = descr.size() == 3 ? known.find(descr[1]) : std::string::npos;
  std::string width = kind == 0 ? "248" : kind == 3 ? "1" : "1248";
  if (kind == std::string::npos || (descr[0] != '<' && descr[0] != '|') || width.find(descr[2]) == std::string::npos)
    return bad("has elements of type '" + descr + "'; supported: little-endian floats, integers and bool");
  array.kind = static_cast<Kind>(kind);
  array.width = descr[2] - '0';
  std::optional<std::vector<int64_t>> shape = parseShape(*sizes);
  if (!shape)
    return bad("its header is damaged");
  array.shape = *shape;
  array.data = bytes + begin + length;
  auto found = static_cast<int64_t>(file->size() - begin - length);
  if (int64_t needed = numElements(array.shape) * array.width; found != needed)
    return bad("has " + std::to_string(found) + " bytes of elements, its header says " + std::to_string(needed));
  return Status::success();
}

static Status openSafetensors(ArrayFile &array, const std::string &name) {
  Expected<SafetensorsFile> file = SafetensorsFile::open(array.path);
  if (!file)
    return file.error();
  array.tensors = *file;
  const TensorView *tensor = array.tensors.find(name);
  if (!tensor && array.tensors.tensors().size() == 1)
    tensor = &array.tensors.tensors().begin()->second;
  if (!tensor)
    return Status::badInput("'" + array.path + "' has no tensor '" + name + "'");
  array.shape = tensor->shape;
  array.width = sizeOf(tensor->dtype);
  array.isBFloat16 = tensor->dtype == DType::BF16;
  array.kind = isFloating(tensor->dtype)    ? Kind::Float
               : tensor->dtype == DType::I1 ? Kind::Bool
               : tensor->dtype == DType::U8 ? Kind::Unsigned
                                            : Kind::Signed;
  array.data = static_cast<const char *>(tensor->data);
  return Status::success();
}

Expected<ArrayFile> ArrayFile::open(const std::string &path, const std::string &tensor) {
  ArrayFile array;
  array.path = path;
  auto endsWith = [&](const std::string &end) {
    return path.size() >= end.size() && path.compare(path.size() - end.size(), end.size(), end) == 0;
  };
  Status status = endsWith(".safetensors") ? openSafetensors(array, tensor)
                  : endsWith(".npy")       ? openNpy(array)
                                           : Status::badInput("'" + path + "': expected a .npy or .safetensors file");
  if (!status.ok())
    return status;
  return array;
}

static std::optional<DType> asDType(const ArrayFile &array) {
  switch (array.kind) {
  case Kind::Float:
    return array.width == 8 ? DType::F64 : array.width == 4 ? DType::F32 : array.isBFloat16 ? DType::BF16 : DType::F16;
  case Kind::Bool:
    return DType::I1;
  case Kind::Unsigned:
    return array.width == 1 ? std::optional(DType::U8) : std::nullopt;
  case Kind::Signed:
    return array.width == 8 ? DType::I64 : array.width == 4 ? DType::I32 : array.width == 2 ? DType::I16 : DType::I8;
  }
  return std::nullopt;
}

static bool isInteger(DType dtype) { return !isFloating(dtype) && dtype != DType::I1; }

bool ArrayFile::convertsTo(DType dtype) const {
  return asDType(*this) == dtype || (isInteger(dtype) && (kind == Kind::Signed || kind == Kind::Unsigned));
}

std::string ArrayFile::typeName() const {
  if (isBFloat16)
    return "bfloat16";
  const char *names[] = {"float", "int", "uint", "bool"};
  return names[static_cast<int>(kind)] + (kind == Kind::Bool ? "" : std::to_string(8 * width));
}

template <typename From>
static bool loadAs(const char *from, int64_t &value) {
  From loaded;
  std::memcpy(&loaded, from, sizeof loaded);
  value = static_cast<int64_t>(loaded);
  return !std::is_same_v<From, uint64_t> || value >= 0;
}

static bool load(const ArrayFile &array, const char *from, int64_t &value) {
  bool isSigned = array.kind == Kind::Signed;
  switch (array.width) {
  case 1:
    return isSigned ? loadAs<int8_t>(from, value) : loadAs<uint8_t>(from, value);
  case 2:
    return isSigned ? loadAs<int16_t>(from, value) : loadAs<uint16_t>(from, value);
  case 4:
    return isSigned ? loadAs<int32_t>(from, value) : loadAs<uint32_t>(from, value);
  default:
    return isSigned ? loadAs<int64_t>(from, value) : loadAs<uint64_t>(from, value);
  }
}

template <typename To>
static bool storeAs(int64_t value, char *to) {
  To stored = static_cast<To>(value);
  std::memcpy(to, &stored, sizeof stored);
  return static_cast<int64_t>(stored) == value;
}

static bool store(DType dtype, int64_t value, char *to) {
  switch (dtype) {
  case DType::I32:
    return storeAs<int32_t>(value, to);
  case DType::I16:
    return storeAs<int16_t>(value, to);
  case DType::I8:
    return storeAs<int8_t>(value, to);
  case DType::U8:
    return storeAs<uint8_t>(value, to);
  default:
    return storeAs<int64_t>(value, to);
  }
}

Status ArrayFile::read(int64_t first, int64_t count, DType dtype, void *to) const {
  const char *from = data + first * width;
  if (asDType(*this) == dtype) {
    std::memcpy(to, from, static_cast<size_t>(count * width));
    return Status::success();
  }
  auto *out = static_cast<char *>(to);
  for (int64_t i = 0; i < count; ++i) {
    int64_t value = 0;
    if (!load(*this, from + i * width, value) || !store(dtype, value, out + i * sizeOf(dtype)))
      return Status::badInput("'" + path + "': element " + std::to_string(first + i) + ", " + std::to_string(value) +
                              ", is no " + nameOf(dtype));
  }
  return Status::success();
}
