/*===- spmd.h - The C interface of the runtime ---------------------*- C -*-===*\
|*
|* Loads an artifact that spmd-compile made and trains it on the ranks of this
|* process: all of them, or, where a launcher (torchrun, mpirun, srun) started
|* several processes, its part. These make the same calls in the same order;
|* what only reads is for each alone. Every function that can fail returns SPMD_OK or an error code and
|* fills the status, which may be NULL. No C++ exception crosses this border. A
|* trainer may be used by one thread at a time.
|*
|*   spmd_options options;
|*   spmd_options_init(&options);
|*   spmd_trainer *trainer;
|*   spmd_status status;
|*   if (spmd_load("gpt2.spmd", &options, &trainer, &status)) ...
|*   spmd_tensor batch[2] = {{x, SPMD_I64, 2, shape}, {y, SPMD_I64, 2, shape}};
|*   if (spmd_step(trainer, batch, 2, &status)) ...
|*   spmd_read_output(trainer, 0, &loss, sizeof loss, &status);
|*   spmd_close(trainer);
|*
|* Structs that may get members begin with their size, which says how much the
|* caller knows of: in options spmd_options_init sets it, in others the caller
|* (spmd_tensor_info info = {.size = sizeof info}). Members of options that only
|* one of both knows have their defaults; one that the caller has set and this
|* library does not know is SPMD_BAD_INPUT. Of what the library fills in, the
|* caller gets the members that it knows of, those of a later version as zeros.
|* spmd_status, spmd_tensor, spmd_place and spmd_file stay as they are for good.
|*
|* An artifact holds native code: load only what you would run as a program.
|*
\*===----------------------------------------------------------------------===*/

#ifndef SPMD_RUNTIME_SPMD_H
#define SPMD_RUNTIME_SPMD_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define SPMD_API __attribute__((visibility("default")))

/* Codes of errors; the same as the exit codes of the command line tools. */
enum {
  SPMD_OK = 0,
  SPMD_BAD_INPUT = 2,  /* bad file, option, shape, dtype or value */
  SPMD_FAILED = 3,     /* failure while running */
  SPMD_OTHER_STATE = 4 /* the program cannot have the state of the one that it should share it with */
};

/* Element types: SPMD_F32 and what else dtypes.def lists. A bool is one byte. */
enum {
#define SPMD_DTYPE(NAME, CONSTANT, NUMBER, BYTES, IS_FLOATING, TEXT, SAFETENSORS) CONSTANT = NUMBER,
#include "dtypes.def"
};

typedef struct spmd_status {
  int32_t code;
  int32_t rank;       /* -1: no particular rank */
  int32_t command;    /* position in the plan; -1: no particular command */
  char message[1024]; /* one sentence */
  char location[512]; /* module and user line of the command, or empty */
} spmd_status;

typedef struct spmd_trainer spmd_trainer;

/* What each of several processes gives to a step. */
enum {
  SPMD_BATCH_OF_PROCESS = 0, /* its own rows; the global batch is theirs, in the order of processes */
  SPMD_BATCH_OF_JOB = 1      /* the global batch, the same in all */
};

/* Which of several processes this is. Zero-initialized but for `size`: what the launcher says. */
typedef struct spmd_launch {
  size_t size;          /* sizeof(spmd_launch) */
  const char *launcher; /* "torchrun", "mpirun", "mpiexec", "srun", "environment", "none"; NULL: whoever started it */
  int64_t world_size;   /* 0: what the launcher says; else `rank` and `address` are read, too */
  int64_t rank;
  const char *address;  /* "HOST:PORT" where the process of rank 0 can be met */
} spmd_launch;

typedef struct spmd_options {
  size_t size;                /* sizeof(spmd_options), set by spmd_options_init */
  int64_t ranks;              /* 0: what the artifact was compiled for */
  int64_t threads;            /* of all ranks together; 0: one per core */
  double timeout_seconds;     /* of a collective */
  const char *weights;        /* safetensors; NULL: the artifact's own */
  const char *cpu;            /* "x86-64-v3"; NULL: the best this machine runs */
  const char *fault;          /* for tests: "exit:RANK:COMMAND", "stall:...",
                                 "skip:..."; NULL: none */
  const spmd_trainer *shares; /* train the state of this trainer too, as another
                             program over it: a batch of another shape; NULL: a
                             state of its own. Both artifacts must lay the state
                             out alike, and `weights` is then read for constants
                             only. Trainers that share run one at a time; each
                             may be closed while others go on. */
  int32_t profile;            /* 1: note when each command runs, for spmd_command; 0: do not */
  int32_t batch;              /* SPMD_BATCH_OF_PROCESS or SPMD_BATCH_OF_JOB */
  const spmd_launch *launch;  /* which of several processes this is; NULL: what the launcher says */
  int32_t written_next;       /* 1: tensors that the weights lack are zero, and the caller writes them before the
                                 first step (spmd_write_tensor, spmd_load_checkpoint); 0: a missing one is an error */
  const char *flight_record;  /* a folder: when a step fails, what each rank did last is written to rank-N.json there;
                                 NULL: nowhere */
} spmd_options;

