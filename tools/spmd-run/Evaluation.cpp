//===- Evaluation.cpp -----------------------------------------------------===//

#include "Evaluation.h"

#include <algorithm>

using namespace spmd::runtime;

Expected<size_t> spmd::runtime::findLoss(const Manifest &manifest) {
  const std::vector<Output> &outputs = manifest.outputs;
  auto loss =
      std::find_if(outputs.begin(), outputs.end(), [](const Output &o) { return o.kind == Binding::Kind::Loss; });
  // What evaluates calls no backward(), which would tell the loss from other outputs.
  if (loss == outputs.end() && outputs.size() == 1)
    loss = outputs.begin();
  if (loss == outputs.end() || numElements(loss->shape) != 1)
    return Status::badInput("the artifact has no scalar loss output");
  return static_cast<size_t>(loss - outputs.begin());
}

Expected<double> spmd::runtime::readLoss(const Trainer &trainer, size_t index, int64_t ago) {
  DType dtype = trainer.manifest().outputs[index].dtype;
  alignas(8) char value[8];
  if (Status status = trainer.readOutput(index, value, static_cast<size_t>(sizeOf(dtype)), ago); !status.ok())
    return status;
  return loadAsDouble(value, dtype, 0);
}

static bool isModel(const StateTensor &tensor) { return tensor.state == "param" || tensor.state == "buffer"; }

/// Whether the step leaves other parameters than it found.
static bool updatesParameters(const Manifest &manifest) {
  auto isUpdate = [](const ValueEntry &entry) {
    return entry.kind == ValueEntry::Kind::Target && entry.binding.hasState() && entry.binding.state == "param";
  };
  return manifest.values && std::any_of(manifest.values->entries.begin(), manifest.values->entries.end(), isUpdate);
}

Expected<Evaluation> Evaluation::load(const std::string &artifact, const std::string &data,
                                      const std::string &tokenType, int64_t steps, const Trainer &trained,
                                      TrainerOptions options) {
  options.weights.clear();
  options.profile = false;
  options.checkFinite = false;
  options.batch = BatchOf::JobRows;
  options.fault.clear();
  Expected<std::unique_ptr<Trainer>> trainer = Trainer::load(artifact, options);
  if (!trainer)
    return trainer.error();
  if (updatesParameters((*trainer)->manifest()))
    return Status::badInput("--eval=" + artifact +
                            ": its step updates parameters, so each batch would be evaluated with "
                            "others; pass the artifact of a step that only computes the loss");
  for (const StateTensor &tensor : (*trainer)->state().tensors()) {
    const StateTensor *other = isModel(tensor) ? trained.state().find(tensor.state, tensor.name) : nullptr;
    bool isSame = other && other->dtype == tensor.dtype && other->shape == tensor.shape;
    if (isModel(tensor) && !isSame)
      return Status::badInput("--eval=" + artifact + ": its " + tensor.state + " '" + tensor.name +
                              "' is none of the artifact that trains" + (other ? ", where it has another shape" : ""));
  }
  Expected<size_t> loss = findLoss((*trainer)->manifest());
  if (!loss)
    return Status::badInput("--eval=" + artifact + ": " + loss.error().message);
  DataOptions given{data, "sequential", tokenType, 0};
  Expected<DataSet> set = DataSet::open(given, (*trainer)->manifest(), (*trainer)->ranks());
  if (!set)
    return Status::badInput("--val: " + set.error().message);
  Evaluation evaluation(std::move(*trainer), std::move(*set));
  evaluation.steps = steps ? steps : evaluation.data.stepsPerEpoch();
  evaluation.loss = *loss;
  return evaluation;
}

Status Evaluation::copyParameters(const Trainer &trained) {
  std::vector<char> bytes;
  for (const StateTensor &tensor : trainer->state().tensors()) {
    if (!isModel(tensor))
      continue;
    bytes.resize(static_cast<size_t>(tensor.bytes()));
    Status status = trained.readTensor(tensor.state, tensor.name, bytes.data(), bytes.size());
    if (status.ok())
      status = trainer->writeTensor(tensor.state, tensor.name, bytes.data(), bytes.size());
    if (!status.ok())
      return status;
  }
  return Status::success();
}

Expected<double> Evaluation::run(const Trainer &trained) {
  if (Status status = copyParameters(trained); !status.ok())
    return status;
  double sum = 0;
  std::vector<HostTensor> batch;
  for (int64_t step = 0; step < steps; ++step) {
    Status status = data.batch(step, batch);
    if (status.ok())
      status = trainer->step(batch.data(), batch.size());
    if (!status.ok())
      return status;
    Expected<double> value = readLoss(*trainer, loss);
    if (!value)
      return value;
    sum += *value;
  }
  return sum / static_cast<double>(steps);
}
