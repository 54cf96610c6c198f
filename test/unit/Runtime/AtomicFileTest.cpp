#include "spmd/Runtime/Core/AtomicFile.h"
#include "spmd/Runtime/Core/Json.h"
#include "TestSupport.h"

#include <filesystem>

using namespace spmd::runtime;
namespace fs = std::filesystem;

namespace {
/// An empty folder, removed at the end.
struct AtomicFileTest : testing::Test {
  AtomicFileTest() : folder(temporaryPath("atomic")) {
    fs::remove_all(folder);
    fs::create_directory(folder);
  }
  ~AtomicFileTest() override { fs::remove_all(folder); }

  std::string at(const std::string &name) const { return (folder / name).string(); }
  std::string read(const char *name) const { return *readFile(at(name)); }
  auto numFiles() const { return std::distance(fs::directory_iterator(folder), fs::directory_iterator()); }

  fs::path folder;
};
} // namespace

TEST_F(AtomicFileTest, IsThereOnceCommitted) {
  ASSERT_TRUE(writeFile(at("file"), "before").ok());
  Expected<AtomicFile> file = AtomicFile::create(at("file"));
  ASSERT_TRUE(file);
  file->write("af", 2);
  file->write("ter", 3);
  EXPECT_EQ(read("file"), "before");
  ASSERT_TRUE(file->commit().ok());
  EXPECT_EQ(read("file"), "after");
  EXPECT_EQ(numFiles(), 1);
}

TEST_F(AtomicFileTest, LeavesNothingUncommitted) {
  {
    Expected<AtomicFile> file = AtomicFile::create(at("file"));
    ASSERT_TRUE(file);
    file->write("x", 1);
    EXPECT_EQ(numFiles(), 1);
  }
  EXPECT_EQ(numFiles(), 0);
}

TEST_F(AtomicFileTest, LeavesNothingWhenTheLastStepFails) {
  Expected<AtomicFile> file = AtomicFile::create(at("file"));
  ASSERT_TRUE(file);
  fs::create_directory(at("file"));
  Status status = file->commit();
  EXPECT_EQ(status.code, StatusCode::BadInput);
  EXPECT_EQ(status.message, "cannot write '" + at("file") + "': Is a directory");
  EXPECT_EQ(numFiles(), 1);
}

TEST_F(AtomicFileTest, RefusesWhatIsNoRegularFile) {
  EXPECT_EQ(writeFile("/dev/null", "x").message, "cannot write '/dev/null': not a regular file");
  EXPECT_EQ(writeFile(folder.string(), "x").message, "cannot write '" + folder.string() + "': not a regular file");
  EXPECT_EQ(writeFile("/nowhere/file", "x").message, "cannot write '/nowhere/file': No such file or directory");
}

TEST_F(AtomicFileTest, SaysWhenTheDiskIsFull) {
  // The temporary itself leads to a full device.
  fs::create_symlink("/dev/full", at("file.tmp." + std::to_string(::getpid())));
  EXPECT_EQ(writeFile(at("file"), "x").message, "cannot write '" + at("file") + "': No space left on device");
  EXPECT_EQ(numFiles(), 0);
}

TEST_F(AtomicFileTest, FollowsLinks) {
  ASSERT_TRUE(writeFile(at("file"), "before").ok());
  fs::create_symlink("file", at("link"));
  ASSERT_TRUE(writeFile(at("link"), "after").ok());
  EXPECT_TRUE(fs::is_symlink(at("link")));
  EXPECT_EQ(read("file"), "after");
}
