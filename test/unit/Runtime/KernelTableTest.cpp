// Rule 9: kernels are launched as they were compiled.
#include "spmd/Runtime/Core/KernelTable.h"
#include "TestSupport.h"

using namespace spmd::runtime;

namespace {
struct KernelTableRule : ::testing::Test {
  Plan plan;
  const std::string table = "k0 16 r:f32:64 w:bf16:32\nk1 1\n";

  KernelTableRule() {
    plan.commands = {
        {0, "", {{0, 0, {}, 64, Access::Read}, {0, 64, {}, 32, Access::Write}}, KernelCommand{"k0", 16, 1}},
        {0, "", {}, KernelCommand{"k1", 1, 1}}};
  }
  void expectError(const std::string &part, const std::string &text) {
    Status status = checkKernelTable(plan, text);
    EXPECT_EQ(status.code, StatusCode::BadInput);
    expectContains(status.message, "certificate rule 9: command 0 (kernel k0): " + part);
  }
};
} // namespace

TEST_F(KernelTableRule, Holds) {
  Status status = checkKernelTable(plan, table);
  EXPECT_TRUE(status.ok()) << status.message;
}

TEST_F(KernelTableRule, NamesEveryKernel) {
  expectError("the file of kernels has no 'k0'", "k1 1\n");
  expectError("the file of kernels has no 'k0'", "");
}

TEST_F(KernelTableRule, Iterations) {
  plan.commands[0].as<KernelCommand>()->parallel = 17;
  expectError("has 17 iterations; the kernel was compiled for 16", table);
}

TEST_F(KernelTableRule, NumberOfArguments) {
  plan.commands[0].refs.pop_back();
  expectError("has 1 arguments; the kernel takes 2", table);
}

TEST_F(KernelTableRule, BytesOfAnArgument) {
  plan.commands[0].refs[1].bytes = 30;
  expectError("argument 1 is w of 30 bytes; the kernel takes w of 32 bytes of bf16", table);
}

TEST_F(KernelTableRule, AccessOfAnArgument) {
  plan.commands[0].refs[0].access = Access::ReadWrite;
  expectError("argument 0 is rw of 64 bytes; the kernel takes r of 64 bytes of f32", table);
}

TEST_F(KernelTableRule, PaddedRows) {
  Status status = checkKernelTable(plan, "k0 16 r:f32:64 w:bf16:32:7/8\nk1 1\n");
  EXPECT_TRUE(status.ok()) << status.message;
  KernelTable table = parseKernelTable("k0 16 r:f32:64 w:bf16:32:7/8\n");
  const std::vector<KernelEntry::Argument> &arguments = table.at("k0").arguments;
  EXPECT_EQ(arguments[0].ld, 0);
  EXPECT_EQ(arguments[1].columns, 7);
  EXPECT_EQ(arguments[1].ld, 8);
}

TEST_F(KernelTableRule, TextThatIsNone) {
  for (std::string rows : {"", "7", "7/7", "0/8", "x/8", "7/", "9/8", ":7/8"})
    expectError("argument 1 is w of 32 bytes; the kernel takes w of -1 bytes",
                "k0 16 r:f32:64 w:bf16:32:" + rows + "\n");
  expectError("argument 0 is r of 64 bytes; the kernel takes", "k0 16 r w\n");
  expectError("has 16 iterations; the kernel was compiled for 0", "k0 many\n");
}
