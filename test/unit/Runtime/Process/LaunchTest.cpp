#include "spmd/Runtime/Process/Launch.h"

#include <gtest/gtest.h>

#include <map>

using namespace spmd::runtime;

namespace {

using Variables = std::map<std::string, std::string>;

Expected<Launch> read(const Variables &variables, const LaunchOptions &options = {}) {
  return readLaunch(options, [&](const char *name) -> const char * {
    auto found = variables.find(name);
    return found == variables.end() ? nullptr : found->second.c_str();
  });
}

Launch readGood(const Variables &variables, const LaunchOptions &options = {}) {
  Expected<Launch> launch = read(variables, options);
  EXPECT_TRUE(launch) << (launch ? "" : launch.error().message);
  return launch ? *launch : Launch();
}

std::string readBad(const Variables &variables, const LaunchOptions &options = {}) {
  Expected<Launch> launch = read(variables, options);
  EXPECT_FALSE(launch);
  return launch ? "" : launch.error().message;
}

const Variables kTorchrun = {{"RANK", "3"},           {"WORLD_SIZE", "8"},
                             {"MASTER_ADDR", "node0"}, {"MASTER_PORT", "29500"},
                             {"TORCHELASTIC_RUN_ID", "run7"}, {"TORCHELASTIC_RESTART_COUNT", "2"},
                             {"TORCHELASTIC_USE_AGENT_STORE", "True"}};
const Variables kOpenMpi = {{"OMPI_COMM_WORLD_RANK", "1"},
                            {"OMPI_COMM_WORLD_SIZE", "2"},
                            {"PMIX_NAMESPACE", "3241017345"},
                            {"OMPI_MCA_orte_precondition_transports", "a1-b2"}};
const Variables kSlurm = {{"SLURM_JOB_ID", "41"},         {"SLURM_STEP_ID", "2"},
                          {"SLURM_PROCID", "5"},          {"SLURM_NTASKS", "16"},
                          {"SLURM_STEP_NUM_TASKS", "8"},  {"SLURM_STEP_NODELIST", "gpu[08-09]"}};

Variables with(Variables variables, const Variables &more) {
  for (const auto &[name, value] : more)
    variables[name] = value;
  return variables;
}

TEST(Launch, IsAloneWithoutALauncher) {
  Launch launch = readGood({});
  EXPECT_EQ(launch.launcher, Launcher::None);
  EXPECT_TRUE(launch.isAlone());
}

TEST(Launch, ReadsTorchrun) {
  Launch launch = readGood(kTorchrun);
  EXPECT_EQ(launch.launcher, Launcher::Torchrun);
  EXPECT_EQ(launch.rank, 3);
  EXPECT_EQ(launch.world, 8);
  EXPECT_EQ(launch.address, "node0");
  EXPECT_EQ(launch.port, 29500);
  EXPECT_EQ(launch.job, "run7");
  EXPECT_EQ(launch.restart, 2);
  EXPECT_TRUE(launch.hasAgentStore);
}

TEST(Launch, ReadsOpenMpi) {
  Launch launch = readGood(kOpenMpi);
  EXPECT_EQ(launch.launcher, Launcher::OpenMpi);
  EXPECT_EQ(launch.rank, 1);
  EXPECT_EQ(launch.world, 2);
  EXPECT_EQ(launch.job, "3241017345");
  EXPECT_EQ(launch.secret, "a1-b2");
  EXPECT_EQ(launch.address, "");
  EXPECT_FALSE(launch.hasAgentStore);
}

TEST(Launch, ReadsPmi) {
  Launch launch = readGood({{"PMI_RANK", "0"}, {"PMI_SIZE", "4"}});
  EXPECT_EQ(launch.launcher, Launcher::Pmi);
  EXPECT_EQ(launch.world, 4);
  EXPECT_NE(launch.job, "");
}

TEST(Launch, ReadsTheStepOfSlurm) {
  Launch launch = readGood(kSlurm);
  EXPECT_EQ(launch.launcher, Launcher::Slurm);
  EXPECT_EQ(launch.rank, 5);
  EXPECT_EQ(launch.world, 8);
  EXPECT_EQ(launch.job, "41.2");
  EXPECT_EQ(launch.address, "gpu08");
  EXPECT_GE(launch.port, 20000);
  EXPECT_LT(launch.port, 60000);
}

TEST(Launch, IsAloneInABatchScriptOrShellOfSlurm) {
  for (const char *step : {"4294967291", "4294967290"})
    EXPECT_TRUE(readGood(with(kSlurm, {{"SLURM_STEP_ID", step}})).isAlone());
  Variables noStep = kSlurm;
  noStep.erase("SLURM_STEP_ID");
  EXPECT_TRUE(readGood(noStep).isAlone());
}

TEST(Launch, TakesTheInnerLauncher) {
  // mpirun inside srun, torchrun inside either.
  EXPECT_EQ(readGood(with(kSlurm, kOpenMpi)).launcher, Launcher::OpenMpi);
  EXPECT_EQ(readGood(with(with(kSlurm, kOpenMpi), kTorchrun)).launcher, Launcher::Torchrun);
}

TEST(Launch, ReadsVariablesSetByHand) {
  Variables variables = {{"RANK", "1"}, {"WORLD_SIZE", "2"}, {"MASTER_ADDR", "localhost"}, {"MASTER_PORT", "1234"}};
  EXPECT_EQ(readGood(variables).launcher, Launcher::Environment);
  variables.erase("MASTER_PORT");
  EXPECT_TRUE(readGood(variables).isAlone());
  EXPECT_EQ(readBad(variables, {"environment", {}, {}, ""}),
            "MASTER_ADDR=localhost without MASTER_PORT");
}

TEST(Launch, OptionsGoBeforeTheEnvironment) {
  EXPECT_TRUE(readGood(kTorchrun, {"none", {}, {}, ""}).isAlone());
  EXPECT_EQ(readGood(with(kOpenMpi, kTorchrun), {"mpirun", {}, {}, ""}).rank, 1);
  Launch launch = readGood(kTorchrun, {"", 1, 2, "host:77"});
  EXPECT_EQ(launch.rank, 1);
  EXPECT_EQ(launch.world, 2);
  EXPECT_EQ(launch.address, "host");
  EXPECT_EQ(launch.port, 77);
  EXPECT_FALSE(launch.hasAgentStore);
}

TEST(Launch, NamesWhatIsWrong) {
  EXPECT_EQ(readBad(with(kTorchrun, {{"RANK", "8"}})), "RANK=8: expected a number from 0 to 7");
  EXPECT_EQ(readBad(with(kTorchrun, {{"WORLD_SIZE", "two"}})), "WORLD_SIZE=two: expected a number from 1 to 16777216");
  Variables noSize = kOpenMpi;
  noSize.erase("OMPI_COMM_WORLD_SIZE");
  EXPECT_EQ(readBad(noSize), "mpirun did not set OMPI_COMM_WORLD_SIZE");
  EXPECT_EQ(readBad({}, {"ssh", {}, {}, ""}),
            "--launcher=ssh: expected torchrun, mpirun, mpiexec, srun, environment, none");
  EXPECT_EQ(readBad({}, {"", 1, {}, ""}), "--rank and --world-size belong together");
  EXPECT_EQ(readBad({}, {"", 2, 2, ""}), "--rank=2 --world-size=2: expected a rank from 0 to below the world size");
  for (const char *address : {"host", "host:", "host:0", "host:65536", ":80", "host:1x"})
    EXPECT_EQ(readBad({}, {"", 0, 2, address}), "--address=" + std::string(address) + ": expected HOST:PORT");
  EXPECT_EQ(readBad({}, {"", 0, 2, ""}), "nothing says where the processes can meet; set MASTER_ADDR and "
                                         "MASTER_PORT, or --address=HOST:PORT");
}

TEST(Launch, FindsTheFirstHost) {
  EXPECT_EQ(getFirstHost("node1"), "node1");
  EXPECT_EQ(getFirstHost("node1,node2"), "node1");
  EXPECT_EQ(getFirstHost("node[08-11,15],gpu3"), "node08");
  EXPECT_EQ(getFirstHost("node[3,7]"), "node3");
  EXPECT_EQ(getFirstHost("rack[1-2]node[03-4]"), "rack1node03");
  EXPECT_EQ(getFirstHost("login,gpu[1-2]"), "login");
  EXPECT_EQ(getFirstHost("broken[1"), "");
  EXPECT_EQ(getFirstHost(""), "");
}

} // namespace
