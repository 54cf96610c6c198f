//===- CheckpointApi.cpp - The checkpoints of spmd.h ----------------------===//

#include "Handles.h"
#include "spmd/Runtime/Run/Checkpoint.h"

using namespace spmd::runtime;

struct spmd_checkpoint {
  Checkpoint checkpoint;
  std::vector<std::string> keys; ///< of its tensors
  std::string file;              ///< that was read last
};

static spmd_checkpoint *makeHandle(Checkpoint checkpoint) {
  auto *handle = new spmd_checkpoint{std::move(checkpoint), {}, {}};
  for (const auto &[key, tensor] : handle->checkpoint.state->tensors())
    handle->keys.push_back(key);
  return handle;
}

namespace {
struct Finished {
  Status status;
  bool isFinished;
};
} // namespace

/// Of a checkpoint that is written beside the run, if there is one.
static Finished finish(const spmd_trainer &trainer, bool waits) {
  if (!trainer.saving)
    return {Status::success(), true};
  Expected<std::string> saved = trainer.saving->finish(waits);
  return {saved ? Status::success() : saved.error(), !trainer.saving->isPending()};
}

static spmd_save_options getDefaults() {
  spmd_save_options options = {};
  options.kind = "full";
  return options;
}

void spmd_save_options_init_sized(spmd_save_options *options, size_t size) { initSized(options, size, getDefaults()); }

int32_t spmd_save_checkpoint(const spmd_trainer *trainer, const char *folder, const spmd_save_options *given,
                             spmd_status *status) {
  return guarded(status, [&]() -> Status {
    std::optional<spmd_save_options> options = readSized(given, getDefaults());
    if (!options)
      return Status::badInput("spmd_save_checkpoint: options were not made by spmd_save_options_init, or have members "
                              "that this version does not know");
    std::optional<CheckpointKind> kind = parseCheckpointKind(textOrEmpty(options->kind));
    if (!kind)
      return Status::badInput("kind is '" + textOrEmpty(options->kind) + "'; allowed: full, sharded");
    if (options->step < 0 || options->keep < 0)
      return Status::badInput("step and keep must not be negative");
    CheckpointOptions chosen;
    chosen.kind = *kind;
    chosen.keep = options->keep;
    for (size_t i = 0; i < options->num_files; ++i) {
      const spmd_file &file = options->files[i];
      chosen.files.emplace_back(file.name, std::string(static_cast<const char *>(file.data), file.bytes));
    }
    RunState run;
    run.step = options->step;
    if (options->notes)
      run.notes = options->notes;
    const Trainer &made = *trainer->trainer;
    Expected<CheckpointFolder> created = CheckpointFolder::create(textOrEmpty(folder));
    if (Status agreed = made.agreeOn(created ? Status::success() : created.error()); !agreed.ok())
      return agreed;
    if (options->beside) {
      if (!trainer->saving)
        trainer->saving = std::make_unique<BackgroundSave>(made);
      return trainer->saving->start(*created, std::move(run), std::move(chosen));
    }
    if (Status status = finish(*trainer, /*waits=*/true).status; !status.ok())
      return status;
    Expected<std::string> saved = created->save(made, std::move(run), chosen);
    return saved ? Status::success() : saved.error();
  });
}

int32_t spmd_finish_checkpoint(const spmd_trainer *trainer, int32_t waits, int32_t *finished, spmd_status *status) {
  return guarded(status, [&]() -> Status {
    Finished done = finish(*trainer, waits != 0);
    *finished = done.isFinished;
    return done.status;
  });
}

int32_t spmd_import_checkpoint(const char *weights, const char *folder, int64_t step, const char *notes,
                               spmd_status *status) {
  return guarded(status, [&]() -> Status {
    if (step < 0)
      return Status::badInput("step must not be negative");
    Expected<CheckpointFolder> created = CheckpointFolder::create(textOrEmpty(folder));
    if (!created)
      return created.error();
    RunState run;
    run.step = step;
    if (notes)
      run.notes = notes;
    Expected<std::string> made = created->import(textOrEmpty(weights), run);
    return made ? Status::success() : made.error();
  });
}