/* A dense row-major tensor of the caller. */
typedef struct spmd_tensor {
  const void *data;
  int32_t dtype;
  int32_t rank; /* number of dims */
  const int64_t *shape;
} spmd_tensor;

/* Where a tensor is, in the numbers of DLPack (DLDevice): of kind 1, and 3, pinned
   memory, on the host; of kind 2, and 13, managed memory, on the GPU of that number
   among those that the process sees. */
typedef struct spmd_place {
  int32_t kind;
  int32_t number;
} spmd_place;

/* What is known of a batch input, an output or a tensor of the state. Pointers
   live as long as the trainer. */
typedef struct spmd_tensor_info {
  size_t size;       /* sizeof(spmd_tensor_info), set by the caller */
  const char *name;  /* input or parameter name; output: path in the result */
  const char *state; /* "batch"; "loss" or "output"; "param", "buffer",
                        "constant", "rng" (its "seed" and "step") or the kind
                        of optimizer state */
  int32_t dtype;
  int32_t rank;
  const int64_t *shape; /* global shape */
  size_t bytes;
  size_t num_aliases; /* further names of a tied parameter */
} spmd_tensor_info;

typedef struct spmd_hyper_info {
  size_t size; /* sizeof(spmd_hyper_info), set by the caller */
  const char *name;
  int64_t group;
  double value; /* in effect */
} spmd_hyper_info;

/* A collective of one step. */
typedef struct spmd_collective_info {
  size_t size;    /* sizeof(spmd_collective_info), set by the caller */
  const char *op; /* "all_gather", "reduce_scatter", ... */
  const char *communicator;
  const char *unit;     /* or empty */
  const char *location; /* or empty */
  int32_t command;      /* position in the plan */
  int64_t bytes;        /* handed over by each rank */
} spmd_collective_info;

/* Sets the `size` bytes that a caller knows of to the defaults. */
SPMD_API void spmd_options_init_sized(spmd_options *options, size_t size);
#define spmd_options_init(options) spmd_options_init_sized((options), sizeof *(options))

/* The processes of a job, for what a program exchanges besides training: every
   process makes the same calls in the same order. One that is alone is process
   0 of 1. */
typedef struct spmd_processes spmd_processes;

/* Meets the other processes; `launch` may be NULL. */
SPMD_API int32_t spmd_join(const spmd_launch *launch, double timeout_seconds, spmd_processes **processes,
                           spmd_status *status);
SPMD_API void spmd_leave(spmd_processes *processes);
SPMD_API int64_t spmd_process(const spmd_processes *processes);
SPMD_API int64_t spmd_num_processes(const spmd_processes *processes);

/* Gives every process `bytes` of each, in their order. An error when another
   has not come within `patience_seconds` (0: as long as all of them live). */
SPMD_API int32_t spmd_gather(spmd_processes *processes, const void *mine, size_t bytes, void *all,
                             double patience_seconds, spmd_status *status);

/* Gives every process the bytes that process `from` has. */
SPMD_API int32_t spmd_share(spmd_processes *processes, int64_t from, void *data, size_t bytes, spmd_status *status);

/* The value of spmd-compile's --cpu for this processor, "x86-64-v3" or
   "x86-64-v4"; empty when kernels are made for neither. */
SPMD_API const char *spmd_native_cpu(void);

/* Loads `artifact` (a folder), its weights, and starts the ranks. *trainer is
   NULL after an error. */
SPMD_API int32_t spmd_load(const char *artifact, const spmd_options *options, spmd_trainer **trainer,
                           spmd_status *status);

/* Ends the threads and frees the memory. NULL is allowed. */
SPMD_API void spmd_close(spmd_trainer *trainer);

