//===- Reference.cpp ------------------------------------------------------===//

#include "Reference.h"

using namespace spmd::runtime;

static std::string batchKey(int64_t step, const std::string &input) {
  return "batch/" + std::to_string(step) + "/" + input;
}

Expected<Reference> Reference::open(const std::string &path, const Manifest &manifest) {
  Expected<SafetensorsFile> file = SafetensorsFile::open(path);
  if (!file)
    return file.error();
  Reference reference(std::move(*file), manifest);
  auto missing = [&](const std::string &key) {
    return Status::badInput("'" + path + "': has no tensor '" + key + "'");
  };
  const TensorView *losses = reference.file.find("loss");
  if (!losses)
    return missing("loss");
  if (losses->shape.size() != 1)
    return Status::badInput("'" + path + "': 'loss' has shape " + formatShape(losses->shape) +
                            ", expected one value per step");
  // As many steps as there are whole batches: a file may have been cut short.
  for (;; ++reference.numSteps) {
    size_t present = 0;
    for (const BatchInput &input : manifest.batch)
      present += reference.file.find(batchKey(reference.numSteps, input.name)) != nullptr;
    if (present < manifest.batch.size() || manifest.batch.empty())
      break;
  }
  if (manifest.batch.empty())
    reference.numSteps = losses->shape[0];
  if (reference.numSteps == 0)
    return missing(batchKey(0, manifest.batch[0].name));
  for (const HyperParameter &hyper : manifest.hyper) {
    std::string key = "hyper/" + hyper.name + "/" + std::to_string(hyper.group);
    const TensorView *values = reference.file.find(key);
    if (values && numElements(values->shape) < reference.numSteps)
      return Status::badInput("'" + path + "': '" + key + "' has " + formatShape(values->shape) + " values for " +
                              std::to_string(reference.numSteps) + " steps");
  }
  return reference;
}

std::vector<HostTensor> Reference::batch(int64_t step) const {
  std::vector<HostTensor> tensors;
  for (const BatchInput &input : manifest->batch) {
    const TensorView *view = file.find(batchKey(step, input.name));
    tensors.push_back({view->data, view->dtype, static_cast<int32_t>(view->shape.size()), view->shape.data()});
  }
  return tensors;
}

std::optional<double> Reference::loss(int64_t step) const {
  const TensorView *losses = file.find("loss");
  if (step >= losses->shape[0])
    return std::nullopt;
  return loadAsDouble(losses->data, losses->dtype, step);
}

Status Reference::applyHyper(int64_t step, Trainer &trainer) const {
  for (const HyperParameter &hyper : manifest->hyper) {
    const TensorView *values = file.find("hyper/" + hyper.name + "/" + std::to_string(hyper.group));
    if (!values)
      continue;
    if (Status status = trainer.setHyper(hyper.name, hyper.group, loadAsDouble(values->data, values->dtype, step));
        !status.ok())
      return status;
  }
  return Status::success();
}

double Reference::movedLoss(int64_t step) const {
  const TensorView *moved = file.find("moved/loss");
  return moved && step < numElements(moved->shape) ? loadAsDouble(moved->data, moved->dtype, step) : 0;
}

double Reference::moved(const std::string &key) const {
  const TensorView *moved = file.find("moved/final/" + key);
  return moved && numElements(moved->shape) == 1 ? loadAsDouble(moved->data, moved->dtype, 0) : 0;
}

bool Reference::hasMovement() const { return file.find("moved/loss") != nullptr; }

const TensorView *Reference::final(const std::string &key) const { return file.find("final/" + key); }
