/* The C interface from C: loads a hand-written artifact, trains, reads, saves,
   and makes mistakes on purpose. argv: artifact, file to save. */
#include "spmd/Runtime/spmd.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define REQUIRE(condition)                                                                                             \
  do {                                                                                                                 \
    if (!(condition)) {                                                                                                \
      fprintf(stderr, "line %d: %s (%s)\n", __LINE__, #condition, status.message);                                     \
      return 1;                                                                                                        \
    }                                                                                                                  \
  } while (0)

int main(int argc, char **argv) {
  spmd_status status = {0};
  spmd_options options;
  spmd_trainer *trainer = NULL;
  spmd_tensor_info info = {.size = sizeof info};
  spmd_collective_info collective = {.size = sizeof collective};
  spmd_hyper_info hyper = {.size = sizeof hyper};
  spmd_launch launch = {.size = sizeof launch};
  spmd_command_info command = {.size = sizeof command};
  spmd_checkpoint *checkpoint;
  spmd_save_options save;
  spmd_file file;
  spmd_shard_info shard = {.size = sizeof shard};
  const void *data;
  size_t bytes, count;
  struct {
    spmd_options known;
    int64_t more;
  } later;
  int64_t ids[16];
  float target[24], loss = 0, before, weights[66];
  const int64_t ids_shape[2] = {8, 2}, target_shape[2] = {8, 3};
  spmd_tensor batch[2];
  int i;

  REQUIRE(argc == 6);
  REQUIRE(spmd_load("nowhere.spmd", NULL, &trainer, &status) == SPMD_BAD_INPUT);
  REQUIRE(trainer == NULL && strstr(status.message, "nowhere.spmd"));
  REQUIRE(spmd_load("nowhere.spmd", NULL, &trainer, NULL) == SPMD_BAD_INPUT);

  spmd_options_init(&options);
  options.ranks = 3;
  REQUIRE(spmd_load(argv[1], &options, &trainer, &status) == SPMD_BAD_INPUT);
  REQUIRE(strstr(status.message, "compiled for 2 ranks, not 3"));
  options.ranks = 2;
  options.size = 3;
  REQUIRE(spmd_load(argv[1], &options, &trainer, &status) == SPMD_BAD_INPUT);
  options.size = (size_t)-1; /* never set */
  REQUIRE(spmd_load(argv[1], &options, &trainer, &status) == SPMD_BAD_INPUT);
  /* A caller of a later version: what this library does not know is zero, or refused. */
  memset(&later, 0, sizeof later);
  options.size = sizeof later;
  later.known = options;
  later.more = 1;
  REQUIRE(spmd_load(argv[1], &later.known, &trainer, &status) == SPMD_BAD_INPUT);
  REQUIRE(strstr(status.message, "this version does not know"));
  later.more = 0;
  REQUIRE(spmd_load(argv[1], &later.known, &trainer, &status) == SPMD_OK);
  spmd_close(trainer);
  /* One of an earlier version: what it does not know has its default, and is not touched. */
  memset(&options, 0x55, sizeof options);
  spmd_options_init_sized(&options, offsetof(spmd_options, profile));
  REQUIRE(options.ranks == 0 && options.timeout_seconds > 0 && options.profile == 0x55555555);
  REQUIRE(spmd_load(argv[1], &options, &trainer, &status) == SPMD_OK);
  spmd_close(trainer);
  spmd_options_init(&options);
  options.launch = &launch;
  launch.size = 0;
  REQUIRE(spmd_load(argv[1], &options, &trainer, &status) == SPMD_BAD_INPUT && strstr(status.message, "spmd_launch"));
  launch.size = sizeof launch;
  launch.launcher = "none";
  REQUIRE(spmd_load(argv[1], &options, &trainer, &status) == SPMD_OK);
  REQUIRE(status.code == SPMD_OK && status.message[0] == 0);

  REQUIRE(spmd_ranks(trainer) == 2);
  REQUIRE(spmd_arena_bytes(trainer) > 0);
  REQUIRE(spmd_num_inputs(trainer) == 2);
  REQUIRE(spmd_input(trainer, 0, &info, &status) == SPMD_OK);
  REQUIRE(!strcmp(info.name, "x") && info.dtype == SPMD_I64 && info.rank == 2);
  REQUIRE(info.shape[0] == 8 && info.shape[1] == 2 && info.bytes == 128);
  REQUIRE(spmd_input(trainer, 2, &info, &status) == SPMD_BAD_INPUT);
  /* A caller of an earlier version: what it does not know is not touched. */
  info.size = offsetof(spmd_tensor_info, dtype);
  info.name = NULL;
  info.dtype = 77;
  REQUIRE(spmd_input(trainer, 0, &info, &status) == SPMD_OK && !strcmp(info.name, "x") && info.dtype == 77);
  info.size = 0;
  REQUIRE(spmd_input(trainer, 0, &info, &status) == SPMD_BAD_INPUT);
  REQUIRE(strstr(status.message, "spmd_tensor_info info = {.size = sizeof info}"));
  info.size = sizeof info;
  REQUIRE(spmd_command(trainer, 1, 0, &command, &status) == SPMD_OK && !strcmp(command.op, "all_gather"));
  REQUIRE(spmd_num_outputs(trainer) == 2);
  REQUIRE(spmd_output(trainer, 0, &info, &status) == SPMD_OK);
  REQUIRE(!strcmp(info.state, "loss") && info.rank == 0 && info.bytes == 4);
  REQUIRE(spmd_num_tensors(trainer) == 16);
  REQUIRE(spmd_tensor_at(trainer, 0, &info, &status) == SPMD_OK);
  REQUIRE(!strcmp(info.name, "emb.weight") && info.num_aliases == 1);
  REQUIRE(!strcmp(spmd_tensor_alias(trainer, 0, 0), "tied.weight"));
  REQUIRE(spmd_tensor_alias(trainer, 0, 1) == NULL);
  REQUIRE(spmd_num_collectives(trainer) == 6);
  REQUIRE(spmd_collective(trainer, 0, &collective, &status) == SPMD_OK);
  REQUIRE(!strcmp(collective.op, "all_gather") && collective.bytes == 192);
  REQUIRE(!strcmp(collective.unit, "embed") && collective.command == 0);
  REQUIRE(spmd_collective(trainer, 6, &collective, &status) == SPMD_BAD_INPUT);

  for (i = 0; i < 16; ++i)
    ids[i] = i % 11;
  for (i = 0; i < 24; ++i)
    target[i] = 0.5f;
  batch[0].data = ids;
  batch[0].dtype = SPMD_I64;
  batch[0].rank = 2;
  batch[0].shape = ids_shape;
  batch[1].data = target;
  batch[1].dtype = SPMD_F32;
  batch[1].rank = 2;
  batch[1].shape = target_shape;

  REQUIRE(spmd_step(trainer, batch, 1, &status) == SPMD_BAD_INPUT);
  ids[3] = -1;
  REQUIRE(spmd_step(trainer, batch, 2, &status) == SPMD_BAD_INPUT);
  REQUIRE(strstr(status.message, "value -1 at position [1, 1]"));
  ids[3] = 3;
  batch[1].dtype = 77;
  REQUIRE(spmd_step(trainer, batch, 2, &status) == SPMD_BAD_INPUT);
  batch[1].dtype = SPMD_F32;

  REQUIRE(spmd_set_hyper(trainer, "lr", 0, 0.05, &status) == SPMD_OK);
  REQUIRE(spmd_num_hypers(trainer) == 1);
  REQUIRE(spmd_hyper(trainer, 0, &hyper, &status) == SPMD_OK);
  REQUIRE(!strcmp(hyper.name, "lr") && hyper.value == 0.05);
  REQUIRE(spmd_set_hyper(trainer, NULL, 0, 1, &status) == SPMD_BAD_INPUT);

  REQUIRE(spmd_step(trainer, batch, 2, &status) == SPMD_OK);
  REQUIRE(spmd_read_output(trainer, 0, &before, sizeof before, &status) == 0);
  for (i = 0; i < 20; ++i)
    REQUIRE(spmd_step(trainer, batch, 2, &status) == SPMD_OK);
  REQUIRE(spmd_read_output(trainer, 0, &loss, sizeof loss, &status) == 0);
  REQUIRE(loss < before);
  REQUIRE(spmd_read_output(trainer, 0, &loss, 8, &status) == SPMD_BAD_INPUT);

  REQUIRE(spmd_read_tensor(trainer, "param", "tied.weight", weights, sizeof weights, &status) == SPMD_OK);
  weights[65] = 42;
  REQUIRE(spmd_write_tensor(trainer, "param", "emb.weight", weights, sizeof weights, &status) == SPMD_OK);
  weights[65] = 0;
  REQUIRE(spmd_read_tensor(trainer, "param", "tied.weight", weights, sizeof weights, &status) == SPMD_OK);
  REQUIRE(weights[65] == 42);
  REQUIRE(spmd_read_tensor(trainer, "nope", "emb.weight", weights, sizeof weights, &status) == SPMD_BAD_INPUT);
  REQUIRE(spmd_save(trainer, argv[2], 0, &status) == SPMD_OK);
  REQUIRE(spmd_save(trainer, "/nowhere/file", 0, &status) == SPMD_BAD_INPUT);

  REQUIRE(spmd_reads_alone(trainer) == 1);
  REQUIRE(spmd_num_shards(trainer, 1, &count, &status) == SPMD_OK && count > 0);
  REQUIRE(spmd_num_shards(trainer, 2, &count, &status) == SPMD_BAD_INPUT);
  REQUIRE(strstr(status.message, "rank 2 is not in this process, which has ranks 0 to 1"));
  REQUIRE(spmd_shard(trainer, 0, 0, &shard, &status) == SPMD_OK);
  REQUIRE(!strcmp(shard.name, "emb.weight") && !strcmp(shard.state, "param") && shard.first == 0);
  bytes = (size_t)shard.count * sizeof(float);
  REQUIRE(bytes <= sizeof weights && spmd_read_shard(trainer, 0, 0, weights, bytes, &status) == SPMD_OK);
  REQUIRE(spmd_read_shard(trainer, 0, 0, weights, 1, &status) == SPMD_BAD_INPUT);
  REQUIRE(spmd_shard(trainer, 0, 1000, &shard, &status) == SPMD_BAD_INPUT);

  spmd_save_options_init(&save);
  save.kind = "sharded";
  save.step = 21;
  save.notes = "{\"by\": \"c\"}";
  file.name = "more.txt";
  file.data = "hello";
  file.bytes = 5;
  save.files = &file;
  save.num_files = 1;
  REQUIRE(spmd_save_checkpoint(trainer, argv[3], &save, &status) == SPMD_OK);
  save.kind = "whole";
  REQUIRE(spmd_save_checkpoint(trainer, argv[3], &save, &status) == SPMD_BAD_INPUT);
  REQUIRE(spmd_step(trainer, batch, 2, &status) == SPMD_OK);
  REQUIRE(spmd_read_output(trainer, 0, &before, sizeof before, &status) == 0);
  REQUIRE(spmd_set_hyper(trainer, "lr", 0, 0.5, &status) == SPMD_OK);
  REQUIRE(spmd_step(trainer, batch, 2, &status) == SPMD_OK);
  REQUIRE(spmd_load_checkpoint(trainer, argv[3], 1, &checkpoint, &status) == SPMD_OK);
  REQUIRE(spmd_hyper(trainer, 0, &hyper, &status) == SPMD_OK && hyper.value == 0.05);
  spmd_close_checkpoint(checkpoint);
  REQUIRE(spmd_step(trainer, batch, 2, &status) == SPMD_OK);
  REQUIRE(spmd_read_output(trainer, 0, &loss, sizeof loss, &status) == 0);
  REQUIRE(loss == before);
  REQUIRE(spmd_load_checkpoint(trainer, "/nowhere", 1, &checkpoint, &status) == SPMD_BAD_INPUT && !checkpoint);
  spmd_close(trainer);

  REQUIRE(spmd_open_checkpoint("/nowhere", &checkpoint, &status) == SPMD_BAD_INPUT && !checkpoint);
  REQUIRE(spmd_open_checkpoint(argv[3], &checkpoint, &status) == SPMD_OK);
  REQUIRE(strstr(spmd_checkpoint_folder(checkpoint), "step-00000021"));
  REQUIRE(strstr(spmd_checkpoint_text(checkpoint), "\"by\": \"c\""));
  REQUIRE(spmd_num_checkpoint_notices(checkpoint) == 0 && !spmd_checkpoint_notice(checkpoint, 0));
  count = spmd_num_checkpoint_tensors(checkpoint);
  REQUIRE(count > 10);
  REQUIRE(spmd_checkpoint_tensor(checkpoint, 0, &info, &status) == SPMD_OK);
  REQUIRE(!strcmp(info.name, "emb.weight") && info.bytes == sizeof weights);
  REQUIRE(spmd_checkpoint_tensor(checkpoint, count, &info, &status) == SPMD_BAD_INPUT);
  REQUIRE(spmd_read_checkpoint_tensor(checkpoint, "tied.weight", weights, sizeof weights, &status) == SPMD_OK);
  REQUIRE(weights[65] == 42);
  REQUIRE(spmd_read_checkpoint_tensor(checkpoint, "tied.weight", weights, 4, &status) == SPMD_BAD_INPUT);
  REQUIRE(spmd_read_checkpoint_tensor(checkpoint, "none", weights, 4, &status) == SPMD_BAD_INPUT);
  REQUIRE(spmd_read_checkpoint_file(checkpoint, "more.txt", &data, &bytes, &status) == SPMD_OK);
  REQUIRE(bytes == 5 && !memcmp(data, "hello", 5));
  REQUIRE(spmd_read_checkpoint_file(checkpoint, "less.txt", &data, &bytes, &status) == SPMD_BAD_INPUT);
  spmd_close_checkpoint(checkpoint);
  spmd_close_checkpoint(NULL);
  REQUIRE(spmd_import_checkpoint(argv[2], argv[4], 7, NULL, &status) == SPMD_OK);
  REQUIRE(spmd_import_checkpoint("/nowhere", argv[4], 7, NULL, &status) == SPMD_BAD_INPUT);
  REQUIRE(spmd_open_checkpoint(argv[4], &checkpoint, &status) == SPMD_OK);
  REQUIRE(strstr(spmd_checkpoint_folder(checkpoint), "step-00000007"));
  spmd_close_checkpoint(checkpoint);

  options.fault = "exit:1:22";
  options.flight_record = argv[5];
  REQUIRE(spmd_load(argv[1], &options, &trainer, &status) == SPMD_OK);
  REQUIRE(!strcmp(spmd_describe_flight(trainer), ""));
  REQUIRE(spmd_step(trainer, batch, 2, &status) == SPMD_FAILED);
  REQUIRE(status.rank == 1 && status.command == 22);
  REQUIRE(strstr(status.message, "; what each rank did last is in '") && strstr(status.message, argv[5]));
  REQUIRE(strstr(spmd_describe_flight(trainer), "\nrank 1, step 0: compute: "));
  REQUIRE(!strcmp(status.location, "train.py:122"));
  spmd_close(trainer);
  spmd_close(NULL);
  puts("done");
  return 0;
}