SPMD_API int64_t spmd_ranks(const spmd_trainer *trainer);
SPMD_API int64_t spmd_threads(const spmd_trainer *trainer);
SPMD_API int64_t spmd_arena_bytes(const spmd_trainer *trainer); /* per rank */
SPMD_API const char *spmd_cpu(const spmd_trainer *trainer);
SPMD_API const char *spmd_result_tree(const spmd_trainer *trainer);

/* What a user of the weights that were given should know: tensors that the
   artifact has no place for, state that they leave out. */
SPMD_API size_t spmd_num_warnings(const spmd_trainer *trainer);
SPMD_API const char *spmd_warning(const spmd_trainer *trainer, size_t index); /* NULL: there are fewer */

/* When a step has failed: what each rank of this process was doing, in a line for
   each. Else empty. It lives until the next call. */
SPMD_API const char *spmd_describe_flight(const spmd_trainer *trainer);

/* Counts and descriptions; an index out of range is SPMD_BAD_INPUT. */
SPMD_API size_t spmd_num_inputs(const spmd_trainer *trainer);
SPMD_API int32_t spmd_input(const spmd_trainer *trainer, size_t index, spmd_tensor_info *info, spmd_status *status);
SPMD_API size_t spmd_num_outputs(const spmd_trainer *trainer);
SPMD_API int32_t spmd_output(const spmd_trainer *trainer, size_t index, spmd_tensor_info *info, spmd_status *status);
SPMD_API size_t spmd_num_hypers(const spmd_trainer *trainer);
SPMD_API int32_t spmd_hyper(const spmd_trainer *trainer, size_t index, spmd_hyper_info *info, spmd_status *status);
SPMD_API size_t spmd_num_tensors(const spmd_trainer *trainer);
SPMD_API int32_t spmd_tensor_at(const spmd_trainer *trainer, size_t index, spmd_tensor_info *info, spmd_status *status);
/* A further name of the tensor `index`; NULL when there is none. */
SPMD_API const char *spmd_tensor_alias(const spmd_trainer *trainer, size_t index, size_t alias);
/* 1 when the tensor `index` is in checkpoints and saved files; 0 for constants and
   buffers that are part of no state dict, and when there is no such tensor. */
SPMD_API int32_t spmd_tensor_is_saved(const spmd_trainer *trainer, size_t index);
SPMD_API size_t spmd_num_collectives(const spmd_trainer *trainer);
SPMD_API int32_t spmd_collective(const spmd_trainer *trainer, size_t index, spmd_collective_info *info,
                                 spmd_status *status);

/* A command of the plan, and when `rank` ran it in the latest step: both times
   0 unless the options asked for a profile. */
typedef struct spmd_command_info {
  size_t size;          /* sizeof(spmd_command_info), set by the caller */
  const char *op;       /* "kernel", "attention", "gemm", "all_gather", "wait", ... */
  const char *kernel;   /* its symbol, or empty */
  const char *location; /* or empty */
  int32_t stream;
  int64_t bytes; /* read and written when every operand is touched once */
  double flops;  /* of a gemm; else 0 */
  int64_t begin_nanoseconds, end_nanoseconds;
} spmd_command_info;

SPMD_API size_t spmd_num_commands(const spmd_trainer *trainer);
SPMD_API int32_t spmd_command(const spmd_trainer *trainer, int64_t rank, size_t index, spmd_command_info *info,
                              spmd_status *status);

/* Sets a hyper-parameter, such as "lr" of parameter group 0, for the following
   steps. */
SPMD_API int32_t spmd_set_hyper(spmd_trainer *trainer, const char *name, int64_t group, double value,
                                spmd_status *status);

/* Trains one step on a batch: one tensor per input, in order. A batch of
   another dtype or shape, or with ids that are no rows of their table, is
   refused before anything runs, and so are hyper-parameters or written tensors
   that differ between processes. After SPMD_FAILED the trainer can only be read
   and closed. */
SPMD_API int32_t spmd_step(spmd_trainer *trainer, const spmd_tensor *inputs, size_t count, spmd_status *status);

/* Where the one rank of this process computes, and a stream there that no step is
   issued to. Of kind 1 and 0 where it has the tensors of the caller on the host, and
   where there are several ranks. */
SPMD_API int32_t spmd_rank_place(const spmd_trainer *trainer, spmd_place *place, int64_t *stream, spmd_status *status);