int32_t spmd_load_checkpoint(spmd_trainer *trainer, const char *folder, int32_t strict, spmd_checkpoint **checkpoint,
                             spmd_status *status) {
  return guarded(status, [&]() -> Status {
    *checkpoint = nullptr;
    Expected<Checkpoint> loaded = CheckpointFolder::restore(textOrEmpty(folder), *trainer->trainer, strict != 0);
    if (!loaded)
      return loaded.error();
    loaded->run.applyRates(*trainer->trainer);
    *checkpoint = makeHandle(std::move(*loaded));
    return Status::success();
  });
}

int32_t spmd_open_checkpoint(const char *folder, spmd_checkpoint **checkpoint, spmd_status *status) {
  return guarded(status, [&]() -> Status {
    *checkpoint = nullptr;
    Expected<Checkpoint> found = CheckpointFolder::findLatest(textOrEmpty(folder));
    if (!found)
      return found.error();
    *checkpoint = makeHandle(std::move(*found));
    return Status::success();
  });
}

void spmd_close_checkpoint(spmd_checkpoint *checkpoint) { delete checkpoint; }

const char *spmd_checkpoint_folder(const spmd_checkpoint *checkpoint) { return checkpoint->checkpoint.folder.c_str(); }

const char *spmd_checkpoint_text(const spmd_checkpoint *checkpoint) { return checkpoint->checkpoint.text.c_str(); }

size_t spmd_num_checkpoint_notices(const spmd_checkpoint *checkpoint) { return checkpoint->checkpoint.notices.size(); }

const char *spmd_checkpoint_notice(const spmd_checkpoint *checkpoint, size_t index) {
  const std::vector<std::string> &all = checkpoint->checkpoint.notices;
  return index < all.size() ? all[index].c_str() : nullptr;
}

size_t spmd_num_checkpoint_tensors(const spmd_checkpoint *checkpoint) { return checkpoint->keys.size(); }

int32_t spmd_checkpoint_tensor(const spmd_checkpoint *checkpoint, size_t index, spmd_tensor_info *info,
                               spmd_status *status) {
  return guarded(status, [&]() -> Status {
    if (index >= checkpoint->keys.size())
      return missing("tensor", index, checkpoint->keys.size());
    const std::string &key = checkpoint->keys[index];
    const StateSource::Tensor *tensor = checkpoint->checkpoint.state->find(key);
    return describe(key, "", tensor->dtype, tensor->shape, 0, info);
  });
}

int32_t spmd_read_checkpoint_tensor(const spmd_checkpoint *checkpoint, const char *name, void *data, size_t bytes,
                                    spmd_status *status) {
  return guarded(status, [&]() -> Status {
    const CheckpointState &state = *checkpoint->checkpoint.state;
    const StateSource::Tensor *tensor = state.find(textOrEmpty(name));
    if (!tensor)
      return Status::badInput(state.describe() + " has no tensor '" + textOrEmpty(name) + "'");
    int64_t count = numElements(tensor->shape);
    if (static_cast<size_t>(count * sizeOf(tensor->dtype)) != bytes)
      return Status::badInput("'" + textOrEmpty(name) + "' has " + std::to_string(count * sizeOf(tensor->dtype)) +
                              " bytes, the caller's buffer " + std::to_string(bytes));
    Status checked = state.check(name, 0, count);
    return checked.ok() ? state.read(name, 0, count, data) : checked;
  });
}

int32_t spmd_read_checkpoint_file(spmd_checkpoint *checkpoint, const char *name, const void **data, size_t *bytes,
                                  spmd_status *status) {
  return guarded(status, [&]() -> Status {
    Expected<std::string> content = checkpoint->checkpoint.state->readFile(textOrEmpty(name));
    if (!content)
      return content.error();
    checkpoint->file = std::move(*content);
    *data = checkpoint->file.data();
    *bytes = checkpoint->file.size();
    return Status::success();
  });
}
