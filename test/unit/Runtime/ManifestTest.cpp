#include "spmd/Runtime/Core/Manifest.h"
#include "TestSupport.h"

using namespace spmd::runtime;

/// The error of the manifest for two ranks with `from` replaced by `to`.
static std::string errorOf(const std::string &from, const std::string &to) {
  Expected<Manifest> manifest = parseManifest("manifest.json", edited(tinyArtifact(2) + "/manifest.json", from, to));
  EXPECT_FALSE(manifest) << from << " -> " << to;
  return manifest ? "" : manifest.error().message;
}

TEST(Manifest, Reads) {
  Manifest manifest = loadTiny(2).manifest;
  EXPECT_EQ(manifest.ranks, 2);
  ASSERT_EQ(manifest.units.size(), 2u);
  EXPECT_EQ(manifest.units[1].segments[2].name, "scale");
  EXPECT_FALSE(manifest.units[1].segments[2].trainable);
  EXPECT_TRUE(manifest.units[1].isTrainable());
  EXPECT_TRUE(manifest.units[1].isSharded());
  EXPECT_EQ(manifest.batch[0].indexBound, 11);
  EXPECT_FALSE(manifest.batch[1].indexBound);
  EXPECT_EQ(manifest.outputs[1].localShape, (std::vector<int64_t>{4, 3}));
}

TEST(Manifest, CoordinatesHaveTheLastAxisFastest) {
  Manifest manifest;
  manifest.mesh = {{"replica", 2}, {"shard", 3}};
  manifest.ranks = 6;
  EXPECT_EQ(manifest.coordinatesOf(4), (std::vector<int64_t>{1, 1}));
  EXPECT_EQ(manifest.coordinatesOf(2), (std::vector<int64_t>{0, 2}));
}

TEST(Manifest, RejectsOtherFormatsAndVersions) {
  expectContains(errorOf("\"spmd-artifact\"", "\"spmd-step\""), "manifest.json: /format: expected 'spmd-artifact'");
  expectContains(errorOf("\"version\": 6", "\"version\": 1"),
                 "/version: this runtime reads version 6, the artifact has "
                 "version 1");
}

TEST(Manifest, NamesTheBadPlace) {
  expectContains(errorOf("\"ranks\": 2", "\"ranks\": 3"), "/ranks: expected the product of the mesh axes, 2, found 3");
  expectContains(errorOf("\"size\": 2", "\"size\": 0, \"tensor\": true"),
                 "/mesh/0/size: expected at least 1 rank, and no more than 1048576 on all axes together; found 0");
  expectContains(errorOf("\"state_bytes\": ", "\"state_bytes\": 1"),
                 "/arena/bytes: expected state_bytes + transient_bytes");
  expectContains(errorOf("\"chunk\": 48", "\"chunk\": 40"), "/units/0/chunk: 2 chunks of 40 are not the 96");
  expectContains(errorOf("\"numel\": 66", "\"numel\": 65"),
                 "/units/0/segments/0/numel: shape [11, 6] does not have 65");
  expectContains(
      errorOf("\"numel\": 66", "\"numel\": 66, \"whole_shape\": [11, 5], \"dim\": 1, \"pre\": 1, \"chunk\": 6"),
      "/units/0/segments/0/whole_shape: expected 1 parts of [11, 6], found [11, 5]");
  expectContains(errorOf("\"local_shape\": [\n    4,\n    2", "\"local_shape\": [\n    1000000000,\n    2000000000"),
                 "/batch/0/local_shape: shape [1000000000, 2000000000] has too many elements");
  expectContains(errorOf("\"kind\": \"table\"", "\"kind\": \"list\""),
                 "/state/2/kind: expected shard, table or replicated");
  expectContains(errorOf("\"unit\": \"fc\"", "\"unit\": \"fd\""), "/state/3/unit: no unit is named 'fd'");
  expectContains(errorOf("\"local_shape\": [\n    4,\n    2", "\"local_shape\": [\n    5,\n    2"),
                 "/batch/0/local_shape: expected [4, 2], found [5, 2]");
  expectContains(errorOf("\"dtype\": \"f64\"", "\"dtype\": \"f63\""), "/hyper/0/dtype: unknown dtype 'f63'");
  expectContains(errorOf("\"train_step.plan.json\"", "\"../plan.json\""),
                 "/programs/0/plan: expected a file name without folders");
  expectContains(errorOf("\"state\": \"sharded\"", "\"state\": \"partial\""),
                 "/outputs/1/state: expected replicated, sharded or varying");
  expectContains(errorOf("\"source\": \"batch\"", "\"source\": \"list\""),
                 "/source: expected shard, table, replicated, batch, hyper, loss or output, found 'list'");
  expectContains(errorOf("\"compute\": \"kernel\"", "\"compute\": \"loop\""), "/compute: unknown operation 'loop'");
}