/* spmd_step with tensors at `places`, one for each: on the host, or on the device of
   the one rank of this process, where they are copied without the host. `stream` is
   the caller's there, as DLPack numbers them (of CUDA 1 is the legacy default stream,
   2 that of the thread, others are handles): the copies come after what it has, and
   what it gets later after the copies, so the tensors are the caller's again as if
   that stream had copied them. Row ids are looked at before the step: this waits for
   what writes them. With the stream that spmd_rank_place gives nothing waits for the
   copies, and the tensors stay as they are until the step is over. */
SPMD_API int32_t spmd_step_on(spmd_trainer *trainer, const spmd_tensor *inputs, const spmd_place *places, size_t count,
                              int64_t stream, spmd_status *status);

/* Copy an output of the latest step, and a full tensor of the state, to memory of the
   caller's at the place of the one rank of this process, in the same order with
   `stream`; nothing waits on the host, and a step that fails is an error of a later
   call. With the stream that spmd_rank_place gives they return when it is done.
   Where ranks have parts of it, which spmd_is_output_whole and spmd_is_tensor_whole
   answer by 0, it is SPMD_BAD_INPUT. */
SPMD_API int32_t spmd_is_output_whole(const spmd_trainer *trainer, size_t index);
SPMD_API int32_t spmd_copy_output(const spmd_trainer *trainer, size_t index, void *data, size_t bytes, int64_t stream,
                                  spmd_status *status);
SPMD_API int32_t spmd_is_tensor_whole(const spmd_trainer *trainer, const char *state, const char *name);
SPMD_API int32_t spmd_copy_tensor(const spmd_trainer *trainer, const char *state, const char *name, void *data,
                                  size_t bytes, int64_t stream, spmd_status *status);

/* Copies an output of the latest step; `bytes` is the size of the buffer. Where
   every rank has its own (a step compiled with --view=local): the mean over the
   ranks of a floating number, else what rank 0 has. */
SPMD_API int32_t spmd_read_output(const spmd_trainer *trainer, size_t index, void *data, size_t bytes,
                                  spmd_status *status);

/* The same of the step `ago` before the latest, which is waited for, and no later
   one: of a GPU of up to 8 steps, as spmd_steps_kept says; else of the latest. */
SPMD_API int32_t spmd_read_output_ago(const spmd_trainer *trainer, size_t index, int64_t ago, void *data, size_t bytes,
                                      spmd_status *status);
SPMD_API int64_t spmd_steps_kept(const spmd_trainer *trainer, size_t index);

/* Copy a full tensor of the state, by any of its names: state "param",
   "buffer", "constant", "rng" or the kind of optimizer state ("exp_avg"). */
SPMD_API int32_t spmd_read_tensor(const spmd_trainer *trainer, const char *state, const char *name, void *data,
                                  size_t bytes, spmd_status *status);
SPMD_API int32_t spmd_write_tensor(spmd_trainer *trainer, const char *state, const char *name, const void *data,
                                   size_t bytes, spmd_status *status);

/* 1: a process reads outputs and state alone; 0: the ranks are on several
   hosts, and all processes make the same reads. */
SPMD_API int32_t spmd_reads_alone(const spmd_trainer *trainer);

/* What `rank`, of this process, has of the state for itself: elements
   [first, first + count) of a tensor. What all ranks have alike is rank 0's. */
typedef struct spmd_shard_info {
  size_t size;      /* sizeof(spmd_shard_info), set by the caller */
  const char *name; /* and `state`: of the tensor, as in spmd_tensor_info */
  const char *state;
  int32_t dtype;
  int64_t first, count;
} spmd_shard_info;

SPMD_API int32_t spmd_num_shards(const spmd_trainer *trainer, int64_t rank, size_t *count, spmd_status *status);
SPMD_API int32_t spmd_shard(const spmd_trainer *trainer, int64_t rank, size_t index, spmd_shard_info *info,
                            spmd_status *status);
SPMD_API int32_t spmd_read_shard(const spmd_trainer *trainer, int64_t rank, size_t index, void *data, size_t bytes,
                                 spmd_status *status);

/* Saves full parameters and persistent buffers as safetensors under all their
   names; with_optimizer also "optimizer/STATE/NAME". The file appears complete
   or not at all. Of several processes the one that calls it writes. */
SPMD_API int32_t spmd_save(const spmd_trainer *trainer, const char *path, int32_t with_optimizer, spmd_status *status);

/* Checkpoints (docs/training.md): a folder of them has a folder for each,
   "step-00000100", which is there whole or not at all. Those of the command
   line are the same. */
typedef struct spmd_checkpoint spmd_checkpoint;

