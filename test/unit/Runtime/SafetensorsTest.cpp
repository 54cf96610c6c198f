#include "spmd/Runtime/Core/Safetensors.h"
#include "TestSupport.h"

#include <cstring>
#include <fstream>

using namespace spmd::runtime;

static void writeBytes(const std::string &path, const std::string &bytes) {
  std::ofstream(path, std::ios::binary) << bytes;
}

/// A file with this header and `data` bytes of zeros behind it.
static std::string fileWith(const std::string &header, size_t data) {
  uint64_t size = header.size();
  std::string bytes(reinterpret_cast<const char *>(&size), 8);
  return bytes + header + std::string(data, '\0');
}

static std::string errorOf(const std::string &bytes) {
  std::string path = temporaryPath("bad");
  writeBytes(path, bytes);
  Expected<SafetensorsFile> file = SafetensorsFile::open(path);
  EXPECT_FALSE(file);
  std::remove(path.c_str());
  return file ? "" : file.error().message;
}

TEST(Safetensors, RoundTrips) {
  float weights[] = {1, 2, 3, 4, 5, 6};
  int64_t step = 7;
  std::string path = temporaryPath("file");
  ASSERT_TRUE(writeSafetensors(path,
                               {{"w \"1\"", {DType::F32, {2, 3}, weights, 24}},
                                {"empty", {DType::I1, {0, 4}, nullptr, 0}},
                                {"step", {DType::I64, {}, &step, 8}}},
                               {{"format", "pt"}, {"steps", "3"}})
                  .ok());
  Expected<SafetensorsFile> file = SafetensorsFile::open(path);
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_EQ(file->tensors().size(), 3u);
  EXPECT_EQ(file->metadata().at("steps"), "3");
  const TensorView *tensor = file->find("w \"1\"");
  ASSERT_NE(tensor, nullptr);
  EXPECT_EQ(tensor->shape, (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(std::memcmp(tensor->data, weights, 24), 0);
  EXPECT_EQ(loadAsDouble(file->find("step")->data, DType::I64, 0), 7);
  EXPECT_EQ(file->find("nothing"), nullptr);
  std::remove(path.c_str());
}

TEST(Safetensors, KnowsFilesOfTorchSaveFromSizesOfHeaders) {
  std::string header = R"({"w":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})";
  for (size_t size : {0x280, 0x4b50}) { // \x80\2 and PK, as a pickle and an archive begin
    std::string path = temporaryPath("sizes");
    writeBytes(path, fileWith(header + std::string(size - header.size(), ' '), 8));
    Expected<SafetensorsFile> file = SafetensorsFile::open(path);
    EXPECT_TRUE(file) << file.error().message;
    std::remove(path.c_str());
  }
  expectContains(errorOf("\x80\2}q.(K.s."), "is a file of torch.save");
}

TEST(Safetensors, RejectsDamagedFiles) {
  expectContains(errorOf("abc"), "truncated");
  std::string good = fileWith(R"({"w":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})", 8);
  expectContains(errorOf(good.substr(0, 20)), "truncated: the header has");
  expectContains(errorOf(good.substr(0, good.size() - 1)), "/w/data_offsets: truncated: ends at byte 8");
  expectContains(errorOf(fileWith("{\"w\":", 0)), "not valid JSON");
  expectContains(errorOf(fileWith(R"({"w":{"dtype":"F32","shape":[3],"data_offsets":[0,8]}})", 8)),
                 "8 bytes do not hold F32[3]");
  expectContains(errorOf(fileWith(R"({"w":{"dtype":"F8","shape":[8],"data_offsets":[0,8]}})", 8)),
                 "unsupported dtype 'F8'");
  expectContains(errorOf(fileWith(R"({"w":{"dtype":"F32"}})", 8)), "/w/shape: is missing");
  auto tensor = [](const std::string &name, int elements, int begin, int end) {
    return "\"" + name + R"(":{"dtype":"F32","shape":[)" + std::to_string(elements) + R"(],"data_offsets":[)" +
           std::to_string(begin) + "," + std::to_string(end) + "]}";
  };
  expectContains(errorOf(good + "more"), "the file has 12 bytes of data, its tensors only 8");
  expectContains(errorOf(fileWith("{}", 4)), "the file has 4 bytes of data, its tensors only 0");
  expectContains(errorOf(fileWith("{" + tensor("v", 1, 12, 16) + "," + tensor("w", 2, 0, 8) + "}", 16)),
                 "/v/data_offsets: begins at byte 12 of the data, the tensors before it end at byte 8");
  expectContains(errorOf(fileWith("{" + tensor("w", 2, 4, 12) + "}", 12)), "/w/data_offsets: begins at byte 4");
  expectContains(errorOf(fileWith("{" + tensor("v", 2, 0, 8) + "," + tensor("w", 1, 4, 8) + "}", 8)),
                 "/w/data_offsets: begins at byte 4 of the data, the tensors before it end at byte 8");
  expectContains(errorOf(fileWith("{" + tensor("v", 2, 0, 8) + "," + tensor("w", 2, 0, 8) + "}", 8)),
                 "/w/data_offsets: begins at byte 0 of the data, the tensors before it end at byte 8");
  Expected<SafetensorsFile> none = SafetensorsFile::open("/nowhere/file");
  ASSERT_FALSE(none);
  expectContains(none.error().message, "cannot read '/nowhere/file'");
}

TEST(Safetensors, TakesTensorsInAnyOrderAndEmptyOnesBetween) {
  std::string path = temporaryPath("file");
  writeBytes(path, fileWith(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[8,12]},)"
                            R"("b":{"dtype":"F32","shape":[0],"data_offsets":[8,8]},)"
                            R"("c":{"dtype":"F32","shape":[2],"data_offsets":[0,8]}})",
                            12));
  Expected<SafetensorsFile> file = SafetensorsFile::open(path);
  EXPECT_TRUE(file) << file.error().message;
  std::remove(path.c_str());
}