/* A further file of a checkpoint, under a name of its own. */
typedef struct spmd_file {
  const char *name;
  const void *data;
  size_t bytes;
} spmd_file;

typedef struct spmd_save_options {
  size_t size;           /* sizeof(spmd_save_options), set by spmd_save_options_init */
  const char *kind;      /* "full": one file that PyTorch loads; "sharded": a file for each rank */
  int64_t step;          /* steps taken; gives the checkpoint its name */
  int64_t keep;          /* the newest so many stay; 0: all */
  const char *notes;     /* a JSON value that the checkpoint keeps; NULL: {} */
  const spmd_file *files; /* of this process; of two processes they have different names */
  size_t num_files;
  int32_t beside;        /* 1: returns when the state is copied, and the copy is written while steps go on, until
                            spmd_finish_checkpoint; of several processes only kind "sharded"; 0: when it is saved */
} spmd_save_options;

SPMD_API void spmd_save_options_init_sized(spmd_save_options *options, size_t size);
#define spmd_save_options_init(options) spmd_save_options_init_sized((options), sizeof *(options))

/* Saves a checkpoint in `folder`, in place of one of the same step. All
   processes of a job call this, with one folder that all of them see. */
SPMD_API int32_t spmd_save_checkpoint(const spmd_trainer *trainer, const char *folder, const spmd_save_options *options,
                                      spmd_status *status);

/* Gives the checkpoint that is written beside the run its name, if it is written;
   `waits`: when it is. *finished is 0 while it is still being written, else 1. All
   processes of a job call this; saving again and closing the trainer do it, too
   (closing only in a job of one process). An error of writing comes out here. */
SPMD_API int32_t spmd_finish_checkpoint(const spmd_trainer *trainer, int32_t waits, int32_t *finished,
                                        spmd_status *status);

/* Loads the newest checkpoint in `folder` that is whole, or `folder` itself
   when it is one, with hyper-parameters: each rank reads its bytes. Tensors
   that are missing, unexpected or of another shape are listed in the error, and
   nothing has changed then; not `strict`: what is missing stays as it is, what
   is unexpected is left out. All processes of a job call this. The checkpoint
   is to be closed. */
SPMD_API int32_t spmd_load_checkpoint(spmd_trainer *trainer, const char *folder, int32_t strict,
                                      spmd_checkpoint **checkpoint, spmd_status *status);

/* Makes a checkpoint in `folder`, of kind full, of the state that another
   program has trained for `step` steps: `weights` is a safetensors file with
   whole tensors under their keys in files. */
SPMD_API int32_t spmd_import_checkpoint(const char *weights, const char *folder, int64_t step, const char *notes,
                                        spmd_status *status);

/* Opens the newest checkpoint in `folder` that is whole, without a trainer. */
SPMD_API int32_t spmd_open_checkpoint(const char *folder, spmd_checkpoint **checkpoint, spmd_status *status);
SPMD_API void spmd_close_checkpoint(spmd_checkpoint *checkpoint);

/* Its folder; its run.json; what newer ones are damaged, and why. Valid as long
   as it is open. */
SPMD_API const char *spmd_checkpoint_folder(const spmd_checkpoint *checkpoint);
SPMD_API const char *spmd_checkpoint_text(const spmd_checkpoint *checkpoint);
SPMD_API size_t spmd_num_checkpoint_notices(const spmd_checkpoint *checkpoint);
SPMD_API const char *spmd_checkpoint_notice(const spmd_checkpoint *checkpoint, size_t index); /* NULL: there are fewer */

/* Its tensors: `name` is the key in files ("fc.weight",
   "optimizer/exp_avg/fc.weight", "rng/step"), `state` is empty. Reading copies
   a whole tensor, of which every block is checked. */
SPMD_API size_t spmd_num_checkpoint_tensors(const spmd_checkpoint *checkpoint);
SPMD_API int32_t spmd_checkpoint_tensor(const spmd_checkpoint *checkpoint, size_t index, spmd_tensor_info *info,
                                        spmd_status *status);
SPMD_API int32_t spmd_read_checkpoint_tensor(const spmd_checkpoint *checkpoint, const char *name, void *data,
                                             size_t bytes, spmd_status *status);

/* A further file of it: its bytes, which are valid until the next call. */
SPMD_API int32_t spmd_read_checkpoint_file(spmd_checkpoint *checkpoint, const char *name, const void **data,
                                           size_t *bytes, spmd_status *status);

#ifdef __cplusplus
}
#endif

#endif /* SPMD_RUNTIME_SPMD_H */
